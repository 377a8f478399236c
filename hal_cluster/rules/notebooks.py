"""Notebooks: what is wrong with declared kernels, their files, and the modules of notebooks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}/[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
FIELDS = ("module", "title")


def kernel_problems(declared: Any) -> list[str]:
    """Return a line for each fault of notebooks_kernels.

    `declared`: the variable as it is written. A line has the entry and what would be right.
    """
    if not isinstance(declared, (list, tuple)):
        return ["notebooks_kernels: not a list; write a module an entry"]
    found = [f"notebooks_kernels[{number}]: {words}" for number, one in enumerate(declared) for words in _faults(one)]
    if found:
        return found
    names = Counter(_name(one["module"]) for one in declared)
    return [f"notebooks_kernels: {name} is declared {times} times" for name, times in names.items() if times > 1]


def kernel_table(declared: Sequence[Mapping[str, str]], folder: str, launcher: str) -> list[dict[str, str]]:
    """Return each kernel with `name`, `module`, and `path` and `content` of its kernel.json below a folder.

    Format: "Making kernels for Jupyter", docs of jupyter_client (argv, display_name, language, metadata).
    `declared`: entries of notebooks_kernels, without faults. `launcher`: the program that loads the module and starts
    the kernel.
    """
    return [
        {
            "name": _name(one["module"]), "module": one["module"],
            "folder": f"{folder}/{_name(one['module'])}", "path": f"{folder}/{_name(one['module'])}/kernel.json",
            "content": _kernel(one, launcher),
        }
        for one in declared
    ]  # fmt: skip


def kernel_files(table: Sequence[Mapping[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return {directories, files} of kernels, as hal_files takes them.

    `table`: what `kernel_table` returned.
    """
    return {
        "directories": [{"path": one["folder"], "mode": "0755"} for one in table],
        "files": [{"path": one["path"], "content": one["content"] + "\n"} for one in table],
    }


def modules(environments: Sequence[Mapping[str, Any]], kernels: str, image: str, registry: str) -> list[dict[str, Any]]:
    """Return modules of environments (as hal_environment_modules gives them) with Jupyter's path, and two more.

    `jupyterlab/V` loads `jupyter/V`; with an `image`, `notebook-container/V` of the default names NAME.sif of the
    `registry`.
    `kernels` is the folder whose `kernels` Jupyter searches.
    `image` is empty where there is none. `registry`: the folder of images.
    """
    found = [dict(one) for one in environments]
    for one in [one for one in found if one["name"] == "jupyter"]:
        one["prepend"] = {"JUPYTER_PATH": [kernels]}
        if one.get("retired"):
            continue
        shared: dict[str, Any] = {
            field: one[field] for field in ("version", "owner_role", "default", "hidden") if field in one
        }
        title = f"JupyterLab of jupyter/{one['version']}"
        found.append({**shared, "name": "jupyterlab", "title": title, "requires": [f"jupyter/{one['version']}"]})
        if image and one.get("default"):  # the one that is in the image
            sif = f"{registry}/{image}.sif"
            container = {"title": f"Notebook of jupyter/{one['version']} in a container", "help": _CONTAINER}
            places = {"roots": [sif], "set": {"HAL_NOTEBOOK_IMAGE": sif, "HAL_NOTEBOOK_PREFIX": one["roots"][0]}}
            found.append({**shared, **container, **places, "name": "notebook-container"})
    return found


_CONTAINER = """hal-notebook and hal-lab then start in the container, with this node's GPUs and your home.
Its only kernel is its own Python: kernels of modules are not in it."""


def _name(module: str) -> str:
    return re.sub(r"[^a-z0-9_.-]", "-", module.lower())


def _kernel(one: Mapping[str, str], launcher: str) -> str:
    content = {
        "argv": [launcher, one["module"], "{connection_file}"],
        "display_name": one.get("title") or f"Python ({one['module']})",
        "language": "python",
        "metadata": {"written_by": "Ansible, role notebooks; changes made here are lost"},
    }
    return json.dumps(content, indent=1, sort_keys=True)


def _faults(one: Any) -> Iterator[str]:
    if not isinstance(one, Mapping):
        yield "not a mapping; write {module: NAME/VERSION}"
        return
    for field in one:
        if field not in FIELDS:
            yield f"{field} is no field; there are {', '.join(FIELDS)}"
    if not (isinstance(one.get("module"), str) and MODULE.fullmatch(one["module"])):
        yield f"module is {one.get('module', 'not there')}; write NAME/VERSION, whose Python has ipykernel"
    if not isinstance(one.get("title", ""), str):
        yield "title is no text"

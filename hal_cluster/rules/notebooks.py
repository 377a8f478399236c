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
    problems = [
        f"notebooks_kernels[{number}]: {words}" for number, entry in enumerate(declared) for words in _faults(entry)
    ]
    if problems:
        return problems
    names = Counter(_name(kernel["module"]) for kernel in declared)
    return [f"notebooks_kernels: {name} is declared {times} times" for name, times in names.items() if times > 1]


def kernel_table(declared: Sequence[Mapping[str, str]], folder: str, launcher: str) -> list[dict[str, str]]:
    """Return each kernel with `name`, `module`, and `path` and `content` of its kernel.json below a folder.

    Format: "Making kernels for Jupyter", docs of jupyter_client (argv, display_name, language, metadata).
    `declared`: entries of notebooks_kernels, without faults. `launcher`: the program that loads the module and starts
    the kernel.
    """
    return [
        {
            "name": _name(kernel["module"]), "module": kernel["module"],
            "folder": f"{folder}/{_name(kernel['module'])}", "path": f"{folder}/{_name(kernel['module'])}/kernel.json",
            "content": _kernel(kernel, launcher),
        }
        for kernel in declared
    ]  # fmt: skip


def kernel_files(table: Sequence[Mapping[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return {directories, files} of kernels, as hal_files takes them.

    `table`: what `kernel_table` returned.
    """
    return {
        "directories": [{"path": kernel["folder"], "mode": "0755"} for kernel in table],
        "files": [{"path": kernel["path"], "content": kernel["content"] + "\n"} for kernel in table],
    }


def modules(environments: Sequence[Mapping[str, Any]], kernels: str, image: str, registry: str) -> list[dict[str, Any]]:
    """Return modules of environments (as hal_environment_modules gives them) with Jupyter's path, and two more.

    `jupyterlab/V` loads `jupyter/V`; with an `image`, `notebook-container/V` of the default names NAME.sif of the
    `registry`.
    `kernels` is the folder whose `kernels` Jupyter searches.
    `image` is empty where there is none. `registry`: the folder of images.
    """
    made = [dict(environment) for environment in environments]
    for environment in [environment for environment in made if environment["name"] == "jupyter"]:
        environment["prepend"] = {"JUPYTER_PATH": [kernels]}
        if environment.get("retired"):
            continue
        shared: dict[str, Any] = {
            field: environment[field]
            for field in ("version", "owner_role", "default", "hidden")
            if field in environment
        }
        title = f"JupyterLab of jupyter/{environment['version']}"
        made.append({**shared, "name": "jupyterlab", "title": title, "requires": [f"jupyter/{environment['version']}"]})
        if image and environment.get("default"):  # the one that is in the image
            sif = f"{registry}/{image}.sif"
            container = {"title": f"Notebook of jupyter/{environment['version']} in a container", "help": _CONTAINER}
            places = {
                "roots": [sif],
                "set": {"HAL_NOTEBOOK_IMAGE": sif, "HAL_NOTEBOOK_PREFIX": environment["roots"][0]},
            }
            made.append({**shared, **container, **places, "name": "notebook-container"})
    return made


_CONTAINER = """hal-notebook and hal-lab then start in the container, with this node's GPUs and your home.
Its only kernel is its own Python: kernels of modules are not in it."""


def _name(module: str) -> str:
    return re.sub(r"[^a-z0-9_.-]", "-", module.lower())


def _kernel(kernel: Mapping[str, str], launcher: str) -> str:
    content = {
        "argv": [launcher, kernel["module"], "{connection_file}"],
        "display_name": kernel.get("title") or f"Python ({kernel['module']})",
        "language": "python",
        "metadata": {"written_by": "Ansible, role notebooks; changes made here are lost"},
    }
    return json.dumps(content, indent=1, sort_keys=True)


def _faults(entry: Any) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield "not a mapping; write {module: NAME/VERSION}"
        return
    for field in entry:
        if field not in FIELDS:
            yield f"{field} is not a field; there are {', '.join(FIELDS)}"
    if not (isinstance(entry.get("module"), str) and MODULE.fullmatch(entry["module"])):
        yield f"module is {entry.get('module', 'not there')}; write NAME/VERSION, whose Python has ipykernel"
    if not isinstance(entry.get("title", ""), str):
        yield "title is not text"

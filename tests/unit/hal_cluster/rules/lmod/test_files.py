"""What becomes of declared modules: Lua that Lua reads, and says what was declared."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.rules.lmod.files import files, modulefile, roots

TREE = "/opt/apps/modulefiles"


def module(**changes: Any) -> dict[str, Any]:
    """A module that can be loaded, changed."""
    return {"name": "cuda", "version": "10.2", "title": "CUDA 10.2", "owner_role": "cuda", **changes}


FULL = module(
    title='The "CUDA" toolkit',
    help="Two\nlines \\ %d ]] größer",
    family="cuda",
    conflicts=["at"],
    requires=["gcc/9"],
    roots=["/usr/local/cuda-10.2"],
    extensions=["nvcc/10.2", "cufft"],
    set={"CUDA_HOME": "/usr/local/cuda-10.2"},
    prepend={"PATH": ["/usr/local/cuda-10.2/bin", "/usr/local/cuda-10.2/nvvm/bin"]},
    append={"MANPATH": ["/a", "/b"]},
    settings_file="/home/apps/x/settings.lua",
    deprecated='"soon"',
    default=True,
)


def text(one: dict[str, Any], name: str, *more: dict[str, Any]) -> list[str]:
    """Lines of one file of these modules."""
    found = {entry["path"]: entry["content"] for entry in files([one, *more], TREE)}
    return found[f"{TREE}/{name}"].splitlines()


def test_each_file_says_who_wrote_it_and_where_it_is() -> None:
    declared = [FULL, module(version="10.1"), module(name="at", version="12.0")]
    found = files(declared, TREE + "/")
    assert [one["path"] for one in found] == [
        f"{TREE}/at/.modulerc.lua",
        f"{TREE}/at/12.0.lua",
        f"{TREE}/cuda/.modulerc.lua",
        f"{TREE}/cuda/10.1.lua",
        f"{TREE}/cuda/10.2.lua",
    ]
    header = "-- Written by Ansible, role cuda; changes made here are lost.\n"
    assert all(one["content"].startswith(header) for one in found)
    assert files(declared[::-1], TREE) == found, "whatever order they are declared in"


def test_a_module_does_what_is_declared_in_this_order() -> None:
    lines = text(FULL, "cuda/10.2.lua")
    wanted = [
        'help("The \\"CUDA\\" toolkit\\n\\nTwo\\nlines \\\\ %d ]] größer\\n")',
        'whatis("Description: The \\"CUDA\\" toolkit")',
        'extensions("nvcc/10.2,cufft")',
        '  for _, path in ipairs({"/usr/local/cuda-10.2", "/home/apps/x/settings.lua"}) do',
        'if (mode() == "load") then LmodMessage("cuda/10.2 will be removed: \\"soon\\"") end',
        'family("cuda")',
        'conflict("at")',
        'depends_on("gcc/9")',
        'setenv("CUDA_HOME", "/usr/local/cuda-10.2")',
        'prepend_path("PATH", "/usr/local/cuda-10.2/nvvm/bin")',
        'prepend_path("PATH", "/usr/local/cuda-10.2/bin")',
        'append_path("MANPATH", "/a")',
        'append_path("MANPATH", "/b")',
        '  local path = "/home/apps/x/settings.lua"',
        '    local undo = loadfile(os.getenv("HAL_SETTINGS_CUDA") or path)',
        "    assert(loadfile(path))()",
        '  setenv("HAL_SETTINGS_CUDA", path)',
    ]
    assert [line for line in lines if line in wanted] == wanted


def test_a_retired_version_fails_with_its_words_needs_nothing_and_can_be_unloaded() -> None:
    gone = module(retired="use 10.2", roots=["/gone"], set={"A": "b"}, settings_file="/settings.lua", extensions=["a"])
    lines = text(gone, "cuda/10.2.lua")
    assert 'if (mode() == "load") then LmodError("cuda/10.2 is retired: use 10.2") end' in lines
    assert 'setenv("A", "b")' in lines
    assert "/gone" not in "".join(lines)
    assert '  local path = "/settings.lua"' in lines, "what was loaded before is undone by it"
    assert roots([gone]) == roots([module(retired="use 10.2", roots=["/gone"])]) == []


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ([], ['module_version("cuda/10.2", "default")']),
        ([module(version="9.2", retired="x")], ['module_version("cuda/10.2", "default")', 'hide_version("cuda/9.2")']),
        (
            [module(version="11.0", hidden=True)],
            ['module_version("cuda/10.2", "default")', 'hide_version("cuda/11.0")'],
        ),
    ],
)
def test_the_default_is_always_said_and_what_is_hidden_or_retired_is_not_listed(
    more: list[dict[str, Any]], lines: list[str]
) -> None:
    assert text(module(), "cuda/.modulerc.lua", *more)[1:] == lines


def test_without_anything_to_see_there_is_no_default() -> None:
    assert text(module(retired="x"), "cuda/.modulerc.lua")[1:] == ['hide_version("cuda/10.2")']


def test_what_a_module_leads_to() -> None:
    assert roots([FULL, module(version="9.0")]) == [
        {"name": "cuda/10.2: /usr/local/cuda-10.2", "path": "/usr/local/cuda-10.2"},
        {"name": "cuda/10.2: /home/apps/x/settings.lua", "path": "/home/apps/x/settings.lua"},
    ]


@pytest.mark.parametrize(
    "one", [FULL, module(retired='a "b"\n\\'), module(title="x\ny")], ids=["full", "retired", "two"]
)
def test_lua_can_read_it(one: dict[str, Any], tmp_path: Path) -> None:
    compiler = next(filter(None, map(shutil.which, ("luac", "luac5.1", "luac5.3", "luac5.4"))), None)
    if not compiler:
        pytest.skip("no luac here; molecule/lmod loads such files with Lmod itself")
    path = tmp_path / "module.lua"
    path.write_text(modulefile(one))
    done = subprocess.run([compiler, "-p", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_default_of_a_name_is_one_of_its_own_versions() -> None:
    """Names come from JSON: equal texts, each an object of its own."""
    declared = [module(name="".join(name), version=version, default=version == "2")
                for name in (["a", "t"], ["cu", "da"], ["g", "cc"]) for version in ("1", "2", "3")]  # fmt: skip
    declared = [*declared, module(name="".join(["cu", "da"]), version="4", retired="use 2")]
    for name in ("at", "cuda", "gcc"):
        lines = text(declared[0], f"{name}/.modulerc.lua", *declared[1:])[1:]
        hidden = ['hide_version("cuda/4")'] if name == "cuda" else []
        assert lines == [f'module_version("{name}/2", "default")', *hidden]

"""Faults of declared modules in whole sentences, several at once; and whole modulefiles."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules.lmod.declared import FIELDS, label, problems, visible
from hal_cluster.rules.lmod.files import files, modulefile, modulerc, roots
from tests.unit.hal_cluster.rules.lmod.test_files import FULL, module

LABELS = "write letters, digits, . _ + -, a letter or digit first, not default, and not .lua at the end"
MODULES = "write names of modules, NAME or NAME/VERSION"
PATHS = "write absolute paths without :, one an entry"
LOOPS = "names the module itself; versions of one name replace each other anyway"


def own(value: Any) -> Any:
    """As from JSON: equal texts, each an object of its own."""
    if isinstance(value, dict):
        return {own(key): own(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(own(item) for item in value)
    return "".join(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"title": "", "owner_role": None, "x": 1}, [
            "no title, owner_role", f"x is not a field; there are {', '.join(FIELDS)}"]),
        ({"x": 1, "y": 1, "help": 3}, [
            f"x is not a field; there are {', '.join(FIELDS)}", f"y is not a field; there are {', '.join(FIELDS)}",
            "help is not text"]),
        ({"name": "a b", "version": "default"}, [f'name is "a b"; {LABELS}', f'version is "default"; {LABELS}']),
        ({"version": "a" * 65}, [f'version is "{"a" * 65}"; {LABELS}']),
        ({"version": "1.lua"}, [f'version is "1.lua"; {LABELS}']),
        ({"owner_role": "1x"}, ["owner_role is 1x; write the name of a role"]),
        ({"owner_role": 7}, ["owner_role is 7; write the name of a role"]),
        ({"default": 1, "hidden": "no"}, [f"{name} is {value}; write true or false"
                                          for name, value in (("default", 1), ("hidden", "no"))]),
        ({"default": True, "retired": "x", "hidden": True}, [
            "is retired and the default; make another version the default"]),
        ({"default": True, "hidden": True}, ["is hidden and the default; make another version the default"]),
        ({"title": 3, "help": 4, "deprecated": "\t", "retired": "\x7f"}, [
            "title is not text", "help is not text", "retired has a control character"]),
        ({"title": "a\nb\x00", "family": "a-b", "settings_file": "a"}, [
            "title has a control character", "title has several lines; write one, and the rest as help",
            'family is "a-b"; write letters, digits and _: Lmod makes the name of a variable of it',
            "settings_file is a; write an absolute path"]),
        ({"family": 3, "settings_file": 4}, ["family is not text", "settings_file is not text"]),
        ({"conflicts": "a", "requires": {"a": 1}, "roots": 3}, [
            f"conflicts is not a list; {MODULES.replace('write ', 'write [')}]",
            f"requires is not a list; {MODULES.replace('write ', 'write [')}]",
            "roots is not a list; write [absolute paths]"]),
        ({"conflicts": ["a/b/c", 3], "roots": ["a", "/a:b"]}, [
            f"conflicts has 'a/b/c'; {MODULES}", f"conflicts has 3; {MODULES}",
            "roots has 'a'; write absolute paths", "roots has '/a:b'; write absolute paths"]),
        ({"conflicts": ["cuda/10.2"], "requires": ["cuda"]}, [f"conflicts {LOOPS}", f"requires {LOOPS}"]),
        ({"conflicts": ["b", "a", "c"], "requires": ("a", "b")}, ["requires and conflicts with a, b"]),
        ({"set": 1, "prepend": [], "append": "x"}, [f"{name} is not a mapping; write {{VARIABLE: ...}}"
                                                    for name in ("set", "prepend", "append")]),
        ({"set": {1: "x", "HOME": "x", "PATH": "x", "A": 1, "B": ""}}, [
            "set names 1, which is not a name of a variable", "set names HOME, which no module may change",
            "set names PATH, in which users have more than one path; use prepend",
            "set.A is 1; write text, numbers in quotes", "set.B is empty or has a control character"]),
        ({"prepend": {"A": [], "B": ["x", "/y"], "C": "/x"}, "append": {"D": ()}}, [
            "prepend.A is empty", f"prepend.B has 'x'; {PATHS}",
            f"prepend.C is not a list; {PATHS.replace('write ', 'write [')}]", "append.D is empty"]),
        ({"set": {"B": "x", "A": "y", "C": "z"}, "prepend": {"A": ["/a"]}, "append": {"B": ["/b"], "A": ["/c"]}}, [
            f"{name} is in set, and in prepend or append; the one undoes the other" for name in ("A", "B")]),
    ],
)  # fmt: skip
def test_each_fault_is_told_whole_and_after_it_the_others(changes: dict[str, Any], words: list[str]) -> None:
    one = module(**changes)
    assert problems([module(version="1"), own(one)]) == [f"module {label(one)}: {line}" for line in words]


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "a" * 64}, {"version": "1_.+-"}, {"help": "a\tb\nc"}, {"title": " a \n"}, {"family": ""},
        {"prepend": {"PATH": ("/a",)}}, {"append": {"LD_LIBRARY_PATH": ["/"]}}, {"set": {"HOMES": "x", "_A": "a:b"}},
        {"prepend": {"A": ["/a"]}, "append": {"A": ["/b"]}}, {"hidden": True}, {"owner_role": "a_1"},
        {"set": {"A": "x"}, "prepend": {"B": ["/a"]}}, {"default": True, "deprecated": "x"},
    ],
)  # fmt: skip
def test_what_is_right_has_no_fault(changes: dict[str, Any]) -> None:
    assert problems([module(**changes)]) == []


@pytest.mark.parametrize("name", ["MODULEPATH", "LOADEDMODULES", "_LMFILES_", "LMOD_X", "__LMOD_X", "USER", "SHELL",
                                  "BASH_ENV", "LD_PRELOAD", "_ModuleTable001_"])  # fmt: skip
def test_variables_that_no_module_may_change(name: str) -> None:
    words = f"names {name}, which no module may change"
    assert problems([module(set={name: "x"}, append={name: ["/x"]})]) == [
        f"module cuda/10.2: set {words}", f"module cuda/10.2: append {words}",
    ]  # fmt: skip


def test_faults_of_all_together_are_told_when_each_is_right() -> None:
    declared = [
        module(version="1", default=True), module(version="2", default=True), module(version="2", owner_role="b"),
        module(version="3", retired="x", owner_role="c"), module(name="at"), module(name="at", version="2"),
        module(name="at", version="3", hidden=True), module(name="gcc"), module(name="gcc", version="2", hidden=True),
    ]  # fmt: skip
    assert problems(declared) == [
        "module cuda/2 is declared 2 times",
        "cuda has the defaults 1, 2; one is right",
        "cuda has several roles as owner_role: b, c, cuda; one owns a name",
        "at has no default; write `default: true` for one of 10.2, 2",
    ]
    assert problems([{}, 3, module(name="a\u2028b")]) == [
        "module 0: no name, version, title, owner_role", "module 1: not a mapping; write name, version, title, ...",
        f'module a?b/10.2: name is "a?b"; {LABELS}',
    ]  # fmt: skip
    assert [label(one) for one in visible(declared)] == [
        "cuda/1", "cuda/2", "cuda/2", "at/10.2", "at/2", "gcc/10.2",
    ]  # fmt: skip
    assert (label({"name": "x"}), label({"name": ""}), label({"version": "1"})) == ("x/", "", "")


HEADER = "-- Written by Ansible, role cuda; changes made here are lost.\n"
WHOLE = HEADER + """\
-- Module cuda/10.2: The "CUDA" toolkit
help("The \\"CUDA\\" toolkit\\n\\nTwo\\nlines \\\\ %d ]] größer\\n")
whatis("Name: cuda")
whatis("Version: 10.2")
whatis("Description: The \\"CUDA\\" toolkit")
extensions("nvcc/10.2,cufft")
if (mode() == "load") then
  for _, path in ipairs({"/usr/local/cuda-10.2", "/home/apps/x/settings.lua"}) do
    if not (isDir(path) or isFile(path)) then
      LmodError("cuda/10.2 is not usable on this node: " .. path .. " is not there. Please tell the administrators.")
    end
  end
end
if (mode() == "load") then LmodMessage("cuda/10.2 will be removed: \\"soon\\"") end
family("cuda")
conflict("at")
depends_on("gcc/9")
setenv("CUDA_HOME", "/usr/local/cuda-10.2")
prepend_path("PATH", "/usr/local/cuda-10.2/nvvm/bin")
prepend_path("PATH", "/usr/local/cuda-10.2/bin")
append_path("MANPATH", "/a")
append_path("MANPATH", "/b")
if (mode() ~= "spider") then
  local path = "/home/apps/x/settings.lua"
  local followed, real = pcall(abspath, path)
  path = followed and real or path
  if (mode() == "unload") then
    local undo = loadfile(os.getenv("HAL_SETTINGS_CUDA") or path)
    if (undo) then pcall(undo) end
  elseif (isFile(path)) then
    assert(loadfile(path))()
  end
  setenv("HAL_SETTINGS_CUDA", path)
end
"""  # fmt: skip


def test_a_modulefile_is_whole() -> None:
    assert modulefile(FULL) == WHOLE
    assert modulefile(module(title=" A ", help=" ", retired=" gone \n", deprecated="x", roots=["/a"])) == (
        HEADER + '-- Module cuda/10.2: A\nhelp("A\\n")\nwhatis("Name: cuda")\nwhatis("Version: 10.2")\n'
        'whatis("Description: A")\nif (mode() == "load") then LmodError("cuda/10.2 is retired: gone") end\n'
    )
    own = modulefile(module(name="a-b.c1", settings_file="/s"))
    assert own.count('"HAL_SETTINGS_A_B_C1"') == 2
    assert 'ipairs({"/s"})' in own


def test_a_name_s_default_and_what_it_hides_are_whole() -> None:
    ours = [module(version=version, **more) for version, more in
            (("3", {"hidden": True}), ("1", {}), ("2", {"default": True}), ("0", {"retired": "x"}))]  # fmt: skip
    assert modulerc(ours) == HEADER + (
        'module_version("cuda/2", "default")\nhide_version("cuda/0")\nhide_version("cuda/3")\n'
    )
    assert modulerc([module(version="2"), module(version="1")]) == HEADER + 'module_version("cuda/2", "default")\n'
    assert [one["path"] for one in files(ours[:1], "/t//")] == ["/t/cuda/.modulerc.lua", "/t/cuda/3.lua"]
    assert files([], "/t") == roots([]) == []

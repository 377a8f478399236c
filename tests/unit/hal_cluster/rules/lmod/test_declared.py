"""Each fault of a declared module is one line that says what would be right; what is right has none."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules.lmod.declared import problems


def module(**changes: Any) -> dict[str, Any]:
    """A module that can be loaded, changed."""
    plain = {"name": "cuda", "version": "10.2", "title": "CUDA 10.2", "owner_role": "cuda"}
    return {key: value for key, value in {**plain, **changes}.items() if value is not ...}


def test_what_can_be_loaded_has_no_fault() -> None:
    full = module(
        help="Zwei\nZeilen, größer",
        default=True,
        family="cuda",
        conflicts=["at", "pgi/19.10"],
        requires=["gcc"],
        roots=["/usr/local/cuda-10.2"],
        set={"CUDA_HOME": "/usr/local/cuda-10.2"},
        prepend={"PATH": ["/usr/local/cuda-10.2/bin"]},
        append={"MANPATH": ["/usr/local/cuda-10.2/doc/man"]},
        extensions=["nvcc/10.2", "cufft"],
        settings_file="/home/apps/x/settings.lua",
        deprecated="in May",
    )
    assert problems([full, module(version="9.2", retired="use 10.2"), module(version="10.1", hidden=True)]) == []
    assert problems([]) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"title": ...}, "module cuda/10.2: no title"),
        ({"version": ...}, "module cuda/: no version"),
        ({"path": "/x"}, "module cuda/10.2: path is not a field; there are name, version, title, owner_role, help,"),
        ({"version": 10.2}, "version is the number 10.2; put it in quotes, or 1.10 is 1.1"),
        ({"version": "default"}, 'version is "default"; write letters, digits'),
        ({"version": "10.2.lua"}, 'version is "10.2.lua"; write letters, digits'),
        ({"version": ".10"}, 'version is ".10"; write letters, digits'),
        ({"name": "a/b"}, 'name is "a/b"; write letters, digits'),
        ({"owner_role": "Cuda role"}, "owner_role is Cuda role; write the name of a role"),
        ({"default": "yes"}, "default is yes; write true or false"),
        ({"default": True, "retired": "gone"}, "is retired and the default; make another version the default"),
        ({"default": True, "hidden": True}, "is hidden and the default"),
        ({"help": 3}, "help is not text"),
        ({"help": "a\x00b"}, "help has a control character"),
        ({"title": "two\nlines"}, "title has several lines"),
        ({"family": "my cuda"}, 'family is "my cuda"; write letters, digits and _'),
        ({"settings_file": "x.lua"}, "settings_file is x.lua; write an absolute path"),
        ({"roots": "/usr"}, "roots is not a list; write [absolute paths]"),
        ({"extensions": ["a,b"]}, "extensions has 'a,b'; write what is in it, NAME or NAME/VERSION"),
        ({"roots": ["usr"]}, "roots has 'usr'; write absolute paths"),
        ({"conflicts": ["a b"]}, "conflicts has 'a b'; write names of modules"),
        ({"conflicts": ["cuda"]}, "conflicts names the module itself"),
        ({"requires": ["cuda/10.2"]}, "requires names the module itself"),
        ({"requires": ["at"], "conflicts": ["at"]}, "requires and conflicts with at"),
        ({"set": ["X"]}, "set is not a mapping; write {VARIABLE: ...}"),
        ({"set": {"1X": "a"}}, "set names '1X', which is not a name of a variable"),
        ({"set": {"X": 3}}, "set.X is 3; write text, numbers in quotes"),
        ({"set": {"X": ""}}, "set.X is empty or has a control character"),
        ({"set": {"X": "a\nb"}}, "set.X is empty or has a control character"),
        ({"set": {"PATH": "/x"}}, "set names PATH, in which users have more than one path; use prepend"),
        ({"prepend": {"MODULEPATH": ["/x"]}}, "prepend names MODULEPATH, which no module may change"),
        ({"set": {"LMOD_CMD": "/x"}}, "set names LMOD_CMD, which no module may change"),
        ({"set": {"HOME": "/x"}}, "set names HOME, which no module may change"),
        ({"prepend": {"PATH": "/x"}}, "prepend.PATH is not a list"),
        ({"prepend": {"PATH": []}}, "prepend.PATH is empty"),
        ({"append": {"PATH": ["/x:/y"]}}, "append.PATH has '/x:/y'; write absolute paths without :"),
        ({"set": {"X": "a"}, "append": {"X": ["/a"]}}, "X is in set, and in prepend or append"),
    ],
)
def test_a_fault_is_one_line_that_names_the_module(changes: dict[str, Any], words: str) -> None:
    found = problems([module(**changes)])
    assert len(found) == 1, found
    assert words in found[0]
    assert found[0].startswith("module ")


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ([module(), module()], "module cuda/10.2 is declared 2 times"),
        ([module(), module(version="10.1")], "cuda has no default; write `default: true` for one of 10.2, 10.1"),
        (
            [module(default=True), module(version="10.1", default=True)],
            "cuda has the defaults 10.2, 10.1; one is right",
        ),
        (
            [module(default=True), module(version="10.1", owner_role="compilers")],
            "cuda has several roles as owner_role: compilers, cuda; one owns a name",
        ),
    ],
)
def test_versions_go_together(modules: list[dict[str, Any]], words: str) -> None:
    assert words in problems(modules)


def test_what_is_no_mapping_is_told_by_its_place() -> None:
    assert problems([module(), "cuda"]) == ["module 1: not a mapping; write name, version, title, ..."]

"""What scripts of activation leave is recorded: lists are added to, the rest is set, and some is nobody's to set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LISTS = (
    *("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "PYTHONPATH"),
    *("MANPATH", "INFOPATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "XDG_DATA_DIRS", "PERL5LIB", "CLASSPATH"),
)
Part = Callable[[str], Any]
Record = Callable[..., dict[str, Any]]


@pytest.fixture
def record(tmp_path: Path, part: Part, monkeypatch: pytest.MonkeyPatch) -> Record:
    """A function: scripts by name -> what is recorded besides what every activation sets."""
    monkeypatch.setitem(part("common").PACKAGES, "account", "")  # the folder is the test's user's alone
    for name in (".hal", "etc/conda/activate.d"):
        (tmp_path / name).mkdir(parents=True)

    def record(**scripts: str) -> dict[str, Any]:
        for name, text in scripts.items():
            (tmp_path / f"etc/conda/activate.d/{name}.sh").write_text(text + "\n")
        found: dict[str, Any] = part("activation").record(str(tmp_path), "tools/1")
        assert json.loads((tmp_path / ".hal/activate.json").read_text()) == found
        assert found["set"].pop("CONDA_PREFIX") == str(tmp_path)
        assert found["set"].pop("CONDA_DEFAULT_ENV") == "tools/1"
        return found

    return record


def bin_of(folder: Path, *before: str, **more: Any) -> dict[str, Any]:
    """What is recorded when PATH has the prefix's programs behind these, and more."""
    prepend = {"PATH": [*before, f"{folder}/bin"], **more.pop("prepend", {})}
    return {"set": {}, "append": {}, **more, "prepend": prepend}


def test_without_scripts_its_programs_come_first_and_nothing_else_is_set(record: Record, tmp_path: Path) -> None:
    assert record() == bin_of(tmp_path)


@pytest.mark.parametrize("name", LISTS)
def test_what_a_script_puts_around_a_list_is_put_around_that_of_the_user(
    record: Record, tmp_path: Path, name: str
) -> None:
    found = record(a=f'export {name}="/a:/b:${name}:/y"', b=f'export {name}="${name}:/z"')
    around = {name: ["/a", "/b"]}
    expected = bin_of(tmp_path, "/a", "/b") if name == "PATH" else bin_of(tmp_path, prepend=around)
    assert found == {**expected, "append": {name: ["/y", "/z"]}}


def test_a_list_is_set_when_a_script_looks_at_nothing_that_was_there(record: Record, tmp_path: Path) -> None:
    found = record(a="export CPATH=/mine:/own", b='[ -n "$INFOPATH" ] || export INFOPATH=/info', c="unset MANPATH")
    assert found == bin_of(tmp_path, set={"CPATH": "/mine:/own", "INFOPATH": "/info"})


def test_what_is_no_list_is_set_with_colons_and_all(record: Record, tmp_path: Path) -> None:
    found = record(a='export ONE="a:b" TWO=\nlocal_only=x', b='export ONE="$ONE:c"')
    assert found == bin_of(tmp_path, set={"ONE": "a:b:c", "TWO": ""})


def test_what_is_the_shell_s_the_user_s_or_conda_s_own_is_not_recorded(record: Record, tmp_path: Path) -> None:
    names = ("PWD", "OLDPWD", "CONDA_SHLVL", "CONDA_PROMPT_MODIFIER", "BASH_ENV", "HOME", "LANG")
    assert record(a="cd /usr", b="\n".join(f"export {name}=/x" for name in names)) == bin_of(tmp_path)


@pytest.mark.parametrize("name", ["MODE", "CPATH"])
def test_several_lines_are_refused(record: Record, part: Part, tmp_path: Path, name: str) -> None:
    with pytest.raises(part("common").Problem) as refused:
        record(a=f"export {name}='a\nb'")
    assert str(refused.value) == f"tools/1: activating it sets {name} to several lines, which a modulefile cannot do"
    assert not (tmp_path / ".hal/activate.lua").exists()


def test_a_script_that_fails_is_named_and_none_is_run_after_it(record: Record, part: Part, tmp_path: Path) -> None:
    with pytest.raises(part("common").Problem) as refused:
        record(a="false", b=f"touch {tmp_path}/after")
    assert str(refused.value) == f"activating it failed (1): {tmp_path}/etc/conda/activate.d/a.sh: status 1"
    with pytest.raises(part("common").Problem, match=r"^activating it failed \(7\): nothing was said$"):
        record(a="exit 7")
    assert not (tmp_path / "after").exists()


def test_what_a_script_says_is_no_variable(record: Record, tmp_path: Path) -> None:
    assert record(a="echo SAID=yes; printf 'SAID=yes\\0'") == bin_of(tmp_path)


def test_a_modulefile_puts_folders_in_the_order_that_the_shell_had(record: Record, tmp_path: Path) -> None:
    record(a='export PATH="/a:/b:$PATH:/y:/z" NOTE=\'say "\\\'')
    assert (tmp_path / ".hal/activate.lua").read_text().splitlines()[1:] == [
        'setenv("CONDA_DEFAULT_ENV", "tools/1")',
        f'setenv("CONDA_PREFIX", "{tmp_path}")',
        'setenv("NOTE", "say \\"\\\\")',
        f'prepend_path("PATH", "{tmp_path}/bin")',
        'prepend_path("PATH", "/b")',
        'prepend_path("PATH", "/a")',
        'append_path("PATH", "/y")',
        'append_path("PATH", "/z")',
    ]

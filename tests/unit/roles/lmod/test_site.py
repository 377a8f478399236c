"""Modules that users had before this role are named, and not taken away."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.modules import Ran, loaded

TREE = "/opt/apps/modulefiles"
# rpm 4.11.3 of CentOS 7 about a file that somebody changed, and about one of nobody's.
CHANGED = "S.5....T.  c {path}\n.......T.  c /etc/profile.d/z00_lmod.sh\n"
TOUCHED = ".......T.  c {path}\n"
NOBODYS = "file {path} is not owned by any package\n"
Site = Callable[..., dict[str, Any]]


class Node:
    """A node with login scripts, trees and settings below a folder; rpm knows what it is told."""

    def __init__(self, folder: Path, module: Any, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.status, self.noise = folder, 0, b""
        self.environment: dict[str, str] = {}
        self.verified: dict[str, str] = {}
        patch.setattr(module, "RECORD", str(folder / "00-modulepath.sh"))
        patch.setattr(module, "SCRIPTS", (str(folder / "profile"), str(folder / "*.sh"), str(folder / "*.csh")))
        patch.setattr(module, "SETTINGS", tuple(str(folder / name) for name in ("SitePackage.lua", "lmodrc.lua")))

    def tree(self, name: str, *modulefiles: str) -> str:
        for one in modulefiles:
            path = self.folder / name / one
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        return str(self.folder / name)

    def answer(self, argv: list[str]) -> Any:
        if argv[0] == "timeout":
            shown = b"".join(f"{name}={value}\0".encode() for name, value in self.environment.items())
            return self.status, (self.noise + b"\0hal-begins\0" + shown if self.status == 0 else self.noise), b""
        path = argv[-1]
        if argv[1] == "--query":
            return (
                (0, "Lmod-8.2.7-1.el7.ppc64le\n", "") if path in self.verified else (1, NOBODYS.format(path=path), "")
            )
        said = self.verified[path].format(path=path)
        return (1 if said else 0), said, ""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[Node, Site]:
    module = loaded("hal_lmod_site")
    here = Node(tmp_path, module, monkeypatch)
    ran = Ran(module, here.answer, monkeypatch, capsys)

    def site(**words: Any) -> dict[str, Any]:
        return ran(**{"modulepath": [TREE], **words})

    return here, site


def test_trees_that_users_would_lose_are_named_with_what_keeps_and_what_ends_them(node: tuple[Node, Site]) -> None:
    here, site = node
    lab, old = here.tree("lab", "gromacs/2019.lua", "namd/2.13", ".modulerc"), here.tree("old", "x/1")
    empty = here.tree("empty", "x/.modulerc")
    here.environment = {"MODULEPATH": f"{lab}/:{TREE}:{old}::{empty}:/not/there:/usr/share/lmod/lmod/modulefiles/Core"}
    refused = site()
    assert refused["lost"] == [
        f"the tree {lab} (2 modulefiles): lmod_modulepath_extra keeps it, lmod_modulepath_dropped ends it",
        f"the tree {old} (1 modulefiles): lmod_modulepath_extra keeps it, lmod_modulepath_dropped ends it",
    ]
    assert refused["failed"]
    assert refused["msg"].splitlines()[0] == "Users would lose:"
    assert refused["msg"].splitlines()[-1] == "Nothing was changed"
    assert site(modulepath=[TREE, lab])["lost"] == refused["lost"][1:]
    assert site(modulepath=[TREE, lab], dropped=[old])["lost"] == []
    # A permission to replace settings takes no tree away.
    assert site(replace_ok=True)["lost"] == refused["lost"]


def test_a_tree_that_cannot_be_read_is_not_called_empty(
    node: tuple[Node, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, site = node
    tree = here.tree("far", "x/1")
    here.environment = {"MODULEPATH": tree}

    def unreadable(_path: str, onerror: Callable[[OSError], None]) -> list[Any]:
        onerror(OSError(116, "Stale file handle"))
        return []

    monkeypatch.setattr(os, "walk", unreadable)
    assert site()["lost"][0].startswith(f"the tree {tree} (cannot be read): ")


def test_settings_that_somebody_wrote_are_named_and_those_of_packages_are_not(node: tuple[Node, Site]) -> None:
    here, site = node
    package, rc, own = (here.folder / name for name in ("SitePackage.lua", "lmodrc.lua", "site/SitePackage.lua"))
    own.parent.mkdir()
    for path in (package, rc, own):
        path.write_text("-- of the site\n")
    here.environment = {"LMOD_PACKAGE_PATH": str(own.parent), "LMOD_RC": str(rc)}
    here.verified = {str(rc): TOUCHED, str(package): CHANGED}
    ending = ", which somebody wrote: lmod_replace_ok: true replaces what it does"
    assert site()["lost"] == [f"{package}{ending}", f"{own}{ending}"]
    assert site(replace_ok=True)["lost"] == []
    here.verified[str(package)] = ""
    own.write_text('-- Written by the role "lmod"; changes made here are lost.\n')
    assert site()["lost"] == []


SETS = "a line of somebody's\nexport MODULEPATH=/opt/site/modulefiles\n"


@pytest.mark.parametrize(
    "text",
    [
        SETS,
        "  [ -d /opt/site ] && MODULEPATH=$MODULEPATH:/opt/site\n",
        "export MODULEPATH+=:/opt/site # ours\n",
        "setenv MODULEPATH /opt/site\n",
        "MODULEPATH_ROOT=/opt/site; export MODULEPATH_ROOT\n",
        "module use --append /opt/site\n",
        "if [ -d /opt/site ]; then module use /opt/site; fi\n",
        'test -n "$PS1" && module  unuse /opt/apps/modulefiles\n',
    ],
)
def test_a_login_script_that_would_undo_ours_is_met_before_ours_is_written(node: tuple[Node, Site], text: str) -> None:
    """Also where its trees are declared: it sets MODULEPATH after ours, and the role would fail at its end."""
    here, site = node
    script = here.folder / "zz-site.sh"
    script.write_text(text)
    here.environment = {"MODULEPATH": here.tree("lab", "x/1")}
    kept = {"modulepath": [TREE, str(here.folder / "lab")], "replace_ok": True}
    assert site(**kept)["lost"] == [
        f"what {script} does to MODULEPATH, which would also undo ours: declare its trees as above, and take that out"
        " of it"
    ]
    assert site()["lost"][0].startswith(f"the tree {here.folder}/lab (1 modulefiles): ")
    # As a package has brought it, it is nobody's; changed, it is somebody's again.
    here.verified = {str(script): TOUCHED}
    assert site(**kept)["lost"] == []
    here.verified = {str(script): CHANGED}
    assert site(**kept)["failed"]


def test_a_script_that_only_asks_is_left_alone(node: tuple[Node, Site]) -> None:
    here, site = node
    (here.folder / "profile").write_text(
        "# MODULEPATH=/x\nexport OLDMODULEPATH=$MODULEPATH\n[ x$MODULEPATH = x ] || module load a\n"
        "echo 'try: module use /opt/x'\ncat <<E\nyou may set MODULEPATH=/x or say module use\nE\n"
    )
    for name in ("z01_default_modules.sh", "00-modulepath.csh"):  # what the role replaces
        (here.folder / name).write_text(SETS)
    (here.folder / "folder.sh").mkdir()
    (here.folder / "dangling.sh").symlink_to("none")
    (here.folder / "README").write_text(SETS)
    assert site()["lost"] == []


def test_modules_that_are_loaded_for_everybody_are_named(node: tuple[Node, Site]) -> None:
    here, site = node
    here.environment = {"LMOD_SYSTEM_DEFAULT_MODULES": "StdEnv:cuda"}
    assert site(default_modules=["cuda"])["lost"] == [
        "StdEnv, loaded for everybody: lmod_default_modules keeps it, lmod_replace_ok: true ends it"
    ]
    assert site(default_modules=["StdEnv", "cuda"])["lost"] == []
    assert site(replace_ok=True)["lost"] == []


def test_nothing_is_asked_where_the_role_has_been_and_nothing_lost_on_a_new_node(node: tuple[Node, Site]) -> None:
    here, site = node
    assert site()["lost"] == []
    here.environment = {"MODULEPATH": here.tree("lab", "x/1")}
    assert site()["failed"]
    (here.folder / "00-modulepath.sh").write_text('# Written by the role "lmod"; changes made here are lost.\n')
    assert site()["lost"] == []


@pytest.mark.parametrize(
    ("status", "noise", "says"),
    [
        (124, b"", "a login shell did not end within 60 s"),
        (
            127,
            b"timeout: failed to run command \xe2\x80\x98setpriv\x1b[2J",
            "a login shell did not come so far: timeout",
        ),
        (1, b"", "a login shell did not come so far: status 1"),
    ],
)
def test_a_shell_that_does_not_answer_is_not_one_without_modules(
    node: tuple[Node, Site], status: int, noise: bytes, says: str
) -> None:
    here, site = node
    here.status, here.noise = status, noise
    refused = site()
    assert refused["failed"]
    assert refused["msg"].startswith(f"What modules users have is not known: {says}")
    assert "\x1b" not in refused["msg"]


def test_words_of_login_scripts_are_passed_over(node: tuple[Node, Site]) -> None:
    here, site = node
    here.noise = b"MODULEPATH=/x\nWelcome to HAL\n"
    here.environment = {"MODULEPATH": here.tree("lab", "x/1"), "PS1": "a\nMODULEPATH=/y"}
    assert len(site()["lost"]) == 1


@pytest.mark.root  # who alone becomes another user
def test_the_shell_of_a_user_is_asked_in_this_form() -> None:
    """The real programs: what the module runs ends with the variables, of a user who is not root."""
    argv: list[str] = loaded("hal_lmod_site").SHELL
    done = subprocess.run(argv, capture_output=True, check=False, stdin=subprocess.DEVNULL, cwd="/")
    assert done.returncode == 0
    assert b"\0hal-begins\0" in done.stdout
    assert b"HOME=/\0" in done.stdout

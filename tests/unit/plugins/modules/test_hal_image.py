"""hal_image, the module: each step with its parts, what they are given, and what it says and refuses. No root."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hal_node.image.image_parts import ImageError, install
from tests.unit.modules import Answer, Ran, as_program, loaded

OWNER = "hal-image gpu of admin@ops"
REPOSITORIES = "[base]\nname=Base\nbaseurl=http://10.1.0.11/base\n"
KERNEL = "4.18.0-80.7.2.el7"
MINE = {"running": True, "owner": OWNER, "pid": 4711}


class Build:
    """The module on a node whose parts are written down; `did` are those that were called."""

    def __init__(self, folder: Path, *patched: Any) -> None:
        self.folder = folder / "srv" / "build"
        (self.folder / "root").mkdir(parents=True)
        self.log = folder / "log"
        self.did: list[tuple[Any, ...]] = []
        self.there: dict[str, Any] = MINE
        self.kernels, self.absent = KERNEL + "\n", ""
        self.fails: dict[str, BaseException] = {}
        self.answers: dict[str, Answer] = {}
        self.ran = Ran(loaded("hal_image"), self.answer, *patched)
        parts = self.ran.module.__dict__
        parts.update(LOG=str(self.log), state=lambda _run: self.part("state", self.there))
        for name, answer in {
            "begin": 4711, "enter": 4712, "end": True, "install": None, "clean": None, "faults": ["a fault"],
            "refuse": None, "label": "labelled", "pack": {"size": 7, "sha256": "0a"}, "bring_keys": ["/k/a", "/k/b"],
        }.items():  # fmt: skip
            parts[name] = lambda *given, name=name, answer=answer: self.part(name, answer, *given)

    def part(self, name: str, answer: Any, *given: Any) -> Any:
        self.did.append((name, *(one for one in given if isinstance(one, (str, int, list, dict)))))
        if name in self.fails:
            raise self.fails[name]
        return answer

    def answer(self, argv: list[str]) -> Answer:
        for words, said in self.answers.items():
            if words in " ".join(argv):
                return said
        if "--all" in argv:
            return 0, "bash-1-1.ppc64le\nabc-1-1.ppc64le\n", ""
        if "--queryformat" in argv:
            return 0, self.kernels, ""
        return 0, self.absent, ""

    def __call__(self, action: str, check: bool = False, **changes: Any) -> dict[str, Any]:
        self.did.clear()
        given: dict[str, Any] = {"action": action, "folder": str(self.folder), "owner": OWNER, **changes}
        return self.ran(check, **given)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Build:
    return Build(tmp_path, monkeypatch, capsys)


def test_as_a_program_it_asks_for_what_it_needs() -> None:
    assert as_program("hal_image") == {"failed": True, "msg": "missing required arguments: action, folder"}


def test_who_builds_is_said_also_in_check_mode_and_of_any_folder(build: Build) -> None:
    for check in (False, True):
        assert build("state", check, folder="/") == {"changed": False, **MINE}
        assert build.did == [("state",)]


@pytest.mark.parametrize("action", ["begin", "enter", "install", "finish", "end"])
def test_nothing_is_built_in_check_mode(build: Build, action: str) -> None:
    wanted = {"changed": False, "skipped": True, "msg": "an image is not built in check mode"}
    assert build(action, check=True) == wanted
    assert (build.did, build.ran.told) == ([], [])


@pytest.mark.parametrize("folder", ["/", "/srv", "/srv/", "/srv//", "srv/images/build"])
@pytest.mark.parametrize("action", ["begin", "end"])
def test_a_folder_is_one_below_another(build: Build, folder: str, action: str) -> None:
    shown = folder.rstrip("/")
    said = f"folder is {shown}: name one below another, such as /srv/images/build"
    assert build(action, folder=folder) == {"failed": True, "msg": said}
    assert build.did == []


def test_the_module_takes_the_actions_and_levels_that_there_are_and_no_others(build: Build) -> None:
    for name, value, choices in (
        ("action", "pack", "state, begin, enter, install, finish, end"),
        ("level", 0, "1, 2, 3, 4, 5, 6, 7, 8, 9"),
        ("level", 10, "1, 2, 3, 4, 5, 6, 7, 8, 9"),
        ("manager", "apt", "dnf, yum"),
    ):
        given: dict[str, Any] = {"action": "state", name: value}
        said = build(**given)
        assert said == {"failed": True, "msg": f"value of {name} must be one of: {choices}, got: {value}"}
    for level in range(1, 10):
        build("finish", level=level, kernel=KERNEL)
        assert build.did[-1] == ("pack", str(build.folder), level)


# ---------------------------------------------------------------------------------------------------------------- begin
def test_a_build_begins_with_the_lock_an_empty_log_keys_and_settings(build: Build) -> None:
    build.log.write_text("of an older build")
    build.log.chmod(0o644)
    keys = [{"id": "a", "source": "/k", "fingerprint": "F"}]
    local = "[one]\nbaseurl=file:///etc/ssl\n[two]\nbaseurl=file:///etc\n[three]\nbaseurl=file:///usr/lib/\n"
    assert build("begin", repositories=REPOSITORIES + local, keys=keys) == {"changed": True, "pid": 4711}
    folder = str(build.folder)
    assert build.did == [
        ("begin", folder, OWNER, 14400, ["/etc", "/usr/lib"]),
        ("bring_keys", folder, keys),
    ]
    assert (build.log.read_text(), stat.S_IMODE(build.log.stat().st_mode)) == ("", 0o600)
    assert (build.folder / "yum.conf").read_text() == install.settings(REPOSITORIES + local, ["/k/a", "/k/b"])
    assert build("begin", repositories=REPOSITORIES, seconds=60, folder=f"{folder}/")["changed"] is True
    assert build.did[0] == ("begin", folder, OWNER, 60, [])


def test_folders_that_are_in_none_of_the_others_are_seen(build: Build) -> None:
    assert build.ran.module._outermost(["/b/c", "/bc", "/b/", "/b", "/a"]) == ["/a", "/b", "/bc"]


@pytest.mark.parametrize("owner", ["", "x" * 201, "two\nlines", "ü", "\x7f"])
def test_an_owner_is_one_line_that_everybody_can_read(build: Build, owner: str) -> None:
    said = build("begin", owner=owner, repositories=REPOSITORIES)
    assert said == {"failed": True, "msg": f"owner is {owner!r}: one line of printable characters"}
    assert (build.did, build.log.exists()) == ([], False)
    assert build("begin", owner="x" * 200, repositories=REPOSITORIES)["changed"] is True
    assert build("begin", owner=" ~", repositories=REPOSITORIES)["changed"] is True


def test_a_repository_of_this_node_has_to_be_here(build: Build) -> None:
    assert build("begin", repositories="[one]\nbaseurl=file:///nosuch\n") == {
        "failed": True,
        "msg": "repository /nosuch is not on this node; build where it is, or install from the mirror",
    }
    assert (build.did, build.log.exists()) == ([], False)


def test_what_does_not_begin_is_said(build: Build) -> None:
    build.fails["begin"] = ImageError("another build is under way: bob")
    said = {"failed": True, "msg": "another build is under way: bob"}
    assert build("begin", repositories=REPOSITORIES) == said
    assert not build.log.exists()
    for error, words in (
        (OSError(28, "No space left on device", "/srv/x"), "/srv/x: No space left on device"),
        (OSError(28, "No space left on device"), f"{build.folder}: No space left on device"),
    ):
        build.fails["begin"] = error
        assert build("begin", repositories=REPOSITORIES) == {"failed": True, "msg": words}


def test_a_key_is_fetched_within_a_minute(build: Build) -> None:
    build.ran.module.__dict__.update(
        bring_keys=lambda _module, _folder, _keys, opened: [opened("http://keys/a")],
        open_url=lambda url, timeout: f"{url} within {timeout}",
    )
    assert build("begin", repositories=REPOSITORIES)["changed"] is True
    assert "gpgkey=file://http://keys/a within 60\n" in (build.folder / "yum.conf").read_text()


# ---------------------------------------------------------------------------------------------------------------- enter
def test_a_base_is_unpacked_and_gone_before_programs_enter(build: Build) -> None:
    base = build.folder / "base.tar"
    base.write_text("")
    assert build("enter", base="base.tar") == {"changed": True, "pid": 4712}
    root = str(build.folder / "root")
    tar = ["tar", "--extract", "--numeric-owner", "--xattrs", "--xattrs-include=*"]
    assert build.ran.told == [[*tar, f"--file={base}", f"--directory={root}"]]
    assert (build.did, base.exists()) == ([("enter", root)], False)
    assert build("enter") == {"changed": True, "pid": 4712}
    assert build.ran.told == []


@pytest.mark.parametrize(("said", "reason"), [("tar: first\ntar: broken\n", "tar: broken"), (" \n", "no reason")])
def test_a_base_that_cannot_be_unpacked_is_said_and_stays(build: Build, said: str, reason: str) -> None:
    base = build.folder / "base.tar"
    base.write_text("")
    build.answers = {"tar": (2, "", said)}
    assert build("enter", base="base.tar") == {"failed": True, "msg": f"{base} cannot be unpacked: {reason}"}
    assert (build.did, base.exists()) == ([], True)


# -------------------------------------------------------------------------------------------------------------- install
def test_packages_are_installed_and_then_looked_for(build: Build) -> None:
    given: dict[str, Any] = {"packages": ["bash", "kernel"], "kernel": KERNEL}
    assert build("install", **given) == {"changed": True}
    folder = str(build.folder)
    assert build.did == [("state",), ("install", 4711, folder, "yum", ["bash", "kernel"], "7")]
    assert [argv[:2] for argv in build.ran.told] == [["chroot", f"{folder}/root"]] * 2
    assert build("install", **given, manager="dnf", release="8")["changed"] is True
    assert build.did[1] == ("install", 4711, folder, "dnf", ["bash", "kernel"], "8")
    build.absent = "package bash is not installed\npackage abc is not installed\n"
    build.answers = {"--whatprovides": (1, "", "")}
    assert build("install", **given) == {
        "failed": True,
        "msg": f"in no repository: bash, abc. All of it is in {build.log}",
    }


@pytest.mark.parametrize("there", [{**MINE, "running": False}, {**MINE, "owner": "bob"}])
def test_nothing_is_installed_into_a_build_of_others(build: Build, there: dict[str, Any]) -> None:
    build.there = there
    said = "this build has ended: its time was over, or somebody stopped the unit hal-image"
    assert build("install", packages=["bash"]) == {"failed": True, "msg": said}
    assert build.did == [("state",)]


@pytest.mark.parametrize(("found", "words"), [("", "none"), ("1\n2\n", "1, 2")])
@pytest.mark.parametrize("action", ["install", "finish"])
def test_another_kernel_than_the_declared_one_is_refused(build: Build, action: str, found: str, words: str) -> None:
    build.kernels = found
    said = {"failed": True, "msg": f"kernel {KERNEL} is declared, and the root has {words}"}
    assert build(action, packages=["bash"], kernel=KERNEL) == said
    assert not {"clean", "pack"} & {one[0] for one in build.did}


# --------------------------------------------------------------------------------------------------------------- finish
def test_a_root_is_cleaned_looked_through_labelled_and_packed(build: Build) -> None:
    assert build("finish", kernel=KERNEL, digests={"a": "0a"}, key="secret") == {
        "changed": True,
        "size": 7,
        "sha256": "0a",
        "packages": ["abc-1-1.ppc64le", "bash-1-1.ppc64le"],
        "labels": "labelled",
    }
    root = str(build.folder / "root")
    assert build.did == [
        ("clean", root),
        ("faults", root, {"a": "0a"}, "secret"),
        ("refuse", ["a fault"]),
        ("label", root),
        ("pack", str(build.folder), 6),
    ]


def test_a_root_with_a_secret_is_not_packed(build: Build) -> None:
    build.fails["refuse"] = ImageError("the image would hold a secret")
    assert build("finish", kernel=KERNEL) == {"failed": True, "msg": "the image would hold a secret"}
    assert build.did[-1] == ("refuse", ["a fault"])


def test_a_database_of_packages_that_cannot_be_read_is_said(build: Build) -> None:
    build.answers = {"--all": (1, "", "broken \n")}
    assert build("finish", kernel=KERNEL)["msg"] == "the root's package database cannot be read: broken"
    assert build.did == []


def test_the_key_of_the_digests_is_shown_nowhere_and_the_public_keys_are_no_secret(
    build: Build, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ansible.module_utils import basic

    made = list[Any]()
    initial = basic.AnsibleModule.__init__

    def note(self: Any, *given: Any, **words: Any) -> None:
        initial(self, *given, **words)
        made.append(self.no_log_values)

    monkeypatch.setattr(basic.AnsibleModule, "__init__", note)
    keys = [{"id": "centos", "source": "http://keys/centos", "fingerprint": "F00F"}]
    assert build("state", key="correct-horse", keys=keys, digests={"a": "0a0a"}) == {"changed": False, **MINE}
    assert made == [{"correct-horse"}]
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------------------------------------------------ end
def test_a_build_ends_for_its_owner(build: Build) -> None:
    assert build("end") == {"changed": True}
    assert build.did == [("end", str(build.folder), OWNER)]

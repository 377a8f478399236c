"""hal_package_mirror, the module: real files and addresses; rpm, gpg and createrepo_c answer as they do."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.mirror.fetch import MirrorError
from ansible.module_utils.hal_node.mirror.keys import Keyring

import tests.unit.hal_node.mirror.conftest  # noqa: F401  asks each call under the Pythons of nodes
from tests.unit.modules import Answer, Ran, as_program, loaded

KEY = "24C6A8A7F4A80EB5"
PRINT = "6341 AB27 53D7 8A78 A7C2 7BB1 24C6 A8A7 F4A8 0EB5"
COLONS = f"pub:-:4096:1:{KEY}:1:::-:\nfpr:::::::::{PRINT.replace(' ', '')}:\n"
GOOD = f"    Header V3 RSA/SHA256 Signature, key ID {KEY.lower()}: OK"
LC = {"LC_ALL": "C"}


class Mirror:
    """The node of the mirror: a folder, a source that is a folder, and programs that answer."""

    def __init__(self, folder: Path, *patched: Any) -> None:
        self.folder, self.source, self.tmp = (folder / name for name in ("mirror", "source", "tmp"))
        self.source.mkdir()
        self.tmp.mkdir()
        self.key = folder / "RPM-GPG-KEY"
        self.key.write_text("a key")
        self.answers: dict[str, Answer] = {}
        self.bad: set[str] = set()
        self.ran = Ran(loaded("hal_package_mirror"), self.answer, *patched)
        self.trees: list[dict[str, Any]] = [
            {"repository": "base", "arch": "x86_64", "url": f"file://{self.source}/", "packages": []}
        ]

    def add(self, name: str, content: str = "") -> dict[str, Any]:
        """Lock a package, which the source has."""
        data = (content or name).encode()
        (self.source / f"{name}.rpm").write_bytes(data)
        entry = {"file": f"{name}.rpm", "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "key": KEY}
        self.trees[0]["packages"].append(entry)
        return entry

    def pool(self, entry: dict[str, Any]) -> Path:
        return self.folder / "pool" / str(entry["sha256"]) / str(entry["file"])

    def answer(self, argv: list[str]) -> Answer:
        for words, said in self.answers.items():
            if words in " ".join(argv):
                return said
        if argv[0] == "gpg":
            return 0, COLONS, ""
        if "--checksig" in argv:
            paths = argv[argv.index("--verbose") + 1 :]
            lines = [f"{path}:\n{self.signature(path)}" for path in paths]
            return 0, "\n".join(lines) + "\n", ""
        if argv[0] == "createrepo_c":
            metadata = Path(argv[-1]) / "repodata"
            metadata.mkdir()
            (metadata / "repomd.xml").write_text("made of " + ", ".join(sorted(os.listdir(f"{argv[-1]}/Packages"))))
        return 0, "", ""

    def signature(self, path: str) -> str:
        return GOOD.replace("OK", "BAD") if Path(path).name.removesuffix(".rpm.new") in self.bad else GOOD

    def __call__(self, check: bool = False, **changes: Any) -> dict[str, Any]:
        given: dict[str, Any] = {"folder": str(self.folder), "digest": "d1", "trees": self.trees}
        given |= {"keys": [{"id": "site", "source": str(self.key), "fingerprint": PRINT}], **changes}
        answer = self.ran(check, _ansible_tmpdir=str(self.tmp), **given)
        assert list(self.tmp.iterdir()) == [], "what it worked with is gone"
        return answer

    @property
    def programs(self) -> list[str]:
        return [argv[0] for argv in self.ran.told]

    @property
    def snapshots(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "snapshots").iterdir())


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Mirror]:
    before = os.umask(0o077)
    yield Mirror(tmp_path, monkeypatch, capsys)
    os.umask(before)


def test_as_a_program_it_asks_for_what_it_needs() -> None:
    missing = "missing required arguments: digest, folder, keys, trees"
    assert as_program("hal_package_mirror") == {"failed": True, "msg": missing}


@pytest.mark.parametrize("name", ["file", "size", "sha256", "key", "repository", "arch", "url", "packages"])
def test_a_tree_or_a_package_without_a_part_is_refused(mirror: Mirror, name: str) -> None:
    package = mirror.add("tool")
    where = "trees" if name in mirror.trees[0] else "trees -> packages"
    del (package if name in package else mirror.trees[0])[name]
    assert mirror() == {"failed": True, "msg": f"missing required arguments: {name} found in {where}"}


@pytest.mark.parametrize("name", ["id", "source", "fingerprint"])
def test_a_key_without_a_part_is_refused(mirror: Mirror, name: str) -> None:
    key = {"id": "site", "source": "/k", "fingerprint": PRINT}
    del key[name]
    assert mirror(keys=[key]) == {"failed": True, "msg": f"missing required arguments: {name} found in keys"}


def test_what_is_locked_is_published_and_the_second_time_nothing_changes(mirror: Mirror) -> None:
    first, second = mirror.add("tool"), mirror.add("a-lib")
    assert mirror() == {"changed": True, "snapshot": "d1", "fetched": 2, "fetched_bytes": 9}
    assert mirror.programs == ["rpm", "gpg", "rpmkeys", "rpmkeys", "createrepo_c"]
    assert mirror.ran.told[-1][1] == "--quiet"
    here = mirror.folder / "current"
    assert os.readlink(here) == "snapshots/d1"
    assert (here / "keys/site").read_text() == "a key"
    assert (here / "base/x86_64/repodata/repomd.xml").read_text() == "made of a-lib.rpm, tool.rpm"
    for entry in (first, second):
        assert mirror.pool(entry).samefile(here / "base/x86_64/Packages" / entry["file"])
    # Who serves it is another account.
    assert stat.S_IMODE(mirror.pool(first).parent.stat().st_mode) == 0o755
    assert mirror() == {"changed": False, "snapshot": "d1", "fetched": 0, "fetched_bytes": 0}
    assert mirror.programs == ["rpm", "gpg", "rpmkeys"]


def test_check_mode_says_whether_it_is_as_locked_and_brings_nothing(mirror: Mirror) -> None:
    entry = mirror.add("tool")
    nothing = {"fetched": 0, "fetched_bytes": 0}
    assert mirror(check=True) == {"changed": True, "snapshot": "", **nothing}
    assert (mirror.ran.told, mirror.folder.exists()) == ([], False)
    mirror()
    assert mirror(check=True) == {"changed": False, "snapshot": "d1", **nothing}
    assert mirror(check=True, digest="d2") == {"changed": True, "snapshot": "d1", **nothing}
    mirror.pool(entry).unlink()
    assert mirror(check=True) == {"changed": True, "snapshot": "d1", **nothing}


@pytest.mark.parametrize("content", ["tool and more", "lool"])
def test_a_package_that_was_spoilt_is_brought_again(mirror: Mirror, content: str) -> None:
    entry = mirror.add("tool")
    mirror()
    mirror.pool(entry).write_text(content)
    assert mirror(check=True)["changed"] is True
    assert mirror() == {"changed": True, "snapshot": "d1.1", "fetched": 1, "fetched_bytes": 4}
    assert mirror.pool(entry).read_text() == "tool"
    assert mirror() == {"changed": False, "snapshot": "d1.1", "fetched": 0, "fetched_bytes": 0}


def test_a_snapshot_that_was_spoilt_is_made_anew_of_what_is_there(mirror: Mirror) -> None:
    mirror.add("tool")
    mirror()
    (mirror.folder / "current/keys/site").write_text("another")
    assert mirror() == {"changed": True, "snapshot": "d1.1", "fetched": 0, "fetched_bytes": 0}
    assert mirror.snapshots == ["d1", "d1.1"]


def test_one_file_of_two_architectures_is_fetched_once(mirror: Mirror) -> None:
    mirror.add("tool")
    mirror.trees.append({**mirror.trees[0], "arch": "ppc64le"})
    assert mirror()["fetched"] == 1
    for arch in ("x86_64", "ppc64le"):
        assert (mirror.folder / "current/base" / arch / "Packages/tool.rpm").read_text() == "tool"


def test_older_snapshots_go_and_two_are_kept_when_nobody_says_otherwise(mirror: Mirror) -> None:
    for number in range(1, 5):
        mirror.add(f"tool{number}")
        assert mirror(digest=f"d{number}")["snapshot"] == f"d{number}"
        os.utime(mirror.folder / "snapshots" / f"d{number}", (number, number))
    assert mirror.snapshots == ["d2", "d3", "d4"]
    assert mirror(digest="d4", keep=0) == {"changed": True, "snapshot": "d4", "fetched": 0, "fetched_bytes": 0}
    assert mirror.snapshots == ["d4"]
    assert mirror(digest="d4", keep=0)["changed"] is False


# ------------------------------------------------------------------------------------------------------------- refusals
def test_a_package_with_a_fault_is_not_kept_and_every_fault_is_said(mirror: Mirror) -> None:
    good, bad, gone = mirror.add("good"), mirror.add("bad"), mirror.add("gone")
    (mirror.source / "gone.rpm").unlink()
    mirror.bad = {"bad"}
    faults = [
        f"file://{mirror.source}/gone.rpm: cannot be read: [Errno 2] No such file or directory:"
        f" '{mirror.source}/gone.rpm'; what came is kept, the next run goes on",
        f"base/x86_64/Packages/bad.rpm: {GOOD.replace('OK', 'BAD').strip()}: not published",
    ]
    head = "mirror: 2 packages cannot be published, {} stays current\n"
    assert mirror() == {"failed": True, "msg": head.format("nothing") + "\n".join(faults), "faults": faults}
    assert (mirror.pool(good).read_text(), list(mirror.pool(bad).parent.iterdir())) == ("good", [])
    assert not mirror.pool(gone).exists()
    mirror.trees[0]["packages"] = [good]
    assert mirror() == {"changed": True, "snapshot": "d1", "fetched": 0, "fetched_bytes": 0}
    mirror.trees[0]["packages"] = [good, bad, gone]
    assert mirror(digest="d2")["msg"].startswith(head.format("d1"))
    assert os.readlink(mirror.folder / "current") == "snapshots/d1"


@pytest.mark.parametrize(("count", "more"), [(20, ""), (21, "\nand 1 more")])
def test_of_many_faults_twenty_are_shown(mirror: Mirror, count: int, more: str) -> None:
    mirror.bad = {f"p{number:02d}" for number in range(count)}
    for name in sorted(mirror.bad):
        mirror.add(name)
    said = mirror()
    assert len(said["faults"]) == count
    head = f"mirror: {count} packages cannot be published, nothing stays current\n"
    assert said["msg"] == head + "\n".join(said["faults"][:20]) + more


def test_a_key_that_cannot_be_read_or_is_another_is_refused(mirror: Mirror) -> None:
    mirror.add("tool")
    for source, words in (
        ("/nosuch", "[Errno 2] No such file or directory: '/nosuch'"),
        ("file:///nosuch", "<urlopen error [Errno 2] No such file or directory: '/nosuch'>"),
    ):
        said = mirror(keys=[{"id": "site", "source": source, "fingerprint": PRINT}])
        assert said == {"failed": True, "msg": f"mirror: key site: {source} cannot be read: {words}"}
    mirror.answers = {"gpg": (0, "", "")}
    said = mirror()
    assert said["msg"].startswith("mirror: key site: ")
    assert said["msg"].endswith(f"/key-site has no key, declared is {PRINT.replace(' ', '')}")
    assert not mirror.folder.exists()


def test_a_key_may_come_from_an_address_within_the_time_that_is_given(mirror: Mirror) -> None:
    mirror.add("tool")
    asked: list[Any] = []
    key = mirror.key.open("rb")

    def opened(*given: str, **words: Any) -> Any:
        asked.append((given, words))
        return key

    mirror.ran.module.__dict__["open_url"] = opened
    keys = [{"id": "site", "source": "http://keys/site", "fingerprint": PRINT}]
    assert mirror(keys=keys)["changed"] is True
    assert asked == [(("http://keys/site",), {"timeout": 60, "http_agent": "hal-mirror"})]
    assert (mirror.folder / "current/keys/site").read_text() == "a key"
    key.seek(0)
    assert mirror(keys=keys, timeout_seconds=7)["changed"] is False
    assert asked[1][1]["timeout"] == 7
    key.close()


@pytest.mark.parametrize(("out", "err", "said"), [("", " broken \n", "broken"), ("on out\n", "", "on out")])
def test_an_index_that_cannot_be_made_publishes_nothing(mirror: Mirror, out: str, err: str, said: str) -> None:
    mirror.add("tool")
    mirror.answers = {"createrepo": (1, out, err)}
    here = mirror.folder / "snapshots/.unfinished/base/x86_64"
    assert mirror(createrepo="createrepo") == {"failed": True, "msg": f"mirror: createrepo {here}: {said}"}
    assert not (mirror.folder / "current").exists()
    mirror.answers = {}
    assert mirror()["snapshot"] == "d1"
    assert mirror.snapshots == ["d1"]


# ----------------------------------------------------------------------------------------------------------------- keys
@pytest.fixture
def keyring(mirror: Mirror, tmp_path: Path) -> Keyring:
    work = tmp_path / "work"
    work.mkdir()
    return Keyring(Told(mirror.ran), str(work))


class Told:
    """In place of AnsibleModule."""

    def __init__(self, ran: Ran) -> None:
        self.run_command = ran.command


def test_a_keyring_is_a_database_of_its_own_that_nobody_else_reads(
    keyring: Keyring, mirror: Mirror, tmp_path: Path
) -> None:
    database, home = tmp_path / "work/rpm", tmp_path / "work/gpg"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (database, home)] == [0o700, 0o700]
    keyring.trust("site", "/k", PRINT.lower())
    gpg = ["gpg", "--homedir", str(home), "--no-tty", "--batch", "--with-colons", "--fixed-list-mode"]
    assert mirror.ran.told == [
        ["rpm", "--dbpath", str(database), "--initdb"],
        [*gpg, "--with-fingerprint", "/k"],
        ["rpmkeys", "--dbpath", str(database), "--import", "/k"],
    ]
    assert mirror.ran.environments == [LC] * 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("gpg", "key site: /k is not a key file: said"),
        ("--import", "key site cannot be imported: said"),
    ],
)
def test_a_key_that_a_program_refuses_is_named(keyring: Keyring, mirror: Mirror, words: str, said: str) -> None:
    for answer in ((2, "on out", " said\n"), (2, " said\n", "")):
        mirror.answers = {words: answer}
        with pytest.raises(MirrorError) as refused:
            keyring.trust("site", "/k", PRINT)
        assert str(refused.value) == said


def test_a_key_file_with_two_keys_is_refused_and_not_imported(keyring: Keyring, mirror: Mirror) -> None:
    other = "B" * 40
    strays = f"fpr:::::::::{'C' * 40}:\n", f"cfg:::::::::{'D' * 40}:\nuid:::::::::{'E' * 40}:\n"
    colons = strays[0] + COLONS + f"pub:::::::::::\n{strays[1]}fpr:::::::::{other}:\n"
    mirror.answers = {"gpg": (0, colons, "")}
    with pytest.raises(MirrorError) as refused:
        keyring.trust("site", "/k", PRINT)
    mine = PRINT.replace(" ", "")
    assert str(refused.value) == f"key site: /k has {mine}, {other}, declared is {mine}"
    assert mirror.programs == ["rpm", "gpg"]


def test_signatures_are_asked_of_two_hundred_packages_at_a_time(
    keyring: Keyring, mirror: Mirror, tmp_path: Path
) -> None:
    paths = [f"/p/{number:03d}.rpm.new" for number in range(401)]
    mirror.bad = {"200", "400"}
    bad = GOOD.replace("OK", "BAD").strip()
    assert keyring.faults(dict.fromkeys(paths, KEY)) == {paths[200]: bad, paths[400]: bad}
    ask = ["rpmkeys", "--dbpath", str(tmp_path / "work/rpm"), "--checksig", "--verbose"]
    assert mirror.ran.told[1:] == [[*ask, *paths[:200]], [*ask, *paths[200:400]], [*ask, paths[400]]]
    assert mirror.ran.environments[-1] == LC
    assert keyring.faults({paths[0]: "0" * 16}) == {paths[0]: f"is signed by {KEY}, locked is {'0' * 16}"}


def test_of_a_package_that_is_not_reported_the_program_says_why(keyring: Keyring, mirror: Mirror) -> None:
    mirror.answers = {"--checksig": (1, "", " cannot open Packages index\n")}
    assert keyring.faults({"/p/a": KEY}) == {"/p/a": "is not signed: cannot open Packages index"}
    assert keyring.faults({}) == {}

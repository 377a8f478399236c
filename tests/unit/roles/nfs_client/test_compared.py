"""The comparison of mounts piece by piece, and the whole of what its program prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.nfs_client.test_mounts import mounts

MARK = "x-hal"


def declared(**changes: Any) -> dict[str, Any]:
    """Three mounts and a bound folder, changed."""
    one = {"type": "nfs4", "options": ["rw", "hard"]}
    return {
        "type": "nfs4", "kept": [], "mark": MARK, "fstab_options": ["nofail", MARK],
        "mounts": {path: {**one, "source": f"s:{path}"} for path in ("/c", "/b", "/a")},
        "binds": {"/bound": {"source": "/disk"}}, **changes,
    }  # fmt: skip


def lines(*rows: str) -> str:
    return "".join(f"{row} 0 0\n" for row in rows)


SAVED = lines(
    *(f"s:/{name} /{name} nfs4 rw,hard,nofail,{MARK}" for name in "abc"), f"/disk /bound none bind,nofail,{MARK}"
)
LIVE = lines(*(f"{maker} /{name} {kind} rw,hard" for name in "abc"
               for maker, kind in (("systemd-1", "autofs"), (f"s:/{name}", "nfs4"))))  # fmt: skip


def test_a_table_is_read_line_by_line() -> None:
    text = "# a b c d\na\\040b /c\\134d nfs rw,hard 0 0\n\ntoo few fields\nx y z w\nx y z\n  #a b c d\n"
    assert mounts.rows(text) == [
        ("/c\\d", "a b", "nfs", ["rw", "hard"]), ("y", "x", "z", ["w"]), ("b", "#a", "c", ["d"]),
    ]  # fmt: skip
    assert mounts.plain("\\011\\089\\1777") == "\t\\089\x7f7"


@pytest.mark.parametrize(
    ("path", "folder", "below"),
    [("/a/b", "/a", True), ("/a/b", "/a/", True), ("/a", "/a", False), ("/ab", "/a", False), ("/a", "/", True)],
)
def test_what_is_below_a_folder(path: str, folder: str, below: bool) -> None:
    assert mounts.is_below(path, folder) is below


def test_nothing_is_said_where_all_is_as_declared() -> None:
    nothing: dict[str, Any] = {"ours": [], "others": [], "foreign": {}, "otherwise": {}, "lines": [], "plain": []}
    assert mounts.compare(declared(), LIVE, SAVED) == nothing
    assert mounts.compare(declared(), "", SAVED) == nothing, "nobody has used them yet"


def test_each_mount_that_differs_is_told() -> None:
    live = lines(
        "s:/a /a nfs4 rw,soft", "old:/b /b nfs4 rw,soft", "s:/c /c nfs4 ro,hard,addr=10.0.0.1", "s:/c /c nfs4 rw,hard"
    )
    saved = SAVED.replace("s:/a /a nfs4", "s:/a /a nfs").replace("/b nfs4 rw", "/b nfs4 ro")
    saved += f"s:/gone /gone nfs rw,{MARK} 0 0\n/x /left none bind,{MARK} 0 0\ns:/mine /mine nfs rw 0 0\n"
    assert mounts.compare(declared(), live, saved) == {
        "ours": ["/gone", "/left"], "others": ["/mine"], "foreign": {},
        "otherwise": {"/a": "/a is mounted with soft, declared hard", "/b": "/b is mounted from old:/b, declared s:/b"},
        "lines": [f"{path} has another line in /etc/fstab" for path in ("/a", "/b")], "plain": ["/a", "/b", "/c"],
    }  # fmt: skip


def test_what_others_have_at_declared_places_is_told_and_not_compared() -> None:
    live = lines("o:/a /a nfs4 rw", "systemd-1 /b autofs rw", "/dev/sda /bound xfs rw", "s:/c /c nfs4 soft",
                 "o:/c /c nfs4 rw")  # fmt: skip
    saved = lines("o:/b /b ext4 rw", "/disk /bound none bind")
    words = "{} belongs to somebody else, from {}, declared {}"
    assert mounts.compare(declared(), live, saved) == {
        "ours": [], "others": [], "otherwise": {}, "lines": [], "plain": [],
        "foreign": {f"/{name}": words.format(f"/{name}", f"o:/{name}", f"s:/{name}") for name in "abc"},
    }  # fmt: skip
    found = mounts.compare(declared(), lines("o:/x /bound nfs rw"), lines("/other /bound none bind"))["foreign"]
    assert found == {"/bound": words.format("/bound", "o:/x", "/disk")}
    marked = mounts.compare(declared(), live, SAVED)
    assert (marked["foreign"], sorted(marked["otherwise"])) == ({}, ["/a", "/c"])


def test_another_address_of_a_server_is_told_for_what_has_the_declared_source() -> None:
    source = {"/a": {"source": "10.0.0.2:/a", "type": "nfs4", "options": ["rw"]}}
    for used, said in (
        ("addr=10.0.0.1", ["/a goes by 10.0.0.1, declared 10.0.0.2: the first mount of this server here is by that"
                           " address"]),
        ("addr=10.0.0.2", []), ("clientaddr=10.0.0.9", []),
    ):  # fmt: skip
        found = mounts.compare(
            declared(mounts=source, fstab_options=[]), lines(f"10.0.0.2:/a /a nfs4 rw,{used}"),
            lines("10.0.0.2:/a /a nfs4 rw"),
        )  # fmt: skip
        assert (found["lines"], found["otherwise"]) == (said, {})
    for server, wrong in (("10.0.0.2", True), ("[fd00::2]", True), ("abc", False), ("fd:x", False), ("1.2.x", False)):
        assert bool(mounts.by_another_address("/a", f"{server}:/a", ["rw", "addr=10.0.0.1"])) is wrong


def test_who_mounts_below_a_mount() -> None:
    live = mounts.rows(lines("s:/a /a nfs4 rw", "o:/x /x nfs4 rw"))
    table = [*live, *mounts.rows(lines("/etc/auto /net autofs rw", "systemd-1 /own autofs rw", "z /fs ext4 rw"))]
    for path, source, parent in (
        ("/a/b", "s:/a/b", True), ("/a/b", "o:/b", False), ("/a", "s:/a", False), ("/b", "s:/b", False),
        ("/net", "o:/n", True), ("/net/n", "o:/n", True), ("/net2", "o:/n", False), ("/own/n", "q:/n", False),
        ("/fs/n", "q:/n", False),
    ):  # fmt: skip
        assert mounts.has_parent((path, source, "nfs4", []), live, table) is parent, path


@pytest.mark.parametrize(
    ("wanted", "held", "kind", "told"),
    [
        ("rw,hard", "rw,hard", "nfs", []), ("ro", "rw", "nfs", ["rw, declared ro"]),
        ("softerr", "hard", "nfs4", ["hard, declared softerr"]), ("hard", "rw", "nfs", ["no hard, declared hard"]),
        ("vers=4", "vers=4.2", "nfs4", []), ("vers=4", "vers=40", "nfs4", ["vers=40, declared vers=4"]),
        ("vers=4.1", "vers=4", "nfs4", ["vers=4, declared vers=4.1"]), ("nfsvers=3", "vers=3", "nfs", []),
        ("sec=sys", "sec=sys.x", "nfs", ["sec=sys.x, declared sec=sys"]), ("vers", "rw", "nfs", []),
        ("sec=krb5", "rw", "nfs", ["no sec, declared sec=krb5"]), ("timeo=600", "timeo=10", "nfs", []),
        ("nosuid,nodev,noexec", "rw", "nfs", ["no nosuid", "no nodev", "no noexec"]),
        ("rw", "rw,nosuid,nodev,noexec", "nfs", ["noexec"]), ("noexec", "noexec", "nfs", []),
        ("rw,hard,vers=3,nodev", "ro", "fuse.x", ["ro, declared rw", "no nodev"]), ("hard", "ro", "fuse.x", []),
        ("rw", "", "fuse.x", ["no rw, declared rw"]),
    ],
)  # fmt: skip
def test_options_that_differ_have_words(wanted: str, held: str, kind: str, told: list[str]) -> None:
    assert mounts.differing(wanted.split(","), held.split(","), kind) == told


def test_the_program_prints_all_that_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    live = lines("s:/a /a nfs4 rw,soft", "s:/b /b nfs4 rw,hard", "o:/c /c nfs4 rw", "q:/q /q nfs rw", "q:/p /p nfs rw")
    saved = lines(f"s:/a /a nfs4 rw,{MARK}", f"s:/b /b nfs4 rw,hard,nofail,{MARK}", f"s:/x /x nfs4 {MARK}",
                  f"s:/w /w nfs4 {MARK}")  # fmt: skip
    tables = {"/proc/self/mounts": live, "/etc/fstab": saved}
    monkeypatch.setattr(mounts, "read", tables.__getitem__)
    given = json.dumps(declared())

    def said(*words: str) -> list[str]:
        mounts.main([given, *words])
        return capsys.readouterr().out.splitlines()

    assert said() == [
        "/a is mounted with soft, declared hard", "/a has another line in /etc/fstab",
        "/b is mounted without its automount", "/w is not in the model any more", "/x is not in the model any more",
    ]  # fmt: skip
    assert said("others") == [
        "/p is mounted by NFS, or in /etc/fstab", "/q is mounted by NFS, or in /etc/fstab",
        "/c belongs to somebody else, from o:/c, declared s:/c",
    ]  # fmt: skip
    assert [json.loads(line) for line in said("json")] == [{
        "ours": ["/w", "/x"], "others": ["/p", "/q"], "foreign": ["/c"], "otherwise": ["/a"], "plain": ["/a", "/b"],
        "lines": ["/a has another line in /etc/fstab"],
    }]  # fmt: skip
    monkeypatch.undo()
    (tmp_path / "table").write_text("x")
    assert (mounts.read(str(tmp_path / "table")), mounts.read(str(tmp_path / "none"))) == ("x", "")

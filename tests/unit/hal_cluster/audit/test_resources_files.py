"""Every module that writes files, lines of files, or is this project's own: what is declared, word for word."""

from __future__ import annotations

import hashlib
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from hal_cluster.audit.resources import Resource, content_id, identities, units_of
from hal_cluster.audit.resources.model import Call, Units, file_mode, number, truth

PRESENT = {"state": "present"}
ABSENT = {"state": "absent"}
FILE = {"state": "present", "type": "file"}
FOLDER = {"state": "present", "type": "directory"}
OURS = {"owner": "root", "group": "root"}
SUM = "0" * 40
LONG = "A" * 61


def sha1(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def found(module: str, arguments: dict[str, Any], result: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {one.resource: dict(one.declared) for one in identities(module, arguments, result or {}, **more)}


def secret(module: str, arguments: dict[str, Any]) -> dict[str, bool]:
    return {one.resource: one.secret for one in identities(module, arguments, {})}


@pytest.mark.parametrize(
    ("module", "arguments", "result", "declared"),
    [
        ("copy", {"dest": "/a"}, {"state": "directory"}, {"file:/a": {"type": "directory"}}),
        (
            "copy",
            {"dest": "/a", "mode": "0644"},
            {"checksum_src": SUM},
            {"file:/a": {**FILE, "mode": "0644", "sha1": SUM}},
        ),
        ("copy", {"dest": "/a", "mode": "0644"}, {"checksum": SUM[1:]}, {"file:/a": {**FILE, "mode": "0644"}}),
        ("copy", {"dest": "/a"}, {"checksum": SUM}, {"file:/a": FILE}),
        ("copy", {"dest": "/a", "mode": "0642"}, {"checksum": SUM}, {"file:/a": {**FILE, "mode": "0642"}}),
        ("copy", {"dest": "/a", "mode": "preserve"}, {"mode": "0600"}, {"file:/a": FILE}),
        (
            "copy",
            {"dest": "/a", "owner": "7", "group": 8},
            {"owner": "u", "group": "9"},
            {"file:/a": {**FILE, "owner": "u"}},
        ),
        ("copy", {"dest": "/a/"}, {"path": "/a/b"}, {"file:/a/b": FILE}),
        ("copy", {"dest": "/a"}, {"dest": ""}, {"file:/a": FILE}),
        # It wrote below a directory that was there: that was not asked for.
        ("template", {"dest": "/a"}, {"dest": "/a/x.j2"}, {"file:/a": FILE}),
        (
            *("get_url", {"dest": "/a", "checksum": f"sha256: {'b' * 64}"}, {}),
            {"file:/a": {**FILE, "sha256": "b" * 64}},
        ),
        ("get_url", {"dest": "/a", "checksum": "sha256:https://a/sums"}, {}, {"file:/a": FILE}),
        ("file", {"name": "/a"}, {"state": "directory"}, {"file:/a": {**PRESENT, "content": False}}),
        ("file", {"path": "/a"}, {"state": "file"}, {"file:/a": {**FILE, "content": False}}),
        ("file", {"path": "/a", "state": "file"}, {}, {"file:/a": {**FILE, "content": False}}),
        ("file", {"path": "/a", "state": "hard"}, {}, {"file:/a": {**FILE, "content": False}}),
        ("file", {"path": "/a/", "state": "directory", "mode": "0700"}, {}, {"file:/a": {**FOLDER, "mode": "0700"}}),
        (
            *("file", {"path": "/a", "state": "link", "src": "b", "mode": "0777"}, {}),
            {"file:/a": {**PRESENT, "type": "link", "target": "b"}},
        ),
        ("unarchive", {"dest": "/a", "mode": "0755"}, {}, {"file:/a": {**FOLDER, "mode": "0755"}}),
        (
            "community.crypto.openssl_privatekey",
            {"path": "/k", "owner": "u"},
            {},
            {"file:/k": {**FILE, "mode": "0600", "owner": "u"}},
        ),
        (
            "community.crypto.openssl_privatekey",
            {"path": "/k", "mode": 0o400},
            {},
            {"file:/k": {**FILE, "mode": "0400"}},
        ),
        (
            "community.crypto.openssl_privatekey",
            {"path": "/k", "state": "absent", "owner": "u"},
            {},
            {"file:/k": ABSENT},
        ),
        (
            "community.crypto.x509_certificate",
            {"path": "/c", "mode": "0644"},
            {},
            {"file:/c": {**FILE, "mode": "0644"}},
        ),
        (
            "community.crypto.x509_certificate",
            {"path": "/c", "mode": "0644", "state": "absent"},
            {},
            {"file:/c": ABSENT},
        ),
        (
            "community.crypto.openssh_keypair",
            {"path": "/k"},
            {},
            {"file:/k": {**FILE, "mode": "0600"}, "file:/k.pub": FILE},
        ),
        (
            "community.crypto.openssh_keypair",
            {"path": "/k", "state": "absent"},
            {},
            {"file:/k": ABSENT, "file:/k.pub": ABSENT},
        ),
    ],
)
def test_files(module: str, arguments: dict[str, Any], result: dict[str, Any], declared: dict[str, Any]) -> None:
    assert found(module, arguments, result) == declared


def test_private_keys_are_secret_and_public_ones_are_not() -> None:
    for state in ("present", "absent"):
        pair = {"path": "/k", "state": state}
        assert secret("community.crypto.openssh_keypair", pair) == {"file:/k": True, "file:/k.pub": False}
        assert secret("community.crypto.openssl_privatekey", pair) == {"file:/k": True}


@pytest.mark.parametrize(
    ("module", "arguments", "name", "declared"),
    [
        ("lineinfile", {"line": "a", "state": "absent"}, "a", {**ABSENT, "lines": ["a"]}),
        ("lineinfile", {"line": "a", "regexp": "^b", "state": "absent"}, "^b", {**ABSENT, "regexp": "^b"}),
        ("lineinfile", {"search_string": "a.b", "state": "absent"}, "a.b", {**ABSENT, "regexp": r"a\.b"}),
        ("lineinfile", {"search_string": "a.b", "line": "c\nd"}, "a.b", {**PRESENT, "lines": ["c", "d"]}),
        ("lineinfile", {"regexp": "(a)", "line": r"\1", "backrefs": True}, "(a)", PRESENT),
        ("lineinfile", {"regexp": "(a)", "line": "b", "backrefs": "no"}, "(a)", {**PRESENT, "lines": ["b"]}),
        (
            "blockinfile",
            {"block": "\na\n\n", "marker": "; {mark}", "marker_begin": "<", "marker_end": ">"},
            "; <",
            {**PRESENT, "block": "; <\na\n; >"},
        ),
        (
            "blockinfile",
            {"content": "a", "marker": "#{mark}", "state": "absent"},
            "#BEGIN",
            {**ABSENT, "regexp": "^\\#BEGIN$"},
        ),
        ("replace", {"regexp": "^a$", "replace": "b\na"}, "^a$", PRESENT),
        ("replace", {"regexp": "^a$", "replace": "ba"}, "^a$", {**ABSENT, "regexp": "^a$"}),
        ("replace", {"regexp": "(a", "replace": "b"}, "(a", PRESENT),
        ("known_hosts", {"name": "h", "key": " h ssh-rsa A\n"}, "h", {**PRESENT, "lines": ["h ssh-rsa A"]}),
        ("known_hosts", {"host": "h", "key": "h A", "hash_host": True}, "h", PRESENT),
        ("known_hosts", {"name": "h.a", "state": "absent"}, "h.a", {**ABSENT, "regexp": r"^h\.a[ ,]"}),
    ],
)
def test_lines(module: str, arguments: dict[str, Any], name: str, declared: dict[str, Any]) -> None:
    assert found(module, {"path": "/x", **arguments}) == {f"line:/x#{content_id(name)}": declared}


def test_a_block_keeps_its_open_name_in_a_secret_call_and_a_line_does_not() -> None:
    block = found("blockinfile", {"dest": "/x", "block": "a"}, secret=True, task="t")
    assert block == {f"line:/x#{content_id('# BEGIN ANSIBLE MANAGED BLOCK')}": PRESENT}
    assert found("lineinfile", {"path": "/x", "line": "a"}, secret=True, task="t") == {
        f"line:/x#{content_id('task t')}": PRESENT
    }
    assert found("known_hosts", {"name": "h", "key": "k"}) == {}


def test_keys_that_may_log_in() -> None:
    module, keys = "ansible.posix.authorized_key", f"# mine\nssh-rsa {LONG} me\n\n  ssh-rsa short you\n"
    long, short = (f"line:/k#{content_id(name)}" for name in (LONG, "ssh-rsa short you"))
    assert found(module, {"key": keys, "key_options": "no-pty"}, {"keyfile": "/k"}) == {
        long: {**PRESENT, "lines": [f"no-pty ssh-rsa {LONG} me"]},
        short: {**PRESENT, "lines": ["no-pty ssh-rsa short you"]},
    }
    assert found(module, {"key": f"ssh-rsa {LONG} me", "path": "/k", "state": "absent"}) == {
        f"line:/k#{content_id(f'ssh-rsa {LONG} me')}": {**ABSENT, "regexp": LONG}
    }
    for key, path in (("https://a/k", "/k"), ("file:///k", "/k"), ("# none\n", "/k"), ("ssh-rsa A", "")):
        assert found(module, {"key": key, "path": path}) == {}
    long = "ssh-rsa " + "B" * 60 + " b"
    assert list(found(module, {"key": long, "path": "/k"})) == [f"line:/k#{content_id(long)}"]


def test_limits() -> None:
    words = {"domain": "@hpc", "limit_type": "-", "limit_item": "memlock", "value": "unlimited"}
    name = f"#{content_id('@hpc - memlock')}"
    line = "@hpc\t-\tmemlock\tunlimited"
    module = "community.general.pam_limits"
    assert found(module, words) == {f"line:/etc/security/limits.conf{name}": {**PRESENT, "lines": [line]}}
    assert found(module, {**words, "dest": "/l", "comment": "why"}) == {
        f"line:/l{name}": {**PRESENT, "lines": [f"{line}\t#why"]}
    }


@pytest.mark.parametrize(
    ("mode", "known"), [("0644", True), ("0604", True), ("0640", False), ("0642", False), (None, True)]
)
def test_the_content_of_hal_files_is_kept_if_everybody_may_read_it(mode: str | None, known: bool) -> None:
    one = {"path": "/a", "content": "x", "owner": "u", "mode": mode}
    owned = {"owner": "u", "group": "u", "mode": mode or "0644"}
    assert found("hal_files", {"files": [one, "x"]}) == {
        "file:/a": {**FILE, **owned, **({"sha1": sha1("x")} if known else {})}
    }
    assert found("hal_files", {"files": [{**one, "group": "g"}]})["file:/a"]["group"] == "g"
    assert found("hal_files", {"directories": [{"path": "/d", "mode": "0755"}], "files": None}) == {
        "file:/d": {**FOLDER, **OURS, "mode": "0755"}
    }


USERS = [
    {"enabled": True, "uid": 1, "start": 10, "count": 5, "slot": 0},
    {"enabled": False, "uid": 2, "start": 15, "count": 5, "slot": 1},
    {"enabled": True, "uid": 3},
]


def test_the_projects_own_modules() -> None:
    assert found("hal_channel_mirror", {"folder": "/m", "packages": []}) == {}
    assert found("hal_channel_mirror", {"folder": "/m", "packages": [{"name": "a"}]}) == {
        "file:/m": {**FOLDER, **OURS, "mode": "0755"}
    }
    assert found("hal_environment", {"name": "a"}) == found("hal_scale_config", {"name": "a"}) == {}
    assert found("hal_munge_key", {"path": "/k", "owner": "u", "group": "g"}) == {
        "file:/k": {**FILE, "mode": "0400", "owner": "u", "group": "g"}
    }
    files = {f"file:/etc/sub{kind}": {**FILE, **OURS, "mode": "0644"} for kind in ("uid", "gid")}
    assert found("hal_subids", {"users": USERS[2:]}) == files
    lines = {**PRESENT, "lines": ["1:10:5", "!2:15:5"]}
    name = content_id("hal_subids")
    assert found("hal_subids", {"users": USERS}) == files | {
        f"line:/etc/sub{kind}#{name}": lines for kind in ("uid", "gid")
    }


def test_slurms_daemons_and_what_they_read() -> None:
    daemon = {"name": "slurmd", "files": ["/a"], "unit_files": ["/u"]}
    running = {"state": "started", "enabled": True, "masked": False}
    readers = {"file:/a": ("slurmd.service",), "file:/u": ("slurmd.service",)}
    assert found("hal_slurm_daemon", daemon) == {"service:slurmd.service": running}
    assert found("hal_slurm_daemon", {**daemon, "phase": "stop_first"}) == {}
    assert units_of("hal_slurm_daemon", daemon, {"pending": "nothing"}) == Units(("slurmd.service",), readers)
    assert units_of("hal_slurm_daemon", daemon, {"pending": "restart"}) == Units((), readers)
    assert units_of("hal_slurm_daemon", {**daemon, "phase": "stop_first"}, {"pending": "nothing"}) == Units()


def test_slurms_accounts_and_reservations_with_their_fields() -> None:
    accounts = {
        "qos": [{"name": "long", "max_wall": None, "grace": 1.5}],
        "accounts": [{"name": "a", "parent": "root", "share": 3, "tres": ["cpu", 1]}, "x"],
        "users": [{"name": "u", "state": "absent", "account": "a"}],
    }
    assert found("hal_slurm_account", accounts) == {
        "slurm-qos:long": {**PRESENT, "max_wall": None, "grace": 1.5},
        "slurm-account:a": {**PRESENT, "parent": "root", "share": 3, "tres": ["cpu", "1"]},
        "slurm-user:u": ABSENT,
    }
    reservations = [{"name": "r", "state": "present", "nodes": "a"}]
    assert found("hal_slurm_reservation", {"reservations": reservations}) == {
        "slurm-reservation:r": {**PRESENT, "nodes": "a"}
    }


def test_values_as_modules_take_them() -> None:
    words = ("y", "Yes", "on", "1", "TRUE", "t", True, "n", "no", "off", "0", "False", "f", False, "x", None, "")
    assert [truth(word) for word in words] == [True] * 7 + [False] * 7 + [None] * 3
    assert [number(one) for one in ("7", 7, "x", None)] == [7, 7, None, None]
    modes = (0, 0o7, 420, True, None, "644", "0644", "1777", "64", "064444", "0649", "u=rw", " 0600 ")
    texts = ["0000", "0007", "0644", "", "", "0644", "0644", "1777", "", "", "", "", "0600"]
    assert [file_mode(mode) for mode in modes] == texts
    assert content_id("a", "b") == hashlib.sha256(b"a\0b").hexdigest()[:16]


def test_arguments_by_any_of_their_names() -> None:
    call = Call({"a": None, "b": " x , ,y", "c": True, "d": ["1", 2, False], "state": "removed"}, {})
    assert (call.get("a", "b"), call.get("a"), call.text("a", "c"), call.text("a", default="z")) == (
        " x , ,y",
        None,
        "true",
        "z",
    )
    assert (call.items("a"), call.items("b"), call.items("d")) == ([], ["x", "y"], ["1", "2", "false"])
    assert (call.absent(), call.absent("removed"), call.flag("c"), call.flag("b")) == (False, True, True, None)
    assert list(call.given("a", "c", "nothing")) == [("c", True)]


def test_a_secret_resource_keeps_what_does_not_come_from_its_content() -> None:
    one = Resource("file:/a", {"state": "present", "mode": "0600", "sha1": "a", "lines": ["b"], "content": False})
    assert one.secret is False
    hidden = Resource("file:/a", {"state": "present", "mode": "0600", "content": False}, secret=True)
    assert one.without_content() == hidden
    for frozen in (one, Units(), Call({}, {})):
        with pytest.raises(FrozenInstanceError):
            frozen.__setattr__(next(iter(vars(frozen))), "x")
    arguments = {"dest": "/a", "_ansible_no_log": True, "mode": "0644"}
    assert identities("ansible.legacy.copy", arguments, {"checksum": SUM}, secret=True)[0].secret
    assert found("stat", {"path": "/a"}) == {}

"""Packages, units, accounts, jobs and repositories as they are observed."""

from __future__ import annotations

import os
import pwd
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import packages as packages
from ansible.module_utils.hal_node.audit import secrets as secrets
from ansible.module_utils.hal_node.audit.kinds import service as services
from ansible.module_utils.hal_node.audit.kinds.account import Accounts, table
from ansible.module_utils.hal_node.audit.kinds.cron import job, observe_cron
from ansible.module_utils.hal_node.audit.kinds.package import observe_packages
from ansible.module_utils.hal_node.audit.kinds.registry import KINDS
from ansible.module_utils.hal_node.audit.kinds.repository import observe_repository, sections
from ansible.module_utils.hal_node.audit.kinds.service import attributes_of, observe_units, read_units, started_at
from ansible.module_utils.hal_node.audit.packages import Installed, explain, owned, parse, unexplained
from ansible.module_utils.hal_node.expect.values import Unreadable

from tests.unit.hal_node.audit.conftest import FakeNode, refused

PRESENT = {"state": "present"}
KEY = b"k" * 32


def test_rpm_is_asked_for_everything_at_once_and_gets_a_minute() -> None:
    asked = []

    class Node:
        def run(self, argv: list[str], timeout_seconds: float) -> tuple[int, str, str]:
            asked.append((argv, timeout_seconds))
            return 0, "hal-package\ta\t0\t1\t2\tx\tnever\n", ""

    installed = packages.read_installed(Node())
    assert asked == [(["rpm", "-qa", "--qf", packages.QUERY], 60)]
    assert installed.packages == {"a": {"1-2.x": 0}}
    assert installed.keys == set()


@pytest.mark.parametrize("status", [1, -9])
def test_an_rpm_that_failed_is_not_believed(hal: FakeNode, status: int) -> None:
    hal.programs["rpm"] = lambda words: (status, "hal-package\ta\t0\t1\t2\tx\t5\n", " e" * 200)
    assert refused(packages.read_installed, hal.node) == (f"rpm -qa ended with status {status}", ("e " * 200)[:200])


def test_lines_of_rpm_that_are_not_ours_are_passed_by() -> None:
    good = "hal-package\ta\t5\t1\t2\tx\t7\n"
    key = "hal-package\tgpg-pubkey\t(none)\tABCDEF0123456789\t5\t(none)\t1\n"
    assert parse("noise\na\tb\n" + key + "hal-package\tshort\nhal-packag\ta\tb\tc\td\te\tf\n" + good).packages == {
        "a": {"5:1-2.x": 7},
    }
    assert parse(key + good).keys == {"23456789"}


def test_a_name_may_end_in_its_architecture() -> None:
    installed = Installed({"a": {"1-1.x86_64": 1, "1-1.i686": 2}, "b.c": {"2-1.x": 3}}, set())
    assert installed.named("a") == {"1-1.x86_64": 1, "1-1.i686": 2}
    assert installed.named("a.i686") == {"1-1.i686": 2}
    assert installed.named("a.686") == {}
    assert installed.named("b.c") == {"2-1.x": 3}
    assert installed.explained() == {"a": "1-1.i686 1-1.x86_64", "b.c": "2-1.x"}


def test_packages_are_what_is_installed_or_what_provides_them(hal: FakeNode) -> None:
    hal.programs["rpm"] = lambda words: (0, "noise\nhal-package\tb-1-1.x\nhal-package\ta-1-1.x\n", "")
    installed = Installed({"a": {"2-1.x": 5, "1-1.x": 7}}, set())
    assert observe_packages(["a", "mta", "/usr/bin/x"], installed, hal.node) == {
        "a": ({**PRESENT, "version": ["1-1.x", "2-1.x"]}, 7),
        "mta": ({**PRESENT, "version": ["a-1-1.x", "b-1-1.x"]}, 0),
        "/usr/bin/x": ({**PRESENT, "version": ["a-1-1.x", "b-1-1.x"]}, 0),
    }
    assert [call[1:3] + call[5:] for call in hal.calls] == [
        ["-q", "--whatprovides", name] for name in ("mta", "/usr/bin/x")
    ]
    strange = observe_packages(["a b"], installed, hal.node)["a b"]
    assert strange.reason == 'not a package name: "a b"'
    hal.missing.add("rpm")
    assert observe_packages(["mta"], installed, hal.node) == {"mta": ({"state": "absent"}, 0)}


def test_only_so_many_names_are_looked_up(hal: FakeNode) -> None:
    names = [f"n{number}" for number in range(32)]
    hal.programs["rpm"] = lambda words: (0, f"hal-package\t{words[-1]}\n", "")
    answers = observe_packages(names, Installed({"a": {"1": 1}}, set()), hal.node)
    assert len(hal.calls) == 30
    assert [name for name in names if answers[name][0] == {"state": "absent"}] == ["n30", "n31"]


def test_files_are_of_packages_unless_rpm_says_no(hal: FakeNode) -> None:
    hal.programs["rpm"] = lambda words: (
        *(1, "hal-package\nfile /b is not owned by any package\n"),
        "error: file /c: No such file or directory\n",
    )
    assert owned([b"/c", b"/a", b"/b", b"/\xff", b"/x\ny"], hal.node) == {b"/a"}
    assert hal.calls == [["rpm", "-qf", "--qf", "hal-package\\n", "/a", "/b", "/c"]]
    hal.calls.clear()
    assert owned([b"/\xff"], hal.node) == set()
    assert hal.calls == []
    hal.programs["rpm"] = lambda words: (1, "", "error: " + "x" * 300)
    assert refused(owned, [b"/a"], hal.node) == ("rpm did not say whose files these are", "error: " + "x" * 193)
    hal.programs["rpm"] = lambda words: (1, "file /a is not owned by any package\n", "")
    assert owned([b"/a"], hal.node) == set()


def test_what_a_window_explains() -> None:
    installed = Installed({"a": {"2-1.x": 10, "1-1.x": 5}, "b": {"1-1.x": 20}, "c": {"1-1.x": 21}}, set())
    assert explain({"a": "1-1.x"}, installed, [(10, 20)], set()) == {"a": "1-1.x 2-1.x", "b": "1-1.x"}
    assert explain({"a": "1-1.x"}, installed, [(11, 19)], set()) == {"a": "1-1.x"}
    assert explain({}, installed, [(1, 5), (10, 10)], {"c"}) == {"a": "1-1.x 2-1.x", "c": "1-1.x"}
    assert explain({"a": "1-1.x 2-1.x 3-1.x"}, installed, [], set()) == {"a": "1-1.x 2-1.x"}  # one went away
    known = {"a": "1-1.x", "b": "1-1.x"}
    assert unexplained(known, installed, set()) == ["a-2-1.x", "c-1-1.x"]
    assert unexplained(known, installed, {"a", "c"}) == []


def test_units_are_asked_for_once_by_their_whole_names(hal: FakeNode) -> None:
    hal.units["a.service"] = {}
    states = read_units({"a", "b.timer", "-x", "a b"}, hal.node)
    words = ["systemctl", "show", "--property", ",".join(services.PROPERTIES), "--", "a.service", "b.timer"]
    assert hal.calls == [words]
    assert {name: one.reason for name, one in states.items() if isinstance(one, Unreadable)} == {
        "-x": 'not a unit name: "-x"',
        "a b": 'not a unit name: "a b"',
    }
    assert states["a"]["ActiveState"] == "active"
    assert states["b.timer"]["LoadState"] == "not-found"
    hal.calls.clear()
    assert read_units(set(), hal.node) == {}
    assert read_units({"-x"}, hal.node)["-x"].reason == 'not a unit name: "-x"'
    assert hal.calls == []


def test_a_systemd_that_says_something_else_says_nothing(hal: FakeNode) -> None:
    hal.programs["systemctl"] = lambda words: (1, "Id=a.service\n", "no  bus\n" + "x" * 300)
    states = read_units({"a", "b"}, hal.node)
    assert [(one.reason, one.detail) for one in states.values()] == [
        ("systemctl shows no units (status 1)", "no bus " + "x" * 193),
    ] * 2


def test_what_a_units_properties_mean() -> None:
    def of(**state: str) -> Any:
        return attributes_of({"LoadState": "loaded", **state}, {"/b": "1"})

    stopped = {"state": "stopped", "enabled": False, "masked": False, "fragment": "", "drop_ins": []}
    assert of() == stopped
    for word in services.RUNNING:
        assert of(ActiveState=word) == {**stopped, "state": "started"}
    for word in services.DISABLED:
        assert of(UnitFileState=word)["enabled"] is False
    for word in ("enabled", "alias", "generated"):
        assert of(UnitFileState=word)["enabled"] is True
    assert of(UnitFileState="indirect")["enabled"] == "indirect"
    assert of(DropInPaths="/c /b", FragmentPath="/x\n")["drop_ins"] == ["/b 1", "/c cannot be read"]
    assert of(FragmentPath="/x\x01")["fragment"] == "/x\\x01"
    assert of(LoadState="not-found", ActiveState="inactive") == {"state": "absent"}
    assert of(LoadState="not-found", ActiveState="active") == {**stopped, "state": "started"}
    assert of(LoadState="masked")["masked"] is True
    assert of(LoadState="").reason == "systemctl did not tell its state"


def test_drop_ins_are_told_by_their_content_or_why_it_is_not_known(
    hal: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    hal.write("/d/a", "x")
    hal.path("/d/b").mkdir()
    monkeypatch.setattr(services, "MOST_DROP_IN", 1)
    state = {"LoadState": "loaded", "DropInPaths": "/d/a /d/b /d/c"}
    known = observe_units({"a": state, "b": {**state, "DropInPaths": ""}, "c": Unreadable("x")}, hal.node)
    assert known["a"]["drop_ins"] == [
        "/d/a 2d711642b726b044",
        "/d/b not a regular file",
        f"/d/c cannot be read: [Errno 2] No such file or directory: {os.fsencode(hal.path('/d/c'))!r}",
    ]
    assert known["b"]["drop_ins"] == []
    assert known["c"].reason == "x"
    hal.write("/d/a", "xy")
    assert observe_units({"a": state}, hal.node)["a"]["drop_ins"][0] == "/d/a not a regular file"


@pytest.mark.parametrize("text", ["0", "", "x", "-5"])
def test_a_unit_without_a_start_has_none(text: str) -> None:
    assert started_at({"ActiveState": "active", "ExecMainStartTimestampMonotonic": text}, 100) is None
    assert started_at({"ActiveState": "active"}, 100) is None


def test_accounts_are_those_of_the_files(hal: FakeNode) -> None:
    hal.write("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nbob:x:1001:10:B:/home/bob:/bin/sh\nodd:x:7:77::/:/x\n")
    hal.write("/etc/group", "root:x:0:\nwheel:x:10:alice,bob\nten:x:10:\nbobs:x:11:bobby\nusers:x:12:bob\n")
    accounts = Accounts(hal.node)
    assert accounts.user("bob") == {
        **{**PRESENT, "uid": 1001, "group": "wheel", "home": "/home/bob", "shell": "/bin/sh"},
        "groups": ["users", "wheel"],
    }
    assert accounts.user("odd")["group"] == "77"
    assert accounts.user("alice") == {"state": "absent"}
    assert accounts.group("ten") == {**PRESENT, "gid": 10}
    assert accounts.group("none") == {"state": "absent"}
    assert accounts.with_uid_0() == ["root"]


@pytest.mark.parametrize("name", ["passwd", "group"])
def test_without_a_table_of_accounts_nothing_is_known(hal: FakeNode, name: str) -> None:
    hal.path(f"/etc/{name}").unlink()
    assert refused(Accounts, hal.node) == (f"there is no /etc/{name}", "")


def test_whom_the_files_do_not_have_the_system_knows() -> None:
    class Node:
        root = "/"

        def text(self, path: str) -> str:
            return "nobody-here:x:1:1::/:/x\n" if path == "/etc/passwd" else "nobody-here:x:1:\n"

    accounts, root = Accounts(Node()), pwd.getpwnam("root")
    assert accounts.user("root") == {
        **{**PRESENT, "uid": 0, "group": "0", "home": root.pw_dir, "shell": root.pw_shell, "groups": []},
    }
    assert accounts.group("root") == {**PRESENT, "gid": 0}
    assert accounts.user("no-such-user") == {"state": "absent"}
    assert accounts.group("no-such-group") == {"state": "absent"}


def test_a_directory_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch, hal: FakeNode) -> None:
    from ansible.module_utils.hal_node.audit.kinds import account as hal_audit_accounts

    def odd(_name: str) -> None:
        raise OSError("odd")

    accounts = Accounts(hal.node)
    accounts.node.root = "/"
    monkeypatch.setattr(hal_audit_accounts.pwd, "getpwnam", odd)
    assert refused(accounts.user, "carol") == ("cannot be read: odd", "")


def test_lines_of_tables_are_whole() -> None:
    assert table("a:x:1:\nb:x:y:\nc:x:2\na:x:3:\n", 4) == [["a", "x", "1", ""]]


def test_jobs_are_looked_for_where_either_system_has_them(hal: FakeNode) -> None:
    text = "#Ansible: j\n@daily run\n"
    assert observe_cron("root", "j", False, hal.node, KEY) == {"state": "absent"}
    hal.write("/var/spool/cron/crontabs/root", text)
    there = {**PRESENT, "schedule": "@daily", "job": "run", "public": True}
    assert observe_cron("root", "j", False, hal.node, KEY) == there
    hal.path("/var/spool/cron/crontabs/root").chmod(0o600)
    assert observe_cron("root", "j", False, hal.node, KEY) == {**there, "public": False}
    del there["job"]
    hidden = {**there, "public": False, "job_keyed": secrets.keyed(KEY, "run")}
    assert observe_cron("root", "j", True, hal.node, KEY) == hidden
    hal.write("/var/spool/cron/root", "x\n")
    assert observe_cron("root", "j", True, hal.node, KEY) == {"state": "absent"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#Ansible: a\n#Ansible: x\n1 2 3 4 5 run it now\n", ("1 2 3 4 5", "run it now")),
        ("  #Ansible: x  \n  @reboot  run  it\n", ("@reboot", "run  it")),
        ("#Ansible: x\n1 2 3 4 run\n", ("", "1 2 3 4 run")),
        ("#Ansible: x\n\n", ("", "")),
    ],
)
def test_a_job_is_what_follows_its_mark(text: str, expected: tuple[str, str]) -> None:
    assert job(text, "x") == {**PRESENT, "schedule": expected[0], "job": expected[1]}


def test_settings_of_repositories_and_those_that_nobody_may_see(hal: FakeNode) -> None:
    text = "[a]\nname=A\npassword=p\nproxy=http://u:p@x/\nsslclientkey=\nBaseURL=http://x/\n"
    hal.write("/r.repo", text)
    assert observe_repository("/r.repo#a", hal.node, KEY) == {
        **{**PRESENT, "name": "A", "password": "keyed " + secrets.keyed(KEY, "p"), "sslclientkey": ""},
        **{"proxy": "keyed " + secrets.keyed(KEY, "http://u:p@x/"), "baseurl": "http://x/"},
    }
    assert observe_repository("/r.repo#b", hal.node, KEY) == {"state": "absent"}
    assert observe_repository("/none.repo#a", hal.node, KEY) == {"state": "absent"}


def test_a_repository_file_is_read_as_yum_reads_it() -> None:
    text = "a=1\n[a]\n  stray\nx\nb = 1 = 2\n\tmore\n; c\n # d\n\nempty=\n  later\n[b\nc=3\n[a]\ne=5\n [c]\n"
    assert sections(text) == {"a": {"b": "1 = 2\nmore", "empty": "later", "c": "3", "e": "5\n[c]"}}


def test_what_is_put_back_and_what_is_not_the_node_s_own() -> None:
    assert [kind.name for kind in KINDS if kind.comes_back] == [
        *("file", "hostname", "package", "selinux", "service", "sysctl"),
    ]
    assert [kind.name for kind in KINDS if not kind.of_the_node] == [
        *("database", "database-user"),
        *("slurm-account", "slurm-qos", "slurm-reservation", "slurm-user"),
    ]

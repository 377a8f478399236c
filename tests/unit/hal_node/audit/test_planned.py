"""What roles would manage on a node that has no record: compared in the same call, and nothing is kept there."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit.look import look
from ansible.module_utils.hal_node.audit.secrets import keyed

from tests.unit.hal_node.audit.conftest import FakeNode

KEY = b"k" * 32
WORDS = "server a\nlogdir /var/log/chrony\n"
OWNER = {"role": "time", "task": "time|roles/time/tasks/configure.yml|Write it", "source": "c.yml:2", "units": []}


def sha1(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def planned(path: str, declared: dict[str, Any], **more: Any) -> dict[str, Any]:
    file = {"state": "present", "type": "file", **declared}
    return {"resource": f"file:{path}", "secret": False, **OWNER, "declared": file, **more}


def asked(node: FakeNode, *entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    request = {"node": "hal05", "planned": list(entries), "planned_key": base64.b64encode(KEY).decode(), **more}
    found: dict[str, Any] = look(request, node.node)
    return found


def short(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["resource"], one["kind"], one["attribute"]) for one in answer["planned"]]


def tree(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*"))


def test_what_is_as_declared_is_no_difference_and_what_is_not_says_role_and_task(hal: FakeNode) -> None:
    hal.write("/etc/chrony.conf", WORDS)
    same = planned("/etc/chrony.conf", {"sha1": sha1(WORDS), "mode": "0644"})
    assert asked(hal, same)["planned"] == []
    other = planned("/etc/chrony.conf", {"sha1": sha1("x"), "mode": "0600"})
    gone = planned("/etc/none", {"mode": "0644"})
    answer = asked(hal, other, gone, planned("/etc/hostname", {"state": "absent"}))
    assert short(answer) == [
        ("file:/etc/chrony.conf", "changed", "sha1"),
        ("file:/etc/chrony.conf", "mode", "mode"),
        ("file:/etc/none", "missing", "state"),
        ("file:/etc/hostname", "present", "state"),
    ]
    assert {(one["role"], one["task"]) for one in answer["planned"]} == {("time", OWNER["task"])}
    assert (answer["record"]["status"], answer["record"]["used"]) == ("none", "none")
    assert answer["differences"] == []


def test_a_diff_is_there_when_the_text_was_sent_and_of_no_secret(hal: FakeNode) -> None:
    hal.write("/etc/chrony.conf", "# by hand\n")
    told = {"sha1": sha1(WORDS)}
    (plain,) = asked(hal, planned("/etc/chrony.conf", told))["planned"]
    assert "diff" not in plain
    (shown,) = asked(hal, planned("/etc/chrony.conf", told, text=WORDS))["planned"]
    assert {"-server a", "+# by hand"} <= set(shown["diff"])
    (secret,) = asked(hal, planned("/etc/chrony.conf", told, text=WORDS, secret=True))["planned"]
    assert "diff" not in secret
    assert secret["should"] == secret["is"] == "(secret)"
    hal.write("/etc/chrony.conf", "# by hand\n", mode=0o600)
    (private,) = asked(hal, planned("/etc/chrony.conf", told, text=WORDS))["planned"]
    assert "diff" not in private, "what others may not read here is not shown elsewhere"


def test_a_secret_content_is_compared_by_the_key_of_the_call(hal: FakeNode) -> None:
    hal.write("/etc/munge/munge.key", "a secret", mode=0o400)
    same = planned("/etc/munge/munge.key", {"sha1_keyed": keyed(KEY, sha1("a secret"))}, secret=True)
    assert asked(hal, same)["planned"] == []
    other = planned("/etc/munge/munge.key", {"sha1_keyed": keyed(KEY, sha1("another"))}, secret=True)
    (one,) = asked(hal, other)["planned"]
    assert (one["kind"], one["attribute"], one["should"], one["is"]) == ("changed", "keyed", "(secret)", "(secret)")


def test_what_cannot_be_asked_is_unknown_and_never_fine(hal: FakeNode) -> None:
    hal.missing.add("rpm")
    answer = asked(hal, {"resource": "package:chrony", "secret": False, **OWNER, "declared": {"state": "present"}})
    assert [one[1] for one in short(answer)] == ["unreadable"]


def test_files_that_a_role_declares_are_nobody_elses(hal: FakeNode) -> None:
    hal.write("/etc/cron.d/ours", "x")
    hal.write("/etc/cron.d/theirs", "x")
    watched = [{"path": "/etc/cron.d", "what": "jobs of cron"}]
    answer = asked(hal, planned("/etc/cron.d/ours", {}), watched=watched)
    assert [one["path"] for one in answer["extra"]] == ["/etc/cron.d/theirs"]


def test_nothing_is_written(hal: FakeNode) -> None:
    hal.write("/etc/chrony.conf", "# by hand\n")
    before = tree(hal.root)
    asked(hal, planned("/etc/chrony.conf", {"sha1": sha1(WORDS)}, text=WORDS), checks=["uid_0", "kernel", "packages"])
    assert tree(hal.root) == before
    assert not hal.path("/var/lib/hal").exists()


def test_more_differences_than_an_answer_may_have_are_counted(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible.module_utils.hal_node.audit import look as looking

    monkeypatch.setattr(looking, "MOST_DIFFERENCES", 1)
    answer = asked(hal, planned("/etc/a", {}), planned("/etc/b", {}))
    assert (len(answer["planned"]), answer["more"]["planned"]) == (1, 1)

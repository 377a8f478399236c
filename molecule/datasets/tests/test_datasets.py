"""A data set comes from a real server, in two pieces, and is read by users. Nothing here reads expect.yml.

The tests are one story, in their order: declared, half brought, published, spoilt, retired.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from running.ansible_run import PROJECT, of_scenario
from testinfra.host import Host
from testing.promises import Rollout
from testing.waiting import wait_for

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
ROOT = "/home/datasets"
HIDDEN = f"{ROOT}/.hal"
FAULTY = ("fail", "unknown")
FAILED = "fail: datasets:"  # as a rollout names a promise that does not hold
LARGE = 60 * 1024 * 1024
Node = Callable[[str], Host]
# Starts a transfer and kills it when this much of the large file is there.
KILL_HALFWAY = f"""
import glob, os, signal, subprocess, time
call = subprocess.Popen(["/usr/sbin/hal-dataset", "stage", "digits"])
while call.poll() is None:
    sizes = [os.stat(path).st_size for path in glob.glob("{HIDDEN}/digits/1.0/parts/*")]
    if any(size > 5000000 for size in sizes):
        call.send_signal(signal.SIGKILL)
        break
    time.sleep(0.0005)
raise SystemExit(call.wait() != -signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


@pytest.fixture
def dtn(node: Node) -> Host:
    return node("hal-dtn")


@pytest.fixture
def server(node: Node) -> Host:
    return node("hal-data")


def broken(rollout: Rollout, **variables: Any) -> list[str]:
    return rollout.broken_promises("datasets", "hal-dtn", **variables)


def fetched(server: Host) -> list[list[str]]:
    """What the web server sent since this was asked last: path, range, status, bytes."""
    lines = server.check_output("cat /var/log/httpd/fetched_log; : >/var/log/httpd/fetched_log")
    return [line.split() for line in lines.splitlines()]


def status(dtn: Host, label: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(dtn.check_output(f"hal-dataset status {label}"))
    return found


def declared(**changes: Any) -> list[dict[str, Any]]:
    """The scenario's data sets, the first of them changed."""
    found = yaml.safe_load((SCENARIO / "group_vars/all/datasets.yml").read_text())["datasets_standard"]
    found[0] |= changes
    return list(found)


def test_somebody_s_folder_is_left_as_it_is_until_it_is_given_away(dtn: Host, rollout: Rollout) -> None:
    """Rolled out twice by now; prepare.yml has made it."""
    folder = dtn.file(ROOT)
    assert (folder.user, folder.mode, folder.listdir()) == ("alice", 0o777, ["README.txt"])
    assert dtn.file(f"{ROOT}/README.txt").content_string == "ask me\n"
    results = rollout.promises("datasets", "hal-dtn")
    assert {name: result["severity"] for name, result in results.items() if result["status"] in FAULTY} == {
        "folder of data sets has nobody else's files": "warning",
        "only root makes data sets [mode]": "warning",
        "only root makes data sets [owner]": "warning",
        "declared data set is staged [digits/1.0]": "warning",
        "declared data set is staged [letters/2020]": "warning",
    }
    said = results["folder of data sets has nobody else's files"]["observed"]
    assert f"mkdir {HIDDEN}, as root, gives it to hal-dataset; or name another folder" in said
    assert results["declared data set is staged [digits/1.0]"]["observed"] == "not staged"
    refused = dtn.run("hal-dataset stage digits")
    assert (refused.rc, refused.stderr.strip()) == (3, said)

    dtn.check_output(f"mkdir {HIDDEN} && hal-dataset setup")
    assert (dtn.file(ROOT).user, dtn.file(ROOT).mode) == ("root", 0o755)
    assert "not here yet" in dtn.check_output(f"cat {ROOT}/README.txt")
    assert dtn.file(f"{ROOT}/index.html").mode == 0o644


def test_a_transfer_that_is_killed_goes_on_where_it_was(dtn: Host, server: Host) -> None:
    fetched(server)
    dtn.check_output(f"python3 -c '{KILL_HALFWAY}'")
    part = int(dtn.check_output(f"stat -c %s {HIDDEN}/digits/1.0/parts/*"))
    assert 5_000_000 < part < LARGE
    arrived = dtn.check_output(f"cd {HIDDEN}/digits/1.0/data && find . -type f | sort").split()
    assert arrived == [f"./train/{number:02}.bin" for number in range(20)]
    assert not dtn.file(f"{ROOT}/digits").exists, "users see nothing"
    assert status(dtn, "digits")["state"] == "half staged"
    wait_for(
        "the server's log", lambda: server.check_output("grep -c large /var/log/httpd/fetched_log || true"), "1".__eq__
    )
    assert len(fetched(server)) == 22, "manifest, twenty files, a piece of the next"

    # By the playbook, in the background, as an administrator goes on.
    done = of_scenario(SCENARIO).playbook(PROJECT / "playbooks/datasets.yml", datasets_stage="digits/1.0")
    assert done.status == 0, done.explain()
    assert "hal-dataset@digits-1.0.service" in done.words
    wait_for("data set", lambda: status(dtn, "digits")["state"], "published".__eq__, seconds=60)
    log = fetched(server)
    assert log[0] == ["/digits-1.0/video/large.bin", f"bytes={part}-", "206", str(LARGE - part)]
    assert [path for path, *_ in log[1:]] == [f"/digits-1.0/zest/{number:02}.bin" for number in range(10)]
    journal = dtn.check_output("journalctl --no-pager --output cat --unit hal-dataset@digits-1.0.service")
    assert "digits/1.0: 20 files are here already and are not fetched again" in journal
    assert "digits/1.0 is published: /home/datasets/digits/1.0" in journal


def test_what_is_published_is_not_brought_again(dtn: Host, server: Host) -> None:
    done = of_scenario(SCENARIO).playbook(PROJECT / "playbooks/datasets.yml", datasets_stage="digits/1.0")
    assert done.status == 0, done.explain()
    assert done.changes == {}
    assert "digits/1.0 is published: /home/datasets/digits/1.0" in done.words
    assert "is published already" in dtn.check_output("hal-dataset stage digits")
    assert fetched(server) == []


def test_a_damaged_file_is_refused_by_name(dtn: Host, server: Host) -> None:
    server.check_output("cp -p /srv/sets/letters/07.txt /root/ && echo x >/srv/sets/letters/07.txt")
    refused = dtn.run("hal-dataset stage letters")
    assert refused.rc == 1
    assert "07.txt: what comes is not what the manifest says, twice" in refused.stderr
    assert "letters/2020 is not complete: 1 files were refused" in refused.stderr
    assert not dtn.file(f"{ROOT}/letters").exists
    sent = server.check_output("grep -c 'blank.bin' /var/log/rsyncd.log")
    server.check_output("cp -p /root/07.txt /srv/sets/letters/")
    dtn.check_output("hal-dataset stage letters")
    assert server.check_output("grep -c 'blank.bin' /var/log/rsyncd.log") == sent, "it had come"
    dtn.check_output(f"cd {ROOT}/letters/default && sha256sum --quiet -c {HIDDEN}/letters/2020/manifest")


def test_users_read_and_do_not_write(dtn: Host) -> None:
    path = f"{ROOT}/digits/default/train/01.bin"
    assert dtn.check_output(f"runuser -u alice -- sha256sum <{path}").startswith(
        dtn.check_output(f"grep train/01.bin {HIDDEN}/digits/1.0/manifest").split()[0]
    )
    for attempt in (
        f"tee {path}",
        f"touch {ROOT}/digits/1.0/mine",
        f"rm -f {path}",
        f"mkdir {ROOT}/mine",
        f"chmod u+w {path}",
    ):
        assert dtn.run(f"runuser -u alice -- {attempt} </dev/null").rc != 0, attempt
    assert dtn.check_output(f"find {ROOT}/digits/1.0 -perm /222 -o ! -user root") == ""
    assert dtn.run(f"runuser -u alice -- cat {ROOT}/letters/2020/00.txt").rc == 0, "alice is in the group"
    assert dtn.run(f"runuser -u nobody -- cat {ROOT}/letters/2020/00.txt").rc != 0
    listed = dtn.check_output("runuser -u nobody -- hal-dataset list")
    assert "digits   1.0*     ready" in listed
    assert "/home/datasets/digits/1.0" in dtn.check_output(f"runuser -u nobody -- cat {ROOT}/README.txt")
    assert "root may do this" in dtn.run("runuser -u alice -- hal-dataset verify digits").stderr


def test_all_promises_hold_and_a_second_rollout_changes_nothing(dtn: Host, rollout: Rollout) -> None:
    assert broken(rollout) == []
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert done.changes == {}
    assert dtn.service("hal-dataset-verify.timer").is_enabled
    assert "OnCalendar=Sun *-*-* 03:00:00" in dtn.check_output(
        "systemctl show --property TimersCalendar hal-dataset-verify.timer"
    )


def test_the_weekly_verification_finds_what_was_spoilt(dtn: Host, rollout: Rollout) -> None:
    folder = f"{ROOT}/digits/1.0"
    dtn.check_output(
        f"cp -a {folder} /root/saved && chmod u+w {folder}/train/01.bin && echo x >>{folder}/train/01.bin"
        f" && chmod u-w {folder}/train/01.bin && rm {folder}/zest/09.bin && touch {folder}/zest/extra"
    )
    assert dtn.run("systemctl start hal-dataset-verify.service").rc != 0
    wrong = "1 changed (train/01.bin); 1 missing (zest/09.bin); 1 extra (zest/extra)"
    assert status(dtn, "digits")["wrong"] == wrong
    assert broken(rollout) == ["data set is what was published [digits/1.0]"]
    assert rollout.converge().status != 0, "everybody's results stand on it"
    # Back from another copy; only reading it again says that it is right.
    dtn.check_output(f"rm -r {folder} && mv /root/saved {folder}")
    assert status(dtn, "digits")["wrong"] == wrong
    dtn.check_output("systemctl start hal-dataset-verify.service")
    assert status(dtn, "digits")["wrong"] == ""


def test_a_rollout_gives_the_folder_back_to_root_and_starts_the_timer(dtn: Host, rollout: Rollout) -> None:
    dtn.check_output(f"chmod 0777 {ROOT} && systemctl disable --quiet --now hal-dataset-verify.timer")
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert FAILED not in done.words
    assert dtn.file(ROOT).mode == 0o755
    assert dtn.service("hal-dataset-verify.timer").is_running


def test_a_retired_version_goes_away_in_steps(dtn: Host, rollout: Rollout) -> None:
    """Declared retired, moved aside, and never removed by a rollout."""
    retired = declared(default=False, retired="use 2.0")
    done = rollout.converge(datasets_standard=retired)
    assert done.status == 0, done.explain()
    assert f"{FAILED} retired data set is away [digits/1.0]:" in done.words
    assert "default` leads to: publish the new default first" in dtn.run("hal-dataset retire digits/1.0 2>&1").stdout
    dtn.check_output(f"rm {ROOT}/digits/default && hal-dataset retire digits/1.0")
    assert not dtn.file(f"{ROOT}/digits/1.0").exists
    assert dtn.check_output(f"cat {ROOT}/digits/1.0.retired.txt") == "digits/1.0 was retired: use 2.0"
    assert dtn.run(f"runuser -u alice -- ls {HIDDEN}/digits/1.0/retired").rc != 0
    assert status(dtn, "digits/1.0")["state"] == "retired"
    shown = dtn.run("hal-dataset remove digits/1.0")
    assert shown.rc == 1
    assert "31 files" in shown.stdout
    assert dtn.file(f"{HIDDEN}/digits/1.0/retired/train/01.bin").exists
    code = shown.stderr.split()[-1]
    dtn.check_output(f"hal-dataset remove digits/1.0 --confirm {code}")
    assert not dtn.file(f"{HIDDEN}/digits/1.0/retired").exists


def test_nothing_is_written_below_an_empty_mount_point(dtn: Host, rollout: Rollout) -> None:
    dtn.check_output("mount --bind /home /mnt && umount /home")
    try:
        done = rollout.converge()
        assert done.status != 0, "nobody knows what is true of the data sets"
        assert "/home is not mounted or does not answer: /home/datasets is left as it is" in done.words
        assert not dtn.file(ROOT).exists
        assert "/home is not mounted: nothing is done" in dtn.run("hal-dataset stage digits 2>&1").stdout
        assert f"{FAILED} file system is mounted:" in done.words
    finally:
        dtn.check_output("mount --bind /mnt /home && umount /mnt")


def test_a_full_file_system_is_said_before_anything_comes(dtn: Host, server: Host, rollout: Rollout) -> None:
    large = declared(size_gb=5)
    done = rollout.converge(datasets_standard=large)
    assert done.status == 0, done.explain()
    assert f"{FAILED} there is room for it [digits/1.0]:" in done.words
    fetched(server)
    assert "no room for digits/1.0: " in dtn.run("hal-dataset stage digits 2>&1").stdout
    assert [path for path, *_ in fetched(server)] == ["/digits-1.0/SHA256SUMS"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"datasets_standard": declared(manifest_sha256="")}, "neither of manifest_sha256 and checksums; write one"),
        ({"datasets_root": "/srv/sets"}, "datasets_root /srv/sets: a folder below its mount"),
        ({"datasets_streams": 0}, "datasets_streams is 0: 1 to 32"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(rollout: Rollout, dtn: Host, wrong: dict[str, Any], words: str) -> None:
    before = dtn.check_output("cat /etc/hal/datasets.json")
    done = rollout.converge(**wrong)
    assert done.status != 0
    assert words in done.words
    assert dtn.check_output("cat /etc/hal/datasets.json") == before


def test_the_playbook_refuses_what_is_not_declared(dtn: Host) -> None:
    done = of_scenario(SCENARIO).playbook(PROJECT / "playbooks/datasets.yml", datasets_stage="imagenet/2012")
    assert done.status != 0
    assert "datasets_stage is imagenet/2012; declared in datasets_standard: digits/1.0, letters/2020" in done.words
    assert dtn.run("systemctl list-units --all 'hal-dataset@imagenet*' | grep imagenet").rc == 1

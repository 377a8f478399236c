"""Sealing and auditing give the same under every Python that a node may have, through Ansible.

The node is a folder: a copy of the shipped files has another ROOT.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, LOCAL, interpreter

PROJECT = Path(__file__).resolve().parents[4]
RPM = r"""#!/bin/sh
case "$1" in
-qa)
  printf 'hal-package\tchrony\t(none)\t3.4\t1.el7\tx86_64\t1000\n'
  printf 'hal-package\tgpg-pubkey\t(none)\t352c64e5\t5\t(none)\t1\n' ;;
-Va) printf 'S.5......    /usr/bin/sinfo\n'; exit 1 ;;
-qf) shift 3; for path; do echo "file $path is not owned by any package"; done; exit 1 ;;
*) exit 1 ;;
esac
"""
SYSTEMCTL = r"""#!/bin/sh
printf 'Id=chronyd.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\nDropInPaths=\n'
printf 'FragmentPath=/usr/lib/systemd/system/chronyd.service\nExecMainStartTimestampMonotonic=1\n'
"""
RESOURCES: dict[str, dict[str, Any]] = {
    "file:/etc/chrony.conf": {"state": "present", "mode": "0644", "sha1": "b1db8a1ca1bd0ae7ee8d13f1d8c91b65e9f1a0d5"},
    "file:/etc/secret": {"state": "present", "mode": "0600"},
    "file:/etc/größe": {"state": "present"},
    "file:/etc/link": {"type": "link", "target": "chrony.conf"},
    "file:/etc/folder": {"type": "directory"},
    "file:/etc/loop/x": {"state": "present"},
    "line:/etc/sshd_config#0": {"state": "present", "lines": ["PermitRootLogin no", "# Größe"]},
    "package:chrony": {"state": "present"},
    "package:telnet": {"state": "absent"},
    "service:chronyd.service": {"state": "started", "enabled": True},
    "sysctl:vm.swappiness": {"saved": "1", "value": "1", "file": "/etc/sysctl.d/hal.conf"},
    "mount:/scratch": {"state": "mounted"},
    "user:alice": {"state": "present", "uid": 1000},
    "group:wheel": {"state": "present"},
    "cron:root#check": {"state": "present", "job": "/bin/true"},
    "kernel-module:nvidia": {"loaded": True},
    "repository:/etc/yum.repos.d/hal.repo#hal": {"state": "present", "gpgcheck": "1"},
    "rpm-key:352c64e5": {"state": "present"},
    "hostname:static": {"name": "hal05"},
    "selinux:mode": {"mode": "enforcing"},
    "database:slurm": {"state": "present"},
    "slurm-qos:long": {"state": "present"},
    "teapot:x": {},
}
CLEAN = {
    ("file:/etc/chrony.conf", "changed"),  # its declared checksum is another: sealed in a wrong state
    ("file:/etc/loop/x", "unreadable"),
    ("database:slurm", "unreadable"),
    ("slurm-qos:long", "unreadable"),
    ("teapot:x", "unreadable"),
}
FAULTY = CLEAN | {
    ("file:/etc/größe", "type"),
    ("file:/etc/link", "target"),
    ("line:/etc/sshd_config#0", "missing"),
    ("user:alice", "changed"),
    ("mount:/scratch", "missing"),
}


def plant(root: Path) -> None:
    """Make the node."""
    for path, text in {
        "etc/machine-id": "0123\n",
        "etc/hostname": "hal05\n",
        "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000:Größe:/home/alice:/bin/bash\n",
        "etc/group": "root:x:0:\nwheel:x:10:alice\n",
        "etc/chrony.conf": "server a\n",
        "etc/größe": "ü\n",
        "etc/secret": "hunter2\n",
        "etc/sshd_config": "PermitRootLogin no\n# Größe\n",
        "etc/sysctl.d/hal.conf": "vm.swappiness = 1\n",
        "etc/fstab": "/dev/sdb1 /scratch xfs defaults 0 0\n",
        "etc/selinux/config": "SELINUX=enforcing\n",
        "etc/yum.repos.d/hal.repo": "[hal]\nname=HAL\ngpgcheck=1\n",
        "proc/sys/vm/swappiness": "1\n",
        "proc/sys/kernel/osrelease": "3.10.0\n",
        "proc/self/mountinfo": "1 1 0:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:2 / /scratch rw - xfs /dev/sdb1 rw\n",
        "sys/module/nvidia/initstate": "live\n",
        "sys/fs/selinux/enforce": "1",
        "var/spool/cron/root": "#Ansible: check\n*/5 * * * * /bin/true\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
        (root / path).chmod(0o644)
    (root / "etc/secret").chmod(0o600)
    (root / "etc/folder").mkdir()
    (root / "etc/link").symlink_to("chrony.conf")
    (root / "etc/loop").symlink_to("loop")
    os.mkdir(os.fsencode(root / "etc/watched"))
    (root / "etc/watched/known").touch()
    with open(os.fsencode(root / "etc/watched") + b"/\xff", "w"):
        pass


def call(folder: Path, python: str, module: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a module through Ansible."""
    (folder / "ansible.cfg").write_text(
        f"[defaults]\nlibrary = {PROJECT}/plugins/modules\nmodule_utils = {folder}/module_utils\n"
        f"local_tmp = {folder}/tmp\n"
    )
    task = {module: arguments, "register": "r", "vars": {"ansible_python_interpreter": quote(python)}}
    keep = {"copy": {"content": "{{ r | to_json }}", "dest": f"{folder}/result.json"}}
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
    }
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": LOCAL},
        # A node's locale is not the controller's.
        "environment": {"LC_ALL": "C", "LANG": "C", "PATH": environment["PATH"]},
        "tasks": [{**task, "ignore_errors": True}, keep],
    }
    (folder / "play.yml").write_text(json.dumps([play]))
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "-c", "local", "play.yml"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def differing(answer: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["resource"], one["kind"]) for one in answer["differences"]}


@pytest.mark.parametrize("version", EVERY)
def test_sealing_and_auditing_under_this_python(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    root = tmp_path / "root"
    plant(root)
    shutil.copytree(PROJECT / "plugins/module_utils", tmp_path / "module_utils")
    constants = tmp_path / "module_utils/hal_node/audit/node.py"
    text = constants.read_text()
    assert "\nROOT = '/'\n" in text
    constants.write_text(text.replace("\nROOT = '/'\n", f"\nROOT = '{root}'\n"))
    (tmp_path / "bin").mkdir()
    for name, script in (("rpm", RPM), ("systemctl", SYSTEMCTL)):
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)
    entries = [
        {"resource": name, "declared": declared, "role": "time", "task": "Write it", "source": "roles/time/x.yml:1"}
        for name, declared in RESOURCES.items()
    ]
    run = {"id": "r", "commit": "abc1234", "started": 1, "now": 2}
    roles = {"time": {"inputs_hash": "", "tasks": ["time|roles/time/x.yml|Write it"]}}
    told = {"node": "hal05", "run": run, "entries": entries, "roles": roles}
    sealed = call(tmp_path, python, "hal_record", told)
    assert sealed.get("serial") == 1, sealed
    assert sealed["observed"] == len(RESOURCES)
    record = (root / "var/lib/hal/record.json").read_bytes()
    assert b"hunter2" not in record
    assert (root / "var/lib/hal/record.json").stat().st_mode & 0o777 == 0o600

    audit = {
        "node": "hal05",
        "record": sealed["record"],
        "watched": [{"path": "/etc/watched", "what": "things", "accepted": ["/etc/watched/known"]}],
        "checks": ["uid_0", "kernel", "packages", "clock"],
        "questions": [{"id": "x", "sysctl": {"name": "kernel.ostype"}, "equal": "Linux"}],
        **{"tree": True, "deep": True},
    }
    answer = call(tmp_path, python, "hal_audit", audit)
    assert answer.get("differences") is not None, answer
    assert differing(answer) == CLEAN
    assert [one["path"] for one in answer["extra"]] == ["/etc/watched/\\xff"]
    assert {one["check"]: one["status"] for one in answer["checks"]} == dict.fromkeys(audit["checks"], "pass")
    assert [one["status"] for one in answer["answers"]] == ["pass"]
    assert answer["record"]["status"] == "ok"
    assert answer["memory_mb"] < 50
    assert "packed" not in answer["record"]
    assert (answer["unmanaged"], answer["problems"]) == ([], [])
    assert [(one["path"], one["differs"]) for one in answer["package_files"]] == [("/usr/bin/sinfo", ["content"])]

    (root / "etc/größe").unlink()
    os.mkfifo(root / "etc/größe")
    (root / "etc/link").unlink()
    (root / "etc/link").symlink_to("größe")
    (root / "etc/sshd_config").write_text("# Größe\nPermitRootLogin yes\n", encoding="utf-8")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\nalice:x:0:1000::/home/alice:/bin/bash\n")
    (root / "proc/self/mountinfo").write_text("1 1 0:1 / / rw - ext4 /dev/sda1 rw\n")
    (root / "etc/group").write_text("root:x:0:\nwheel:x:10:alice,größe\n", encoding="utf-8")
    (root / "etc/größer").touch()
    answer = call(tmp_path, python, "hal_audit", audit)
    assert differing(answer) == FAULTY
    assert [(one["path"], one["kind"], one["is"]) for one in answer["unmanaged"]] == [
        ("/etc/group", "changed", ["wheel: gid 10, members alice größe"]),
        ("/etc/größer", "extra", "file"),
        ("/etc/sshd_config", "changed", None),
    ]
    assert {one["check"]: one["status"] for one in answer["checks"]}["uid_0"] == "fail"

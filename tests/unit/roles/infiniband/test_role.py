"""What the role refuses before it contacts a node, and what it does and expects for GPUDirect.

The tasks are the role's, over a local connection. rpm, modinfo, systemctl, dkms and modprobe are stand-ins that answer
as CentOS 7's do, as far as the role reads it. No module is loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.interpreters import LOCAL
from tests.unit.playing import ROOT, play

OFED = {
    "infiniband_stack": "mlnx_ofed",
    "infiniband_mlnx_ofed_url": "http://mirror/ofed.tgz",
    "infiniband_mlnx_ofed_sha256": "0" * 64,
}
REPLACED = yaml.safe_load((ROOT / "roles/infiniband/defaults/main.yml").read_text())["infiniband_mlnx_ofed_replaces"]
EXCLUDED = {name: {"options": {"exclude": REPLACED}} for name in ("base", "updates")}
GPUDIRECT = {**OFED, "infiniband_gpudirect": True, "repositories_enabled": EXCLUDED}
KERNEL = "4.18.0-80.7.2.el7.ppc64le"
Said = dict[str, dict[str, Any]]


def run(folder: Path, *tasks: str, **variables: Any) -> subprocess.CompletedProcess[str]:
    """These tasks on hal05, with the programs of `folder` first."""
    playbook = folder / "play.yml"
    lines = "".join(f"    - {task}\n" for task in tasks)
    playbook.write_text(f"- hosts: all\n  gather_facts: false\n  connection: local\n  tasks:\n{lines}")
    named = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": LOCAL, **variables}
    return play(
        playbook,
        *("--limit", "hal05", "--extra-vars", json.dumps(named)),
        sites=("hal",),
        ANSIBLE_STDOUT_CALLBACK="ansible.posix.json",
        PATH=f"{folder}:{os.environ['PATH']}",
    )


def said(done: subprocess.CompletedProcess[str]) -> Said:
    """What each task that ran returned, by its name."""
    assert done.stdout.lstrip().startswith("{"), done.stdout + done.stderr
    tasks = json.loads(done.stdout)["plays"][0]["tasks"]
    return {one["task"]["name"]: one["hosts"]["hal05"] for one in tasks if one["hosts"]}


# ---------------------------------------------------------------- what is refused
NO_INTERFACE = (
    "infiniband_gpudirect is true and infiniband_stack is inbox, whose drivers have no interface to the memory of GPUs:"
    " set infiniband_stack to mlnx_ofed, or infiniband_gpudirect to false"
)
NO_DRIVER = (
    "infiniband_gpudirect needs nvidia_driver_version for hal05 (; as 440.33.01): put it into group_vars/all, where"
    " both roles see it"
)
NO_NAME = (
    "infiniband_gpudirect_packages ({}) has to name at least one, and infiniband_gpudirect_version ({}) to be version"
    " and release, as 1.0-9"
)
NOT_EXCLUDED = (
    "infiniband_stack is mlnx_ofed, and {}: add that to options.exclude in repositories_enabled, or name other"
    " repositories in infiniband_mlnx_ofed_repositories"
)
PATTERNS = " ".join(REPLACED)
SLURM_ONLY = {**EXCLUDED, "updates": {"options": {"exclude": "slurm*"}}}
# Variables, and what is said of them; nothing: they are accepted.
CASES: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({**GPUDIRECT, "nvidia_driver_version": "440.33.01"}, None),
    ({**GPUDIRECT, "nvidia_driver_version": "470.57.02"}, None),
    ({"infiniband_gpudirect": True}, NO_INTERFACE),
    ({**GPUDIRECT, "nvidia_driver_version": ""}, NO_DRIVER),
    ({**GPUDIRECT, "infiniband_gpudirect_version": "latest"}, NO_NAME.format("nvidia_peer_memory", "latest")),
    ({**GPUDIRECT, "infiniband_gpudirect_packages": []}, NO_NAME.format("none", "1.0-9")),
    (
        OFED,  # with HAL's own repositories, which exclude nothing
        NOT_EXCLUDED.format(f"base does not exclude {PATTERNS}; updates does not exclude {PATTERNS}"),
    ),
    (
        {**OFED, "repositories_enabled": SLURM_ONLY},
        NOT_EXCLUDED.format(f"updates does not exclude {PATTERNS}"),
    ),
    ({**OFED, "repositories_enabled": SLURM_ONLY, "infiniband_mlnx_ofed_repositories": ["base"]}, None),
]


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    """All in one run: each case is a block that a refusal leaves."""
    tasks = [
        json.dumps(
            {
                "block": [{"include_role": {"name": "infiniband", "tasks_from": "validate"}, "vars": variables}],
                "rescue": [{"name": f"case {number}", "debug": {"msg": "{{ ansible_failed_result.msg }}"}}],
            }
        )
        for number, (variables, _) in enumerate(CASES)
    ]
    results = said(run(tmp_path, *tasks))
    found = [results.get(f"case {number}", {}).get("msg") for number in range(len(CASES))]
    assert found == [message for _, message in CASES]


# ---------------------------------------------------------------- GPUDirect on a node
PROGRAMS = {
    "rpm": "for name; do :; done\n"
    '[ -e "$here/rpm.says" ] || { echo "package $name is not installed"; exit 1; }\ncat "$here/rpm.says"',
    "modinfo": 'echo "$@" >"$here/modinfo.asked"\n'
    '[ -e "$here/modinfo.says" ] || { echo "modinfo: ERROR" >&2; exit 1; }\ncat "$here/modinfo.says"',
    "systemctl": """case $1 in
  show) [ -e "$here/unit" ] && echo LoadState=loaded || echo LoadState=not-found; echo ActiveState=inactive ;;
  is-enabled) grep -qx enabled "$here/unit" 2>/dev/null || { echo disabled; exit 1; } ;;
  enable) echo enabled >"$here/unit" ;;
  disable) echo disabled >"$here/unit" ;;
  start | restart) echo "restart $2" >>"$here/done" ;; # Ansible starts what does not run
esac""",
    "dkms": 'echo "dkms $*" >>"$here/done"',
    "modprobe": 'echo "modprobe $*" >>"$here/done"',
}
INSTALL = "{import_role: {name: infiniband, tasks_from: gpudirect_install}, when: __infiniband_gpudirect_here}"
CONFIGURE = "{import_role: {name: infiniband, tasks_from: gpudirect_configure}}"
OLD, NEW = "440.33.01", "470.57.02"
# A part of this machine's kernel, where a test needs a module that is there.
ONE_LOADED = next(path.name for path in sorted(Path("/sys/module").iterdir()) if not (path / "initstate").exists())


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A folder with the programs of a node, and where what they answer is written."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nhere={tmp_path}\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "unit").write_text("disabled\n")
    return tmp_path


def rolled_out(node: Path, driver: str, **variables: Any) -> Said:
    """What the tasks of GPUDirect say; the package itself is another test's."""
    named = {
        **GPUDIRECT,
        "nvidia_driver_version": driver,
        "__infiniband_gpudirect_file": str(node / "modules-load.conf"),
        "repositories_pending": True,
        **variables,
    }
    done = run(node, INSTALL, CONFIGURE, **named)
    assert done.returncode == 0, done.stdout
    return said(done)


def did(node: Path) -> list[str]:
    return (node / "done").read_text().splitlines() if (node / "done").exists() else []


LEAVE_PACKAGE = "infiniband : Leave an nv_peer_mem that may be in use"
LEAVE_DRIVER = "infiniband : Leave a GPU driver that may be in use"


def left(results: Said, task: str) -> bool:
    """Whether something waits for permission."""
    return task in results and not results[task].get("skipped", False)


def test_an_old_driver_gets_the_unit_and_no_file(node: Path) -> None:
    (node / "modules-load.conf").write_text("nvidia-peermem\n")
    (node / "rpm.says").write_text("nvidia_peer_memory-1.0-8\n")
    results = rolled_out(node, OLD)
    assert (node / "unit").read_text() == "enabled\n"
    assert not (node / "modules-load.conf").exists()
    assert results[LEAVE_PACKAGE]["msg"] == (
        "nvidia_peer_memory-1.0-8 is installed, declared nvidia_peer_memory-1.0-9. Not changed without"
        " infiniband_restart_ok: drain the node first (playbooks/reboot.yml)"
    )
    assert did(node) == []


@pytest.mark.parametrize("installed", ["nvidia_peer_memory-1.0-8", None])
def test_with_permission_an_old_driver_s_module_is_changed_and_loaded(node: Path, installed: str | None) -> None:
    if installed:
        (node / "rpm.says").write_text(f"{installed}\n")
    assert not left(rolled_out(node, OLD, infiniband_restart_ok=installed is not None), LEAVE_PACKAGE)
    assert did(node) == (["modprobe nv_peer_mem"] if installed else [])


@pytest.mark.root  # whose file it becomes
def test_a_new_driver_gets_the_file_and_no_unit(node: Path) -> None:
    """It was built before OFED came, as on every new node: what then depends on ib_core does not."""
    (node / "unit").write_text("enabled\n")
    (node / "modinfo.says").write_text("nvidia\n")
    results = rolled_out(node, NEW)
    assert (node / "modules-load.conf").read_text().splitlines()[1:] == ["nvidia-peermem"]
    assert (node / "unit").read_text() == "disabled\n"
    assert "Not built again without infiniband_restart_ok" in results[LEAVE_DRIVER]["msg"]
    assert did(node) == []
    assert (node / "modinfo.asked").read_text() == f"-k {KERNEL} -F depends nvidia-peermem\n"


@pytest.mark.root  # whose file it becomes
@pytest.mark.parametrize("depends", ["nvidia\n", "nvidia,ib_core\n", None], ids=["a shell", "with OFED", "none there"])
def test_with_permission_a_new_driver_is_built_with_ofed_and_loaded(node: Path, depends: str | None) -> None:
    if depends is not None:
        (node / "modinfo.says").write_text(depends)
    assert not left(rolled_out(node, NEW, infiniband_restart_ok=True), LEAVE_DRIVER)
    asked = f"-m nvidia -v {NEW} -k {KERNEL}"
    build = [] if depends and "ib_core" in depends else [f"dkms remove {asked}", f"dkms install {asked}"]
    assert did(node) == [*build, "modprobe nvidia-peermem"]


@pytest.mark.parametrize("unit", [True, False], ids=["unit there", "no unit"])
def test_withdrawn_nothing_is_loaded_at_boot(node: Path, unit: bool) -> None:
    (node / "unit").write_text("enabled\n")
    if not unit:
        (node / "unit").unlink()
    (node / "modules-load.conf").write_text("nvidia-peermem\n")
    rolled_out(node, OLD, infiniband_gpudirect=False, infiniband_restart_ok=True)
    assert not (node / "modules-load.conf").exists()
    assert not unit or (node / "unit").read_text() == "disabled\n"
    assert did(node) == []


def test_the_module_is_out_before_ofed_s_drivers_are_restarted(node: Path) -> None:
    """Whoever is told first; modprobe is told of a module that this machine has, and does nothing."""
    told = {
        "name": "Change OFED",
        "ansible.builtin.command": "true",
        "notify": ["Restart the drivers of OFED", "Unload the module of GPUDirect"],
    }
    named = {**GPUDIRECT, "infiniband_gpudirect": False, "__infiniband_gpudirect_modules": [ONE_LOADED, "hal-none"]}
    file = str(node / "modules-load.conf")
    done = run(node, CONFIGURE, json.dumps(told), **named, infiniband_restart_ok=True, __infiniband_gpudirect_file=file)
    assert done.returncode == 0, done.stdout
    assert did(node) == [f"modprobe --remove {ONE_LOADED}", "restart openibd.service"]


def test_a_node_without_gpus_is_left_alone(node: Path) -> None:
    (node / "modules-load.conf").write_text("nvidia-peermem\n")
    rolled_out(node, NEW, __infiniband_has_gpus=False, infiniband_restart_ok=True)
    assert (node / "modules-load.conf").exists()
    assert did(node) == []


# ---------------------------------------------------------------- what is expected
RELEASE = "nv_peer_mem is installed in its declared release"
BUILT = "module of GPUDirect is built for the declared kernel, with OFED"
UNIT = "nv_peer_mem is loaded at boot"
FILE = "nvidia-peermem is loaded at boot"
LOADED = "module of GPUDirect is loaded"
OTHERS = "no other module of GPUDirect is loaded"


def promises(node: Path, driver: str, **variables: Any) -> Mapping[str, tuple[str, Any]]:
    """By id, status and what was observed of everything about GPUDirect."""
    task = {
        "name": "Ask",
        "hal_expect": {
            "role": "infiniband",
            "report_only": True,
            "limit_ids": [RELEASE, BUILT, UNIT, FILE, LOADED, OTHERS],
        },
    }
    named = {
        **GPUDIRECT,
        "nvidia_driver_version": driver,
        "__infiniband_gpudirect_file": str(node / "modules-load.conf"),
    }
    results = said(run(node, json.dumps(task), **{**named, **variables}))["Ask"]["results"]
    return {one["id"]: (one["status"], one.get("observed")) for one in results}


def test_a_node_as_declared_keeps_its_promises(node: Path) -> None:
    """But for the module itself: this machine has none, which is the fault that has to be found."""
    (node / "rpm.says").write_text("nvidia_peer_memory-1.0-9\n")
    (node / "modinfo.says").write_text("nvidia,ib_core\n")
    (node / "unit").write_text("enabled\n")
    assert promises(node, OLD) == {
        RELEASE: ("pass", ["nvidia_peer_memory-1.0-9"]),
        BUILT: ("pass", "nvidia,ib_core"),
        UNIT: ("pass", 0),
        FILE: ("skipped", None),
        LOADED: ("fail", False),
        f"{OTHERS} [nvidia-peermem]": ("pass", False),
    }
    (node / "modules-load.conf").write_text("nvidia-peermem\n")
    found = promises(node, NEW)
    assert {name: status for name, (status, _) in found.items()} == {
        RELEASE: "skipped",
        BUILT: "pass",
        UNIT: "skipped",
        FILE: "pass",
        LOADED: "fail",
        f"{OTHERS} [nv_peer_mem]": "pass",
    }


def test_what_is_wrong_is_found(node: Path) -> None:
    (node / "rpm.says").write_text("nvidia_peer_memory-1.0-8\n")
    (node / "modinfo.says").write_text("nvidia\n")
    (node / "modules-load.conf").write_text("# nvidia-peermem\n")
    found = promises(node, OLD)
    assert found[RELEASE] == ("fail", ["nvidia_peer_memory-1.0-8"])
    assert found[BUILT][0] == "fail"
    assert found[UNIT] == ("fail", 1)
    assert promises(node, NEW)[FILE][0] == "fail"


def test_what_is_not_there_is_found(node: Path) -> None:
    (node / "unit").unlink()
    found = promises(node, OLD)
    assert found[RELEASE] == ("fail", ["package nvidia_peer_memory is not installed"])
    assert (found[BUILT][0], found[UNIT]) == ("fail", ("fail", 1))


def test_a_module_that_stayed_after_it_was_withdrawn_is_found(node: Path) -> None:
    """By the name of one that this machine has, in place of GPUDirect's."""
    named = {"infiniband_gpudirect": False, "__infiniband_gpudirect_modules": [ONE_LOADED]}
    assert promises(node, OLD, **named)[f"{OTHERS} [{ONE_LOADED}]"] == ("fail", True)


# ---------------------------------------------------------------- the subnet manager
SUBNET = "{import_role: {name: infiniband, tasks_from: subnet_manager}}"
SYSTEMCTL = """case $1 in
  show) echo LoadState=loaded; echo ActiveState=$(cat "$here/runs"); echo UnitFileState=disabled ;;
  is-enabled) echo disabled; exit 1 ;;
  is-active) cat "$here/runs" ;;
  start | stop | enable | mask) echo "$1 $2" >>"$here/done" ;;
esac"""
OURS = "hal-mgmt1 mlx5_0/1 is master: LID 5"
STARTED = ["enable opensm.service", "start opensm.service"]
STOPPED = ["stop opensm.service", "mask opensm.service"]
MASKED = ["mask opensm.service"]


@pytest.mark.root  # whose file it becomes
@pytest.mark.parametrize(
    ("manager", "here", "who", "permitted", "does"),
    [
        # Where the model has one.
        (True, False, "nobody", False, STARTED),
        (True, False, "ours", False, STARTED),
        (True, False, "other", False, []),
        (True, False, "unknown", False, []),
        (True, False, "other", True, STARTED),
        # Where it has none: what does not run may be masked; what runs stays until one of ours is master.
        (False, False, "other", False, MASKED),
        (False, False, "unknown", False, MASKED),
        (False, True, "ours", False, []),
        (False, True, "ours", True, STOPPED),
        (False, True, "other", False, []),
        (False, True, "other", True, []),
        (False, True, "nobody", True, []),
        (False, True, "unknown", True, []),
    ],
)
def test_a_fabric_is_never_without_a_master_and_taken_over_with_permission_alone(
    node: Path, manager: bool, here: bool, who: str, permitted: bool, does: list[str]
) -> None:
    (node / "systemctl").write_text(f"#!/bin/sh\nhere={node}\n{SYSTEMCTL}\n")
    (node / "runs").write_text("active\n" if here else "inactive\n")
    answer = json.dumps({"who": who, "words": f"{OURS}, or so", "here": here})
    (node / "fabric").write_text(f"#!/bin/sh\n[ -e {node}/asked ] || echo \"$@\" >{node}/asked\necho '{answer}'\n")
    (node / "fabric").chmod(0o755)
    done = run(
        node,
        SUBNET,
        infiniband_subnet_managers=["hal05"] if manager else ["hal-mgmt1"],
        infiniband_takeover_ok=permitted,
        __infiniband_compare=[str(node / "fabric")],
        __infiniband_opensm_conf=str(node / "opensm.conf"),
        __infiniband_opensm_pending=False,
        __infiniband_takeover_seconds=2,
        __infiniband_settle_seconds=7,
    )
    assert done.returncode == 0, done.stdout
    # Where one could be started nobody has to be master for a while.
    assert (node / "asked").read_text() == f"master {7 if manager else 0}\n"
    assert did(node) == does
    assert (node / "opensm.conf").exists() == (does == STARTED)
    waits = (
        f"opensm is not {'started' if manager else 'stopped'} here: {OURS}, or so. With infiniband_takeover_ok: true"
    )
    assert (waits in done.stdout) == (does == [] and not permitted)
    assert ("opensm goes on here until one of ours is master" in done.stdout) == (does == [] and permitted)


# ---------------------------------------------------------------- one stack or the other
LOOK = "{import_role: {name: infiniband, tasks_from: look}}"


CORE, OTHER_OFED = "rdma-core-22.1-3.el7.ppc64le", "MLNX_OFED_LINUX-4.7-3.2.9.1:"
TAKES = "and infiniband_stack is mlnx_ofed: its packages would take that away from under the jobs"


@pytest.mark.parametrize(
    ("stack", "ofed", "inbox", "service", "user", "permitted", "refused"),
    [
        ("inbox", None, CORE, "enabled", True, False, ""),
        ("inbox", OTHER_OFED, None, None, False, False, "hal05 has MLNX_OFED_LINUX-4.7-3.2.9.1, and infiniband_s"),
        ("inbox", OTHER_OFED, None, None, False, True, "hal05 has MLNX_OFED_LINUX-4.7-3.2.9.1, and infiniband_s"),
        ("mlnx_ofed", None, None, None, False, False, ""),  # a fresh node
        ("mlnx_ofed", None, CORE, "disabled", False, False, ""),  # a fresh node, where libibverbs brought it
        ("mlnx_ofed", "MLNX_OFED_LINUX-4.6-1.0.1.1:", "rdma-core-46mlnx1-1.46101.ppc64le", None, True, False, ""),
        ("mlnx_ofed", None, CORE, "enabled", False, False, f"hal05 has {CORE} (rdma.service is enabled), {TAKES}"),
        ("mlnx_ofed", None, CORE, "disabled", True, False, f"hal05 has {CORE} (process %d ("),
        ("mlnx_ofed", None, CORE, "enabled", True, True, ""),
    ],
)
def test_another_stack_than_the_declared_one_is_refused(
    node: Path,
    stack: str,
    ofed: str | None,
    inbox: str | None,
    service: str | None,
    user: bool,
    permitted: bool,
    refused: str,
) -> None:
    """The distribution's where somebody uses it; this process does, by what find says."""
    (node / "unit").write_text(f"{service}\n")
    opened = f"/proc/{os.getpid()}/fd/7" if user else None
    for name, text in (("ofed_info", ofed), ("rpm", inbox), ("find", opened)):
        (node / name).write_text(f"#!/bin/sh\n{f'echo {text}' if text else 'exit 1'}\n")
        (node / name).chmod(0o755)
    done = run(node, LOOK, **{**OFED, "infiniband_stack": stack, "infiniband_restart_ok": permitted})
    assert done.returncode == (2 if refused else 0), done.stdout
    assert refused.replace("%d", str(os.getpid())) in done.stdout

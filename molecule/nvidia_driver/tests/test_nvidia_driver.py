"""The driver at its version, what stands beside it, and each way in which a GPU is not as the model says."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from running.ssh_config import Cluster
from testinfra.host import Host
from testing.promises import Rollout
from testing.waiting import wait_for

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
PODMAN = str(SCENARIO.parent / "virtual_hal" / "podman")
NAME = "hal01"
KERNEL = "4.18.0-80.7.2.el7.ppc64le"
OURS = "/etc/modprobe.d/90-hal-nvidia.conf"
RULES, COPY = "/usr/lib/udev/rules.d/40-redhat.rules", "/etc/udev/rules.d/40-redhat.rules"
DROP_IN = "/etc/systemd/system/slurmd.service.d/80-nvidia-driver.conf"
MODULE = f"/lib/modules/{KERNEL}/extra/nvidia.ko"
DEVICES = [f"nvidia{index}" for index in range(4)]
QUERY = "nvidia-smi --format=csv,noheader --query-gpu="
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


@pytest.fixture
def host(node: Node) -> Iterator[Host]:
    yield node(NAME)
    node(NAME).check_output("virtual-gpu repair")


def broken(rollout: Rollout, **variables: Any) -> dict[str, str]:
    """What does not hold: id and observed value, or the reason that it could not be read."""
    results = rollout.promises("nvidia_driver", NAME, **variables)
    return {
        name: str(result.get("observed") or result.get("reason"))
        for name, result in results.items()
        if result["status"] in ("fail", "unknown")
    }


def boot_again() -> str:
    """Start the machine anew: /run and /dev are empty then. What systemd says when it has started everything."""
    name = f"{SCENARIO.name}-{NAME}"
    subprocess.run([PODMAN, "restart", "--time=2", name], check=True, capture_output=True)
    asked = [PODMAN, "exec", name, "/usr/bin/systemctl", "is-system-running", "--wait"]
    said = wait_for(
        "systemd",
        lambda: subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip(),
        lambda text: text in ("running", "degraded"),
        60,
    )
    return str(said)


def firmware() -> None:
    """Start the machine when it has stopped for a reboot: a container does not by itself."""
    name = f"{SCENARIO.name}-{NAME}"
    subprocess.run([PODMAN, "wait", name], capture_output=True, check=False, timeout=90)
    subprocess.run([PODMAN, "start", name], capture_output=True, check=False)


# ---------------------------------------------------------------- as rolled out
def test_the_driver_is_loaded_and_all_gpus_are_held(host: Host) -> None:
    assert host.check_output(f"{QUERY}driver_version,persistence_mode").splitlines() == ["440.33.01, Enabled"] * 4
    assert sorted(path.split("/")[-1] for path in host.check_output("ls /dev/nvidia[0-9]").split()) == DEVICES
    assert host.service("nvidia-persistenced").is_running


def test_modules_are_built_for_the_declared_kernel(host: Host) -> None:
    assert host.check_output(f"dkms status -m nvidia -k {KERNEL}") == f"nvidia, 440.33.01, {KERNEL}, ppc64le: installed"
    assert host.check_output(f"modinfo -F vermagic /lib/modules/{KERNEL}/extra/nvidia.ko").split()[0] == KERNEL


def test_modprobe_has_our_options_and_no_others(host: Host) -> None:
    shown = host.check_output("modprobe --showconfig").splitlines()
    assert [line for line in shown if line.startswith(("options nouveau", "options nvidia"))] == [
        "options nouveau modeset=0",
        'options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords="PeerMappingOverride=1"',
    ]
    assert "built with:" in host.file(f"/boot/initramfs-{KERNEL}.img").content_string
    assert "90-hal-nvidia.conf" in host.file(f"/boot/initramfs-{KERNEL}.img").content_string


def test_udevs_rules_are_the_packages_without_memory(host: Host) -> None:
    diff = host.run("diff /usr/lib/udev/rules.d/40-redhat.rules /etc/udev/rules.d/40-redhat.rules").stdout
    new = [line for line in diff.splitlines() if line.startswith(">")]
    assert len(new) == 7
    assert all(line.startswith("> # nvidia_driver: ") for line in new)


# ---------------------------------------------------------------- faults
# Each alone is in faults.yml. Planted all at once none hides another: the expectations that name each, with a part of
# what they observe, and how it is undone.
Fault = tuple[str, dict[str, str], str]
TOGETHER: dict[str, Fault] = {
    "lost": (
        "virtual-gpu lose 2",
        {"every declared GPU answers": "GPU 0035:03:00.0: GPU is lost"},
        "virtual-gpu repair",
    ),
    "hot": ("virtual-gpu hot 1 --celsius 95", {"no GPU is too hot": "1, GPU-"}, "virtual-gpu repair"),
    "ecc": (
        "virtual-gpu ecc 0 --errors 2",
        {"no GPU has memory errors that it could not correct": "0, GPU-"},
        "virtual-gpu repair",
    ),
    "retired pages": (
        "virtual-gpu retire 3",
        {"no GPU waits to retire a page of its memory": "3, GPU-"},
        "virtual-gpu repair",
    ),
    "another model": (
        "virtual-gpu swap 3 Tesla-V100-SXM2-32GB",
        {"GPUs are of the model's type, with its memory": "Tesla-V100-SXM2-32GB"},
        "virtual-gpu repair",
    ),
    "persistence off": ("nvidia-smi -i 1 -pm 0", {"persistence mode is on": "1, GPU-"}, "nvidia-smi -pm 1"),
    "closed to programs": (
        "nvidia-smi -i 1 -c PROHIBITED",
        {"compute mode is as declared": "1, GPU-"},
        "nvidia-smi -c 0",
    ),
    "no device": ("rm /dev/nvidia3", {"GPUs have their devices": "/dev/nvidia"}, "virtual-gpu repair"),
    "error correction is switched off": (
        'sed -i \'s/"bus_id": "00000035:04:00.0"/"ecc_off": true, &/\' /var/lib/virtual-node/gpus.json',
        {"error correction is as declared": "3, GPU-"},
        "virtual-gpu repair",
    ),
    "options in another file": (
        "echo 'options nvidia NVreg_EnableStreamMemOPs=0' >/etc/modprobe.d/a.conf",
        {"options of the driver": "NVreg_EnableStreamMemOPs=0"},
        "rm /etc/modprobe.d/a.conf",
    ),
    "memory comes on-line again": (
        f"cp -p {COPY} /run && sed -i 's/^# nvidia_driver: SUBSYS/SUBSYS/' {COPY}",
        {"udev does not bring the GPUs' memory on-line": 'SUBSYSTEM!="memory"'},
        "mv /run/40-redhat.rules /etc/udev/rules.d",
    ),
    "the package's rules changed": (
        f"cp -p {RULES} /run/rules && echo 'KERNEL==\"x\"' >>{RULES}",
        {"the other udev rules are those of the package": 'KERNEL=="x"'},
        f"mv /run/rules {RULES}",
    ),
    "the module is for another kernel": (
        f"cp {MODULE} /run && sed -i 's/4.18.0-80/4.18.0-81/' {MODULE}",
        {"modules are built for the declared kernel": "440.33.01 for 4.18.0-81.7.2.el7.ppc64le"},
        f"mv /run/nvidia.ko {MODULE}",
    ),
}


def test_a_uuid_that_is_not_the_declared_one_is_found(rollout: Rollout, host: Host, cluster: Cluster) -> None:
    uuid = host.check_output(f"{QUERY}uuid").splitlines()[0]
    model = cluster.node(NAME)
    other = broken(rollout, hal_node={**model, "gpu_uuids": {"0": uuid, "3": uuid}})
    assert list(other) == ["GPUs are the declared ones"]
    assert other["GPUs are the declared ones"].startswith("3, GPU-")
    assert broken(rollout, hal_node={**model, "gpu_uuids": {"0": uuid}}) == {}


@pytest.fixture(scope="module")
def together(node: Node, rollout: Rollout) -> dict[str, str]:
    """What did not hold while all of TOGETHER was planted."""
    host = node(NAME)
    for plant, _, _ in TOGETHER.values():
        host.check_output(plant)
    try:
        return broken(rollout)
    finally:
        for _, _, undo in TOGETHER.values():
            host.check_output(undo)


@pytest.mark.parametrize("name", TOGETHER)
def test_a_fault_is_found_among_others(together: dict[str, str], name: str) -> None:
    for key, words in TOGETHER[name][1].items():
        assert words in together[key], together


def test_nothing_else_is_found(together: dict[str, str]) -> None:
    assert set(together) == {key for _, found, _ in TOGETHER.values() for key in found}


def test_a_rollout_mends_what_can_be_mended(host: Host, rollout: Rollout) -> None:
    """What somebody did by hand; a GPU that waits for a repair does not stop it."""
    host.check_output(
        f"sed -i /Before=/d /etc/systemd/system/hal-gpus.service; rm {DROP_IN}; "
        "systemctl daemon-reload; systemctl disable --quiet hal-gpus"
    )
    host.check_output(
        "systemctl mask --quiet --now nvidia-persistenced && nvidia-smi -c PROHIBITED && virtual-gpu hot 1"
    )
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert "no GPU is too hot" in done.words
    host.check_output("virtual-gpu repair && nvidia-smi -i 2 -pm 0")
    assert list(broken(rollout)) == ["persistence mode is on"]
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert broken(rollout) == {}


def test_settings_are_made(host: Host, rollout: Rollout) -> None:
    """They are taken back by the rollouts of the tests below."""
    changed = {
        "nvidia_driver_application_clocks": {"memory_mhz": 877, "graphics_mhz": 1530},
        "nvidia_driver_compute_mode": None,
        "nvidia_driver_ecc": None,
        "nvidia_driver_options": {"NVreg_EnableStreamMemOPs": None, "NVreg_RegistryDwords": "PeerMappingOverride=1"},
    }
    done = rollout.converge(**changed)
    assert done.status == 0, done.explain()
    assert host.check_output(f"{QUERY}clocks.applications.graphics -i 0") == "1530 MHz"
    assert "EnableStreamMemOPs" not in host.check_output("modprobe --showconfig")
    assert host.check_output("grep ^nvidia-smi /usr/libexec/hal-gpus").splitlines() == [
        "nvidia-smi --persistence-mode=1",
        "nvidia-smi --applications-clocks=877,1530",
    ]
    assert broken(rollout, **changed) == {}


# ---------------------------------------------------------------- driver in use, reboots
def test_a_driver_is_not_replaced_under_processes(host: Host, rollout: Rollout) -> None:
    """440.64.00 is in no repository: a rollout that tried to install it would fail."""
    host.check_output("setsid sleep 300 >/dev/null 2>&1 </dev/null & virtual-gpu use 1 $!")
    done = rollout.converge(nvidia_driver_version="440.64.00")
    assert done.status == 0, done.explain()
    assert done.changes == {}
    assert re.search(
        r"hal01: process \d+ \(sleep\) uses a GPU. Until that is over nothing of the GPU driver", done.words
    )
    assert "These wait: driver is installed in its declared version" in done.words
    seen = broken(rollout, nvidia_driver_version="440.64.00")
    assert "440.33.01" in seen["loaded driver is the declared one"]


@pytest.fixture
def slurm(host: Host) -> Iterator[Callable[[str, str], None]]:
    """A slurmd, by its name alone, and a Slurm that says what a test wants: state of the node, jobs on it."""
    host.check_output("cp /usr/bin/sleep /run/slurmd && (setsid /run/slurmd 3000 >/dev/null 2>&1 </dev/null &)")

    def says(state: str, jobs: str) -> None:
        shown = f"NodeName={NAME} Arch=ppc64le State={state} ThreadsPerCore=4"
        for name, text in (("scontrol", shown), ("squeue", jobs)):
            host.check_output(f"printf '#!/bin/sh\\necho {text}\\n' >/usr/bin/{name} && chmod 755 /usr/bin/{name}")

    yield says
    host.check_output("pkill -x slurmd; rm -f /run/slurmd /usr/bin/scontrol /usr/bin/squeue")


# What a first rollout over a node in production meets: all that the role would put right.
FOREIGN = (
    "echo 'options nvidia NVreg_EnableStreamMemOPs=0' >/etc/modprobe.d/site.conf; "
    f"sed -i 's/^# nvidia_driver: SUBSYS/SUBSYS/' {COPY}; "
    f"rm {DROP_IN}; systemctl daemon-reload; systemctl stop nvidia-persistenced; systemctl disable --quiet hal-gpus; "
    "nvidia-smi -i 1 -c PROHIBITED"
)
LOOK = (
    f"cat /etc/modprobe.d/*.conf {COPY}; ls {DROP_IN}; systemctl is-active nvidia-persistenced; "
    f"systemctl is-enabled hal-gpus; {QUERY}compute_mode,persistence_mode; stat -c %y /boot/initramfs-{KERNEL}.img"
)


@pytest.mark.parametrize(
    ("state", "jobs", "said"),
    [
        ("MIXED", "4711", "hal01: jobs 4711 run here. Until that is over nothing of the GPU driver is changed here."),
        ("IDLE", "", "hal01: the node is not drained in Slurm, and a job may begin at any time. Until that is over"),
    ],
)
def test_nothing_of_the_driver_changes_until_the_node_is_drained(
    host: Host, rollout: Rollout, slurm: Callable[[str, str], None], state: str, jobs: str, said: str
) -> None:
    host.check_output(FOREIGN)
    before = host.run(LOOK).stdout
    slurm(state, jobs)
    for permitted in (False, True):
        done = rollout.converge(nvidia_driver_reboot_ok=permitted)
        assert done.status == 0, done.explain()
        assert done.changes == {}
        assert said in done.words
        assert "udev does not bring the GPUs' memory on-line" in done.words
        assert host.run(LOOK).stdout == before
    slurm("IDLE+DRAIN", "")
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert "Until that is over" not in done.words
    host.check_output("systemctl start nvidia-persistenced hal-gpus; nvidia-smi -pm 1; nvidia-smi -c 0")
    assert broken(rollout) == {}
    assert not host.file("/etc/modprobe.d/site.conf").contains("options")
    host.check_output("rm /etc/modprobe.d/site.conf")


def test_a_driver_of_nvidias_own_installer_is_refused(host: Host, rollout: Rollout) -> None:
    """What a .run file leaves behind, in place of it."""
    host.check_output("printf '#!/bin/sh\\n' >/usr/bin/nvidia-uninstall && chmod 755 /usr/bin/nvidia-uninstall")
    try:
        done = rollout.converge()
    finally:
        host.check_output("rm /usr/bin/nvidia-uninstall")
    assert done.status != 0
    assert done.changes == {}
    # modinfo asks the machine's own kernel, which is not the node's here: it knows no module nvidia.
    assert (
        "hal01 has driver of an unknown version, put here by NVIDIA's own installer"
        " (/usr/bin/nvidia-uninstall is of no package)" in done.words
    )
    assert 'Drain the node, run "nvidia-uninstall --silent" there, and roll out again' in done.words


def test_with_permission_a_node_is_rebooted_and_slurmd_finds_all_devices(host: Host, rollout: Rollout) -> None:
    """Loaded is what was there at boot, which a new package does not change."""
    host.check_output('sed -i \'s/"loaded": .*,/"loaded": "418.87.00",/\' /run/virtual-node/driver.json')
    host.check_output(f"sed -i 's/^# nvidia_driver: SUBSYS/SUBSYS/' {COPY}; virtual-gpu ecc 0; virtual-gpu retire 1")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(firmware)
        done = rollout.converge(nvidia_driver_reboot_ok=True)
    assert done.status == 0, done.explain()
    assert (
        "hal01 needs a reboot: another driver than the installed 440.33.01 is loaded; "
        "udev has brought memory of GPUs on-line. It is done now." in done.words
    )
    assert set(DEVICES) <= set(host.file("/run/devices-at-start").content_string.split())
    assert broken(rollout) == {}  # counters begin anew, the page is retired
    assert host.check_output(f"{QUERY}retired_pages.double_bit.count -i 1") == "1"


def test_a_gpu_that_is_lost_at_boot_is_said_and_slurmd_is_not_kept_from_starting(host: Host, rollout: Rollout) -> None:
    """What slurmd makes of the missing device, and who drains the node, is Slurm's and the health check's."""
    host.check_output("virtual-gpu lose 1")
    assert boot_again() == "running"
    assert host.service("slurmd").is_running
    found = host.file("/run/devices-at-start").content_string.split()
    assert [name for name in DEVICES if name in found] == DEVICES[:3]
    assert "/dev has 3 of 4 GPUs after 5 s" in host.check_output("journalctl --boot --no-pager --unit=hal-gpus")
    seen = broken(rollout)
    assert set(seen) == {"every declared GPU answers", "GPUs have their devices", "GPUs are at their sockets"}

"""The driver at its version, what stands beside it, and each way in which a GPU is not as the model says."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from promises import Rollout
from testinfra.host import Host

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
PODMAN = str(SCENARIO.parent / "shared" / "podman")
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


def restart() -> None:
    """The machine boots again: /run and /dev are new."""
    subprocess.run([PODMAN, "restart", "--time=2", f"{SCENARIO.name}-{NAME}"], check=True, capture_output=True)


def wait_for_boot(host: Host) -> str:
    """Return what systemd says when it has started everything."""
    for _ in range(60):
        said = host.run("systemctl is-system-running").stdout.strip()
        if said in ("running", "degraded"):
            return str(said)
        time.sleep(1)
    return "not started in a minute"


# ---------------------------------------------------------------- as rolled out
def test_the_driver_is_loaded_and_all_gpus_are_held(host: Host) -> None:
    assert host.check_output(f"{QUERY}driver_version,persistence_mode").splitlines() == ["440.33.01, Enabled"] * 4
    assert sorted(path.split("/")[-1] for path in host.check_output("ls /dev/nvidia[0-9]").split()) == DEVICES
    assert host.service("nvidia-persistenced").is_running


def test_modules_are_built_for_the_declared_kernel(host: Host) -> None:
    assert host.check_output(f"dkms status -m nvidia -k {KERNEL}") == f"nvidia, 440.33.01, {KERNEL}, ppc64le: installed"
    assert host.check_output(f"modinfo -F vermagic /lib/modules/{KERNEL}/extra/nvidia.ko").split()[0] == KERNEL


def test_modprobe_has_our_options_and_no_others(host: Host) -> None:
    shown = [line for line in host.check_output("modprobe --showconfig").splitlines() if line.startswith("options n")]
    assert shown == [
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
FAULTS: dict[str, tuple[str, dict[str, str], str]] = {
    "lost": (
        "virtual-gpu lose 2",
        {"every declared GPU answers": "Unable to determine the device handle for GPU 0035:03:00.0: GPU is lost."},
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
    "less memory": (
        "virtual-gpu swap 3 Tesla\\ V100-SXM2-16GB --memory-mib 12000",
        {"GPUs are of the model's type, with its memory": "12000"},
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
    "sockets are swapped": (
        "cp /var/lib/virtual-node/gpus.json /run/gpus.json && "
        "sed -i '0,/0-79/s//80-159/' /var/lib/virtual-node/gpus.json",
        {"GPUs are at their sockets": "GPU0"},
        "cp /run/gpus.json /var/lib/virtual-node/gpus.json",
    ),
    "the installed library is another one": (
        "mv /usr/lib64/libnvidia-ml.so.440.33.01 /usr/lib64/libnvidia-ml.so.440.64.00",
        {
            "loaded driver is the declared one": "Failed to initialize NVML: Driver/library version mismatch",
            "every declared GPU answers": "Failed to initialize NVML",
        },
        "mv /usr/lib64/libnvidia-ml.so.440.64.00 /usr/lib64/libnvidia-ml.so.440.33.01",
    ),
    "options in another file": (
        "echo 'options nvidia NVreg_EnableStreamMemOPs=0' >/etc/modprobe.d/a.conf",
        {"options of the driver": "NVreg_EnableStreamMemOPs=0"},
        "rm /etc/modprobe.d/a.conf",
    ),
    "nouveau is let in": (
        "mv /etc/modprobe.d/90-hal-nvidia.conf /run && mv /usr/lib/modprobe.d/nvidia.conf /run",
        {"nouveau is kept out": "", "options of the driver": ""},
        "mv /run/90-hal-nvidia.conf /etc/modprobe.d && mv /run/nvidia.conf /usr/lib/modprobe.d",
    ),
    "memory comes on-line again": (
        f"cp -p {COPY} /run && sed -i 's/^# nvidia_driver: SUBSYS/SUBSYS/' {COPY}",
        {"udev does not bring the GPUs' memory on-line": 'SUBSYSTEM!="memory"'},
        "mv /run/40-redhat.rules /etc/udev/rules.d",
    ),
    "the package's rules changed": (
        f"cp -p {RULES} /run && echo 'KERNEL==\"x\"' >>{RULES}",
        {"the other udev rules are those of the package": 'KERNEL=="x"'},
        "mv /run/40-redhat.rules /usr/lib/udev/rules.d",
    ),
    "the module is for another kernel": (
        f"cp {MODULE} /run && sed -i 's/4.18.0-80/4.18.0-81/' {MODULE}",
        {"modules are built for the declared kernel": "440.33.01 for 4.18.0-81.7.2.el7.ppc64le"},
        f"mv /run/nvidia.ko {MODULE}",
    ),
    "nvidia-persistenced is off": (
        "systemctl disable --quiet --now nvidia-persistenced",
        {"nvidia-persistenced runs": "", "nvidia-persistenced starts at boot": "", "persistence mode is on": "0, GPU-"},
        "systemctl enable --quiet --now nvidia-persistenced",
    ),
    "slurmd does not wait": (
        f"sed -i /Before=/d /etc/systemd/system/hal-gpus.service; rm {DROP_IN}; "
        "systemctl daemon-reload; systemctl disable --quiet hal-gpus",
        {"slurmd waits for the GPUs": "", "GPUs are waited for at boot": ""},
        "",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_named(host: Host, rollout: Rollout, name: str) -> None:
    plant, found, undo = FAULTS[name]
    host.check_output(plant)
    try:
        seen = broken(rollout)
    finally:
        if undo:
            host.check_output(undo)
    assert {key.partition(" [")[0] for key in seen} == set(found), seen
    for key, words in found.items():
        assert words in seen[key], seen


def test_a_uuid_that_is_not_the_declared_one_is_found(rollout: Rollout, host: Host) -> None:
    uuid = host.check_output(f"{QUERY}uuid").splitlines()[0]
    assert "GPUs are the declared ones" in broken(rollout, __nvidia_driver_uuid_rows=[{"index": 0, "uuid": "GPU-x"}])
    assert "GPUs are the declared ones" not in broken(rollout, __nvidia_driver_uuid_rows=[{"index": 0, "uuid": uuid}])


def test_a_rollout_mends_what_can_be_mended(host: Host, rollout: Rollout) -> None:
    """After the last fault above, and some more."""
    host.check_output("systemctl mask --quiet nvidia-persistenced && nvidia-smi -c PROHIBITED && virtual-gpu hot 1")
    done = rollout.converge()
    assert done.status == 0, done.explain()  # a GPU that waits for a repair does not stop it
    assert "no GPU is too hot" in done.words
    host.check_output("virtual-gpu repair")
    assert broken(rollout) == {}

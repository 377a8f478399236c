"""The emulated Anaconda, given kickstart files as the toolkit writes them: what it does, in what order, and refuses."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bmc import sysimage
from bmc.firmware import Firmware
from bmc.machine import Machine
from bmc.place import DISK, Done

from hal_cluster.provision import petitboot
from hal_cluster.provision.images import Manifest
from hal_cluster.provision.kickstart import Place as NodePlace
from hal_cluster.provision.kickstart import Server, Source, kickstart
from hal_cluster.provision.tokens import Token
from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.virtual_hal.bmc.played_place import CONF, SERVER, Played, lease
from tests.unit.virtual_hal.bmc.test_firmware import INITRD, KERNEL, OPAL, STAGE2, last, machine_of

KICKSTART = f"http://{SERVER}:8480/node/hal05/kickstart.cfg"
ROOT = f"http://{SERVER}/images/compute-20261122-ppc64le/rootfs.tar"
CONTENT = b"a root file system"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
IMAGE = Manifest(
    "compute", "20261122", "ppc64le", "4.18.0-80.7.2.el7", "rootfs.tar", 18, SHA256, ("bash-4.2",), "2026-11-22"
)
FROM_IMAGE = Source(image=IMAGE, image_url=ROOT.rpartition("/")[0])
DISK_NAME = "disk/by-id/wwn-0x50248414c0550001"
TOKEN = Token("the-token-s-words", 1e10)


def written(wipe: Sequence[str] = ()) -> str:
    """Return the kickstart file of the node."""
    authority = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    where = NodePlace("management", "255.255.255.0")
    disks = {"system": "0x50248414c0550001", "bay01": "0x50248414c0550002"}
    server = Server(f"https://{SERVER}:8481", authority)
    return kickstart(node(disks=disks), where, FROM_IMAGE, server, TOKEN, wipe=wipe)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """An AC922."""
    return machine_of(tmp_path)


def site(text: str) -> Played:
    """Return the network of a site where the node is armed with a kickstart file; it is disarmed by the call home."""
    append = f"inst.stage2=http://{SERVER}/images/tree inst.ks={KICKSTART}"
    config = petitboot.armed("hal05", "hal-install", KERNEL, INITRD, append)
    files = {CONF: config.encode(), KERNEL: b"k", INITRD: b"i", STAGE2: b"s", KICKSTART: text.encode(), ROOT: CONTENT}
    return Disarmed({OPAL: lease(option_209=CONF)}, files)


class Disarmed(Played):
    """The server after a call home: the standing configuration."""

    def run(self, argv: list[str], *, stdin: bytes = b"", seconds: float = 60.0) -> Done:  # type: ignore[override]
        done = super().run(argv, stdin=stdin, seconds=seconds)
        if done.status == 0 and "exec 9>&1" in " ".join(argv) and argv[5] == "chroot":
            self.files[CONF] = petitboot.standing("hal05").encode()
        return done


def test_an_image_is_installed_and_then_the_disk_boots(machine: Machine) -> None:
    text = written()
    place = site(text)
    machine.set_override("network", "once")
    assert Firmware(place).boot(machine, machine.restart()) is True
    steps = [step.split(" log ")[0] for step in place.steps]
    pre, post = steps[1], steps[4]
    assert pre.startswith("ran /tmp/ks-script-")
    assert post.startswith("ran /run/ks-script-")
    assert steps == ["made", pre, "erased", "unpacked", post, "kept the kickstart file", "removed"]
    assert place.asked == [CONF, KERNEL, INITRD, KICKSTART, STAGE2, ROOT, ROOT, CONF]
    console = machine.console()
    assert "anaconda (emulation): checksum is right\n" in console
    assert "anaconda (emulation): kernel 4.18.0-80.7.2.el7.ppc64le will boot\n" in console
    assert "[firmware] start 2: boot from none (no override)\n" in console, "the override was for one start"
    assert last(machine) == "Booting from disk"
    assert TOKEN.words not in console
    assert not place.mounted


def test_packages_are_installed_on_the_base_system(machine: Machine) -> None:
    """No kickstart file of ours asks for packages: the emulation can do what Anaconda can."""
    repositories = f"url --url=http://{SERVER}/packages\nrepo --name=site --baseurl=http://{SERVER}/site\n"
    packages = "\n%packages\n@core\nchrony\ncurl\nopenssh-server\npython3\nkernel\n%end\n"
    place = site(without("liveimg", written()).replace("install\n", f"install\n{repositories}", 1) + packages)
    assert Firmware(place).boot(machine, "network") is True
    asked = next(step for step in place.steps if step.startswith("packages"))
    assert asked.split() == [
        "packages",
        f"--repofrompath=anaconda,http://{SERVER}/packages",
        f"--repofrompath=site,http://{SERVER}/site",
        "install",
        "chrony",
        "curl",
        "openssh-server",
        "python3",
    ]
    assert place.steps[2:5] == ["erased", "base", "kernel"]


def test_scripts_are_those_of_the_file_and_run_where_they_belong(machine: Machine) -> None:
    place = site(written())
    Firmware(place).boot(machine, "network")
    pre = next(text for path, text in place.scripts.items() if path.startswith("/tmp/"))
    post = next(text for path, text in place.scripts.items() if path.startswith(f"{DISK}/run/"))
    assert f"[ -b /dev/{DISK_NAME} ]" in pre
    assert TOKEN.words in post
    ran = [step for step in place.steps if step.startswith("ran ")]
    assert ran[0].endswith(" log /tmp/hal-pre.log")
    assert ran[1].endswith(f" log {DISK}/root/hal-install.log")


def test_hardware_survives_an_installation_and_one_that_failed_before_it(machine: Machine) -> None:
    kept = machine.kept.path.with_suffix(".hardware")
    place = Hardware({}, {})
    place.leases, place.files = site(written()).leases, site(written()).files
    place.failing["exec 9>&1"] = Done(1, b"", "")
    place.failing = {"sha256sum": Done(1, b"", "broken")}
    assert Firmware(place).boot(machine, "network") is False
    assert kept.read_bytes() == b"GPUs"
    place.failing, place.gone = {}, True
    Firmware(place).boot(machine, "network")
    assert place.put_back == b"GPUs"


class Here:
    """Runs programs on this machine."""

    def run(self, argv: list[str], *, stdin: bytes = b"", seconds: float = 60.0) -> Done:
        done = subprocess.run(argv, input=stdin, capture_output=True, timeout=seconds, check=False)
        return Done(done.returncode, done.stdout, done.stderr.decode())


def test_of_the_former_system_nothing_is_left_but_the_hardware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "hal01.hardware"
    monkeypatch.setattr(sysimage, "DISK", str(disk))
    for file in ("var/lib/virtual-node/gpus.json", "etc/udev/rules.d/10-mine.rules", "etc/hosts"):
        (disk / file).parent.mkdir(parents=True, exist_ok=True)
        (disk / file).write_text(file)
    sysimage.Sysimage(Here(), kept).erase()  # type: ignore[arg-type]  # of a place it only runs programs
    assert list(disk.iterdir()) == []
    with tarfile.open(kept) as tar:
        assert sorted(tar.getnames()) == ["etc/udev/rules.d", "var/lib/virtual-node/gpus.json"]


class Hardware(Disarmed):
    """A disk with the files of the machine's hardware."""

    gone = False
    put_back = b""

    def run(self, argv: list[str], *, stdin: bytes = b"", seconds: float = 60.0) -> Done:  # type: ignore[override]
        text = " ".join(argv)
        if '[ ! -e "$one" ]' in text:
            return Done(0, b"" if self.gone else b"var/lib/virtual-node/gpus.json\n", "")
        if argv[0] == "sh" and "-cf" in argv and "var/lib/virtual-node/gpus.json" in argv:
            return Done(0, b"GPUs", "")
        if argv[-2].endswith("-xf -") and argv[-1] == "sh":
            self.put_back = stdin
        return super().run(argv, stdin=stdin, seconds=seconds)


def without(line: str, text: str) -> str:
    """Return a kickstart file without the lines that begin so."""
    kept = [one for one in text.splitlines() if not one.startswith(line)]
    assert len(kept) < len(text.splitlines())
    return "\n".join(kept) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (written().replace("zerombr", "zerombrr"), "The following problem occurred in the kickstart file: "),
        (without("part prepboot", written()), "You must include at least one PReP Boot Partition"),
        (without("logvol /", written()), "You have not defined a root partition (/)"),
        (without("liveimg", written()), "Error setting up base repository: no source is named"),
        (
            written().replace("50550001", "50550009").replace("c0550001", "c0550009"),
            'Disk "disk/by-id/wwn-0x50248414c0550009" given in ignoredisk command does not exist.',
        ),
        (
            written().replace("c0550001", "c0550002"),
            "disk/by-id/wwn-0x50248414c0550002: this emulation installs on disk/by-id/wwn-0x50248414c0550001 alone",
        ),
    ],
)
def test_what_anaconda_refuses_is_refused_before_the_disk_is_touched(machine: Machine, text: str, said: str) -> None:
    place = site(text)
    assert Firmware(place).boot(machine, "network") is False
    assert said in machine.console()
    assert last(machine) == "anaconda (emulation): The installation has stopped. The machine stays as it is."
    assert "erased" not in place.steps


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (KICKSTART, f"{KICKSTART}: cannot be fetched; the menu of a manual installation waits"),
        (STAGE2, f"dracut: {STAGE2}: curl: (22)"),
        (ROOT, f"Failed to load image {ROOT}: curl: (22)"),
    ],
)
def test_a_file_that_is_missing_is_said_before_the_disk_is_touched(machine: Machine, gone: str, said: str) -> None:
    place = site(written())
    del place.files[gone]
    assert Firmware(place).boot(machine, "network") is False
    assert said in machine.console()
    assert "erased" not in place.steps


def test_a_script_that_fails_before_the_disk_is_touched_ends_it(machine: Machine) -> None:
    place = site(written())
    place.failing["exec 9>&1"] = Done(1, b"hal05: NOT INSTALLED: disk is not in this machine\n", "")
    assert Firmware(place).boot(machine, "network") is False
    console = machine.console()
    assert "\nhal05: NOT INSTALLED: disk is not in this machine\n" in console
    assert "There was an error running the kickstart script at line" in console
    assert "erased" not in place.steps


def test_an_exception_runs_what_is_there_for_it_and_what_is_shown_does_not(machine: Machine) -> None:
    """kickstart() writes a section for it; Anaconda calls it from its handler of exceptions alone."""
    assert "%onerror" in written()
    place = site(written())
    place.failing["-mindepth 1 -delete"] = Done(1, b"", "find: broken\n")
    place.failing["hal-onerror.log"] = Done(1, b"hal05: NOT INSTALLED: Anaconda stopped\n", "")
    assert Firmware(place).boot(machine, "network") is False
    console = machine.console()
    assert console.index("anaconda (emulation): %onerror at line") < console.index("erasing the disk: find: broken")
    assert "the installation goes on" not in console
    for failing in ("hal-pre.log", "hal-install.log", "sha256sum"):
        other = site(written())
        other.failing[failing] = Done(1, b"", "")
        seen = len(machine.console())
        assert Firmware(other).boot(machine, "network") is False
        assert "%onerror" not in machine.console()[seen:]


def test_a_script_that_may_fail_does_not_end_it(machine: Machine) -> None:
    place = site(written().replace("%pre --erroronfail", "%pre"))
    place.failing["hal-pre.log"] = Done(3, b"", "")
    assert Firmware(place).boot(machine, "network") is True
    assert "ended with status 3; the installation goes on" in machine.console()


def test_the_disk_that_is_missing_is_the_one_with_the_fault(machine: Machine) -> None:
    place = site(written())
    Firmware(place).boot(machine, "network")
    assert f"/dev/{DISK_NAME}" in place.devices
    with machine.kept.change() as state:
        state.faults.disk_missing = True
    place = site(written())
    assert Firmware(place).boot(machine, "network") is False
    assert f'Disk "{DISK_NAME}" given in ignoredisk command does not exist.' in machine.console()
    assert place.devices == {"/dev/disk/by-id/wwn-0x50248414c0550002"}
    assert machine.faults().shown() == ["disk-missing"]


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ("disk.img", "unpacking the image: tar: broken"),
        ("sha256sum", "checksum: tar: broken"),
        ("-mindepth 1 -delete", "erasing the disk: tar: broken"),
        ("grub.cfg", "boot entries: tar: broken"),
        ("mount --rbind", "the new system: tar: broken"),
        ("hal-install.log", "There was an error running the kickstart script at line"),
    ],
)
def test_an_installation_that_fails_later_is_said_and_the_machine_stays(
    machine: Machine, failing: str, said: str
) -> None:
    place = site(written())
    place.failing[failing] = Done(2, b"", "tar: broken\n")
    if failing == "disk.img":
        place.failing = {'-xf "$2"': Done(2, b"", "tar: broken\n")}
    assert Firmware(place).boot(machine, "network") is False
    assert said in machine.console()
    assert last(machine) == "anaconda (emulation): The installation has stopped. The machine stays as it is."
    assert not place.mounted


def test_an_image_that_is_not_what_was_signed_is_found_late_by_anaconda_itself(machine: Machine) -> None:
    # %pre finds it before; this is what Anaconda does when %pre does not.
    place = site(written())
    place.files[ROOT] = b"another one"
    assert Firmware(place).boot(machine, "network") is False
    assert "The checksum does not match: the disk has been erased" in machine.console()
    assert "unpacked" not in place.steps


def test_an_image_without_a_kernel_is_refused(machine: Machine) -> None:
    place = replace(site(written()), image_has=["grub2"])
    assert Firmware(place).boot(machine, "network") is False
    assert "boot loader: what was installed has no kernel in /boot" in machine.console()


def test_without_reboot_the_installer_stays(machine: Machine) -> None:
    place = site(without("reboot", written()))
    assert Firmware(place).boot(machine, "network") is False
    assert last(machine) == "anaconda (emulation): Installation complete. Press return to quit"

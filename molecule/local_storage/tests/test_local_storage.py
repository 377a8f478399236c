"""RAID sets, file systems and scratch of a machine with disks, as /sys shows them; what is broken is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running.ssh_config import Cluster
from testinfra.host import Host
from testing.promises import Rollout

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
SETUP = SCENARIO.parent / "virtual_hal/setup"
NODE = "data01"
WHOLE = "RAID sets are whole, of the declared disks"
FOREIGN = "ARRAY /dev/md/home level=raid1 num-devices=2 UUID=d7cb4e4d:28442f0a:6c0ecb2b:c47e75c9"
PATH = "export PATH=/usr/sbin:/usr/bin; "  # what is asked here may be newer than CentOS 7
BOOT_SECONDS = 900  # emulated, and the machine below may be busy
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


@pytest.fixture
def host(node: Node) -> Host:
    return node(NODE)


def on(host: Host, command: str) -> str:
    """Output of a shell command with the image's own programs; it has to succeed."""
    done = host.run(PATH + command)
    assert done.rc == 0, done.stderr
    return str(done.stdout).strip()


def observed(rollout: Rollout, **variables: Any) -> dict[str, Any]:
    """What was seen of each promise that does not hold."""
    results = rollout.promises("local_storage", NODE, **variables)
    return {name: one["observed"] for name, one in results.items() if one["status"] in ("fail", "unknown")}


def wait_until_synced(host: Host) -> None:
    """Return when no array is being rebuilt."""
    for _ in range(120):
        if "recover" not in on(host, "cat /sys/block/md*/md/sync_action"):
            return
        time.sleep(1)
    raise AssertionError(on(host, "cat /proc/mdstat"))


def disk(*words: str) -> None:
    """Pull a disk out of the machine, or put one in, as somebody at the rack does."""
    instance = os.environ["MOLECULE_SCENARIO_NAME"]
    command = [sys.executable, str(SETUP), "disk", "--instance", instance, words[0], NODE, *words[1:]]
    subprocess.run(command, check=True, timeout=60)


def members(host: Host, array: str) -> list[str]:
    """World-wide names of an array's members, by slot."""
    kernel = on(host, f"basename $(readlink -f /dev/md/{array})")
    lines = on(
        host,
        f"for m in /sys/block/{kernel}/md/dev-*; do d=${{m##*/dev-}};"
        " echo $(cat $m/slot) $(udevadm info --query=property --property=ID_WWN --value /dev/$d); done",
    ).splitlines()
    return [wwn for _, wwn in sorted((int(slot), wwn) for slot, wwn in (line.split() for line in lines))]


def test_the_raid60_is_two_raid6_of_the_declared_disks(host: Host, cluster: Cluster) -> None:
    names = cluster.node(NODE)["disks"]
    bays = [names[f"bay{at:02}"] for at in range(1, 13)]
    assert members(host, "internal-a") == bays[:6]
    assert members(host, "internal-b") == bays[6:]
    for array, level, chunk_kb in (
        ("internal-a", "raid6", 64),
        ("internal-b", "raid6", 64),
        ("internal", "raid0", 256),
    ):
        folder = f"/sys/block/$(basename $(readlink -f /dev/md/{array}))/md"
        assert on(host, f"cat {folder}/level {folder}/chunk_size").split() == [level, str(chunk_kb * 1024)]


def test_the_half_that_was_there_was_not_made_again(host: Host) -> None:
    """prepare.yml has made it, as a run that was interrupted does."""
    before = on(host, "cat /root/first-half")
    assert re.fullmatch(r"MD_UUID=[0-9a-f:]{35}", before)
    assert before in on(host, "mdadm --detail --export /dev/md/internal-a").splitlines()


def test_file_systems_have_the_stripe_of_their_disks_and_are_mounted(host: Host) -> None:
    shown = on(host, "xfs_info /internal")
    assert re.search(r"sunit=16 +swidth=128 blks", shown), shown  # of 4 KiB: 64 KiB on each of 8
    for mount, label in (("/internal", "internal"), ("/srv/images", "images"), ("/scratch", "scratch")):
        assert on(host, f"findmnt -n -o FSTYPE,LABEL {mount}").split() == ["xfs", label]
        fields = on(host, f"findmnt --fstab -n -o SOURCE,OPTIONS {mount}").split()
        assert fields[0].startswith("UUID=")
        assert {"nofail", "x-systemd.device-timeout=300s"} <= set(fields[1].split(","))
    assert host.file("/scratch").mode == 0o1777
    assert "relatime" in on(host, "findmnt -n -o OPTIONS /scratch").split(",")


def test_arrays_are_watched_and_read_through(host: Host) -> None:
    assert host.service("mdmonitor").is_running
    assert host.service("mdmonitor").is_enabled
    lines = host.file("/etc/mdadm.conf").content_string.splitlines()
    assert [line for line in lines if line.startswith("MAILADDR")] == ["MAILADDR root"]
    arrays = sorted(line.split()[1] for line in lines if line.startswith("ARRAY") and line != FOREIGN)
    assert arrays == ["/dev/md/images", "/dev/md/internal", "/dev/md/internal-a", "/dev/md/internal-b"]
    assert lines.count(FOREIGN) == 1, "an array that is not in the model comes up at boot as it did before"
    assert "another@example.org" in on(host, "cat /etc/mdadm.conf.*~")
    assert "ENABLED=yes" in host.file("/etc/sysconfig/raid-check").content_string.splitlines()
    on(host, "/usr/sbin/raid-check")
    actions = on(host, "cat /sys/block/md*/md/sync_action /sys/block/md*/md/last_sync_action").split()
    assert "check" in actions


def test_promises_hold_and_were_read(rollout: Rollout) -> None:
    results = rollout.promises("local_storage", NODE)
    assert results[WHOLE]["observed"] == []
    assert results["file system is mounted [internal]"]["observed"] == "xfs"
    assert rollout.broken_promises("local_storage", NODE) == []


def test_everything_is_back_after_a_reboot(host: Host, cluster: Cluster, rollout: Rollout) -> None:
    on(host, "echo kept >/internal/kept; sync")
    before = on(host, "cat /proc/sys/kernel/random/boot_id")
    ssh = ["ssh", "-F", str(cluster.ssh_config)]
    host.run("systemctl reboot")
    subprocess.run([*ssh, "-O", "exit", NODE], capture_output=True, check=False)
    asked = [*ssh, "-o", "ConnectTimeout=5", "-o", "ControlMaster=no", NODE]
    end = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < end:
        done = subprocess.run(
            [*asked, "cat /proc/sys/kernel/random/boot_id"], capture_output=True, text=True, check=False
        )
        if done.returncode == 0 and done.stdout.strip() != before:
            break
        time.sleep(2)
    else:
        raise AssertionError(f"{NODE} did not come back within {BOOT_SECONDS} s: {done.stderr}")
    for _ in range(60):
        if on(host, "systemctl is-system-running || :") != "starting":
            break
        time.sleep(2)
    assert on(host, "cat /internal/kept") == "kept"
    assert on(host, "systemctl is-system-running || systemctl --failed") == "running"
    assert rollout.broken_promises("local_storage", NODE) == []


def test_a_failed_disk_is_named_until_it_is_replaced(host: Host, rollout: Rollout) -> None:
    name = on(host, "readlink -f /dev/disk/by-id/wwn-0x50248414c0760003")
    on(host, f"mdadm /dev/md/internal-a --fail {name}")
    assert observed(rollout) == {
        WHOLE: [
            "internal: internal-a: bay03 (wwn-0x50248414c0760003) has failed",
            "internal: internal-a lacks 1 of 6 disks, and nothing is being rebuilt",
        ]
    }
    on(host, f"mdadm /dev/md/internal-a --remove {name} && mdadm --zero-superblock {name}")
    assert observed(rollout)[WHOLE] == [
        "internal: internal-a lacks 1 of 6 disks, and nothing is being rebuilt",
        "internal: internal-a: bay03 (wwn-0x50248414c0760003) is not a member",
    ]
    # A rollout neither makes anything of it nor stops.
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert "bay03" in done.words
    on(host, f"mdadm /dev/md/internal-a --add {name}")
    wait_until_synced(host)
    assert observed(rollout) == {}


def test_another_disk_in_the_place_of_a_declared_one_is_named(host: Host, rollout: Rollout) -> None:
    disk("remove", "bay08")
    disk("add", "stranger", "0x50248414c07600aa")
    on(host, "udevadm settle")
    lines = observed(rollout)[WHOLE]
    assert re.fullmatch(
        r"internal: disk bay08 \(wwn-0x50248414c0760008\) is not in the machine; there is sd\w+"
        r" \(wwn-0x50248414c07600aa, serial VIRTUAL-50248414c07600aa\), which the model does not have",
        lines[0],
    ), lines
    assert "internal: internal-b lacks 1 of 6 disks, and nothing is being rebuilt" in lines
    disk("remove", "stranger")
    disk("add", "bay08", "0x50248414c0760008")
    on(host, "udevadm settle; mdadm /dev/md/internal-b --remove detached || :")
    on(host, "mdadm /dev/md/internal-b --re-add /dev/disk/by-id/wwn-0x50248414c0760008 2>&1 || :")
    wait_until_synced(host)
    assert observed(rollout) == {}


def test_a_monitor_that_is_off_is_named_and_mended_and_a_clean_up_withdrawn(host: Host, rollout: Rollout) -> None:
    """One rollout for both: it takes its time here."""
    on(host, "echo x >/scratch/kept")
    on(
        host,
        "systemctl disable --quiet --now mdmonitor hal-scratch-clean.timer; sed -i s/yes/no/ /etc/sysconfig/raid-check",
    )
    assert set(observed(rollout)) == {
        "arrays are watched",
        "arrays are watched after a reboot",
        "arrays are read through every week",
        "scratch is cleaned up every night",
        "scratch is cleaned up after a reboot",
    }
    done = rollout.converge(local_storage_scratch={})
    assert done.status == 0, done.explain()
    assert observed(rollout, local_storage_scratch={}) == {}
    places = "/etc/systemd/system /usr/local/sbin /etc /var/lib"
    assert on(host, f"ls {places} | grep -c scratch || :") == "0"
    assert on(host, "systemctl list-units --all --plain --no-legend 'hal-scratch*'") == ""
    assert on(host, "cat /scratch/kept; rm /scratch/kept") == "x"


def test_scratch_of_before_this_role_keeps_owner_mode_and_files_until_they_are_permitted(
    host: Host, rollout: Rollout
) -> None:
    """The clean-up that the test before has withdrawn is declared again, as on a cluster in production; and a mount
    that is missing is mended on the way."""
    on(host, "chown root:hal-users /scratch && chmod 2775 /scratch")
    on(host, "mkdir /scratch/thesis && echo x >/scratch/thesis/data")
    on(host, "chown -R alice:hal-users /scratch/thesis && touch -d 2019-11-01 /scratch/thesis/data && sleep 2")
    on(host, "umount /srv/images")
    refused = rollout.converge()
    assert refused.status != 0
    assert "/scratch is there with mode 2775, of root:hal-users, and this role did not create it" in refused.words
    assert on(host, "stat -c '%a %U:%G' /scratch") == "2775 root:hal-users"
    assert on(host, "ls /etc /etc/systemd/system | grep -c scratch || :") == "0"

    kept: dict[str, Any] = {"mount": "/scratch", "disk": "scratch1", "mode": "2775"}
    done = rollout.converge(local_storage_scratch=kept)
    assert done.status == 0, done.explain()
    assert on(host, "stat -c '%a %U:%G' /scratch") == "2775 root:hal-users"
    assert on(host, "findmnt -n -o LABEL /srv/images") == "images"
    shown = re.search(r"now (\d+) files .*?local_storage_scratch_confirmed: ([0-9a-f]{4}-[0-9a-f]{4}) ", done.words)
    assert shown, done.words
    assert set(observed(rollout, local_storage_scratch=kept)) == {
        "the clean-up of scratch is permitted",
        "scratch is cleaned up every night",
        "scratch is cleaned up after a reboot",
    }
    # Not even when somebody starts it.
    on(host, "systemctl start hal-scratch-clean.service")
    assert "The clean-up of /scratch is off" in on(host, "journalctl --no-pager -u hal-scratch-clean")
    assert on(host, "cat /scratch/thesis/data") == "x"

    # The code of other rules is none; with that of these it is on. The mode is changed by permission.
    days, code = {"local_storage_scratch_days": 60}, {"local_storage_scratch_confirmed": shown[2]}
    done = rollout.converge(local_storage_scratch=kept, **days, **code)
    assert done.status == 0, done.explain()
    assert shown[2] not in done.words
    assert host.run("systemctl is-enabled hal-scratch-clean.timer").stdout.strip() == "disabled"
    done = rollout.converge(**code)
    assert done.status == 0, done.explain()
    assert observed(rollout) == {}
    assert on(host, "stat -c '%a %U:%G' /scratch") == "1777 root:hal-users"
    on(host, "chown root:root /scratch; rm -r /scratch/thesis")


def test_scratch_is_cleaned_and_nothing_else(host: Host) -> None:
    on(
        host,
        "runuser -u alice -- sh -c"
        " 'mkdir -p /scratch/alice/run && echo x >/scratch/alice/run/old && echo x >/scratch/alice/open'",
    )
    on(host, "echo x >/internal/outside; ln -sfn /internal /scratch/alice/away; sleep 2")
    on(host, 'sed \'s/"days": 30/"days": 0/\' /etc/hal-scratch-clean.json >/root/now.json')
    script = "/usr/local/sbin/hal-scratch-clean --config /root/now.json --record /root/permitted"
    code = re.search(r"local_storage_scratch_confirmed: (\S+) ", on(host, f"{script} --permit ''"))
    assert code
    assert on(host, f"{script} --permit {code[1]}") == "permitted"
    shown = on(host, f"sh -c 'exec 5</scratch/alice/open; {script} --dry-run'")
    assert "/scratch/alice/run/old" in shown.splitlines()
    assert "/scratch/alice/open" not in shown.splitlines()
    assert host.file("/scratch/alice/run/old").exists
    said = on(host, f"sh -c 'exec 5</scratch/alice/open; {script}'")
    assert re.match(r"/scratch: 2 files \(\d+ MiB\) and 1 folders removed", said), said
    assert not host.file("/scratch/alice/run").exists
    assert host.file("/scratch/alice/open").exists
    assert host.file("/internal/outside").content_string == "x\n"
    on(host, "umount /scratch")
    refused = host.run(PATH + script)
    on(host, "mount /scratch")
    assert refused.rc == 3
    assert refused.stderr.startswith("nothing more is removed: /scratch is not on /dev/disk/by-id/")


@pytest.fixture
def foreign(host: Host) -> str:
    """The mirror is gone, and one of its disks has somebody's file system on it."""
    second = "/dev/disk/by-id/wwn-0x50248414c076000e"
    on(host, "umount /srv/images || :; mdadm --stop /dev/md/images || :")
    on(
        host,
        f"for d in /dev/disk/by-id/wwn-0x50248414c076000[de]; do wipefs -qa $d; done; mkfs.ext4 -q -L thesis {second}",
    )
    return second


def test_a_disk_with_data_is_shown_and_erased_only_with_its_code(host: Host, rollout: Rollout, foreign: str) -> None:
    done = rollout.converge(local_storage_create_ok=True)
    assert done.status != 0
    assert re.search(
        r"images2 wwn-0x50248414c076000e, model QEMU HARDDISK, serial VIRTUAL-50248414c076000e, 0.5 GB:"
        r" ext4 \(thesis\)",
        done.words,
    )
    found = re.search(r"local_storage_confirm=([0-9a-f]{4}-[0-9a-f]{4}) with --limit data01", done.words)
    assert found, done.words
    assert on(host, f"blkid -p -s LABEL -o value {foreign}") == "thesis"

    # Somebody uses the disk before the code is: what was shown is no longer what is there.
    on(host, f"e2label {foreign} thesis2")
    done = rollout.converge(local_storage_confirm=found[1])
    assert done.status != 0
    assert f"the code {found[1]} does not fit what is on these disks now" in done.words
    assert on(host, f"blkid -p -s LABEL -o value {foreign}") == "thesis2"

    again = re.search(r"local_storage_confirm=([0-9a-f]{4}-[0-9a-f]{4}) with --limit data01", done.words)
    assert again
    on(host, f"mkdir -p /mnt && mount {foreign} /mnt")
    done = rollout.converge(local_storage_confirm=again[1])
    assert "images2 is in use (mounted at /mnt): end that first" in done.words
    on(host, "umount /mnt")

    # Mounting has changed nothing that the code is made of.
    done = rollout.converge(local_storage_confirm=again[1])
    assert done.status == 0, done.explain()
    assert members(host, "images") == ["0x50248414c076000d", "0x50248414c076000e"]
    assert observed(rollout) == {}

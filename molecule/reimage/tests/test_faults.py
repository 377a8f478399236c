"""What goes wrong while a node is reimaged: it ends drained with a reason, or is done; it never serves jobs between.

Each is one fault and, where that ended the reimage, another one without it, which has to be done.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from running.ssh_config import STATE
from testing.bmc_site import SERVER
from testing.reimage_site import ReimageSite, Watch, until_seconds
from testing.waiting import wait_for

NODE = "hal05"
Fault = Callable[[ReimageSite], AbstractContextManager[None]]


def bmc(*words: str) -> Fault:
    """A fault of the node's BMC."""
    return lambda hal: hal.fault(NODE, *words)


@contextmanager
def no_dhcp(hal: ReimageSite) -> Iterator[None]:
    """Nobody answers DHCP."""
    hal.on(SERVER, "systemctl stop dnsmasq")
    try:
        yield
    finally:
        hal.on(SERVER, "systemctl start dnsmasq")


@contextmanager
def no_server(hal: ReimageSite) -> Iterator[None]:
    """The node finds its installer, and nobody whom it could call home."""
    hal.on(SERVER, "systemctl stop hal-provision")
    try:
        yield
    finally:
        hal.on(SERVER, "systemctl start hal-provision")


@contextmanager
def truncated_image(hal: ReimageSite) -> Iterator[None]:
    """The image lost its last bytes after it was confirmed."""
    (file,) = hal.on(SERVER, f"ls /srv/images/www/{hal.record(NODE)['plan']['image']['folder']}/rootfs.tar*").split()
    hal.on(SERVER, f"cp --preserve {file} /var/tmp/kept && truncate -s -1000 {file}")
    try:
        yield
    finally:
        hal.on(SERVER, f"cp --preserve /var/tmp/kept {file} && rm /var/tmp/kept")


def end_of(hal: ReimageSite, seen: Watch) -> str:
    """Return how it ended: "done", or the reason. Whatever it is, the node was never half served."""
    assert seen.half_served() == []
    record = hal.record(NODE)
    assert record["state"] in ("done", "failed"), record
    if record["state"] == "done":
        assert hal.states()[NODE] == "idle"
        return "done"
    assert record["reason"]
    assert hal.drained(NODE), hal.states()
    assert hal.reason(NODE), "no reason in sinfo -R"
    return str(record["reason"])


BROKEN: list[tuple[str, Fault, str]] = [
    ("silent BMC", bmc("silent"), "no answer"),
    ("504", bmc("504"), "504"),
    ("other machine", bmc("wrong-serial", "X4711"), "X4711"),
    ("swapped cables", bmc("swapped-with", "hal06"), "swapped"),
    ("power ignored", bmc("power-ignored"), "power"),
    ("override ignored", bmc("boot-override-ignored"), "next start"),
    ("password expired", bmc("password-must-change"), "password"),
    ("disk missing", bmc("disk-missing"), "its installer stopped: disk 0x"),
    ("no DHCP", no_dhcp, "its firmware to boot from the network"),
    ("image cut short", truncated_image, "cannot be fetched or is not what was signed"),
]
HARMLESS: list[tuple[str, Fault]] = [
    ("slow BMC", bmc("slow", "--seconds", "1")),
    ("old firmware", bmc("old-firmware")),
    # It starts in its own order then, and petitboot finds what the server has armed all the same.
    ("override lost", bmc("boot-override-lost")),
]
SHORT: dict[str, Any] = {
    "reimage_identity_seconds": 30,
    "reimage_off_seconds": 40,
    "reimage_begin_seconds": 40,
    "reimage_install_seconds": 90,
    "reimage_start_seconds": 60,
}


@pytest.fixture(autouse=True)
def serving(hal: ReimageSite) -> Iterator[None]:
    """The node takes jobs, whatever a test left that failed: another reimage mends all."""
    yield
    if hal.states()[NODE] != "idle":
        hal.slurm("scancel --user=alice")
        hal.ssh(SERVER, f"hal-reimage abort {NODE}")
        again = hal.reimage(NODE)
        assert again.status == 0, again.explain()


@pytest.fixture
def other(hal: ReimageSite) -> Iterator[str]:
    """A job on another node, which survives."""
    job = hal.submit("hal06", 3600, user="bob")
    yield job
    assert hal.job_state(job) == "RUNNING"
    hal.cancel(job)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "said"), [one[1:] for one in BROKEN], ids=[one[0] for one in BROKEN])
def test_a_node_with_a_fault_stays_drained_with_a_reason_and_is_done_without_it(
    hal: ReimageSite, other: str, fault: Fault, said: str
) -> None:
    before, job = hal.configurations(), hal.submit(NODE, 3600)
    with hal.watch() as seen:
        playing = hal.begin(NODE, **SHORT)
        try:
            hal.at(NODE, "drain")  # confirmed, and known to be the right machine: now it breaks
            with fault(hal):
                hal.cancel(job)
                done = playing.wait()
        finally:
            playing.kill()
            hal.cancel(job)
    assert done.status != 0, done.output[-3000:]
    reason = end_of(hal, seen)
    assert said in reason
    with hal.watch() as seen:
        again = hal.reimage(NODE)
    assert again.status == 0, again.explain()
    assert end_of(hal, seen) == "done"
    assert hal.configurations() == before


@pytest.mark.slow
@pytest.mark.parametrize("fault", [one[1] for one in HARMLESS], ids=[one[0] for one in HARMLESS])
def test_what_a_reimage_gets_past_is_no_fault(hal: ReimageSite, other: str, fault: Fault) -> None:
    hal.mark(NODE)
    with hal.watch() as seen, fault(hal):
        done = hal.reimage(NODE)
    assert done.status == 0, done.explain()
    assert end_of(hal, seen) == "done"
    assert not hal.marked(NODE)


@pytest.mark.slow
def test_a_node_that_never_calls_home_stays_drained(hal: ReimageSite, other: str) -> None:
    with hal.watch() as seen:
        playing = hal.begin(NODE, **SHORT)
        try:
            hal.until("it begins", lambda: "erasing" in hal.since_off(NODE), NODE)
            with no_server(hal):
                done = playing.wait()
        finally:
            playing.kill()
    assert done.status != 0
    assert end_of(hal, seen) != "done"
    again = hal.reimage(NODE)
    assert again.status == 0, again.explain()
    assert hal.record(NODE)["state"] == "done"


@pytest.mark.slow
def test_a_second_call_home_is_refused_and_changes_nothing(hal: ReimageSite, other: str) -> None:
    """With the token of the first one, from the node's own address, over TLS that it believes."""
    playing = hal.begin(NODE)
    try:
        token = hal.until("its token", lambda: token_of(hal), NODE)
        done = playing.wait()
    finally:
        playing.kill()
    assert done.status == 0, done.explain()
    before = hal.everything()
    for purpose in ("begin", "secrets", "call-home", "stop"):
        url = f"https://{hal.server_address}:8481/node/{NODE}/{purpose}"
        asked = f"curl --insecure --silent --noproxy '*' --config - --request POST --write-out ' %{{http_code}}' {url}"
        said = hal.on(NODE, asked, f'header = "X-HAL-Token: {token}"\n'.encode())
        assert said.split()[-1] == "403", f"{purpose}: {said}"
    assert "it was used" in hal.on(SERVER, "journalctl --unit hal-provision --since -1min --output cat")
    assert hal.everything() == before


def token_of(hal: ReimageSite) -> str:
    """Return the token in the kickstart file of the node's order; empty as long as it has none."""
    order = hal.ssh(SERVER, f"cat /var/lib/hal-provision/armed/{NODE}*").stdout.decode()
    found = re.search(r"token='([^']+)'", order)
    return found[1] if found else ""


@pytest.mark.slow
def test_a_controller_that_is_killed_in_each_step_goes_on_where_it_was(hal: ReimageSite, other: str) -> None:
    code, before = hal.code(NODE), hal.configurations()
    hal.mark(NODE)
    killed: list[str] = []
    with hal.watch() as seen:
        while True:
            playing = hal.begin(NODE, code)
            try:
                step = next_step(hal, playing.process.poll, killed)
                if step is None:
                    ended = playing.wait()
                    break
            finally:
                playing.kill()
            killed.append(step)
    assert ended.status == 0, ended.explain()
    assert end_of(hal, seen) == "done"
    assert not hal.marked(NODE)
    assert hal.configurations() == before
    assert {"drain", "off", "boot", "install", "start", "converge", "gates", "job"} <= set(killed), killed


def next_step(hal: ReimageSite, ended: Callable[[], Any], known: list[str]) -> str | None:
    """Return the next step that a node comes to, none of those known; None when the playbook ends before."""
    while ended() is None:
        record = hal.record(NODE)
        if record.get("state") == "going" and record["step"] not in known:
            return str(record["step"])
        time.sleep(0.2)
    return None


@pytest.mark.slow
def test_a_node_whose_host_certificate_is_not_believed_stays_drained(hal: ReimageSite, other: str) -> None:
    strangers = hal.work / "strangers"
    shutil.copytree(STATE / "ca", strangers)
    for old in strangers.glob("host_ca*"):
        old.unlink()
    hal.keygen(strangers / "host_ca")
    with hal.watch() as seen:
        done = hal.reimage(NODE, **SHORT, provision_server_authority_dir=str(strangers))
    assert done.status != 0
    assert "it to let us in" in end_of(hal, seen)
    again = hal.reimage(NODE)
    assert again.status == 0, again.explain()


@pytest.mark.slow
def test_slurm_reboots_a_node_into_its_installer_and_next_state_is_kept(hal: ReimageSite, other: str) -> None:
    hal.mark(NODE)
    with hal.watch() as seen:
        done = hal.reimage(NODE, reimage_by_slurm=True, reimage_next_state="DOWN")
    assert done.status == 0, done.explain()
    assert seen.half_served() == []
    assert not hal.marked(NODE)
    assert hal.record(NODE)["state"] == "done"
    assert hal.states()[NODE] in ("drained", "down")
    hal.give_back(NODE)


@pytest.mark.slow
def test_a_reboot_and_a_shutdown_of_the_system_itself_are_seen_by_its_bmc(hal: ReimageSite) -> None:
    boot = hal.boot(NODE)
    hal.ssh(NODE, "systemctl reboot")
    wait_for("another boot", lambda: hal.answers(NODE) and hal.boot(NODE), lambda now: now and now != boot, 120)
    hal.ssh(NODE, "systemctl poweroff")
    assert until_seconds(60, lambda: hal.chassis(NODE, "get", "power") == "power:0\n")
    hal.switch_on(NODE)
    hal.until("an answer", lambda: hal.answers(NODE), NODE)
    hal.give_back(NODE)

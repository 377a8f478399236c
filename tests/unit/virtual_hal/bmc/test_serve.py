"""The serving process: says when it is ready, ends when told to or with its owner, and takes its children along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from bmc.spec import Fleet, read_fleet
from testbed.errors import VirtualNodesError

from tests.unit.virtual_hal.bmc.emulated import IPMI, LOGINS, QUIET, spec, unchecked, wait_until

pytestmark = QUIET
LAB = Path(__file__).resolve().parents[4] / "molecule/virtual_hal"
Start = Callable[..., "subprocess.Popen[str]"]


def fleet_of(folder: Path) -> Fleet:
    """Return two BMCs at ports that are free: their addresses are nobody else's."""
    ports = {"https": 14443, "ipmi": IPMI, "console": 14200}
    two = (spec("hal01", "openbmc", 31, ports=ports), spec("hal-data", "supermicro", 32, ports=ports))
    return Fleet(instance="test", state=folder / "state", bmcs=two)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Two BMCs, in a file that the process reads."""
    made = fleet_of(tmp_path)
    (tmp_path / "fleet.json").write_text(made.model_dump_json())
    return made


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Start]:
    """Return what starts the serving process; all are ended."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [*prefix, sys.executable, "-m", "bmc.serve", str(tmp_path / "fleet.json"), *words]
        environment = {**os.environ, "PYTHONPATH": str(LAB)}
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """Return the process when it says that it is ready."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@contextmanager
def owning(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Give a process that plays the container; it ends whatever happens, or a test that fails would wait for it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def simulators(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes of ipmi_sim that it started."""
    found = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid=,comm="], capture_output=True, text=True)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if line.split()[1] == "ipmi_sim"]


def alive(pid: int) -> bool:
    """Return whether a process is there, and no zombie."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_sigterm_ends_it_cleanly(fleet: Fleet, begin: Start) -> None:
    process = ready(begin())
    children = simulators(process)
    assert len(children) == 2
    where = fleet.named("hal01")
    url = f"https://{where.address}:{where.ports.https}/redfish/v1/Systems/system"
    assert unchecked().get(url, auth=LOGINS["hal01"]).json()["SerialNumber"] == "SERIAL-hal01"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err) == (0, "", "")
    assert not any(alive(pid) for pid in children)
    assert not (fleet.state / "control.socket").exists()
    with pytest.raises(requests.exceptions.ConnectionError):
        unchecked().get(url, timeout=5)


def test_its_simulators_end_with_it_however_it_ends(fleet: Fleet, begin: Start) -> None:
    process = ready(begin())
    children = simulators(process)
    os.kill(children[0], signal.SIGSTOP)  # a silent one, too
    process.kill()
    process.wait()
    wait_until(lambda: not any(alive(pid) for pid in children))
    ready(begin())  # and nothing that was left hinders the next


@pytest.mark.root  # to go into a network namespace
def test_it_ends_with_the_process_that_owns_the_addresses(fleet: Fleet, begin: Start) -> None:
    with owning("sleep", "infinity") as owner:
        process = ready(begin(f"--network-of={owner.pid}"))
        owner.kill()
    process.communicate(timeout=600)
    assert process.returncode == 0


@pytest.mark.root  # to make a network namespace
def test_it_listens_in_the_owners_network(fleet: Fleet, begin: Start) -> None:
    made = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("this machine allows no network namespaces")
    script = "ip link set lo up && echo up && exec sleep infinity"
    with owning("unshare", "--net", "sh", "-c", script) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        ready(begin(f"--network-of={owner.pid}"))
        where = fleet.named("hal01")
        url = f"https://{where.address}:{where.ports.https}/redfish/v1/"
        with pytest.raises(requests.exceptions.ConnectionError):
            unchecked().get(url, timeout=5)
        inside = ["nsenter", f"--net=/proc/{owner.pid}/ns/net", "curl", "--silent", "--noproxy", "*", "--insecure", url]
        assert "RootService" in subprocess.run(inside, capture_output=True, text=True, check=True).stdout


def test_a_second_process_is_refused(fleet: Fleet, begin: Start) -> None:
    first = ready(begin())
    second = begin()
    _, err = second.communicate(timeout=600)
    assert second.returncode == 1
    assert err == f"bmc.serve: process {first.pid} serves the BMCs of test already\n"


def test_an_address_that_is_taken_is_named(fleet: Fleet, begin: Start) -> None:
    import socket

    where = fleet.named("hal-data")
    with socket.socket() as taken:
        taken.bind((where.address, where.ports.https))
        taken.listen()
        process = begin()
        _, err = process.communicate(timeout=600)
    assert process.returncode == 1
    assert err == f"bmc.serve: hal-data: {where.address} port {where.ports.https}: Address already in use\n"


def test_an_ipmi_port_that_is_taken_is_named(fleet: Fleet, begin: Start) -> None:
    import socket

    where = fleet.named("hal-data")
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind((where.address, where.ports.ipmi))
        process = begin()
        _, err = process.communicate(timeout=600)
    assert process.returncode == 1
    place = f"{where.address} port {where.ports.ipmi}"
    assert err.startswith(f"bmc.serve: hal-data: ipmi_sim does not answer at {place}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "fleet.json: the document: Invalid JSON"),
        ('{"instance": "a", "state": "/b", "bmcs": []}', "fleet.json: bmcs: Tuple should have at least 1 item"),
        (
            '{"instance": "a", "state": "/b", "bmcs": [{"name": "n", "kind": "ilo", "address": "10.0.0.1",'
            ' "serial": "", "model": ""}]}',
            "fleet.json: bmcs.0.kind: Input should be 'openbmc', 'supermicro'",
        ),
        (
            '{"instance": "a", "state": "/b", "bmcs": [{"name": "n", "kind": "ipmi", "address": "10.0.0.999",'
            ' "serial": "", "model": ""}]}',
            "fleet.json: bmcs.0.address: Value error, '10.0.0.999' does not appear to be",
        ),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_field(text: str, message: str) -> None:
    with pytest.raises(VirtualNodesError) as raised:
        read_fleet(text, "fleet.json")
    assert str(raised.value).startswith(message)


def test_two_bmcs_at_one_address_are_refused(tmp_path: Path) -> None:
    one = spec("hal01", "openbmc", 1, ports={})
    both = Fleet(instance="a", state=tmp_path, bmcs=(one, one.model_copy(update={"name": "hal02"})))
    with pytest.raises(VirtualNodesError, match=r"^f: hal02: 127\.\d+\.\d+\.\d+ port \d+ is hal01's already$"):
        read_fleet(both.model_dump_json(), "f")


def test_a_password_that_is_wrong_in_kind_is_not_repeated(tmp_path: Path) -> None:
    text = Fleet(instance="a", state=tmp_path, bmcs=(spec("hal01", "openbmc", 1),)).model_dump_json()
    with pytest.raises(VirtualNodesError) as raised:
        read_fleet(text.replace('"password":null', '"password":["geheim"]'), "f")
    assert str(raised.value) == "f: bmcs.0.password: Input should be a valid string"

"""The server's program as it runs on the node, asked over HTTP and TLS from several addresses of this machine."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import io
import ipaddress
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tarfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from bmc.petitboot import Disk, Kernel, Lease, Menu, boot
from jinja2 import Template

from hal_cluster.provision.kickstart import Place, Server, kickstart
from hal_cluster.provision.petitboot import hex_name, mac_name
from hal_cluster.provision.tokens import Token
from hal_cluster.reimage.record import State, Step
from tests.unit.hal_cluster.provision.conftest import PROJECT, node, run_script
from tests.unit.hal_cluster.provision.test_kickstart import FROM_IMAGE
from tests.unit.interpreters import EVERY, beside, interpreter
from tests.unit.roles.provision_server import reimages
from tests.unit.roles.provision_server.test_store import WORDS, an_order, settings_of

PROGRAM = PROJECT / "roles/provision_server/files/provision_cli.py"
FIRST, SECOND, STRANGER = "127.0.0.5", "127.0.0.6", "127.0.0.99"
# An address of this process's own, so that ports can be fixed: nobody else takes one between choosing and using it.
SERVER = f"127.{128 + (os.getpid() >> 16) % 64}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
PORT, TLS_PORT = 8480, 8481
START_SECONDS = 600  # for a program that listens in a second; a loaded machine is no fault
OWN_THREADS = 3  # of the server: its two ports, and the watch over connections


def certificate(folder: Path) -> None:
    """A certificate for SERVER and its key, as the site's authority makes them."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER)])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(SERVER))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True).sign(key, hashes.SHA256())
    )  # fmt: skip
    (folder / "tls.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "tls").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )


class Running:
    """The program, serving two nodes of this machine's addresses."""

    def __init__(self, folder: Path, python: str, **settings: Any) -> None:
        self.folder, self.python = folder, python
        first = node("hal05", 5, addresses={"management": FIRST})
        second = node("hal06", 6, addresses={"management": SECOND})
        self.nodes = {"hal05": first, "hal06": second}
        certificate(folder)
        given: dict[str, Any] = {"listen": [SERVER], "port": PORT, "tls_port": TLS_PORT, **settings}
        self.settings = settings_of(folder, [first, second], **given)
        self._process: subprocess.Popen[str] | None = None

    def command(self, *words: str) -> list[str]:
        return [*beside(self.python), str(PROGRAM), "--settings", str(self.settings), *words]

    def call(self, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
        return subprocess.run(
            self.command(*words), input=given, capture_output=True, timeout=600, check=False, env=environment
        )

    def start(self) -> None:
        """As systemd does: it is started when it says so."""
        self.log = (self.folder / "journal").open("w+")
        place = f"hal-provision-{uuid.uuid4()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind("\0" + place)
            told.settimeout(0.2)
            environment = {**os.environ, "NOTIFY_SOCKET": "@" + place}
            self._process = subprocess.Popen(
                self.command("serve"), stdout=self.log, stderr=self.log, text=True, env=environment
            )
            end = time.monotonic() + START_SECONDS
            while self._process.poll() is None and time.monotonic() < end:
                with contextlib.suppress(TimeoutError):
                    assert told.recv(64) == b"READY=1"
                    return
        self.stop()
        raise AssertionError((self.folder / "journal").read_text())

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(timeout=600)
            self.log.close()

    def figures(self, name: str) -> list[int]:
        """Figures of /proc/PID/status: VmHWM in kB, Threads, Uid."""
        assert self._process
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        line = dict(line.split(":", 1) for line in text.splitlines())[name]
        return [int(word) for word in line.split() if word.isdigit()]

    def settle(self) -> None:
        """Wait until it has done with every connection: one that is being ended still counts as one of its address."""
        end = time.monotonic() + START_SECONDS
        while self.figures("Threads")[0] > OWN_THREADS:
            assert time.monotonic() < end, "the server keeps a connection that was closed"
            time.sleep(0.01)

    def journal(self) -> str:
        return (self.folder / "journal").read_text()

    def refused(self) -> list[dict[str, Any]]:
        """Who was refused, without the time."""
        lines = (self.folder / "state/refused.jsonl").read_text().splitlines()
        return [{key: value for key, value in json.loads(line).items() if key != "at"} for line in lines]

    def ask(
        self, source: str, path: str, *, tls: bool = False, method: str = "GET", token: str = "", body: Any = None
    ) -> tuple[int, bytes]:
        link: http.client.HTTPConnection
        if tls:
            context = ssl.create_default_context(cafile=str(self.folder / "tls.pem"))
            link = http.client.HTTPSConnection(
                SERVER, TLS_PORT, timeout=600, source_address=(source, 0), context=context
            )
        else:
            link = http.client.HTTPConnection(SERVER, PORT, timeout=600, source_address=(source, 0))
        try:
            link.request(method, path, body=body, headers={"X-HAL-Token": token} if token else {})
            answer = link.getresponse()
            return answer.status, answer.read()
        finally:
            link.close()

    def arm(self, name: str = "hal05", words: str = WORDS) -> None:
        order = an_order(self.nodes[name], words, time.time() + 3600)
        done = self.call("arm", name, given=json.dumps(order).encode())
        assert done.returncode == 0, done.stderr
        assert words.encode() not in done.stdout

    def secrets(self, source: str, token: str, name: str = "hal05", tls: bool = True) -> tuple[int, bytes]:
        return self.ask(source, f"/node/{name}/secrets", tls=tls, method="POST", token=token)


@pytest.fixture(params=EVERY)
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path, interpreter(request.param))
    made.start()
    try:
        assert made.ask(FIRST, "/health") == (200, b"ok\n")
        assert made.ask(FIRST, "/health", tls=True) == (200, b"ok\n")
        made.settle()
        yield made
    finally:
        made.stop()


def test_a_node_gets_its_own_configuration_and_nobody_elses(running: Running) -> None:
    status, text = running.ask(FIRST, "/boot/hal05")
    assert (status, text.decode().split(":")[0]) == (200, "# hal05")
    assert running.ask(FIRST, "/boot/hal06") == (404, b"")
    assert running.ask(STRANGER, "/boot/hal05") == (404, b"")
    assert running.ask(SECOND, "/boot/hal06")[1].startswith(b"# hal06")
    refused = running.refused()
    assert {"node": "hal05", "address": FIRST, "what": "GET hal06", "result": "another node's"} in refused
    assert {"node": None, "address": STRANGER, "what": "GET hal05", "result": "no node has this address"} in refused
    assert not (running.folder / "state/audit.jsonl").exists()  # nothing was done


def test_both_ways_of_search_find_the_same_file(running: Running) -> None:
    by_name = running.ask(FIRST, "/boot/hal05")
    one = running.nodes["hal05"]
    for name in (mac_name(one.mac("management")), hex_name(FIRST)):
        assert running.ask(FIRST, f"/boot/pxelinux.cfg/{name}") == by_name
    for name in ("default", "7F", hex_name(SECOND), mac_name(running.nodes["hal06"].mac("management"))):
        assert running.ask(FIRST, f"/boot/pxelinux.cfg/{name}") == (404, b"")


def booted(running: Running, source: str, name: str, *, search: bool = False) -> object:
    """What the emulated petitboot boots, fetching from an address of this machine."""
    base = f"http://{SERVER}:{PORT}"

    def fetch(url: str) -> bytes | None:
        status, content = running.ask(source, url.removeprefix(base))
        return content if status == 200 else None

    options = {210: f"{base}/boot/"} if search else {209: f"{base}/boot/{name}"}
    mac = running.nodes[name].mac("management")
    return boot(Lease(mac, source, options=options), fetch, override="network" if search else None).decision


def test_petitboot_boots_the_disk_the_installer_when_armed_and_the_disk_again(running: Running) -> None:
    assert booted(running, FIRST, "hal05") == Disk()
    assert isinstance(booted(running, FIRST, "hal05", search=True), Menu)  # an override admits no disk
    running.arm()
    for search in (False, True):
        found = booted(running, FIRST, "hal05", search=search)
        assert isinstance(found, Kernel)
        assert found.url == "http://10.1.0.11/i/vmlinuz"
        assert found.append.endswith(" BOOTIF=01-02-48-41-4c-02-05")
    assert booted(running, SECOND, "hal06") == Disk()
    assert booted(running, STRANGER, "hal05") == Disk()  # another machine that says it is hal05
    running.call("disarm", "hal05")
    assert booted(running, FIRST, "hal05") == Disk()


def test_an_armed_node_gets_its_kickstart_and_no_other_does(running: Running) -> None:
    other = running.ask(SECOND, "/boot/hal06")
    assert running.ask(FIRST, "/node/hal05/kickstart.cfg") == (404, b"")
    running.arm()
    assert b"DEFAULT hal-install" in running.ask(FIRST, "/boot/hal05")[1]
    assert running.ask(FIRST, "/node/hal05/kickstart.cfg") == (200, f"token='{WORDS}'\n".encode())
    for source in (SECOND, STRANGER):
        assert running.ask(source, "/node/hal05/kickstart.cfg") == (404, b"")
        assert running.ask(source, "/boot/hal05") == (404, b"")
    assert running.ask(FIRST, "/node/hal05/other") == (404, b"")
    assert running.ask(SECOND, "/boot/hal06") == other
    assert running.call("disarm", "hal05").stdout == b"hal05: disarmed\n"
    assert b"no entry here" in running.ask(FIRST, "/boot/hal05")[1]
    assert running.ask(FIRST, "/node/hal05/kickstart.cfg") == (404, b"")


def test_first_secrets_go_to_who_has_the_token_and_the_address_once_and_over_TLS(running: Running) -> None:
    running.arm()
    assert running.call("spool", "hal05", given=b"\x00 key \xff").returncode == 0
    assert running.secrets(FIRST, WORDS, tls=False) == (403, b"only over TLS\n")
    assert running.secrets(SECOND, WORDS) == (403, b"")  # stolen: another node
    assert running.secrets(STRANGER, WORDS) == (403, b"")
    assert running.secrets(FIRST, "guess") == (403, b"refused\n")
    assert running.secrets(FIRST, WORDS) == (200, b"\x00 key \xff")
    assert running.secrets(FIRST, WORDS) == (403, b"refused\n")
    said = running.journal()
    assert "hal05 secrets: not the token" in said
    assert "hal05 secrets: no token is out for this, or it was used" in said
    assert [(one["address"], one["result"]) for one in running.refused()] == [
        (SECOND, "another node's"),
        (STRANGER, "no node has this address"),
        (FIRST, "not the token"),
        (FIRST, "no token is out for this, or it was used"),
    ]
    trails = [(running.folder / "state" / name).read_text() for name in ("audit.jsonl", "refused.jsonl")]
    for text in (said, *trails):
        assert WORDS not in text
        assert "guess" not in text


def test_a_token_that_ran_out_is_refused(running: Running) -> None:
    running.arm()
    assert running.call("spool", "hal05", given=b"key").returncode == 0
    over = [*(running.folder / "state/tokens").glob("hal05.*"), running.folder / "state/armed/hal05"]
    assert len(over) == 5
    for path in over:  # an hour goes by
        path.write_text(json.dumps({**json.loads(path.read_text()), "expires": time.time() - 1}))
    assert running.secrets(FIRST, WORDS) == (403, b"refused\n")
    assert b"no entry here" in running.ask(FIRST, "/boot/hal05")[1]
    assert re.search("hal05 secrets: the token ran out at ", running.journal())


def test_a_reboot_by_slurm_is_what_the_record_says(running: Running) -> None:
    path = "/node/hal05/reboot"
    assert running.ask(FIRST, path) == (200, b"reboot\n")
    record = running.folder / "records/hal05.json"

    def asked(**changes: Any) -> bytes:
        record.write_text(json.dumps(reimages.record(**changes)))
        status, text = running.ask(FIRST, path)
        assert status == 200
        return text

    assert asked(step=Step.OFF, run={"by_slurm": True}) == b"reimage\n"
    for source in (SECOND, STRANGER):
        assert running.ask(source, path) == (404, b"")
    assert running.ask(SECOND, "/node/hal06/reboot") == (200, b"reboot\n")
    assert running.ask(FIRST, path, method="POST")[0] == 404
    assert asked(step=Step.OFF) == b"reboot\n"
    assert asked(step=Step.ARM, run={"by_slurm": True}) == b"reboot\n"
    assert asked(step=Step.OFF, run={"by_slurm": True}, state=State.ABORTED, reason="x") == b"reboot\n"
    record.write_text("{")
    assert running.ask(FIRST, path) == (200, b"reboot\n")
    assert f"hal05 reboots: {record}: is damaged; no JSON" in running.journal()
    record.unlink()
    record.mkdir()  # what cannot be read
    assert running.ask(FIRST, path) == (200, b"reboot\n")
    assert not (running.folder / "state/audit.jsonl").exists()


def test_an_installation_that_broke_off_is_not_begun_again(running: Running) -> None:
    running.arm()
    path = "/node/hal05/begin"
    assert running.ask(FIRST, path, tls=True, method="POST", token="x") == (403, b"refused\n")
    assert running.ask(FIRST, path, method="POST", token=WORDS) == (403, b"only over TLS\n")
    assert running.ask(FIRST, path)[0] == 404
    assert b"DEFAULT" in running.ask(FIRST, "/boot/hal05")[1]
    assert running.ask(FIRST, path, tls=True, method="POST", token=WORDS) == (200, b"ok\n")
    assert booted(running, FIRST, "hal05") == Disk()
    assert running.ask(FIRST, "/node/hal05/kickstart.cfg") == (404, b"")
    assert running.ask(FIRST, path, tls=True, method="POST", token=WORDS) == (403, b"refused\n")
    found = json.loads(running.call("status").stdout)
    assert (found["armed"], found["unfinished"]) == ([], ["hal05"])
    said = found["nodes"]["hal05"]["unfinished"]
    assert re.fullmatch(r"installation began at \S+Z, did not call home: image compute-1", said)
    # It was slow, not dead: what is still out is still good.
    assert running.call("spool", "hal05", given=b"key").returncode == 0
    assert running.secrets(FIRST, WORDS) == (200, b"key")
    done = running.ask(FIRST, "/node/hal05/call-home", tls=True, method="POST", token=WORDS, body="{}")
    assert done == (200, b"ok\n")
    assert json.loads(running.call("status").stdout)["unfinished"] == []


def test_a_damaged_file_of_a_node_is_named_and_others_are_served(running: Running) -> None:
    path = running.folder / "nodes/hal05"
    assert running.ask(FIRST, "/boot/hal05")[0] == 200
    path.write_text("{")  # where it is: the service knows its address
    assert running.ask(FIRST, "/boot/hal05") == (503, b"")
    assert running.ask(SECOND, "/boot/hal06")[0] == 200
    new = path.with_name(".new")
    new.write_text("{}")
    new.replace(path)
    assert running.ask(FIRST, "/boot/hal05") == (404, b"")
    assert running.ask(SECOND, "/boot/hal06")[0] == 200
    said = [line for line in running.journal().splitlines() if str(path) in line]
    assert said == [
        f"{FIRST} /boot/hal05: {path}: is damaged; no JSON",
        f"{path}: is damaged; no address; hal05 gets nothing until role provision_server writes it anew",
    ]
    assert "Traceback" not in running.journal()


def test_no_number_of_requests_hides_what_was_done(running: Running) -> None:
    running.arm()
    before = (running.folder / "state/audit.jsonl").read_bytes()
    for at in range(100):
        running.ask(STRANGER, f"/boot/x{at}")
        running.ask(FIRST, f"/boot/x{at}")
    assert (running.folder / "state/audit.jsonl").read_bytes() == before
    assert [(one["address"], one.get("times", 1)) for one in running.refused()] == [
        (STRANGER, 1), (FIRST, 1), (STRANGER, 10), (FIRST, 10), (STRANGER, 100), (FIRST, 100)
    ]  # fmt: skip
    assert running.journal().count("/boot/x") == 6


def test_a_stranger_fills_no_journal_whatever_is_asked(running: Running) -> None:
    for at in range(20):
        running.ask(STRANGER, f"/{at}/etc/passwd")
        running.ask(STRANGER, f"/{at}", method="POST", body="x")
        with socket.create_connection((SERVER, TLS_PORT), source_address=(STRANGER, 0)) as link:
            link.sendall(b"GET / HTTP/1.0\r\n\r\n")
            link.settimeout(120)
            with contextlib.suppress(ConnectionResetError):
                while link.recv(1024):
                    pass
    assert running.ask(FIRST, "/boot/hal05")[0] == 200
    said = [line for line in running.journal().splitlines() if line.startswith(STRANGER)]
    assert len(said) <= 6, said  # of each kind the first and the tenth, and the tenth of both requests
    assert '127.0.0.5 "GET /boot/hal05 HTTP/1.1" 200 -' in running.journal()


def test_a_call_home_disarms_the_node(running: Running) -> None:
    running.arm()
    path = "/node/hal05/call-home"
    assert running.ask(FIRST, path, tls=True, method="POST", token="x", body="{}")[0] == 403
    assert running.ask(FIRST, path, tls=True, method="POST", token=WORDS, body="y" * 70000)[0] == 413
    assert b"DEFAULT" in running.ask(FIRST, "/boot/hal05")[1]
    said = "installed=kernel-4.18.0"
    assert running.ask(FIRST, path, tls=True, method="POST", token=WORDS, body=said) == (200, b"ok\n")
    assert b"no entry here" in running.ask(FIRST, "/boot/hal05")[1]
    found = json.loads(running.call("status", "hal05").stdout)["nodes"]["hal05"]
    assert (found["armed"], found["called"]["said"]) == (False, "installed=kernel-4.18.0")


class Scripts:
    """%pre and %post of a real kickstart, with stand-ins for what only the installer or a new system has."""

    def __init__(self, running: Running, folder: Path) -> None:
        self.folder = folder
        self._text = kickstart(
            running.nodes["hal05"],
            Place("management", "255.0.0.0"),
            replace(FROM_IMAGE, image_url=f"http://{SERVER}:1"),
            Server(f"https://{SERVER}:{TLS_PORT}", (running.folder / "tls.pem").read_text()),
            Token(WORDS, 0),
        )
        (folder / "root").mkdir()
        (folder / "run").mkdir()
        said = {"rpm": "kernel-4.18.0", "grubby": "", "restorecon": "", "uname": "ppc64le"}
        said["sha256sum"] = FROM_IMAGE.image.sha256  # nobody serves the image here
        for name, words in said.items():
            (folder / name).write_text(f"#!/bin/sh\necho {words}\n")
            (folder / name).chmod(0o755)

    def run(self, section: str) -> subprocess.CompletedProcess[str]:
        text = self._text.split(f"\n%{section}", 1)[1].split("\n", 1)[1].split("%end")[0]
        for what, instead in (
            ("/run/", f"{self.folder}/run/"),
            ("--directory /", f"--directory {self.folder}/root"),
            ("/dev/console", f"{self.folder}/console"),
            ("/tmp/anaconda-tb-", f"{self.folder}/anaconda-tb-"),
            ("[ -b /dev/disk/", "[ -n /dev/disk/"),
            ("curl --fail", f"curl --interface {FIRST} --fail"),
        ):
            text = text.replace(what, instead)
        done = run_script(text, self.folder, timeout=600, no_proxy=SERVER)
        assert WORDS not in done.stdout + done.stderr
        return done


def first_secrets() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("etc/ssh/ssh_host_ed25519_key")
        entry.size, entry.mode = 4, 0o600
        archive.addfile(entry, io.BytesIO(b"key\n"))
    return packed.getvalue()


def test_the_kickstarts_own_commands_work_with_the_server(running: Running, tmp_path: Path) -> None:
    scripts = Scripts(running, tmp_path)
    unwanted = scripts.run("pre")  # disarmed since it was booted
    assert unwanted.returncode == 1
    assert "hal05: NOT INSTALLED: the server does not want this to begin, or cannot be reached" in unwanted.stdout
    running.arm()
    running.call("spool", "hal05", given=first_secrets())
    before = scripts.run("pre")
    assert before.returncode == 0, before.stdout + before.stderr
    assert running.call("status").stdout.count(b"did not call home") == 1
    done = scripts.run("post")
    assert done.returncode == 0, done.stdout + done.stderr
    installed = tmp_path / "root/etc/ssh/ssh_host_ed25519_key"
    assert (installed.read_text(), installed.stat().st_mode & 0o777) == ("key\n", 0o600)
    assert list((tmp_path / "run").iterdir()) == []
    found = json.loads(running.call("status", "hal05").stdout)["nodes"]["hal05"]
    assert (found["armed"], found["unfinished"], found["called"]["said"]) == (False, "", "installed=kernel-4.18.0")
    again = scripts.run("post")
    assert again.returncode == 1
    assert "hal05: NOT INSTALLED: no first secrets" in again.stdout
    assert scripts.run("pre").returncode == 1


def test_the_kickstarts_own_commands_tell_the_server_why_they_stop(running: Running, tmp_path: Path) -> None:
    def told() -> tuple[object, str]:
        found = json.loads(running.call("status", "hal05").stdout)["nodes"]["hal05"]
        return found["stopped"] and found["stopped"]["why"], found["unfinished"]

    scripts = Scripts(running, tmp_path)
    assert "the server was not told" in scripts.run("pre").stdout
    running.arm()
    (tmp_path / "uname").write_text("#!/bin/sh\necho x86_64\n")
    assert scripts.run("pre").returncode == 1
    assert told() == ("this machine is x86_64, and ppc64le is declared", "")
    (tmp_path / "uname").write_text("#!/bin/sh\necho ppc64le\n")
    assert scripts.run("pre").returncode == 0
    assert told()[0] is None
    frames = "anaconda 21.48.22 exception report\nTraceback (most recent call first):\n  File x, line 1\n    f(x)\n"
    for at, said in enumerate(("StorageError: no space", "AssertionError")):
        report = tmp_path / f"anaconda-tb-{9 - at}"  # the newest is not the first by its name
        report.write_text(f"{frames}{said}\n\nLocal variables in innermost frame:\nself: \0\n")
        os.utime(report, (at, at))
        assert scripts.run("onerror").returncode == 1
        why, unfinished = told()
        assert why == f"Anaconda stopped: {said}"
    assert unfinished.endswith(f": {why}")
    assert "did not call home" in unfinished


def test_an_exception_of_which_nothing_is_written_is_told_all_the_same(running: Running, tmp_path: Path) -> None:
    running.arm()
    assert Scripts(running, tmp_path).run("onerror").returncode == 1
    found = json.loads(running.call("status", "hal05").stdout)["nodes"]["hal05"]
    assert found["stopped"]["why"] == "Anaconda stopped: /tmp/anaconda.log there says why"


@pytest.mark.parametrize(
    "path",
    ["/", "/boot", "/boot/", "/boot/../../etc/passwd", "/boot/%2e%2e", "/node/hal05", "/node/hal05/..", "/armed/hal05"],
)
def test_nothing_else_is_there(running: Running, path: str) -> None:
    running.arm()
    assert running.ask(FIRST, path)[0] == 404
    assert running.ask(FIRST, path, tls=True, method="POST", token=WORDS)[0] in (403, 404)


def test_a_stranger_at_the_TLS_port_does_not_hold_others(running: Running) -> None:
    with socket.create_connection((SERVER, TLS_PORT), source_address=(STRANGER, 0)) as silent:
        assert running.ask(FIRST, "/health", tls=True)[0] == 200
        silent.sendall(b"GET / HTTP/1.0\r\n\r\n")
        silent.settimeout(120)
        with contextlib.suppress(ConnectionResetError):
            while silent.recv(1024):
                pass
    assert running.ask(FIRST, "/health", tls=True)[0] == 200
    assert "Traceback" not in running.journal()


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["arm", "hal05"], b"", "hal05: no order on standard input"),
        (["arm", "hal05"], b"[]", "hal05: no order on standard input"),
        (["arm", "hal99"], b"{}", "hal99: this server has no such node"),
        (["spool", "hal05"], b"", "hal05: 0 bytes of secrets"),
        (["spool", "hal05"], b"key", "hal05: is not armed; arm it, then bring its secrets"),
        (["disarm", "hal99"], b"", "hal99: this server has no such node"),
        (["publish", "/nowhere/a-1-x86_64"], b"", "a-1-x86_64: /nowhere/a-1-x86_64/manifest.json is missing"),
        (["--settings", "/nowhere.json", "status"], b"", "/nowhere.json is missing; role provision_server writes it"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(running: Running, words: list[str], given: bytes, said: str) -> None:
    done = running.call(*words, given=given)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "words", [["status"], ["status", "hal05"], ["disarm", "hal05"], ["spool", "hal05"], ["images"]]
)
def test_an_account_without_rights_is_told_so_in_one_line(running: Running, words: list[str]) -> None:
    """Root of this machine, without root's right to read what it may not."""
    without: list[str] = []
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("setpriv is not installed")
        without = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    closed = [running.folder / "state", running.folder / "images"]
    try:
        for one in closed:
            one.chmod(0)
        argv = [*without, *running.command(*words)]
        done = subprocess.run(argv, input=b"key", capture_output=True, timeout=600, check=False)
    finally:
        for one in closed:
            one.chmod(0o700)
    assert done.returncode == 2
    denied = r"/\S+:? (cannot be \w+: )?Permission denied(; root may do this)?\n"
    assert re.fullmatch(denied, done.stderr.decode())
    assert done.stdout == b""


def test_disarming_several_goes_on_after_one_that_cannot_be(running: Running) -> None:
    running.arm("hal05")
    running.arm("hal06", "another")
    (running.folder / "nodes/hal05").unlink()  # it left the model
    done = running.call("disarm", "hal99", "../x", "hal05", "hal06")
    assert done.returncode == 2
    assert done.stdout == b"hal05: disarmed\nhal06: disarmed\n"
    assert [line.split(": ")[0] for line in done.stderr.decode().splitlines()] == [
        "hal99", "'../x' is not a name of a node"
    ]  # fmt: skip
    assert not list((running.folder / "state/armed").iterdir())


def test_the_promise_of_TLS_is_kept_by_the_authoritys_certificate_alone(running: Running, tmp_path: Path) -> None:
    promises = yaml.safe_load((PROJECT / "roles/provision_server/expect.yml").read_text())
    promise = next(one for one in promises if one["id"] == "the service answers over TLS")
    values = {
        "__provision_server_authority": str(tmp_path / "authority.pem"),
        "__provision_server_address": SERVER,
        "provision_server_tls_port": TLS_PORT,
    }
    argv = [Template(word).render(values) for word in promise["command"]["argv"]]
    (tmp_path / "authority.pem").write_bytes((tmp_path / "tls.pem").read_bytes())
    assert subprocess.run(argv, check=False, timeout=600).returncode == promise["equal"]
    certificate(tmp_path)  # another, which signed itself too
    (tmp_path / "authority.pem").write_bytes((tmp_path / "tls.pem").read_bytes())
    assert subprocess.run(argv, check=False, timeout=600).returncode == 60  # curl: not signed by who is believed


def test_without_a_certificate_nothing_is_served(running: Running) -> None:
    (running.folder / "tls").write_text("no key")
    done = running.call("serve")
    assert done.returncode == 2
    assert b"no certificate for TLS" in done.stderr

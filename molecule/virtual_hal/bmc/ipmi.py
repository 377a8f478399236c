"""IPMI of the emulated BMCs: OpenIPMI's ipmi_sim, one process a BMC, with our machine behind its chassis commands.

What it cannot (OpenIPMI 2.0.33, lanserv/bmc_chassis.c): it hands on which device to start from, but neither "once" nor
"persistent", so an override by IPMI is for one start; it reads an override back without the bit that says it is valid;
cipher suite 17. Passwords set by IPMI are found in its own file, and made the BMC's.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.errors import VirtualNodesError
from testbed.run import need

from bmc.fru import FORMS, FRU_BYTES, fru, raw, record
from bmc.machine import Processor, identifier
from bmc.sensors import Sensor, sensors
from bmc.spec import Spec
from bmc.state import Target, User

CLIENT = Path(__file__).with_name("chassis.py")
READY_SECONDS = 60
PRIVILEGES = ("callback", "user", "operator", "admin")
USER_NUMBER = 2  # 1 is the anonymous user
# ASF presence ping and the beginning of its answer: what an IPMI port answers without a login.
PING = bytes.fromhex("0600ff06000011be80000000")
PONG = bytes.fromhex("0600ff06000011be40")
# ipmi_sim's words for the device numbers of IPMI: 2, "default hard disk", is "default"; 5, a CD, no machine of ours
# has.
BOOT: dict[str, Target] = {"none": "none", "pxe": "network", "default": "disk", "bios": "setup"}
BOOT_OF = {target: word for word, target in BOOT.items()}


class Ipmi:
    """IPMI of one BMC."""

    def __init__(self, processor: Processor, folder: Path, control: Sequence[str], console_port: int) -> None:
        """Prepare it. ``control`` is the command line that asks the serving process, before name and words."""
        self.processor = processor
        self.spec = processor.own.spec
        self.folder = folder / f"{self.spec.name}.ipmi"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._control = control
        self._console_port = console_port
        self._process: subprocess.Popen[bytes] | None = None
        self._running: tuple[str, str] | None = None  # the configuration that it was started with
        self._silent = False
        self._users_seen = 0.0
        self._lock = threading.RLock()

    @property
    def _guid(self) -> str:
        """The number by which a login is made; without one there is none over lanplus."""
        return identifier(self.processor, "ipmi").replace("-", "")

    @property
    def users_file(self) -> Path:
        """Where ipmi_sim keeps its users once IPMI has changed one."""
        return self.folder / "state/ipmi_sim" / self.spec.name / "users.mc20"

    def start(self) -> None:
        """Start ipmi_sim. Only from a thread that lives as long as the process: it is killed when that thread ends."""
        program = need("ipmi_sim", "openipmi")
        self.take_password()
        (self.folder / "state").mkdir(exist_ok=True)
        self.write_facts()
        self._write("lan-parameters", self._lan_parameters(), 0o700)
        self._write("chassis", self._script(), 0o700)
        lan, emulation = self._configuration()
        self._write("lan.conf", lan)
        self._write("commands.emu", emulation)
        for left in self.users_file.parent.glob("sdr.*"):
            left.unlink()  # or each start would add the sensors once more
        command = ["setpriv", "--pdeathsig", "KILL", program, "-n"]
        command += ["-c", "lan.conf", "-f", "commands.emu", "-s", "state"]
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._running, self._silent = (lan, emulation), False

    def wait(self) -> None:
        """Return when it answers; raise VirtualNodesError with its own words when it does not."""
        end = time.monotonic() + READY_SECONDS
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(0.2)
            while self._process is not None and self._process.poll() is None and time.monotonic() < end:
                try:
                    asking.sendto(PING, (self.spec.address, self.spec.ports.ipmi))
                    if asking.recv(64).startswith(PONG):
                        return
                except OSError:
                    time.sleep(0.05)
        words = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        raise VirtualNodesError(
            f"{self.spec.name}: ipmi_sim does not answer at {self.spec.address} port {self.spec.ports.ipmi}: "
            f"{words[-1] if words else 'it says nothing'}"
        )

    def stop(self) -> None:
        """End ipmi_sim. It keeps what it has to in files, so it need not be asked."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def refresh(self) -> None:
        """Follow the state: faults, passwords, what sensors measure."""
        with self._lock:
            self.take_password()
            self.write_facts()
            if self._process is None:
                return
            if self._configuration() != self._running:
                self.stop()
                self.users_file.unlink(missing_ok=True)
                self.start()
                self.wait()
            silent = self.processor.own.faults().silent
            if silent != self._silent:
                self._process.send_signal(signal.SIGSTOP if silent else signal.SIGCONT)
                self._silent = silent

    def take_password(self) -> None:
        """Make a password that was set by IPMI the BMC's."""
        with self._lock:
            try:
                changed = self.users_file.stat().st_mtime_ns
                if changed == self._users_seen:
                    return
                text = self.users_file.read_text()
            except OSError:
                return
            self._users_seen = changed
            password = _password(text)
            own, name = self.processor.own, self.spec.login[0]
            if password and own.users()[name].password != password:
                with own.kept.change() as state:
                    state.users[name] = User(password=password)
                if self._running:
                    self._running = self._configuration()  # it has the password already

    def write_facts(self) -> None:
        """Write what ipmi_sim reads again and again: inventory, and what sensors measure.

        A machine is taken to be on as it was last switched: asking podman for all of them would take seconds.
        """
        host = self.processor.host
        maker = host.spec.delivered.manufacturer
        measured = {sensor.name: sensor for sensor in sensors(host.spec, on=host.kept.read().power)}
        with self._lock:
            self._write("fru", fru(maker, host.spec.model, self.processor.serial))
            for number, sensor in enumerate(_all_sensors(host.spec), start=1):
                now = measured.get(sensor.name)
                self._write(f"sensor{number}", f"{raw(now.quantity, now.value) if now else 0}\n")

    def _configuration(self) -> tuple[str, str]:
        user, _ = self.spec.login
        known = self.processor.own.users()[user]
        valid = "false" if known.must_change and self.spec.delivered.redfish else "true"
        auths = "\n".join(f"  allowed_auths_{who} none md2 md5 straight" for who in PRIVILEGES)
        lan = f"""name "{self.spec.name}"
set_working_mc 0x20
startlan 1
  addr {self.spec.address} {self.spec.ports.ipmi}
  priv_limit admin
{auths}
  guid {self._guid}
  lan_config_program "./lan-parameters"
endlan
chassis_control "./chassis"
sol "tcp:127.0.0.1:{self._console_port}" 115200
user {USER_NUMBER} {valid} "{user}" "{known.password}" admin 10 none md2 md5 straight
"""
        lines = [
            "mc_setbmc 0x20",
            "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x0002 0x0001",
            "sel_enable 0x20 1000 0x0a",
            f'mc_add_fru_data 0x20 0 {FRU_BYTES} file 0 "fru"',
        ]
        for number, sensor in enumerate(_all_sensors(self.processor.host.spec), start=1):
            description = record(number, sensor)
            critical, kind = raw(sensor.quantity, sensor.critical), FORMS[sensor.quantity].sensor_type
            lines += [
                f'sensor_add 0x20 0 {number} 0x{kind:02x} 0x01 poll 2000 file "sensor{number}"',
                f"sensor_set_threshold 0x20 0 {number} readable 010000 0 0x{critical:02x} 0 0 0 0",
                f"sensor_set_event_support 0x20 0 {number} enable scanning none {' '.join(['0' * 15] * 4)}",
                "main_sdr_add 0x20 " + " ".join(f"0x{byte:02x}" for byte in description),
            ]
        return lan, "\n".join([*lines, "mc_enable 0x20"]) + "\n"

    def _script(self) -> str:
        return f'#!/bin/sh\nexec {shlex.join([*self._control, self.spec.name])} "$@"\n'

    def _lan_parameters(self) -> str:
        mac = self.processor.own.spec.macs.get("bmc", "00:00:00:00:00:00")
        values = {
            "ip_addr": self.spec.address,
            "ip_addr_src": "static",
            "mac_addr": mac,
            "subnet_mask": "255.255.255.0",
            "default_gw_ip_addr": "0.0.0.0",
            "default_gw_mac_addr": "00:00:00:00:00:00",
            "backup_gw_ip_addr": "0.0.0.0",
            "backup_gw_mac_addr": "00:00:00:00:00:00",
        }
        said = "".join(f"{name}:{value}\\n" for name, value in values.items())
        return f"#!/bin/sh\n[ \"$1\" != get ] || printf '{said}'\n"

    def _write(self, name: str, content: str | bytes, mode: int = 0o600) -> None:
        path = self.folder / name
        data = content.encode() if isinstance(content, str) else content
        if path.exists() and path.read_bytes() == data:
            return
        new = path.with_name(f".{name}.new")
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
            out.write(data)
        new.replace(path)


def _all_sensors(spec: Spec) -> list[Sensor]:
    """Return the sensors in an order that does not change: on, it has all that it has."""
    return sensors(spec, on=True)


def _password(text: str) -> str:
    """Return the password of our user in ipmi_sim's file of users; empty when it is not to be found."""
    line = re.search(rf"^{USER_NUMBER}\.passwd:d:(.*)$", text, re.MULTILINE)
    if line is None:
        return ""
    content = re.sub(r"\\([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), line[1])
    return content.partition("\0")[0]


def chassis(processor: Processor, words: Sequence[str]) -> str:
    """Do what ipmi_sim asks of a chassis (`get power`, `set boot pxe`); return what it is to print.

    Raises ValueError for what the machine has not, and VirtualNodesError when its hardware does not answer.
    """
    if words[:1] == ["get"]:
        return "".join(f"{word}:{_read(processor, word)}\n" for word in words[1:])
    if words[:1] != ["set"] or len(words) < 3:
        raise ValueError(f"unknown request: {' '.join(words)}")
    what, value = words[1], words[2]
    if what == "power":
        processor.request_power("On" if value == "1" else "ForceOff")
    elif what == "reset":
        processor.request_power("ForceRestart")
    elif what == "shutdown":
        processor.request_power("GracefulShutdown")
    elif what == "boot":
        if value not in BOOT:
            raise ValueError(f"this machine does not start from {value}")
        processor.set_override(BOOT[value], "once")
    elif what != "identify":
        raise ValueError(f"unknown request: {' '.join(words)}")
    return ""


def _read(processor: Processor, word: str) -> str:
    if word == "power":
        return str(int(processor.host.power()))
    if word == "boot":
        return BOOT_OF[processor.host.override().target]
    raise ValueError(f"unknown request: get {word}")


class Ipmis:
    """IPMI of all BMCs that have it: started and restarted by one thread that lives as long as they do."""

    def __init__(self) -> None:
        self._all: list[Ipmi] = []
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ipmi")

    def start(self, ipmis: Sequence[Ipmi]) -> None:
        """Start all, then wait for all."""
        self._all = list(ipmis)
        self._do(Ipmi.start)
        for ipmi in ipmis:
            ipmi.wait()
        self.refresh()

    def refresh(self) -> None:
        """Let all follow their state; return when they have."""
        self._do(Ipmi.refresh)

    def write_facts(self) -> None:
        """Let all say what is measured now."""
        for ipmi in self._all:
            ipmi.write_facts()

    def close(self) -> None:
        """End all."""
        self._do(Ipmi.stop)
        self._thread.shutdown()

    def _do(self, work: Callable[[Ipmi], None]) -> None:
        for begun in [self._thread.submit(work, ipmi) for ipmi in self._all]:
            begun.result()


def client(socket_path: Path) -> list[str]:
    """Return the command line that asks the serving process: name and words follow."""
    return [sys.executable, "-I", "-S", str(CLIENT), str(socket_path)]

"""A machine for hal_slurm_daemon: its unit and slurmctld are answers, its files are in a folder, time is a number."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.modules import Answer, Ran, loaded  # isort: skip  # it makes hal_node findable
from ansible.module_utils.hal_node.slurm import process  # isort: skip
from ansible.module_utils.hal_node.slurm.daemon import act, unit  # isort: skip

STARTED = 1_700_000_000.0
CONF = (
    "ClusterName=hal\nSlurmctldTimeout=120\nMaxJobCount=10000\n"
    "NodeName=hal05 CPUs=160 RealMemory=240000 Gres=gpu:v100:4 State=UNKNOWN\n"
    "PartitionName=gpu Nodes=hal05\n"
)
SHOWN = "NodeName=hal05 CPUTot=160 RealMemory=240000 Gres=gpu:v100:4(S:0-1) State={}\n"
NOTHING = {
    **{"changed": False, "action": "nothing", "pending": "nothing", "blocked": "", "why": []},
    **{"unit_changes": [], "accounting": False, "placed": []},
}
BUSY = "RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED"
JOBS = ["timeout", "20", "squeue", "--noheader", "--states", BUSY, "--format", "%A"]
NODE = ["timeout", "20", "scontrol", "--oneliner", "show", "node", "hal05"]
PING = ["timeout", "5", "scontrol", "ping"]


def show(name: str) -> list[str]:
    properties = "LoadState,ActiveState,UnitFileState,MainPID,ExecMainStartTimestampMonotonic,NeedDaemonReload"
    return ["systemctl", "show", "--property", properties, f"{name}.service"]


DOWN = {"ActiveState": "inactive", "MainPID": "0"}


class Machine:
    """A daemon's unit, its files, its slurmctld, and a clock that goes on when somebody sleeps."""

    def __init__(self, folder: Path, name: str, *patched: Any) -> None:
        self.name, self.record, self.staged = name, folder / "record", folder / "next"
        self.given = dict[str, Any]()
        self.conf, self.unit_file, self.program = folder / "slurm.conf", folder / "limits.conf", folder / name
        self.unit = {
            "LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled", "MainPID": "77",
            "ExecMainStartTimestampMonotonic": str(int(STARTED * 1e6)), "NeedDaemonReload": "no",
        }  # fmt: skip
        self.now, self.slept = STARTED + 1000.0, list[float]()
        self.states, self.ups = ["IDLE"], ["Slurmctld(primary) at front is UP"]
        self.jobs: dict[str, Answer] = {"node": (0, "", ""), "cluster": (0, "", ""), "waiting": (0, "", "")}
        self.answers: dict[str, Answer] = {}
        self.late = 0  # so often systemd does not answer once it was told to start or restart something
        self.write(CONF)
        monkeypatch: pytest.MonkeyPatch = patched[0]
        monkeypatch.setattr(act, "time", SimpleNamespace(time=lambda: self.now, sleep=self.sleep))
        monkeypatch.setattr(unit, "epoch", lambda microseconds: int(microseconds) / 1e6)
        monkeypatch.setattr(process, "time", SimpleNamespace(sleep=lambda _: None))
        self.ran = Ran(loaded("hal_slurm_daemon"), self.answer, *patched)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        assert len(self.slept) < 1000, "it goes on for ever"
        self.now += seconds

    def write(self, text: str, at: float = STARTED - 100, path: Path | None = None) -> None:
        """Write a file, of a time; slurm.conf without a name."""
        path = path or self.conf
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        os.utime(path, (at, at))

    def stage(self, text: str) -> None:
        """Let a new slurm.conf wait, and have the module look for it there."""
        self.write(text, STARTED + 500, self.staged / "slurm.conf")
        self.given["staged_dir"] = str(self.staged)

    def recorded(self, text: str = CONF, at: float = STARTED - 1) -> None:
        """Let it be known what the daemon read."""
        self.write(text, at, self.record / "slurm.conf")

    def answer(self, argv: list[str]) -> Answer:
        for words, said in self.answers.items():
            if words in " ".join(argv):
                return said
        if argv[:2] == ["systemctl", "show"] and self.late and self.told("start", "restart"):
            self.late -= 1
            return 1, "", "Failed to get properties: Connection timed out"
        if argv[:2] == ["systemctl", "show"]:
            return 0, "".join(f"{key}={text}\n" for key, text in self.unit.items()) + "\nno property\n", ""
        if argv[:2] in (["systemctl", "start"], ["systemctl", "restart"]):
            self.unit.update(ActiveState="active", MainPID="78")
            return 0, "", ""
        if argv[0] == "systemctl":
            return 0, "", ""
        if argv[0] == "journalctl":
            return 0, "".join(f"line {number}\n" for number in range(20)), ""
        if argv[2] == "squeue":
            waiting = argv[argv.index("--states") + 1] == "PENDING"
            return self.jobs["waiting" if waiting else "node" if "--nodelist" in argv else "cluster"]
        if argv[2:4] == ["scontrol", "ping"]:
            return 0, self.ups.pop(0) if len(self.ups) > 1 else self.ups[0], ""
        if argv[2:5] == ["scontrol", "--oneliner", "show"]:
            state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
            return (0, SHOWN.format(state), "") if state else (1, "", "Unable to contact slurm controller")
        return 0, "", ""

    def __call__(self, check: bool = False, **changes: Any) -> dict[str, Any]:
        """Run the module; what it says."""
        given: dict[str, Any] = {"name": self.name, "files": [str(self.conf)], "version": "22.05.8", "node": "hal05"}
        given |= {"record_dir": str(self.record), "unit_files": [str(self.unit_file)], **self.given, **changes}
        said = self.ran(check, **{name: value for name, value in given.items() if value is not None})
        self.foretold: list[str] = said.pop("foretold", [])
        return said

    def told(self, *words: str) -> bool:
        """Whether systemd was told one of these."""
        return any(argv[0] == "systemctl" and argv[1] in words for argv in self.ran.told)

    @property
    def did(self) -> list[str]:
        """What systemd and slurmctld were told to do; not what they were asked."""
        asked = {"show", "squeue", "ping", "--oneliner", "journalctl", "sacctmgr"}
        return [" ".join(argv) for argv in self.ran.told if not asked & set(argv)]

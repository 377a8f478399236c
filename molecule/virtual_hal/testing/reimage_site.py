"""A site whose nodes are reimaged: the playbook, jobs, records, and what was seen meanwhile, second by second."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from running import strategy
from running.ansible_run import PROJECT, Run
from running.ssh_config import Cluster
from testbed.run import capture

from testing.bmc_site import SERVER, BmcSite
from testing.waiting import wait_for

PLAYBOOK = PROJECT / "playbooks" / "reimage.yml"
CODE = re.compile(r"\b[Cc]ode:? ([2-9A-HJKMNP-TV-Z]{4}-[2-9A-HJKMNP-TV-Z]{4})\b")
# What sinfo calls a node that a job of anybody could begin on.
USABLE = frozenset({"idle", "mixed", "allocated", "completing", "planned"})
# Where a node is between "its jobs have ended" and "everything about it was checked": it is nobody's then.
NOBODYS = frozenset({"off", "arm", "boot", "install", "start", "converge", "gates"})
# One that ended there is as it was before, and keeps its jobs.
UNTOUCHED = frozenset({"waiting", "identity", "drain"})
# A short job may be over by the next look.
BEGUN = frozenset({"RUNNING", "COMPLETING", "COMPLETED"})
REIMAGE_SECONDS = 600  # a node that is not through by then never will be
# Of the emulated machines: seconds, where real ones take minutes.
LIMITS = {
    "reimage_poll_seconds": 1,
    "reimage_together_seconds": 120,
    "reimage_drain_seconds": 600,
    "reimage_begin_seconds": 120,
    "reimage_install_seconds": 300,
    "reimage_start_seconds": 120,
    "reimage_job_seconds": 180,
}


@dataclass(frozen=True)
class Sample:
    """A moment: what sinfo called each node, and just after that each record's step and state."""

    slurm: Mapping[str, str]
    records: Mapping[str, tuple[str, str]]

    def usable(self, node: str) -> bool:
        """Whether a job of anybody could have begun there."""
        return self.slurm.get(node, "") in USABLE


@dataclass
class Watch:
    """What was seen while nodes were reimaged."""

    samples: list[Sample] = field(default_factory=list)

    def half_served(self) -> list[str]:
        """Return moments at which a node could have got a job though it was nobody's, twice in a row."""
        moments = []
        for before, after in zip(self.samples, self.samples[1:], strict=False):
            for node, (step, state) in after.records.items():
                ended = state in ("failed", "aborted")
                nobodys = step in NOBODYS if state == "going" else ended and step not in UNTOUCHED
                # Twice, with the same record: one sample is not one moment.
                if nobodys and before.records.get(node) == (step, state) and before.usable(node) and after.usable(node):
                    moments.append(f"{node} was {after.slurm[node]} while it was {state} at {step}")
        return moments

    def fewest_usable(self, nodes: Sequence[str]) -> int:
        """Return how many of these nodes jobs could begin on, at the moment when they were fewest."""
        told = [sample for sample in self.samples if sample.slurm]
        assert told, "slurmctld never answered"
        return min(sum(sample.usable(node) for node in nodes) for sample in told)

    def steps(self, node: str) -> list[str]:
        """Return the steps that a node was seen at, in order."""
        seen: list[str] = []
        for sample in self.samples:
            step = sample.records.get(node, ("", ""))[0]
            if step and seen[-1:] != [step]:
                seen.append(step)
        return seen


class Playing:
    """playbooks/reimage.yml while it runs, as a group of processes of its own."""

    def __init__(self, argv: Sequence[str], log: Path, rollouts: Mapping[str, str] | None = None) -> None:
        """`rollouts`: how they go, as variables of the environment; as the scenario's own unless told otherwise."""
        self.log = log
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                argv,
                cwd=PROJECT,
                env={
                    **inherited,
                    "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"),
                    **(_rollouts() if rollouts is None else rollouts),
                },
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, seconds: float = REIMAGE_SECONDS) -> Run:
        """Return how it ended, which it has to within these seconds."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not end\n{self.log.read_text()[-3000:]}") from None
        return Run(status, self.log.read_text())

    def kill(self) -> None:
        """End it, and all that it started, as a controller that loses its power."""
        for group in _groups_below(self.process.pid):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self.process.wait()


def _rollouts() -> Mapping[str, str]:
    """Return what has a rollout go as the scenario's own do."""
    return strategy.environment() if strategy.chosen() else {}


def _groups_below(pid: int) -> set[int]:
    """Return the process groups of a process and of all that it started: a rollout may have one of its own."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may have blanks; then state, parent, group (proc(5)).
            words = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = (int(words[1]), int(words[2]))
    family = [pid]
    for member in family:  # grows while it is read
        family.extend(child for child, (parent, _) in parents.items() if parent == member)
    return {parents[member][1] for member in family if member in parents}


class ReimageSite(BmcSite):
    """The scenario's site, and what is done to it."""

    def __init__(self, scenario: Path, cluster: Cluster, work: Path, **variables: Any) -> None:
        """`variables`: of every call of the playbook."""
        super().__init__(scenario, cluster, work)
        self.variables: dict[str, Any] = {**LIMITS, **variables}
        self._before: dict[str, int] = {}  # revisions of records
        self._logs = 0

    # Before the first

    def first_contact(self, **variables: Any) -> None:
        """Give all BMCs the site's password. `variables`: of bmc.yml, where the inventory has not all that it needs."""
        self.write_fingerprints()
        names = ",".join(self.cluster.slice("nodes"))
        done = self.play("bmc.yml", "-e", f"@{self.former_passwords()}", bmc_nodes=names, **variables)
        assert done.status == 0, done.explain()

    def make_image(self) -> str:
        """Build, sign and publish an image with what every node here installs; return its name."""
        done = self.play("image.yml", image_profile="ac922")
        assert done.status == 0, done.explain()
        return str(json.loads(self.on(SERVER, "hal-provision images"))["images"][-1])

    # The playbook

    def plan(self, nodes: str, *arguments: str, **variables: Any) -> Run:
        """Run the playbook without a code: it shows what would happen."""
        given = {**self.variables, **variables, "reimage_nodes": nodes}
        more = _rollouts() if "reimage_code" in given else {}  # showing is quicker without
        done = self.ansible.playbook(PLAYBOOK, *arguments, environment=more, **given)
        self.told.append(done.output)
        return done

    def code(self, nodes: str, **variables: Any) -> str:
        """Return the code that the playbook shows for these nodes."""
        shown = self.plan(nodes, **variables)
        assert shown.status == 0, shown.explain()
        matched = CODE.search(shown.words)
        assert matched, shown.output[-3000:]
        return matched[1]

    def confirmed(self, nodes: str, code: str, *arguments: str, **variables: Any) -> Run:
        """Run the playbook with a code, to its end."""
        return self.plan(nodes, *arguments, reimage_code=code, **variables)

    def begin(self, nodes: str, code: str = "", **variables: Any) -> Playing:
        """Start the playbook with a code, its own by default; it runs beside the test."""
        given = {
            **self.variables,
            **variables,
            "reimage_nodes": nodes,
            "reimage_code": code or self.code(nodes, **variables),
        }
        argv = self.ansible.command(PLAYBOOK, **given)
        self._before = {name: record["revision"] for name, record in self.records().items()}
        self._logs += 1
        return Playing(argv, self.work / f"reimage-{self._logs}.log")

    def reimage(self, nodes: str, **variables: Any) -> Run:
        """Reimage nodes: the first call, then the second with its code."""
        return self.confirmed(nodes, self.code(nodes, **variables), **variables)

    # Records

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the record of each node."""
        said = json.loads(self.on(SERVER, "hal-reimage read"))
        assert said["problems"] == {}
        nodes: dict[str, dict[str, Any]] = said["nodes"]
        return nodes

    def record(self, node: str) -> dict[str, Any]:
        """Return a node's record; empty when there is none."""
        return self.records().get(node, {})

    def at(self, node: str, step: str) -> None:
        """Wait until a node is at a step of what was begun last."""

        def there() -> bool:
            record = self.record(node)
            if not record or record["revision"] <= self._before.get(node, 0):
                return False
            assert record["state"] == "going", f"{record['state']} at {record['step']}: {record['reason']}"
            return bool(record["step"] == step)

        self.until(f"{node} at step {step}", there, node)

    # Slurm

    def slurm(self, command: str) -> str:
        """Return what a command of Slurm prints."""
        return self.on(SERVER, command)

    def submit(self, node: str, seconds: int, user: str = "alice", name: str = "work") -> str:
        """Return the id of a user's job that runs on a node for so many seconds, or has run."""
        sbatch = f"sbatch --parsable --nodelist={node} --gres=gpu:v100:1 --job-name={name} --output=/dev/null"
        job = self.slurm(f"cd /tmp && runuser -u {user} -- {sbatch} --wrap 'sleep {seconds}'").strip()
        try:
            wait_for(f"job {job} on {node}", lambda: self.job_state(job), lambda now: now in BEGUN, 180)
        except AssertionError:
            self.cancel(job)
            raise
        return job

    def job_state(self, job: str) -> str:
        """Return a job's state as slurmctld has it."""
        said = self.ssh(SERVER, f"scontrol --oneliner show job {job}").stdout.decode()
        matched = re.search(r"JobState=([A-Z_]+)", said)
        return matched[1] if matched else ""

    def job_field(self, job: str, name: str) -> str:
        """Return a word of what slurmctld says of a job."""
        matched = re.search(rf"\b{name}=(\S*)", self.slurm(f"scontrol --oneliner show job {job}"))
        assert matched, f"job {job} has no {name}"
        return matched[1]

    def cancel(self, *jobs: str) -> None:
        """Cancel jobs; those that have ended are left."""
        self.ssh(SERVER, f"scancel {' '.join(jobs)}")

    def states(self) -> dict[str, str]:
        """Return what sinfo calls each node, without the mark of one that has not answered yet."""
        lines = self.slurm("sinfo --noheader --Node --partition=gpu --format='%N %T'").splitlines()
        return {name: word.rstrip("*~#!%$@^-+") for name, word in (line.split() for line in lines)}

    def reason(self, node: str) -> str:
        """Return why a node is away, as sinfo -R has it; empty for one that is not."""
        return self.slurm(f"sinfo --noheader --list-reasons --nodes={node} --partition=gpu --format=%E").strip()

    def drained(self, node: str) -> bool:
        """Whether no new job comes to a node, for a reason that sinfo -R shows."""
        return self.states()[node] in ("drained", "draining", "down") and bool(self.reason(node))

    def give_back(self, *nodes: str) -> None:
        """Have nodes take jobs, whatever was with them."""
        for node in nodes:
            self.ssh(SERVER, f"scontrol update NodeName={node} State=RESUME")
            wait_for(node, lambda node=node: self.states()[node], lambda now: now in USABLE, 60)  # type: ignore[misc]

    @staticmethod
    def keygen(path: Path) -> None:
        """Make a pair of keys that nobody knows."""
        capture(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path])

    # What is looked at

    def everything(self) -> dict[str, str]:
        """Return all that a call which only shows may not change."""
        asked = {
            "records": "hal-reimage read",
            "orders": "hal-provision status",
            "configurations": "cd /etc/hal && sha256sum provision-nodes/* dnsmasq-hosts/* dnsmasq-options/*",
            "Slurm": "sinfo --noheader --Node --partition=gpu --format='%N %T %E'",
            "reservations": "scontrol --oneliner show reservations",
        }
        return {"BMCs": self.setup("show"), **{what: self.on(SERVER, command) for what, command in asked.items()}}

    def boots(self) -> dict[str, str]:
        """Return when each node was started."""
        names = self.cluster.slice("nodes", where="compute")
        with ThreadPoolExecutor(4) as pool:
            return dict(zip(names, pool.map(self.boot, names), strict=True))

    def boot(self, node: str) -> str:
        """Return what differs from one start of a node to the next."""
        return self.on(node, "systemctl show --property=UserspaceTimestampMonotonic").strip()

    def mark(self, node: str) -> None:
        """Leave a file on a node's disk that no installation keeps."""
        self.on(node, "touch /root/was-here-before")

    def marked(self, node: str) -> bool:
        """Whether that file is there."""
        return self.ssh(node, "test -e /root/was-here-before").returncode == 0

    @contextmanager
    def watch(self) -> Iterator[Watch]:
        """Look at Slurm and the records about every second as long as the block lasts."""
        seen = Watch()
        # sinfo first: a node that is drained when a step begins was drained before its record says so.
        look = (
            "sinfo --noheader --Node --partition=gpu --format='%N %T' | tr '\\n' ';'; echo; "
            "for f in /var/lib/hal-reimage/*.json; do "
            "[ ! -e \"$f\" ] || { tr -d '\\n' <\"$f\"; printf '\\t'; }; done; echo"
        )
        loop = f"while :; do {look}; sleep 1; done"
        words = ["ssh", "-F", str(self.cluster.ssh_config), "-oControlPath=none", SERVER, f"sh -c {quote(loop)}"]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        reader = threading.Thread(target=_read_samples, args=(process.stdout, seen), daemon=True)
        reader.start()
        try:
            yield seen
        finally:
            process.kill()
            process.wait()
            reader.join()

    @contextmanager
    def beside(self, call: Callable[[], Run]) -> Iterator[Future[Run]]:
        """Run something beside the block, which has to end by itself."""
        with ThreadPoolExecutor(1) as pool:
            yield pool.submit(call)


def _read_samples(lines: Iterator[str], seen: Watch) -> None:
    for line in lines:
        slurm = {}
        for pair in filter(None, line.strip().split(";")):
            name, _, word = pair.partition(" ")
            slurm[name] = word.rstrip("*~#!%$@^-+")
        records = {}
        for text in filter(None, next(lines, "").strip().split("\t")):
            with suppress(json.JSONDecodeError):
                record = json.loads(text)
                records[record["node"]] = (record["step"], record["state"])
        seen.samples.append(Sample(slurm, records))


def until_seconds(seconds: float, condition: Callable[[], bool]) -> bool:
    """Return whether a condition is met within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True

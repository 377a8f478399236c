"""Which scenario is asked about a fault, and by whom."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutate.mutant import Mutant
from tests.mutate.questions import Scenarios, scenarios_of
from tests.mutate.trial import Bench
from tests.register.depends import Tree
from tests.register.proofs import Register
from tests.unit.tests.mutate.conftest import PROJECT


def mutant(path: str) -> Mutant:
    return Mutant(path=path, line=1, kind="x", before="a", after="b")


@pytest.fixture(scope="module")
def register() -> Register:
    return Register(Tree(PROJECT))


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("roles/time/tasks/main.yml", ["time"]),
        ("playbooks/bootstrap.yml", ["first_contact"]),
        ("playbooks/image.yml", ["provision_server"]),
        ("playbooks/restore/plan.yml", ["backup"]),  # through playbooks/restore.yml
        ("playbooks/power.yml", ["bmc"]),  # by a helper that is given a name
        ("playbooks/nobody_runs.yml", []),
        ("hal_cluster/audit/findings.py", []),
    ],
)
def test_a_fault_is_asked_of_what_runs_its_file(register: Register, path: str, names: list[str]) -> None:
    assert scenarios_of(mutant(path), register) == names


def test_of_several_the_quickest_is_asked_first(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "playbooks/giveback.yml"
    for quick, slow in (("takeover", "time"), ("time", "takeover")):
        monkeypatch.setattr(register, "seconds", lambda name, quick=quick: 1 if name == quick else 2)
        assert scenarios_of(mutant(path), register) == [quick, slow]


class Proven:
    """A register in which time stands proven."""

    scenarios = ("munge", "time")

    def stands(self, name: str) -> bool:
        return name == "time"


def bench_of(logs: Path, scenarios: Scenarios, asked: list[str], running: threading.Event | None = None) -> Bench:
    """A bench that notes what it is asked; every scenario fails, and waits for `running`."""

    class Copy:
        root = PROJECT

        def having(self, mutant: Mutant) -> contextlib.AbstractContextManager[None]:
            return contextlib.nullcontext()

    class Noting(Bench):
        def _ask(self, argv: Sequence[str], quiet_seconds: float) -> int:
            asked.append(argv[-1])
            if running:
                running.wait(600)
            (logs / "x.log").touch()
            return int(len(asked) == 1)  # the first has the fault

    made = Noting(Copy(), scenarios.questions, logs, threading.Event())  # type: ignore[arg-type]
    made._log = logs / "x.log"
    return made


@pytest.mark.parametrize(("name", "runs"), [("time", ["time"]), ("munge", ["munge", "munge"])])
def test_a_scenario_that_does_not_stand_proven_runs_without_the_fault_too(
    tmp_path: Path, name: str, runs: list[str]
) -> None:
    asked = list[str]()
    verdict = bench_of(tmp_path, Scenarios(Proven()), asked).judge(mutant(f"roles/{name}/tasks/main.yml"))  # type: ignore[arg-type]
    assert verdict.by == "scenario"
    assert asked == runs


def test_a_scenario_is_asked_by_one_copy_at_a_time(tmp_path: Path) -> None:
    """Its nodes have the same names in every tree."""
    scenarios, release = Scenarios(Proven()), threading.Event()  # type: ignore[arg-type]
    asked: tuple[list[str], ...] = ([], [], [])
    paths = ("roles/time/a", "roles/time/b", "roles/munge/a")
    threads = []
    for path, notes in zip(paths, asked, strict=True):
        logs = tmp_path / path.replace("/", "-")
        logs.mkdir()
        bench = bench_of(logs, scenarios, notes, release)
        threads.append(threading.Thread(target=bench.judge, args=(mutant(path),), daemon=True))
        threads[-1].start()
    began = time.monotonic()
    while not (asked[2] and (asked[0] or asked[1])) and time.monotonic() < began + 60:
        time.sleep(0.01)
    assert sorted(map(len, asked[:2])) == [0, 1]
    release.set()
    for thread in threads:
        thread.join(60)
    assert [len(one) for one in asked] == [1, 1, 2]
    assert scenarios.asked == {"munge", "time"}

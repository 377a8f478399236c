"""Everything that proves the project, in named parts.

  lint, unit, rollout   always whole
  scenarios             those that are not proven for what they depend on, as many as the time allows
  prove                 all scenarios and slow proofs that are not proven; none of them is fine
  slow                  all scenarios and slow proofs

Ends with what stands proven for this tree, what was flaky, and the line 'N passed, N failed, N skipped'. Exit status 0
only if something ran and nothing failed twice. What was green is written to tests/proofs/, for whoever commits it.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

from running import strategy, surroundings  # noqa: E402  found through the line above
from running.stages import EVERYTHING, Outcome, Runner, Stage, same, say  # noqa: E402

from tests import flaky, reports  # noqa: E402
from tests.register import witness  # noqa: E402
from tests.register.depends import Tree  # noqa: E402
from tests.register.proofs import FOLDER, Proof, Register  # noqa: E402

VIRTUAL = ("-i", "inventory/virtual/hal.yml")
PARTS = ("lint", "unit", "rollout", "scenarios", "prove", "slow")
ROLLOUT = "tests/rollout"
REPORTS = PROJECT / ".state" / "reports"
# What runs on nodes waits for daemons half of the time: two at once keep two cores busy.
AT_ONCE = 2
MINUTES = 15  # of make test: a scenario that would end later is not begun; HAL_TEST_MINUTES says otherwise
MAIN_PACKAGES = ("chrony", "httpd", "mariadb-server", "munge", "opensm", "slurm-slurmd")
LONGEST_TEST_SECONDS = 1800  # for what hangs: on two busy cores the longest takes 50 without a node, 600 with


def pytest(name: str, *arguments: str) -> Stage:
    """A pytest run whose counts end up in the closing line; those of its files that failed are run once more."""
    report = REPORTS / f"{name.replace(' ', '-')}.xml"
    return Stage(name, ["pytest", f"--junitxml={report}", *arguments], report=report, again=_failed_files)


def rollout() -> Stage:
    """The mini rollout: site.yml on bare nodes of each kind, and what the audit says of planted faults."""
    stage = pytest("mini rollout", f"--timeout={LONGEST_TEST_SECONDS}", ROLLOUT, "-m", "not slow")
    return replace(stage, again=same, uses=ROLLOUT)


def _failed_files(outcome: Outcome) -> Stage:
    """The files in which tests failed, one after the other; all of the stage where it does not say which."""
    failed = reports.failed_files(outcome)
    if not failed:
        return same(outcome)
    argv, report = outcome.stage.argv, REPORTS / f"{outcome.log.stem}-again.xml"
    limits = [word for word in argv if word.startswith("--timeout")]
    marked = ["-m", argv[argv.index("-m") + 1]] if "-m" in argv else []
    return Stage(outcome.stage.name, ["pytest", f"--junitxml={report}", *limits, *marked, *failed], report=report)


def lint() -> Sequence[Stage]:
    """Linters and type checkers over the whole tree."""
    parts = [PROJECT / name for name in ("plugins", "hal_node")]
    node_side = sorted(str(path.relative_to(PROJECT)) for part in parts for path in part.rglob("*.py"))
    machine = ("customize", "disk", "make-node", "run")
    lab = ("podman", "clean", "image/old_programs.sh", *(f"machine/{name}" for name in machine))
    scripts = [
        *(f"molecule/virtual_hal/{name}" for name in lab),
        *("tools/prepare-controller", "tools/wheelhouse", ".ci/run"),
    ]
    return [
        Stage("ansible-lint", ["ansible-lint", "--strict"]),  # the longest: the others run beside it
        Stage("ruff", ["ruff", "check", "."]),
        Stage("ruff format", ["ruff", "format", "--check", "."]),
        Stage("mypy", ["mypy"]),
        Stage("pylint", ["pylint", "hal_inventory", "hal_cluster", "hal_node", "plugins", "roles"]),
        Stage("yamllint", ["yamllint", "--strict", "."]),
        Stage("shellcheck", ["shellcheck", *scripts]),
        Stage("byte compile", [sys.executable, "-m", "compileall", "-q", *node_side]),
    ]


def unit() -> Sequence[Stage]:
    """Tests that need no node."""
    return [
        # Each file in one process: what its fixtures make is made once.
        pytest(
            "unit and property tests",
            "-n",
            str((os.cpu_count() or 1) + 1),  # some wait for what they have started
            "--dist",
            "loadfile",
            # One that hangs is a failure with its name, not the end of the whole run's time.
            f"--timeout={LONGEST_TEST_SECONDS}",
            f"--maxfail={reports.MOST_FAILURES}",
            "tests/unit",
            "tests/property",
            "-m",
            "not slow",
        ),
        pytest("contract tests", "tests/contract"),
    ]


def pythons() -> Sequence[Stage]:
    """Interpreters of nodes, for unit and contract tests, unless others are named; quick when cached."""
    if os.environ.get("HAL_TEST_PYTHON27") and os.environ.get("HAL_TEST_PYTHON36"):
        return []
    return [Stage("Pythons of nodes", [sys.executable, "molecule/virtual_hal/setup", "pythons", "build"])]


def images() -> Sequence[Stage]:
    """What every node is made of; quick when cached."""
    return [
        # Before scenarios run side by side: two that make it at once would not trust each other.
        Stage("site authority", ["ansible-playbook", *VIRTUAL, "playbooks/authorities.yml"]),
        Stage("node image", [sys.executable, "molecule/virtual_hal/setup", "image", "build"]),
        Stage("package repository", [sys.executable, "molecule/virtual_hal/setup", "packages", "build"]),
    ]


def notes_of(name: str) -> Path:
    """Where a watched run notes what it read."""
    return REPORTS / f"{name}.read"


def proving(name: str, register: Register) -> Stage:
    """The stage that proves what has this name in the register."""
    watched = witness.environment(PROJECT, notes_of(name))
    if name in register.files:
        path = register.files[name]
        uses = EVERYTHING if path.startswith(ROLLOUT) else str(Path(path).parent)  # up to all 22 nodes
        stage = pytest(name, "-m", "slow", path)
        return replace(stage, env=watched, again=same, seconds=register.seconds(name), uses=uses)
    report, slow = REPORTS / f"{name}.xml", name in register.slow
    scenario = register.slow.get(name, name)
    tests = {"PYTEST_ADDOPTS": f"--junitxml='{report}' -m '{'slow' if slow else 'not slow'}'"}
    return Stage(
        f"molecule {scenario}" + (": slow tests" if slow else ""),
        ["molecule", "-c", "molecule/base.yml", "test", "-s", scenario],
        env={**strategy.environment(), **tests, **watched},
        report=report,
        again=same,
        seconds=register.seconds(name),
        uses=scenario,
    )


class Prover:
    """Writes a proof as soon as something was green at once, so that a run that is cut short loses none."""

    def __init__(self, register: Register, names: Iterable[str]) -> None:
        """`names`: in the register, of what will be run."""
        self.register = register
        self.stages = {name: proving(name, register) for name in names}
        self._digests = {name: register.digest(name) for name in self.stages}  # of what is there now, before they run
        self.refused: list[str] = []
        self.may_be_idle = False
        self._names = {stage.name: name for name, stage in self.stages.items()}

    def ended(self, outcome: Outcome) -> None:
        """Keep the proof of a stage, or withdraw what it had and say why it proves nothing."""
        if name := self._names.get(outcome.stage.name):
            try:
                why = self._forbids(name, outcome)
                if not why:
                    self.register.prove(name, self._proof(name, outcome))
                    return
            except (OSError, subprocess.CalledProcessError, KeyError, SyntaxError) as error:
                why = f"it cannot be told what it proves: {error!r}"
            self.register.withdraw(name)
            self.refused.append(f"{name}: {why}")
            say(f"not proven: {self.refused[-1]}")  # who is cut short learns it, too

    def _forbids(self, name: str, outcome: Outcome) -> str:
        """Why a run proves nothing; empty when it does."""
        if not outcome.passed or outcome.flaky:
            return "it is flaky" if outcome.passed else "it failed"
        if reports.counts(outcome)[0] < 2:  # itself is one
            return "no test ran"
        if os.environ.get("HAL_STRATEGY"):
            return "HAL_STRATEGY is set: that is another way than the register's"
        now, counted = Tree(PROJECT), self.register.files_of(name)
        if now.digest(counted & now.files) != self._digests[name]:
            return "files changed while it ran"
        if missed := witness.uncounted(now, witness.read(now, notes_of(name)), counted):
            more = f" and {len(missed) - 5} more" if len(missed) > 5 else ""
            return f"it read {', '.join(missed[:5])}{more}, which its digest does not count"
        return ""

    def _proof(self, name: str, outcome: Outcome) -> Proof:
        now = Tree(PROJECT)
        whole = now.digest(file for file in now.files if not file.startswith(f"{FOLDER}/"))
        when = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M")
        return Proof(self._digests[name], whole, when, int(outcome.seconds), debian_versions())


@functools.cache
def debian_versions() -> Mapping[str, str]:
    """Versions of what came from Debian: of this machine's podman, and of the main packages that nodes install."""
    setup = [sys.executable, "molecule/virtual_hal/setup", "packages", "path"]
    folder = Path(subprocess.run(setup, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.strip())
    found = {path.name.rsplit("-", 2)[0]: path.name.rsplit("-", 2)[1] for path in sorted(folder.glob("*.rpm"))}
    own = subprocess.run(["podman", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return {"podman": own, **{name: found[name] for name in MAIN_PACKAGES}}


def asked_for(parts: Sequence[str], only: str, register: Register) -> list[str]:
    """Names in the register that these parts prove, in the order in which they are to begin."""
    if only:
        if only not in register.names:
            sys.exit(f"no scenario {only!r}: there are {', '.join(register.names)}")
        return [only]
    if "slow" in parts or "prove" in parts:
        names = register.names if "slow" in parts else register.unproven(register.names)
        # Scenarios before slow proofs; the longest first: none is alone at the end.
        return sorted(names, key=lambda name: (name not in register.scenarios, -register.seconds(name)))
    return register.unproven(register.scenarios) if "scenarios" in parts else []


def main() -> int:
    """Run the named parts; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--scenario", default="", help="only this scenario, proven or not")
    options = parser.parse_args()
    REPORTS.mkdir(parents=True, exist_ok=True)
    alone = (REPORTS / "lock").open("w")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("tests/run.py: another run is on in this tree; both would use the same nodes and reports")
    for old in (*REPORTS.glob("*.xml"), *REPORTS.glob("*.read")):
        old.unlink()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of thousands of processes compiles our modules again
    surroundings.take_ours()

    register = Register(Tree(PROJECT))
    prover = Prover(register, asked_for(options.parts, options.scenario, register))
    runner = Runner("test", prover.ended)
    prover.may_be_idle = options.parts == ["prove"]
    made = False
    if prover.stages or "rollout" in options.parts:
        say("\n== image and packages")
        made = runner.run(*images(), side_by_side=AT_ONCE)
    if "unit" in options.parts:
        runner.run(*pythons())
    on_nodes = [rollout()] if made and "rollout" in options.parts else []
    linters = lint() if "lint" in options.parts else ()
    units = unit() if "unit" in options.parts else ()  # after the packages: contract tests look into them
    limited = "scenarios" in options.parts and not options.scenario and not {"prove", "slow"} & set(options.parts)
    within = float(os.environ.get("HAL_TEST_MINUTES", MINUTES)) * 60 if limited else None
    if first := [*on_nodes, *linters, *units, *(prover.stages.values() if made else ())]:
        say("\n== " + ", ".join(options.parts))
        # The rollout takes longest and waits for its nodes half of the time: the others run beside it.
        runner.run(*first, side_by_side=AT_ONCE, within=within)
    return closing(runner, prover)


def closing(runner: Runner, prover: Prover) -> int:
    """Print the last lines, and return the exit status."""
    register = prover.register
    if not runner.outcomes:
        say("all of it stands proven: nothing was run")
        return 0 if prover.may_be_idle else 1
    say(f"\n{runner.table()}\n")
    for what, names in (("scenarios", register.scenarios), ("slow proofs", [*register.slow, *register.files])):
        missing = register.unproven(names)
        not_yet = f"; not: {', '.join(sorted(missing))}" if missing else ""
        say(f"proven for exactly this tree: {len(names) - len(missing)} of {len(names)} {what}{not_yet}")
    for outcome in runner.outcomes:
        if outcome.flaky:
            say(f"flaky: {outcome.stage.name}: {flaky.keep(PROJECT, outcome)}")
    for outcome in runner.outcomes:
        if not outcome.passed:
            say(f"failed: {outcome.stage.name}: {outcome.log.relative_to(PROJECT)}")
    for line in reports.skips(runner.outcomes):
        say(line)
    passed, failed, skipped = (sum(column) for column in zip(*map(reports.counts, runner.outcomes), strict=True))
    say(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

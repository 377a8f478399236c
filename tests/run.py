"""Everything that proves the project, in named parts: lint, unit, scenarios, rollout, slow.

Ends with one line, 'N passed, N failed, N skipped', and exit status 0 only if something ran and nothing failed.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT / "molecule" / "shared"))

import strategy  # noqa: E402  found through the line above
from stages import Outcome, Runner, Stage, say  # noqa: E402

VIRTUAL = ("-i", "inventory/hal/hal.yml", "-i", "inventory/virtual/hal.yml")
PARTS = ("lint", "unit", "scenarios", "rollout", "slow")
REPORTS = PROJECT / ".state" / "reports"
# What runs on nodes waits for daemons half of the time: two at once keep two cores busy.
AT_ONCE = 2
LONGEST_LINE = 160  # of what is said about one test that skipped
LONGEST_TEST_SECONDS = 300  # of those that need no node; on two busy cores the longest takes 50
# Their roles are in the rollout (and in check mode on bare nodes, the other kinds in test-full). What else their
# scenarios prove, and the bootstrap of first_contact, waits for test-full, or the gate takes half an hour.
LATER = (
    "backup",
    "base",
    "compilers",
    "cuda",
    "datasets",
    "environments",
    "file_system_probe",
    "firewall",
    "first_contact",
    "hosts",
    "infiniband",
    "lmod",
    "local_storage",
    "mirror",
    "munge",
    "network",
    "nfs_client",
    "nfs_server",
    "notebooks",
    "nvidia_driver",
    "provision_server",
    "repositories",
    "singularity",
    "slurm",
    "spectrum_scale",
    "ssh",
    "time",
    "wmlce",
)
# These take longest, so they begin first: none is left alone at the end.
LONG = (
    "reimage",
    "bmc",
    "slurm",
    "spectrum_scale",
    "node_health",
    "nfs_server",
    "infiniband",
    "nvidia_driver",
    "datasets",
    "base",
    "backup",
    "ssh",
    "network",
    "firewall",
    "mirror",
)


def pytest(name: str, *arguments: str) -> Stage:
    """A pytest run whose counts end up in the closing line."""
    report = REPORTS / f"{name.replace(' ', '-')}.xml"
    return Stage(name, ["pytest", f"--junitxml={report}", *arguments], report=report)


def lint() -> Sequence[Stage]:
    """Linters and type checkers over the whole tree."""
    node_side = sorted(str(path.relative_to(PROJECT)) for path in (PROJECT / "plugins").rglob("*.py"))
    machine = ("customize", "disk", "make-node", "run")
    shared = (
        *("podman", "prepare-controller", "clean", "wheelhouse", "image/old_programs.sh"),
        *(f"machine/{name}" for name in machine),
    )
    scripts = [*(f"molecule/shared/{name}" for name in shared), ".ci/run"]
    return [
        Stage("ansible-lint", ["ansible-lint", "--strict"]),  # the longest: the others run beside it
        Stage("ruff", ["ruff", "check", "."]),
        Stage("ruff format", ["ruff", "format", "--check", "."]),
        Stage("mypy", ["mypy"]),
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
            "--maxfail=50",  # this machine lacks something: what the others would say is no news
            "tests/unit",
            "tests/property",
            "-m",
            "not slow",
        ),
        pytest("contract tests", "tests/contract"),
    ]


def scenarios(only: str, later: bool) -> Sequence[Stage]:
    """One molecule run for each scenario, or for the one named; of those that can wait only if `later`."""
    names = sorted(path.parent.name for path in (PROJECT / "molecule").glob("*/molecule.yml"))
    if only and only not in names:
        sys.exit(f"no scenario {only!r}: there are {', '.join(names)}")
    names.sort(key=lambda name: LONG.index(name) if name in LONG else len(LONG))
    asked = [name for name in names if name == only or (not only and (later or name not in LATER))]
    return [molecule(name, plainly=later, once=not (later or only)) for name in asked]


def slow_scenarios() -> Sequence[Stage]:
    """The slow tests of scenarios, which rebuild nodes."""
    marked = {
        path.parents[1].name
        for path in (PROJECT / "molecule").glob("*/tests/test_*.py")
        if "pytest.mark.slow" in path.read_text()
    }
    return [molecule(name, "slow", plainly=True) for name in sorted(marked)]


def molecule(scenario: str, which: str = "not slow", *, plainly: bool, once: bool = False) -> Stage:
    """A scenario, whose tests count too; of its tests those that are slow, or the others.

    `plainly`: through Ansible as it comes, as test-full does; else as the rollouts, which is quicker. `once`: without
    check mode and a second converge, which the same roles have in the rollout beside it.
    """
    name = f"molecule {scenario}" + (": slow tests" if which == "slow" else "")
    report = REPORTS / f"molecule-{scenario}-{which.replace(' ', '-')}.xml"
    base = ("-c", "molecule/base.yml", *(("-c", "molecule/once.yml") if once else ()))
    argv = ["molecule", *base, "test", "-s", scenario]
    tests = {"PYTEST_ADDOPTS": f"--junitxml='{report}' -m '{which}'"}
    return Stage(name, argv, env={**({} if plainly else strategy.environment()), **tests}, report=report)


def pythons() -> Sequence[Stage]:
    """Interpreters of nodes, for unit and contract tests, unless others are named; quick when cached."""
    if os.environ.get("HAL_TEST_PYTHON27") and os.environ.get("HAL_TEST_PYTHON36"):
        return []
    return [Stage("Pythons of nodes", [sys.executable, "molecule/shared/setup", "pythons", "build"])]


def images() -> Sequence[Stage]:
    """What every node is made of; quick when cached."""
    return [
        # Before scenarios run side by side: two that make it at once would not trust each other.
        Stage("site authority", ["ansible-playbook", *VIRTUAL, "playbooks/authorities.yml"]),
        Stage("node image", [sys.executable, "molecule/shared/setup", "image", "build"]),
        Stage("package repository", [sys.executable, "molecule/shared/setup", "packages", "build"]),
    ]


def counts(outcome: Outcome) -> tuple[int, int, int]:
    """What a stage adds to passed, failed and skipped: itself and the tests of its report; a failed one at least 1."""
    total = failed = skipped = 0
    if outcome.stage.report and not outcome.silent:
        for suite in ET.parse(outcome.stage.report).getroot().iter("testsuite"):
            number = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
            total += number["tests"]
            failed += number["failures"] + number["errors"]
            skipped += number["skipped"]
    return total - failed - skipped + outcome.passed, max(failed, not outcome.passed), skipped


def skips(outcomes: Iterable[Outcome]) -> list[str]:
    """Each test that skipped, with its reason; those of pytest's stages without nodes are all in tests/skips.yml."""
    found: Counter[str] = Counter()
    for report in (outcome.stage.report for outcome in outcomes if outcome.stage.report and not outcome.silent):
        for case in ET.parse(report).getroot().iter("testcase"):
            for skipped in case.iter("skipped"):
                if skipped.get("type") != "pytest.xfail":
                    name = f"{case.get('classname')}.{case.get('name', '').partition('[')[0]}"
                    found[f"{name}: {skipped.get('message', '')}"[:LONGEST_LINE]] += 1
    return [f"skipped: {number} of {line}" for line, number in sorted(found.items())]


def main() -> int:
    """Run the named parts; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--scenario", default="", help="only this molecule scenario")
    options = parser.parse_args()
    REPORTS.mkdir(parents=True, exist_ok=True)
    alone = (REPORTS / "lock").open("w")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("tests/run.py: another run is on in this tree; both would use the same nodes and reports")
    for old in REPORTS.glob("*.xml"):
        old.unlink()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of thousands of processes compiles our modules again
    os.environ.setdefault("ANSIBLE_CONFIG", str(PROJECT / "ansible.cfg"))

    runner = Runner("test")
    on_nodes = [part for part in PARTS[2:] if part in options.parts]
    linters, pictures = lint() if "lint" in options.parts else (), images() if on_nodes else ()
    if pictures:
        say("\n== image and packages")
        runner.run(*pictures, side_by_side=AT_ONCE)
    made = bool(pictures) and all(one.passed for one in runner.outcomes)
    rollout = [pytest("mini rollout", "tests/rollout", "-m", "not slow")] if made and "rollout" in on_nodes else []
    if "unit" in options.parts:
        runner.run(*pythons())
    units = unit() if "unit" in options.parts else ()  # after the packages: contract tests look into them
    by_role = scenarios(options.scenario, "slow" in on_nodes) if made and "scenarios" in on_nodes else []
    if first := [*rollout, *linters, *units, *by_role]:
        say("\n== " + ", ".join(part for part in PARTS[:4] if part in options.parts))
        # The rollout takes longest and waits for its nodes half of the time: the others run beside it.
        runner.run(*first, side_by_side=AT_ONCE)
    if made and "slow" in on_nodes:
        runner.run(pytest("slow proofs", "-m", "slow", "tests"), *slow_scenarios())
    passed, failed, skipped = (sum(column) for column in zip(*map(counts, runner.outcomes), strict=True))
    broken = [outcome for outcome in runner.outcomes if not outcome.passed]
    say(f"\n{runner.table()}\n")
    for outcome in broken:
        say(f"failed: {outcome.stage.name}: {outcome.log.relative_to(PROJECT)}")
    for line in skips(runner.outcomes):
        say(line)
    say(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

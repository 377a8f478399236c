"""make mutate: put small faults into a copy of the project, one at a time, and see which of them its tests notice."""

from __future__ import annotations

import argparse
import datetime
import fcntl
import itertools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

# Found through the line above.
from running.stages import clock, say  # noqa: E402

from tests.mutate import equivalent  # noqa: E402
from tests.mutate.choose import LOOKED_AT, Tree, everything, in_turn, sample  # noqa: E402
from tests.mutate.copies import Copy  # noqa: E402
from tests.mutate.mutant import Mutant  # noqa: E402
from tests.mutate.questions import Scenarios, molecule, questions  # noqa: E402
from tests.mutate.reach import Reach  # noqa: E402
from tests.mutate.report import Measured, page, seen  # noqa: E402
from tests.mutate.rounds import try_all  # noqa: E402
from tests.mutate.trial import Bench, RedError, Verdict  # noqa: E402
from tests.register.depends import Tree as RegisterTree  # noqa: E402
from tests.register.proofs import Register  # noqa: E402

PAGE = "docs/mutations.md"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    made.add_argument("--project", type=Path, default=PROJECT, help="the tree; this one")
    made.add_argument("--seed", type=int, help="of the sample; drawn and printed without one")
    made.add_argument("--sample", type=int, default=20, help="faults of each language")
    made.add_argument("--only", choices=sorted(LOOKED_AT), help="one language; templates count as yaml")
    made.add_argument("--area", default="", help="one role, package or subject of plugins: slurm")
    made.add_argument("--all", action="store_true", help="every fault, not a sample")
    made.add_argument("--minutes", type=float, default=10, help="no fault is begun later")
    made.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="copies of the tree that are used")
    made.add_argument("--scenarios", action="store_true", help="ask the scenario of a role, too; it needs its nodes")
    made.add_argument("--report", action="store_true", help=f"write {PAGE}")
    return made


def main() -> int:
    """0 when something was tried; what survived is a result, not a failure."""
    options = parser().parse_args()
    state = options.project / ".state" / "mutate"
    state.mkdir(parents=True, exist_ok=True)
    alone = (state / "lock").open("w")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("make mutate: another one runs in this tree")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    until = time.monotonic() + options.minutes * 60
    tree = Tree.of(options.project)
    if options.seed is None and not options.all:
        options.seed = secrets.randbelow(10**6)
    drawn = chosen(tree, options)
    decided = equivalent.load(options.project)
    mutants = [mutant for mutant in drawn if not equivalent.known(mutant, decided)]
    say(f"{command(options)}\n{len(mutants)} faults, the last one begun within {options.minutes:g} minutes")
    verdicts, red = list[Verdict](), ""
    try:
        verdicts = tried(tree, mutants, options, until, verdicts)
    except RedError as error:  # what was seen before was green without its fault
        red, verdicts = f"make mutate: {error}", list({one.mutant: one for one in verdicts}.values())
    except KeyboardInterrupt:
        sys.exit(130)
    text = page(
        Measured(
            command=command(options),
            commit=commit(options.project),
            date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            asked=asked(options),
            verdicts=verdicts,
            not_tried=len(mutants) - len(verdicts),
            equivalent=len(drawn) - len(mutants),
        )
    )
    pages = [state / "report.md", *([options.project / PAGE] if options.report and verdicts and not red else [])]
    for path in pages:
        path.write_text(text)
    say(f"\n{seen(verdicts)} of {len(verdicts)} seen, {len(mutants) - len(verdicts)} of the sample not tried")
    say(f"report: {pages[-1].relative_to(options.project)}")
    if red:
        sys.exit(red)
    return 0 if verdicts else 1


def command(options: argparse.Namespace) -> str:
    """What makes the same faults again."""
    words = ["make mutate"]
    words += ["ALL=1"] if options.all else [f"SEED={options.seed}", f"SAMPLE={options.sample}"]
    words += [f"ONLY={options.only}"] if options.only else []
    words += [f"AREA={options.area}"] if options.area else []
    words += ["SCENARIOS=1"] if options.scenarios else []
    return " ".join([*words, f"MINUTES={options.minutes:g}"])


def asked(options: argparse.Namespace) -> str:
    """What was run, in words."""
    quick = "unit, property and contract tests; of YAML also yamllint and ansible-lint"
    return (
        f"{quick}; of what these did not see, the scenario of the role or playbook"
        if options.scenarios
        else f"{quick}; no scenario and no rollout"
    )


def commit(project: Path) -> str:
    """The commit of the tree, with + when it is not as committed."""
    words = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, check=True).stdout.strip()


def chosen(tree: Tree, options: argparse.Namespace) -> list[Mutant]:
    """The faults that are to be tried, in that order."""
    languages = [options.only] if options.only else sorted(LOOKED_AT)
    if options.all:
        return [mutant for language in languages for mutant in everything(tree, language, options.area)]
    return in_turn([sample(tree, language, options.sample, options.seed, options.area) for language in languages])


def tried(
    tree: Tree, mutants: list[Mutant], options: argparse.Namespace, until: float, sofar: list[Verdict]
) -> list[Verdict]:
    """Try them in copies, which are gone afterwards; `sofar` grows meanwhile."""
    folder, logs = tree.root / ".state" / "mutate" / "copies", tree.root / ".state" / "mutate" / "logs"
    for old in (folder, logs):  # one that was killed left them
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir()
    number, stop = itertools.count(1), threading.Event()

    def tell(verdict: Verdict) -> None:
        sofar.append(verdict)
        word = "seen    " if verdict.by else "SURVIVED"
        by = f"({verdict.by} {clock(verdict.seconds)})" if verdict.by else f"({clock(verdict.seconds)})"
        say(f"{next(number):>4} {word} {verdict.mutant.where}  {verdict.mutant.kind}  {by}")

    try:
        reach = Reach(tree.root, tree.files)
        scenarios = Scenarios(Register(RegisterTree(tree.root))) if options.scenarios else None
        copies = [Copy(tree, folder / str(one)) for one in range(1, min(options.at_once, len(mutants)) + 1)]
        benches = [Bench(one, partial(questions, reach=reach, scenarios=scenarios), logs, stop) for one in copies]
        try:
            return try_all(mutants, benches, stop, until, tell)
        finally:
            for name in sorted(scenarios.asked) if scenarios else ():
                benches[0].end(molecule(name, "destroy"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

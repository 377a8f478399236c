"""make mutate: put small faults into a copy of the project, one at a time, and see which of them its tests notice."""

from __future__ import annotations

import argparse
import fcntl
import itertools
import os
import secrets
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "shared")]

# Found through the line above.
from stages import clock, say  # noqa: E402

from tests.mutate.choose import LOOKED_AT, Tree, everything, in_turn, sample  # noqa: E402
from tests.mutate.copies import Copy  # noqa: E402
from tests.mutate.mutant import Mutant  # noqa: E402
from tests.mutate.reach import Reach  # noqa: E402
from tests.mutate.rounds import try_all  # noqa: E402
from tests.mutate.trial import Bench, RedError, Verdict  # noqa: E402


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
    began = time.monotonic()
    tree = Tree.of(options.project)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    mutants = chosen(tree, options, seed)
    say(f"seed {seed}: {len(mutants)} faults, {options.minutes:g} minutes")
    try:
        verdicts = tried(tree, mutants, options, began + options.minutes * 60)
    except RedError as error:
        sys.exit(f"make mutate: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    say(f"{sum(bool(one.by) for one in verdicts)} of {len(verdicts)} seen, {len(mutants) - len(verdicts)} not tried")
    return 0 if verdicts else 1


def chosen(tree: Tree, options: argparse.Namespace, seed: int) -> list[Mutant]:
    """The faults that are to be tried, in that order."""
    languages = [options.only] if options.only else sorted(LOOKED_AT)
    if options.all:
        return [mutant for language in languages for mutant in everything(tree, language, options.area)]
    return in_turn([sample(tree, language, options.sample, seed, options.area) for language in languages])


def tried(tree: Tree, mutants: list[Mutant], options: argparse.Namespace, until: float) -> list[Verdict]:
    """Try them in copies, which are gone afterwards."""
    folder, logs = tree.root / ".state" / "mutate" / "copies", tree.root / ".state" / "mutate" / "logs"
    for old in (folder, logs):  # one that was killed left them
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir()
    number, stop = itertools.count(1), threading.Event()

    def tell(verdict: Verdict) -> None:
        word = "seen    " if verdict.by else "SURVIVED"
        by = f"  {verdict.by} {clock(verdict.seconds)}"
        say(f"{next(number):>4}/{len(mutants)} {word} {verdict.mutant.where} {verdict.mutant.kind}{by}")

    try:
        reach = Reach(tree.root, tree.files)
        copies = [Copy(tree, folder / str(one)) for one in range(1, min(options.at_once, len(mutants)) + 1)]
        return try_all(mutants, [Bench(one, reach, logs, stop) for one in copies], stop, until, tell)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

"""The program ``hal-environments``: lock files of conda environments, made, checked and compared.

Exit status: 0 done, 2 something is wrong (said on standard error, one line a finding), 130 interrupted.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hal_cluster import completion
from hal_cluster.environments import channel, specs, wheel
from hal_cluster.environments import lock as locks
from hal_cluster.environments.check import against_specs, check
from hal_cluster.environments.errors import FileError, HalEnvironmentsError
from hal_inventory.errors import HalError
from hal_inventory.printable import complain, printable

OK, FAULT, INTERRUPTED = 0, 2, 130
FOLDER = Path("inventory/hal/environments")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    parser = _parser()
    completion.answer(parser, {"NAME": _names})
    options = parser.parse_args(arguments)
    try:
        return {"lock": _lock, "check": _check, "diff": _diff, "wheel": _wheel}[options.command](options)
    except HalError as error:
        complain(error)
        return FAULT
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hal-environments", description="Conda environments of a site: their lock files."
    )
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    places = argparse.ArgumentParser(add_help=False)
    places.add_argument(
        "--folder", type=Path, default=FOLDER, help=f"where NAME.yml and NAME.lock.yml are (default: {FOLDER})"
    )
    places.add_argument(
        "--from",
        dest="places",
        metavar="CHANNEL=PLACE",
        action="append",
        default=[],
        type=_place,
        help="read a channel in a folder or at an address, instead of its declared one; repeatable",
    )
    make = commands.add_parser("lock", parents=[places], help="solve NAME.yml and write NAME.lock.yml")
    make.add_argument("names", nargs="+", metavar="NAME")
    make.add_argument("--keep", action="store_true", help="leave what is locked as it is wherever the specs allow it")
    make.add_argument(
        "--platform", choices=sorted(specs.PLATFORMS.values()), help="for another machine than NAME.yml's"
    )
    make.add_argument("--to", type=Path, metavar="FOLDER", help="write there (default: beside NAME.yml)")
    look = commands.add_parser("check", parents=[places], help="check lock files; all of the folder when none is named")
    look.add_argument("names", nargs="*", metavar="NAME")
    look.add_argument("--fetch", action="store_true", help="compare with what the channels have, too")
    compare = commands.add_parser("diff", help="what changes on nodes from one lock file to another")
    compare.add_argument("old", type=Path, metavar="OLD")
    compare.add_argument("new", type=Path, metavar="NEW")
    bring = commands.add_parser("wheel", help="get the wheel of py-rattler that nodes install environments with")
    bring.add_argument("--arch", choices=sorted(wheel.WHEELS), required=True)
    bring.add_argument("--to", type=Path, metavar="FOLDER", required=True)
    return parser


def _names(options: argparse.Namespace) -> set[str]:
    """Those that have specs or a lock file, for TAB."""
    return {path.name.removesuffix(".yml").removesuffix(".lock") for path in options.folder.glob("*.yml")}


def _place(text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if not (name and equals and place):
        raise argparse.ArgumentTypeError(f"{text!r} is not CHANNEL=PLACE")
    return name, place if "://" in place else Path(place).absolute().as_uri()


def _places(options: argparse.Namespace, asked: specs.Specs) -> Mapping[str, str]:
    return {name: place for name, place in options.places if name in asked.channels}


def _refuse_unknown(options: argparse.Namespace, asked: Sequence[specs.Specs]) -> None:
    """A channel that none of the files has was misspelt, and would be asked at its declared address."""
    known = list(dict.fromkeys(name for specs_of in asked for name in specs_of.channels))
    for name, _ in options.places:
        if name not in known:
            raise HalEnvironmentsError(f"--from {name}: the channels are {', '.join(known)}")


def _lock(options: argparse.Namespace) -> int:
    from hal_cluster.environments import solve

    every = [specs.load(options.folder / f"{name}.yml") for name in options.names]
    _refuse_unknown(options, every)
    for name, asked in zip(options.names, every, strict=True):
        if options.platform:
            asked = replace(asked, platform=options.platform)
        target = (options.to or options.folder) / f"{name}.lock.yml"
        old = locks.load(target) if target.exists() else None
        new = solve.lock(asked, _places(options, asked), old if options.keep else None)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = locks.dump(new, name)
        changed = not target.exists() or target.read_text(encoding="utf-8") != text
        target.write_text(text, encoding="utf-8")
        size = sum(package.size for package in new.packages.values())
        state = "written" if changed else "is the same"
        print(f"{target}: {state}: {len(new.packages)} packages, {size / 1e9:.1f} GB to fetch")
        if old and changed:
            print("\n".join(f"  {printable(line)}" for line in locks.difference(old, new)))
    return OK


def _check(options: argparse.Namespace) -> int:
    names = options.names or sorted(locks.name_of(path) for path in options.folder.glob("*.lock.yml"))
    if not names:
        raise HalEnvironmentsError(f"{options.folder}: no lock file: run hal-environments lock NAME")
    findings: list[str] = []
    for name in names:
        path = options.folder / f"{name}.lock.yml"
        try:
            lock = check(path)
        except FileError as error:
            findings += error.findings
            continue
        beside = options.folder / f"{name}.yml"
        _refuse_unknown(options, [lock.asked])
        wrong = against_specs(lock, path, beside) if beside.exists() else []
        if options.fetch or options.places:
            wrong += [f"{path}: {line}" for line in channel.unlike(lock, _places(options, lock.asked))]
        findings += wrong
        if not wrong:
            compared = "" if options.fetch or options.places else "; not compared with channels (--fetch)"
            print(f"{path}: {len(lock.packages)} packages for {lock.asked.platform}, complete{compared}")
    if findings:
        raise FileError(findings)
    return OK


def _diff(options: argparse.Namespace) -> int:
    lines = [printable(line) for line in locks.difference(locks.load(options.old), locks.load(options.new))]
    print("\n".join(lines) if lines else "nothing changes")
    return OK


def _wheel(options: argparse.Namespace) -> int:
    print(wheel.bring(options.arch, options.to))
    return OK

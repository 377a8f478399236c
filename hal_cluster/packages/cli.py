"""The program ``hal-packages``: what roles install, the lock of it, and whether the two hold together.

Exit status: 0 done, 2 something is wrong (said on standard error, one line a finding), 3 nothing is wrong but not
everything could be checked, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hal_cluster import completion
from hal_cluster.packages.errors import HalPackagesError
from hal_inventory.errors import HalError
from hal_inventory.printable import complain, printable
from hal_inventory.settings import configured_sources

if TYPE_CHECKING:
    from hal_cluster.packages.check import Report
    from hal_cluster.packages.declared import Site

OK, FAULT, NOT_CHECKED, INTERRUPTED = 0, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    parser = _parser()
    completion.answer(parser)
    options = parser.parse_args(arguments)
    try:
        return {"declared": _declared, "lock": _lock, "verify": _verify, "schema": _schema}[options.command](options)
    except HalError as error:
        complain(error)
        return FAULT
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hal-packages", description="The packages of a site and their lock file.")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    source = argparse.ArgumentParser(add_help=False)
    source.add_argument(
        *("-i", "--inventory"),
        dest="sources",
        metavar="SOURCE",
        action="append",
        help="inventory source, as Ansible's; repeatable (default: as ansible.cfg says)",
    )
    places = argparse.ArgumentParser(add_help=False, parents=[source])
    places.add_argument("--lock", type=Path, metavar="FILE", help="lock file (default: the mirror's mirror_lock_file)")
    places.add_argument(
        "--from",
        dest="places",
        metavar="REPOSITORY[/ARCH]=PLACE",
        action="append",
        default=[],
        type=_place,
        help="folder or address with the repository's repodata, instead of the declared address; repeatable",
    )
    show = commands.add_parser("declared", parents=[source], help="print the names that roles install")
    show.add_argument("--json", dest="as_json", action="store_true", help="print JSON")
    make = commands.add_parser("lock", parents=[places], help="read repositories, pick versions, write the lock file")
    make.add_argument(
        "--given", metavar="NAME", action="append", default=[], help="what nodes have before the first package"
    )
    make.add_argument("--given-file", type=Path, metavar="FILE", help="the same, the first word of each line")
    verify = commands.add_parser("verify", parents=[places], help="check the lock file")
    verify.add_argument("--fetch", action="store_true", help="ask the declared addresses for what --from does not name")
    verify.add_argument("--files", type=Path, metavar="FOLDER", help="check packages below FOLDER/<repository>/<arch>")
    commands.add_parser("schema", help="print the JSON Schema of the lock file")
    return parser


def _place(text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if not (name and equals and place):
        raise argparse.ArgumentTypeError(f"{text!r} is not REPOSITORY[/ARCH]=PLACE")
    return name, place


def _site(options: argparse.Namespace) -> Site:
    from hal_cluster.packages.declared import declared

    return declared(options.sources or configured_sources())


def _lock_file(options: argparse.Namespace, site: Site) -> Path:
    path: Path | None = options.lock or site.lock_file
    if path is None:
        raise HalPackagesError("this site has no mirror, so no lock file is declared: name one with --lock")
    return path


def _declared(options: argparse.Namespace) -> int:
    site = _site(options)
    if options.as_json:
        print(json.dumps([_plain(site, index) for index in range(len(site.nodes))], indent=2))
        return OK
    for nodes in site.nodes:
        print(f"{nodes.nodeset} ({nodes.arch}) from {', '.join(one.id for one in nodes.repositories)}")
        for name, origins in nodes.names.items():
            print(f"  {name:<28} {', '.join(map(str, origins))}")
    return OK


def _plain(site: Site, index: int) -> dict[str, object]:
    nodes = site.nodes[index]
    return {
        "nodes": nodes.nodeset,
        "arch": nodes.arch,
        "repositories": {one.id: one.url for one in nodes.repositories},
        "names": {name: [str(origin) for origin in origins] for name, origins in nodes.names.items()},
    }


def _lock(options: argparse.Namespace) -> int:
    from hal_cluster.packages.lock import dump
    from hal_cluster.packages.metadata import gather
    from hal_cluster.packages.resolve import lock, repositories_of

    site = _site(options)
    path = _lock_file(options, site)
    given = list(options.given)
    if options.given_file:
        lines = options.given_file.read_text().splitlines()
        given += [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    wanted = {key: repository.url for key, repository in repositories_of(site).items()}
    with tempfile.TemporaryDirectory(prefix="hal-packages-") as folder:
        made = lock(site, gather(wanted, dict(options.places), Path(folder)), sorted(set(given)))
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(dump(made))
    unfinished.replace(path)
    count = sum(len(tree.packages) for _, _, tree in made.trees())
    print(f"{path}: {count} packages in {len(list(made.trees()))} trees, {made.digest()}")
    return OK


def _verify(options: argparse.Namespace) -> int:
    from hal_cluster.packages.check import against_declared, against_files, against_metadata
    from hal_cluster.packages.lock import load
    from hal_cluster.packages.metadata import gather
    from hal_cluster.packages.resolve import repositories_of

    site = _site(options)
    file = load(_lock_file(options, site))
    report = against_declared(file, site)
    wanted = {key: repository.url for key, repository in repositories_of(site).items()}
    with tempfile.TemporaryDirectory(prefix="hal-packages-") as folder:
        at_hand = gather(wanted, dict(options.places), Path(folder), only_given=not options.fetch)
        report.extend(against_metadata(file, site, at_hand))
    if options.files:
        report.extend(against_files(file, options.files))
    return _tell(report, file.name)


def _tell(report: Report, name: str) -> int:
    for finding in sorted(set(report.findings)):
        print(finding, file=sys.stderr)
    for line in dict.fromkeys(report.not_checked):
        print(printable(f"not checked: {line}"))
    if report.findings:
        return FAULT
    print(f"{name}: {'nothing wrong in what was checked' if report.not_checked else 'checked, nothing wrong'}")
    return NOT_CHECKED if report.not_checked else OK


def _schema(options: argparse.Namespace) -> int:
    from hal_cluster.packages.lock import Lock

    print(json.dumps(Lock.model_json_schema(), indent=2, sort_keys=True))
    return OK

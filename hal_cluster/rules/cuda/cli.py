"""``python -m hal_cluster.rules.cuda``: the table of what goes together, and what it says of a node that is planned.

Exit status: 0 it goes together, 2 it does not (one line a reason), 3 nothing stands against it but not everything is
known or there are limits (one line each).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

from hal_cluster.rules.cuda.driver import driver_findings
from hal_cluster.rules.cuda.findings import problems, remarks
from hal_cluster.rules.cuda.table import Generation, Row, Table, load
from hal_cluster.rules.cuda.toolkits import cuda_findings
from hal_inventory.errors import HalError
from hal_inventory.printable import complain

OK, FAULT, REMARKS = 0, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        table = load()
    except HalError as error:
        complain(error)
        return FAULT
    if options.command == "table":
        print("\n".join(table_lines(table)))
        return OK
    return _check(options, table)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hal_cluster.rules.cuda", description="CUDA toolkits, drivers, kernels, GPUs."
    )
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    commands.add_parser("table", help="print the table with its sources")
    check = commands.add_parser("check", help="say what does not go together, and what is not known")
    check.add_argument("--driver", metavar="VERSION", help="e.g. 440.33.01; without it: a node without GPUs")
    check.add_argument("--toolkit", metavar="RELEASE", action="append", default=[], help="e.g. 10.2; repeatable")
    check.add_argument("--arch", default="ppc64le", help="ppc64le (default) or x86_64")
    check.add_argument("--distribution", default="rhel7", help="folder of NVIDIA's repository (default: rhel7)")
    check.add_argument("--kernel", metavar="RELEASE", help="e.g. 4.18.0-80.7.2.el7")
    check.add_argument(
        "--gpu", metavar="MODEL", action="append", default=[], help="as nvidia-smi -L shows it; repeatable"
    )
    check.add_argument(
        "--compat", metavar="RELEASE", action="append", default=[], help="runs by cuda-compat; repeatable"
    )
    return parser


def _check(options: argparse.Namespace, table: Table) -> int:
    findings = []
    if options.driver is not None:
        findings += driver_findings(options.driver, options.arch, options.kernel, options.gpu, table)
    findings += cuda_findings(
        options.toolkit, options.driver, options.arch, options.distribution, options.gpu, options.compat, table
    )
    findings = list(dict.fromkeys(findings))
    for text in problems(findings):
        print(f"refused: {text}")
    for text in remarks(findings):
        print(f"remark: {text}")
    if not findings:
        print("goes together")
    return FAULT if problems(findings) else REMARKS if findings else OK


def table_lines(table: Table) -> Iterator[str]:
    """Give the table line by line; the numbers in brackets are the sources at its end."""
    numbers = {name: at for at, name in enumerate(table.sources, 1)}

    def cited(*rows: Row | None) -> str:
        ids = dict.fromkeys(key for row in rows if row for key in row.source)
        return " ".join(f"[{numbers[key]}]" for key in ids)

    reaches = table.reaches
    yield f"Compared in {reaches.compared}, up to CUDA {reaches.toolkit} and drivers of branch {reaches.branch}."
    yield from _section(
        "Toolkits and the least driver that has all they need",
        ("CUDA", "update", "driver", ""),
        (
            (row.release, update.version, update.driver or "not known", cited(row))
            for row in table.toolkits
            for update in row.updates
        ),
    )
    yield from _section(
        "With limits, toolkits run on drivers from",
        ("CUDA", "driver", ""),
        ((f"{row.major}.x", row.driver, cited(row)) for row in table.families),
    )
    yield from _section(
        "Processors",
        ("", "last CUDA", "last driver", ""),
        (
            (
                row.name,
                row.last_toolkit.release if row.last_toolkit else "-",
                str(row.last_branch.branch) if row.last_branch else "-",
                cited(row.last_toolkit, row.last_branch),
            )
            for row in table.architectures
        ),
    )
    yield from _section(
        "Packages of NVIDIA",
        ("", "", "first CUDA", "last CUDA", ""),
        ((row.distribution, row.arch, row.first, row.last, cited(row)) for row in table.repositories),
    )
    yield from _section(
        "GPUs",
        ("", "first CUDA", "last CUDA", "first driver", "last driver", ""),
        ((*_limits(row), cited(row.first, row.last_toolkit, row.last_branch)) for row in table.generations),
    )
    yield from _section(
        "Kernels that a driver is known to build on",
        ("", "kernel", "drivers", ""),
        ((row.arch, row.kernel, " ".join(row.drivers), cited(row)) for row in table.kernels),
    )
    yield ""
    yield "Sources"
    for name, source in table.sources.items():
        yield f"  [{numbers[name]}] {source.title}: {source.url}"


def _limits(row: Generation) -> tuple[str, ...]:
    return (
        row.name,
        row.first.toolkit if row.first else "-",
        row.last_toolkit.release if row.last_toolkit else "-",
        (row.first.driver if row.first else None) or "-",
        str(row.last_branch.branch) if row.last_branch else "-",
    )


def _section(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    table = [head, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    yield ""
    yield title
    for row in table:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

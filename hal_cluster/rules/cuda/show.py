"""The table as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hal_cluster.rules.cuda.table import Generation, Row, Table


def lines(table: Table) -> Iterator[str]:
    """Give the table line by line; the numbers in brackets are the sources at its end."""
    numbers = {name: at for at, name in enumerate(table.sources, 1)}

    def cited(*rows: Row | None) -> str:
        ids = dict.fromkeys(one for row in rows if row for one in row.source)
        return " ".join(f"[{numbers[one]}]" for one in ids)

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

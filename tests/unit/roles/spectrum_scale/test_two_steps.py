"""The cluster first, then its nodes as they are after that: what is called, in which order, and what is returned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.plugins.modules.test_hal_scale_config import Run, called, code_of, commands, run, write

__all__ = ["commands", "run"]  # fixtures

HEADER = "mmlsconfig::HEADER:version:reserved:reserved:configParameter:value:nodeList:"


def shows(commands: Path, *rows: str) -> None:
    (commands / "shown").write_text("\n".join([HEADER, *(f"mmlsconfig::0:1:::{row}:" for row in rows)]) + "\n")
    write(commands / "mmlsconfig", f"cat {commands}/shown")


def test_what_the_cluster_took_away_from_nodes_is_not_taken_away_again(run: Run, commands: Path) -> None:
    shows(commands, "pagepool:1G:", "pagepool:2G:hal01")
    after = "\\n".join([HEADER, "mmlsconfig::0:1:::pagepool:4G::"])
    write(commands / "mmchconfig", f'echo "$@" >>{commands}/called; printf "{after}\\n" >{commands}/shown')
    clients = {"nodes": ["hal01"], "attributes": {}}
    declared: dict[str, Any] = {"attributes": {"pagepool": "4G"}, "classes": {"clients": clients}}
    result = run(**declared, confirm=code_of(run(**declared)))
    assert called(commands) == ["pagepool=4G -i"]
    assert result == {
        "changed": True,
        "changes": {"cluster": ["pagepool: 4G instead of 1G"]},
        "pending": {},
        "differences": {},
        "missing": [],
        "by_hand": [],
        "others": ["pagepool on hal01: DEFAULT instead of 2G", "pagepool: 4G instead of 1G"],
        "calls": ["mmchconfig pagepool=4G -i"],
        "diff": {"before": "cluster pagepool = 1G\n", "after": "cluster pagepool = 4G\n"},
    }


def test_check_mode_names_both_steps(run: Run, commands: Path) -> None:
    shows(commands, "pagepool:2G:hal01")
    clients = {"nodes": ["hal01"], "attributes": {}}
    declared: dict[str, Any] = {"attributes": {"pagepool": "4G"}, "classes": {"clients": clients}}
    result = run(check=True, **declared, confirm=code_of(run(check=True, **declared)))
    assert result["calls"] == ["mmchconfig pagepool=4G -i", "mmchconfig pagepool=DEFAULT -i -N hal01"]
    assert result["diff"] == {
        "before": "cluster pagepool = DEFAULT\nclients pagepool = 2G\n",
        "after": "cluster pagepool = 4G\nclients pagepool = DEFAULT\n",
    }
    assert called(commands) == []


def test_a_second_step_that_fails_leaves_the_first_one_named(run: Run, commands: Path) -> None:
    shows(commands, "autoload:no:")
    write(
        commands / "mmchconfig",
        f'case $1 in autoload*) echo "$@" >>{commands}/called ;; *) echo no such node; exit 1 ;; esac',
    )
    clients = {"nodes": ["hal01"], "attributes": {"pagepool": "4G"}}
    result = run(attributes={"autoload": True}, classes={"clients": clients})
    assert result == {
        "failed": True,
        "msg": "mmchconfig pagepool=4G -i: no such node",
        "changes": {"cluster": ["autoload: yes instead of no"]},
        "calls": ["mmchconfig autoload=yes", "mmchconfig pagepool=4G -i -N hal01"],
    }


def test_classes_that_are_only_reported_are_never_set_and_all_that_is_wrong_is_said(run: Run, commands: Path) -> None:
    shows(commands)
    servers = {"nodes": ["hal01"], "attributes": {"pagepool": "4G"}}
    result = run(classes={"servers": servers}, report_only=["servers"])
    assert (result["changed"], result["calls"]) == (False, [])
    assert result["differences"] == {"servers": ["pagepool on hal01: 4G instead of DEFAULT"]}
    bad = {"nodes": ["hal01"], "attributes": {"nsdBufSpace": 1, "afmDIO": 1}}
    refused = run(attributes={"autoload": "x"}, classes={"b": bad}, report_only=["c"], unchecked=["afmDIO"])
    assert refused["msg"] == (
        "autoload is x; write yes or no; class b: nsdBufSpace is 1; write 10 to 70; report_only: there is no class c"
    )


def test_the_configuration_is_read_once_where_the_cluster_is_as_declared(run: Run, commands: Path) -> None:
    shows(commands, "pagepool:4G:")
    write(commands / "mmlsconfig", f'echo "$@" >>{commands}/read; cat {commands}/shown')
    clients = {"nodes": ["hal01"], "attributes": {"workerThreads": 512}}
    assert run(attributes={"pagepool": "4G"}, classes={"clients": clients})["changed"] is True
    assert (commands / "read").read_text() == "-Y\n"

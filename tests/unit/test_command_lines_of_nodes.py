"""Command lines of the programs that roles bring to nodes: what has to be there, what is assumed, what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.unit.command_lines import Given, Line, lacks, main, read, refusal

PGI = "roles/compilers/files/hal_pgi.py"
DATASET = "roles/datasets/files/hal_dataset.py"
ENVIRONMENT = "roles/environments/files/environment_main.py"
PROBE = "roles/file_system_probe/files/file_system_probe.py"
MODULES = "roles/lmod/files/hal_modules.py"
SCRATCH = "roles/local_storage/files/scratch_clean.py"
HEALTH = "roles/node_health/files/node_health.py"
NOTEBOOK = "roles/notebooks/files/hal_notebook.py"
PROVISION = "roles/provision_server/files/provision_cli.py"
REIMAGE = "roles/provision_server/files/reimage_cli.py"

# What the roles write, and what a program reads if nothing else is said.
COMPILERS: Given = {"table": "/etc/hal/compilers.json"}
SETS: Given = {"table": "/etc/hal/datasets.json"}
CONDA: Given = {
    "settings": "/etc/hal/environments.json",
    "declared": "/etc/hal/environments.d",
    "lock": "/run/hal-environment.lock",
}
SCRATCHED: Given = {
    **{"dry_run": False, "config": "/etc/hal-scratch-clean.json", "patience": 1800},
    **{"permission": False, "permit": None, "served": False, "record": "/var/lib/hal-scratch-clean/permitted"},
}
HOMES: Given = {"once": False, "last": False, "status": False, "config": "/etc/hal/file_system_probe.json"}
SERVER: Given = {"settings": "/etc/hal/provision.json"}
JOB: Given = {
    **dict.fromkeys(("act", "job_begin", "job_end", "foreign_processes", "end_foreign_processes", "observed"), False),
    **{"who_fills": None, "role": [], "json": False},
}
LISTENS: Given = {
    **dict.fromkeys(("help", "here", "public", "show"), False),
    **{"port": 0, "settings": "/etc/hal/notebooks.json", "others": []},
}

LINES = [
    *(Line(PGI, name, {**COMPILERS, "command": name}) for name in ("status", "verify")),
    *(Line(PGI, name, {**COMPILERS, "command": name, "check": False}) for name in ("install", "localrc", "prune")),
    *(Line(DATASET, name, {**SETS, "command": name}) for name in ("list", "setup")),
    *(Line(DATASET, name, {**SETS, "command": name, "dataset": []}) for name in ("verify", "status")),
    *(
        Line(DATASET, f"{name} NAME[/VERSION]:mnist/1", {**SETS, "command": name, "dataset": "mnist/1", **more})
        for name, more in (
            ("stage", {"no_publish": False}),
            ("publish", {}),
            ("default", {}),
            ("retire", {}),
            ("remove", {"confirm": ""}),
        )
    ),
    Line(ENVIRONMENT, "command:status owner:wmlce", {**CONDA, "command": "status", "owner": "wmlce"}),
    Line(ENVIRONMENT, "command:list", {**CONDA, "command": "list"}),
    Line(ENVIRONMENT, "command:verify", {**CONDA, "command": "verify", "ids": []}),
    Line(ENVIRONMENT, "command:used", {**CONDA, "command": "used"}),
    Line(ENVIRONMENT, "command:apply", {**CONDA, "command": "apply", "check": False}),
    Line(PROBE, "--once", {**HOMES, "once": True}),
    Line(PROBE, "--last", {**HOMES, "last": True}),
    Line(PROBE, "--status", {**HOMES, "status": True}),
    Line(MODULES, "command:status", {"command": "status", "settings": "/etc/hal/modules.json"}),
    Line(MODULES, "command:renew", {"command": "renew", "settings": "/etc/hal/modules.json"}),
    Line(SCRATCH, "", SCRATCHED),
    Line(HEALTH, "", JOB),
    Line(PROVISION, "", {**SERVER, "command": None}),
    *(Line(PROVISION, name, {**SERVER, "command": name}) for name in ("serve", "prune")),
    *(Line(PROVISION, f"{name} NODE:n", {**SERVER, "command": name, "node": "n"}) for name in ("arm", "spool")),
    Line(PROVISION, "disarm NODE:n", {**SERVER, "command": "disarm", "node": ["n"]}),
    Line(PROVISION, "status", {**SERVER, "command": "status", "node": []}),
    Line(PROVISION, "images", {**SERVER, "command": "images", "only_wrong": False}),
    Line(PROVISION, "publish FOLDER:f", {**SERVER, "command": "publish", "folder": "f"}),
    Line(REIMAGE, "", {**SERVER, "command": None}),
    Line(REIMAGE, "status", {**SERVER, "command": "status", "node": [], "watch": False}),
    Line(REIMAGE, "read", {**SERVER, "command": "read", "node": []}),
    *(Line(REIMAGE, f"{name} NODE:n", {**SERVER, "command": name, "node": "n"}) for name in ("show", "write")),
    *(Line(REIMAGE, f"{name} NODE:n", {**SERVER, "command": name, "node": ["n"]}) for name in ("abort", "driven")),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_what_is_required_suffices_and_the_rest_has_its_default(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(line.program, line.argv, monkeypatch) == line.gives


@pytest.mark.parametrize(("program", "name", "argv"), lacks(LINES))
def test_what_is_left_out_is_named(
    program: str, name: str, argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert name in refusal(program, argv, monkeypatch, capsys).split()


@pytest.mark.parametrize(
    ("program", "argv", "gives"),
    [
        *((PGI, f"--table t {one} --check", {"table": "t", "check": True}) for one in ("install", "localrc", "prune")),
        (DATASET, "--table t stage mnist --no-publish", {"table": "t", "dataset": "mnist", "no_publish": True}),
        (DATASET, "remove mnist/1 --confirm 4f2a", {"confirm": "4f2a"}),
        (DATASET, "verify mnist imagenet/2", {"dataset": ["mnist", "imagenet/2"]}),
        (DATASET, "status mnist", {"dataset": ["mnist"]}),
        (ENVIRONMENT, "--settings s --declared d --lock l apply --check",
         {"settings": "s", "declared": "d", "lock": "l", "check": True}),
        (ENVIRONMENT, "verify wmlce/1.7 wmlce/1.6", {"ids": ["wmlce/1.7", "wmlce/1.6"]}),
        (PROBE, "--last --config c", {"last": True, "once": False, "config": "c"}),
        (MODULES, "renew --settings s", {"settings": "s"}),
        (SCRATCH, "--dry-run --config c --patience 5", {"dry_run": True, "config": "c", "patience": 5}),
        (HEALTH, "--act --role slurm --role nvidia_driver --json",
         {"act": True, "role": ["slurm", "nvidia_driver"], "json": True, "job_begin": False}),
        (HEALTH, "--job-begin", {**JOB, "job_begin": True}),
        (HEALTH, "--job-end", {**JOB, "job_end": True}),
        (HEALTH, "--foreign-processes --json", {**JOB, "foreign_processes": True, "json": True}),
        (HEALTH, "--end-foreign-processes", {**JOB, "end_foreign_processes": True}),
        (HEALTH, "--who-fills /tmp 1024", {**JOB, "who_fills": ["/tmp", "1024"]}),
        (PROVISION, "--settings s disarm n m", {"settings": "s", "node": ["n", "m"]}),
        (PROVISION, "status n m", {"node": ["n", "m"]}),
        (PROVISION, "images --only-wrong", {"only_wrong": True}),
        (REIMAGE, "--settings s status n m --watch", {"settings": "s", "node": ["n", "m"], "watch": True}),
        (REIMAGE, "abort n m", {"node": ["n", "m"]}),
        (REIMAGE, "driven n m", {"node": ["n", "m"]}),
        (REIMAGE, "read n m", {"node": ["n", "m"]}),
    ],
)  # fmt: skip
def test_what_is_given_counts(program: str, argv: str, gives: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(program, argv.split(), monkeypatch)
    assert {name: found[name] for name in gives} == gives


@pytest.mark.parametrize(
    ("program", "argv", "name"),
    [
        *((program, "erase", "COMMAND") for program in (PGI, DATASET, PROVISION, REIMAGE)),
        *((PGI, f"{name} --check", "--check") for name in ("status", "verify")),  # nothing is done anyway
        (DATASET, "list mnist", "mnist"),
        (DATASET, "publish mnist imagenet", "imagenet"),
        (ENVIRONMENT, "erase", "command"),
        (MODULES, "erase", "command"),
        (PROBE, "", "--once"),
        (PROBE, "--once --last", "--once"),
        (PROBE, "--status --last", "--status"),
        (SCRATCH, "--patience long", "--patience"),
        (HEALTH, "--act --job-begin", "--act"),
        (HEALTH, "--job-end --job-begin", "--job-end"),
        (HEALTH, "--job-end --act", "--act"),
        (HEALTH, "--act --end-foreign-processes", "--act"),
        (HEALTH, "--end-foreign-processes --foreign-processes", "--end-foreign-processes"),
        (HEALTH, "--who-fills /tmp", "--who-fills"),
        (PROVISION, "arm n m", "m"),
        (REIMAGE, "show n m", "m"),
        (NOTEBOOK, "--port any", "--port"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    program: str, argv: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert name in refusal(program, argv.split(), monkeypatch, capsys).replace(":", "").split()


@pytest.mark.parametrize(("program", "table"), [(PGI, "compilers.json"), (DATASET, "datasets.json")])
def test_no_command_is_refused_before_the_table_is_read(
    program: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(program, ["--table", str(tmp_path / table)], monkeypatch)
    assert ended.value.code == 2
    assert "command" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("program", "own"), [(PROVISION, "hal-provision"), (REIMAGE, "hal-reimage")])
def test_no_command_is_refused_with_where_they_are_named(
    program: str, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "umask", lambda _: 0o22)  # it is this process's, too
    settings = {name: str(tmp_path / name) for name in ("state", "nodes", "records", "images", "image_key")}
    settings |= {name: str(tmp_path / name) for name in ("certificate", "private_key")}
    figures = dict.fromkeys(("keep_images", "connections", "request_seconds", "port", "tls_port"), 1)
    given = {**settings, **figures, "listen": []}
    (tmp_path / "provision.json").write_text(json.dumps(given))
    assert main(program, ["--settings", str(tmp_path / "provision.json")], monkeypatch) == 2
    said = capsys.readouterr()
    assert said.out + said.err == f"say what to do; {own} --help\n"


@pytest.mark.parametrize("kind", [[], ["notebook"], ["lab"], ["tensorboard"], ["h2o"]])
def test_a_notebook_listens_for_its_user_alone_unless_more_is_said(
    kind: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(NOTEBOOK, kind, monkeypatch, "parse_known_args") == LISTENS
    more = [*kind, "--public", "--port", "8888", "--show", "--settings", "s", "--NotebookApp.x=1", "my folder"]
    found = read(NOTEBOOK, more, monkeypatch, "parse_known_args")
    assert found == {
        "help": False, "here": False, "public": True, "port": 8888, "show": True, "settings": "s",
        "others": ["--NotebookApp.x=1", "my folder"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ("hal-lab", ["lab"]),
        ("hal-tensorboard", ["tensorboard"]),
        ("hal-h2o", ["h2o"]),
        ("hal-notebook", ["notebook"]),
        ("hal-notebook", []),
    ],
)
def test_a_notebooks_refusal_has_the_name_that_the_user_typed(
    own: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(NOTEBOOK, [*words, "--port", "any"], monkeypatch, capsys).startswith(f"{own}: error: ")


def test_the_help_says_what_the_program_is_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(ENVIRONMENT, ["--help"], monkeypatch)
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "install, verify and look at the environments that roles declare" in said
    main(NOTEBOOK, ["--help"], monkeypatch)
    assert "and say how to get there." in " ".join(capsys.readouterr().out.split())

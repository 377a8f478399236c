"""The program hal-inventory: what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hal_cluster.inventory import cli, show
from tests.unit.hal_inventory.conftest import ROOT, Folder

Run = Callable[..., subprocess.CompletedProcess[str]]
COMMANDS = [
    ["show"], ["show", "front"], ["show", "node"], ["show", "profile"], ["show", "partition", "gpu"], ["show", "array"],
    ["list"], ["list", "gpu"], ["graph"], ["graph", "gpu"], ["nodes", "all"], ["names"],
    ["validate", "--model"], ["validate", "--model", "--placeholders"],
]  # fmt: skip


@pytest.fixture
def source(folder: Folder, small: str) -> Path:
    return folder.site(small.replace("serial: S-FRONT", "serial: !placeholder S-FRONT"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_in_a_pipe_it_is_plain(hal_inventory: Run, source: Path, command: list[str]) -> None:
    done = hal_inventory("-i", source, *command)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    assert "\x1b" not in done.stdout
    assert not re.search(r"[ \t]$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", [*COMMANDS, ["schema"]], ids=" ".join)
def test_json_everywhere(hal_inventory: Run, source: Path, command: list[str]) -> None:
    done = hal_inventory(*command, "--json", "-i", source)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("gpu and not worker2", "worker[1,3-4]\n"), ("worker[1-3],front", "front,worker[1-3]\n"), ("gpu and front", "\n")],
)
def test_nodes_in_and_out(hal_inventory: Run, source: Path, expression: str, expected: str) -> None:
    assert hal_inventory("-i", source, "nodes", expression).stdout == expected


def test_without_an_expression_all_nodes_are_meant(hal_inventory: Run, source: Path) -> None:
    every = hal_inventory("-i", source, "nodes", "all").stdout
    assert (hal_inventory("-i", source, "nodes").stdout, "worker[1" in every) == (every, True)


def test_nodes_one_a_line(hal_inventory: Run, source: Path) -> None:
    assert hal_inventory("-i", source, "nodes", "worker[1-2]", "--expand").stdout == "worker1\nworker2\n"


def test_the_table_of_nodes(hal_inventory: Run, source: Path) -> None:
    assert hal_inventory("-i", source, "list", "front or worker1").stdout == (
        "NODE     ROLE     PROFILE  ARCH     GPUS    ADDRESS     SERVICES\n"
        "front    login    server   x86_64   -       10.1.0.10   slurm_controller, time_server\n"
        "worker1  compute  worker   ppc64le  2 v100  10.1.0.101  -\n"
    )


def test_the_last_source_decides(hal_inventory: Run, folder: Folder, source: Path) -> None:
    part = folder.write("part.yml", "plugin: hal\ncluster: cluster.yml\nonly: worker1\n")
    assert hal_inventory("-i", source, "-i", part, "nodes", "all").stdout == "worker1\n"
    assert hal_inventory("nodes", "all", "-i", part, "-i", source).stdout == "front,worker[1-4]\n"


def test_validate_is_clean(hal_inventory: Run, source: Path) -> None:
    done = hal_inventory("-i", source, "validate", "--model")
    assert (done.returncode, done.stdout) == (
        0,
        "hal.yml: site small: 5 nodes, 8 GPUs, 2 arrays, 2 services, 1 partition, 1 file system: no findings\n"
        "hal.yml: file system home (nfs): no role mounts it on worker[1-4];"
        " role nfs_client would, in a group of that name\n"
        "1 placeholder stands for real values; --placeholders lists them\n",
    )
    listed = hal_inventory("-i", source, "validate", "--model", "--placeholders").stdout
    assert listed.endswith("LINE  FIELD               VALUE\n  32  nodes.front.serial  S-FRONT\n")


def test_validate_prints_findings_then_a_summary(hal_inventory: Run, folder: Folder, small: str) -> None:
    source = folder.site(small.replace("role: login", "role: x").replace("drives: 12", "drives: 0"))
    done = hal_inventory("-i", source, "validate", "--model")
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == (
        'cluster.yml:30: nodes.front.role: must be login, management, data, transfer, test or compute, not "x"\n'
        "cluster.yml:46: arrays.flash[1-2].drives: must be at least 1, not 0\n"
        "\n"
        "2 findings\n"
    )
    data = json.loads(hal_inventory("-i", source, "validate", "--json").stdout)
    assert [(one["line"], one["field"]) for one in data["findings"]] == [
        (30, "nodes.front.role"),
        (46, "arrays.flash[1-2].drives"),
    ]


def test_validate_takes_a_model_and_checks_every_source(hal_inventory: Run, folder: Folder, source: Path) -> None:
    bad = folder.write("bad.yml", "plugin: hal\ncluster: cluster.yml\nonly: nobody\n")
    assert hal_inventory("validate", "cluster.yml").returncode == 0
    done = hal_inventory("-i", source, "-i", bad, "validate", "--model")
    assert done.returncode == 2
    assert 'bad.yml:3: only: unknown name "nobody"' in done.stdout
    assert "hal.yml: site small" in done.stdout


def test_validate_says_what_roles_would_refuse_and_contacts_nobody(hal_inventory: Run) -> None:
    """HAL's own declaration in a fresh clone: nobody has made its secrets, keys and locks."""
    done = hal_inventory("-i", ROOT / "inventory/hal/hal.yml", "validate", PATH="/nonexistent")
    assert done.returncode == 2, done.stderr
    lines = done.stdout.splitlines()
    source = lines[0].partition(": ")[0]
    assert source.endswith("inventory/hal/hal.yml")
    munge = f"{source}: munge on hal[01-16],hal-login,hal-mgmt[1-2],hal-test: munge_key: 'vault_munge_key' is undefined"
    assert f"{munge} (roles/munge/meta/argument_specs.yml)" in lines
    assert [line for line in lines if line.startswith(f"{source}: spectrum_scale on hal[01-16],") and "license" in line]
    assert len(set(lines)) == len(lines)
    assert hal_inventory("-i", ROOT / "inventory/hal/hal.yml", "validate", "--model").returncode == 0


def test_validate_says_that_roles_cannot_be_asked_behind_a_locked_vault(
    hal_inventory: Run, folder: Folder, source: Path
) -> None:
    folder.write("group_vars/all.yml", "$ANSIBLE_VAULT;1.1;AES256\n3031\n")
    done = hal_inventory("-i", source, "validate")
    assert done.returncode == 2, done.stderr
    assert "hal.yml: roles cannot be asked: Attempting to decrypt but no vault secrets found" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nodes", "worker9"], 'unknown name "worker9"; did you mean "worker"?'),
        (["nodes", "gpu and"], '"gpu and": a name is missing after "and"'),
        (["list", "nobody"], 'unknown name "nobody"'),
        (["show", "fron"], 'unknown name "fron"; did you mean "front"?'),
        (["show", "partition", "gp"], 'unknown partition "gp"; did you mean "gpu"?'),
        (["show", "partitio", "gpu"], 'unknown kind "partitio"; did you mean "partition"?'),
        (["show", "a", "b", "c"], "show takes a kind and a name at most"),
        (["graph", "gpus"], 'unknown group "gpus"; did you mean "gpu"?'),
        (["--host", "fron"], 'unknown node "fron"; did you mean "front"?'),
        (["-i", "missing.yml", "show"], "missing.yml: no such file"),
        (["-i", "cluster.yml", "show"], "cluster.yml:1: plugin: this is a site model; name a source for it, a hal.yml"),
        (["-i", "x.ini", "show"], "x.ini: no such file"),
        (["validate", "missing.yml", "--json"], ""),
        ([], ""),
        (["nonsense"], "usage: hal-inventory"),
    ],
)
def test_a_mistake_ends_with_status_2_and_no_traceback(
    hal_inventory: Run, source: Path, arguments: list[str], says: str
) -> None:
    done = hal_inventory("-i", source, *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_a_faulty_model_is_refused_by_every_command(hal_inventory: Run, folder: Folder, small: str) -> None:
    source = folder.site(small.replace("role: login", "role: x"))
    for command in (["show"], ["list"], ["graph"], ["nodes", "all"], ["names"], ["--list"], ["--host", "front"]):
        done = hal_inventory("-i", source, *command)
        assert (done.returncode, done.stdout) == (2, ""), command
        assert done.stderr.startswith("cluster.yml:30: nodes.front.role"), command


def on_a_terminal(folder: Folder, *arguments: str, **environment: str) -> str:
    """Return what the program writes on a terminal."""
    root = Path(__file__).resolve().parents[4]
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hal_cluster.inventory", *arguments],
        cwd=folder.path,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "PYTHONPATH": str(root), "TERM": "xterm-256color", "COLUMNS": "120", **environment},
    )
    os.close(slave)
    written = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        written += part
    process.wait()
    os.close(master)
    return written.decode()


def test_tables_and_colour_on_a_terminal(folder: Folder, source: Path) -> None:
    table = on_a_terminal(folder, "-i", "hal.yml", "list")
    assert "──" in table
    assert "\x1b[" in table
    assert "\x1b[36m" in on_a_terminal(folder, "-i", "hal.yml", "show")


def test_no_color_is_honoured(folder: Folder, source: Path) -> None:
    table = on_a_terminal(folder, "-i", "hal.yml", "show", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", table)
    assert "──" in on_a_terminal(folder, "-i", "hal.yml", "list", NO_COLOR="1")


def test_a_dumb_terminal_gets_plain_text(folder: Folder, source: Path) -> None:
    assert "\x1b" not in on_a_terminal(folder, "-i", "hal.yml", "list", TERM="dumb")


def test_markup_in_a_value_is_only_text(folder: Folder, small: str) -> None:
    folder.site(small.replace("model: x86 server", "model: '[red]x86[/red] server'"))
    assert "[red]x86[/red]" in on_a_terminal(folder, "-i", "hal.yml", "show", "profile", "server")


def test_a_reader_that_has_had_enough_is_no_fault(folder: Folder, root: Path, source: Path) -> None:
    for command in ("--list", "schema", "list", "names"):
        program = f"'{sys.executable}' -m hal_cluster.inventory -i hal.yml {command}"
        script = f"{program} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
        done = folder.run("bash", "-c", script)
        assert (done.stdout, done.stderr) == ("0\n", ""), command


def test_kinds_are_listed_once(root: Path) -> None:
    assert list(show.KINDS) == list(cli.KINDS)

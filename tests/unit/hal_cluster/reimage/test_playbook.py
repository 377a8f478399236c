"""playbooks/reimage.yml as administrators call it: what would leave out a guard is refused, and nothing is changed."""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from hal_cluster.reimage import call
from hal_cluster.reimage.errors import Conflict
from tests.unit import addresses, playing
from tests.unit.hal_cluster.reimage.asking import FILES, PROGRAMS, Server
from tests.unit.hal_cluster.reimage.conftest import Publish
from tests.unit.interpreters import beside

ROOT = Path(__file__).resolve().parents[4]
LOOKS = {"hal-provision images", "hal-reimage read", "scontrol --oneliner", "sacctmgr --noheader"}
NODE = ("-e", "reimage_nodes=hal05")


class Calls:
    """A site whose server is this computer, and whose BMCs do not answer; each program of the server's is logged."""

    def __init__(self, folder: Path, server: Server, authority: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.model()
        (folder / "bin").mkdir()
        (folder / "bin").joinpath("id").write_text(
            '#!/bin/sh\n[ "$2" = alice ] && echo 5001 || exec /usr/bin/id "$@"\n'
        )
        (folder / "bin/id").chmod(0o755)
        for name in ("scontrol", "squeue", "sacct", "sacctmgr", *PROGRAMS):
            told = f'#!/bin/sh\necho {name} "$@" >>{self.log}\n'
            if name == "sacctmgr":
                told += "echo 'alice|isl'\n"
            if name == "scontrol":
                told += "[ \"$3\" != config ] || echo 'AccountingStorageEnforce = associations'\n"
            if name in PROGRAMS:
                program = [*beside(sys.executable), str(FILES / PROGRAMS[name]), "--settings", str(server.settings)]
                told += f'exec {shlex.join(program)} "$@"\n'
            (folder / "bin" / name).write_text(told)
            (folder / "bin" / name).chmod(0o755)
        (folder / "state").mkdir(exist_ok=True)
        (folder / "state/ca").symlink_to(authority)
        (folder / "group_vars/all").mkdir(parents=True)
        policy = {
            "ansible_connection": "local",
            "hal_audit_dir": str(folder / "state/audit"),
            "provision_server_image_key": str(folder / "image_key.pem"),
            "provision_server_images_folder": str(folder / "images"),
            "bmc_on_at_once": 4,
            "bmc_on_pause_seconds": 1,
            "bmc_wait_seconds": 0,
            "slurm_users": [{"name": "alice", "accounts": ["isl"]}],
        }
        (folder / "group_vars/all/site.yml").write_text(yaml.safe_dump(policy))

    def model(self, *changes: tuple[str, str]) -> None:
        """Have HAL's model, changed, with BMCs where nobody listens."""
        text = (ROOT / "inventory/hal/cluster.yml").read_text().replace("10.64.1.", f"{addresses.network()}.")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (self.folder / "cluster.yml").write_text(text)
        (self.folder / "hal.yml").write_text("plugin: hal\ncluster: cluster.yml\nvirtual: true\nstate: state\n")

    def play(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        words = ("-i", str(self.folder / "hal.yml"), *words)
        return playing.play("playbooks/reimage.yml", *words, sites=(), PATH=path, **environment)

    def called(self) -> set[str]:
        """Return the server's programs that ran, each with its first word."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return {" ".join(line.split()[:2]) for line in lines}


def said(done: subprocess.CompletedProcess[str]) -> str:
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    return " ".join(text.split())


@pytest.fixture
def calls(tmp_path: Path, server: Server, authority: Path, publish: Publish) -> Calls:
    """A site to call the playbook on."""
    publish("20261122")
    return Calls(tmp_path, server, authority)


@pytest.mark.parametrize(
    "words",
    [
        ("--limit", "hal05"),
        ("--limit", "hal05,localhost"),
        ("--tags", "x"),
        ("--tags", "always"),
        ("--tags", "all,x"),
        ("--skip-tags", "x"),
        ("--skip-tags", "always"),
    ],
    ids=" ".join,
)
def test_what_would_leave_out_a_part_is_refused(calls: Calls, words: tuple[str, ...]) -> None:
    done = calls.play(*NODE, "-e", "reimage_code=K7QX-M2VD", *words)
    assert done.returncode != 0
    assert "reimage.yml takes no --limit, --tags and --skip-tags: name the nodes by reimage_nodes" in said(done)
    assert calls.called() == set()


def test_a_limit_to_the_controller_itself_finds_no_host(calls: Calls) -> None:
    done = calls.play(*NODE, "-e", "reimage_code=K7QX-M2VD", "--limit", "localhost")
    assert done.returncode != 0
    assert "leaves us with no hosts to target" in said(done)
    assert calls.called() == set()


def test_a_task_that_is_not_there_to_start_at_begins_nothing(calls: Calls) -> None:
    done = calls.play(*NODE, "--start-at-task", "Arm")
    assert 'No matching task "Arm" found' in said(done)
    assert calls.called() == set()


@pytest.mark.parametrize("words", [(), ("--start-at-task", "Reimage"), ("--check",), ("--diff",)], ids=" ".join)
def test_a_call_asks_the_server_and_the_bmc_and_changes_nothing(calls: Calls, words: tuple[str, ...]) -> None:
    """All of it in one task: a start at it leaves nothing out."""
    done = calls.play(*NODE, *words)
    assert done.returncode == 2
    text = said(done)
    assert "BMC of hal05" in text
    assert "Nothing was changed" in text
    assert calls.called() == LOOKS
    assert not list((calls.folder / "records").iterdir())


def test_each_node_whose_bmc_does_not_answer_is_a_line(calls: Calls) -> None:
    text = said(calls.play("-e", "reimage_nodes=hal[05-06]", "-e", "reimage_code=K7QX-M2VD"))
    assert "BMC of hal05" in text
    assert "BMC of hal06" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name the nodes: -e reimage_nodes=hal05"),
        (("reimage_nodes=",), "name the nodes: -e reimage_nodes=hal05"),
        (("reimage_nodes=all",), "reimage_nodes is all: name nodes, such as hal05 or hal[05-08]"),
        (("reimage_nodes=*",), "reimage_nodes is *: name nodes, such as hal05 or hal[05-08]"),
        (("reimage_nodes=hal17",), 'unknown name "hal17"'),
        (
            ("reimage_nodes=hal-login",),
            "hal-login: is a login node; compute and test nodes are reimaged, and no others",
        ),
        (("reimage_nodes=hal05", "reimage_next_state=IDLE"), "reimage_next_state is IDLE: RESUME or DOWN"),
        (("reimage_nodes=hal05", "bmc_on_at_once=0"), "bmc_on_at_once, bmc_on_pause_seconds: 0 at once, 1 s between"),
        (
            ("reimage_nodes=hal05", "bmc_on_at_once=4", "bmc_on_pause_seconds=-1"),
            "bmc_on_at_once, bmc_on_pause_seconds",
        ),
        (('{"reimage_nodes": "hal05", "reimage_wipe": ["scratch"]}',), "BMC of hal05"),
        (('{"reimage_nodes": ["hal05", "hal06"]}',), "is not a range"),
    ],
)
def test_what_nobody_means_is_refused_in_a_line(calls: Calls, words: tuple[str, ...], message: str) -> None:
    done = calls.play(*(word for each in words for word in ("-e", each)))
    assert done.returncode == 2
    assert message in said(done)
    assert calls.called() <= LOOKS


def test_without_a_provisioning_server_it_says_so(calls: Calls) -> None:
    calls.model(("  provision_server: image_server\n", ""))
    done = calls.play(*NODE)
    assert done.returncode == 2
    assert "no node of the site is provision_server" in said(done)


def test_a_server_without_the_role_is_said(calls: Calls) -> None:
    for name in PROGRAMS:
        (calls.folder / "bin" / name).unlink()
    done = calls.play(*NODE)
    assert done.returncode == 2
    assert "hal-provision is not on the provisioning server: roll out role provision_server" in said(done)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("-k", "(--ask-pass): use --connection-password-file"),
        ("-K", "(--ask-become-pass): use --become-password-file"),
    ],
)
def test_what_a_rollout_of_its_own_could_not_ask_for_is_refused_at_once(calls: Calls, word: str, message: str) -> None:
    done = calls.play(*NODE, word)
    assert done.returncode == 2
    text = said(done)
    assert f"reimage.yml rolls out by an ansible-playbook of its own, which cannot ask {message}" in text
    assert "BMC of" not in text
    assert calls.called() == set()


@pytest.mark.parametrize("name", ["ANSIBLE_ASK_PASS", "ANSIBLE_BECOME_ASK_PASS"])
def test_so_is_a_configuration_that_asks(calls: Calls, name: str) -> None:
    done = calls.play(*NODE, **{name: "1"})
    assert "which cannot ask (--ask-" in said(done)
    assert calls.called() == set()


# --- the action plugin


def action() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hal_reimage_action", ROOT / "plugins/action/hal_reimage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_variables_of_the_command_line_come_to_the_rollout_as_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible.parsing.vault import VaultLib, VaultSecret
    from ansible.parsing.yaml.objects import AnsibleVaultEncryptedUnicode

    vault = VaultLib([("hal", VaultSecret(b"password"))])
    secret = AnsibleVaultEncryptedUnicode(vault.encrypt("wq8-Tramway-lan7"))
    secret.vault = vault
    given: dict[str, Any] = {
        "reimage_nodes": "hal05",
        "reimage_code": "K7QX-M2VD",
        "vault_key": secret,
        "nested": {"key": secret, "since": datetime.date(2026, 11, 22), "list": [1, None, True]},
    }
    monkeypatch.setattr(call, "load_extra_vars", lambda loader: given)
    assert json.loads(json.dumps(call.extra(None))) == {
        "vault_key": "wq8-Tramway-lan7",
        "nested": {"key": "wq8-Tramway-lan7", "since": "2026-11-22", "list": [1, None, True]},
    }


def test_playbooks_of_a_run_write_how_they_ended_and_inherit_no_check_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_CHECK_MODE", "1")
    monkeypatch.setenv("ANSIBLE_FORCE_COLOR", "1")
    environment = call.environment()
    assert "ANSIBLE_CHECK_MODE" not in environment
    assert "ANSIBLE_FORCE_COLOR" not in environment
    assert "hal_outcome" in environment["ANSIBLE_CALLBACKS_ENABLED"].split(",")
    assert Path(environment["ANSIBLE_CONFIG"]) == ROOT / "ansible.cfg"


def options(words: list[str]) -> dict[str, Any]:
    """Return what Ansible itself makes of a command line."""
    from ansible.cli.playbook import PlaybookCLI

    cli = PlaybookCLI(["ansible-playbook", *words])
    cli.init_parser()
    found: dict[str, Any] = vars(cli.post_process_args(cli.parser.parse_args(words)))
    return found


def program(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]) -> list[str]:
    from ansible.utils.context_objects import CLIArgs

    monkeypatch.setattr("ansible.context.CLIARGS", CLIArgs(given))
    argv: list[str] = call.program("/venv/bin/python")
    assert argv[:2] == ["/venv/bin/python", "/venv/bin/ansible-playbook"]
    return argv[2:]


HOW = [
    ["-u", "root"],
    ["--private-key", "keys/id"],
    ["--ssh-common-args=-oProxyJump=hal-login -C"],
    ["--ssh-extra-args=-v"],
    ["--sftp-extra-args=-f"],
    ["--scp-extra-args=-l 100"],
    ["-T", "77"],
    ["-c", "paramiko"],
    ["-b"],
    ["--become-method", "su"],
    ["--become-user", "operator"],
    ["--become-password-file", "become"],
    ["--connection-password-file", "password"],
    ["-f", "3"],
    ["-i", "site/hal.yml", "-i", "other.yml"],
    ["--vault-password-file", "vault", "--vault-password-file", "vault2"],
]


@pytest.mark.parametrize("words", [[], *HOW, [word for each in HOW for word in each]], ids=" ".join)
def test_rollouts_get_in_as_the_call_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    given = options([*words, "--check", "reimage.yml"])
    argv = program(monkeypatch, given)
    monkeypatch.chdir("/")  # they are started in another folder
    found = options([*argv, "reimage.yml"])
    assert found == {**given, "check": False}


@pytest.mark.parametrize(
    ("given", "passed"), [("hal@keys/a", "hal@{}/keys/a"), ("keys/b@c", "keys/b@{}/c"), ("d", "{}/d")]
)
def test_files_of_vault_ids_are_found_from_another_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str, passed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").symlink_to("/dev/null")  # a script goes by the name that it is called by
    argv = program(monkeypatch, options(["--vault-id", given, "reimage.yml"]))
    assert options([*argv, "reimage.yml"])["vault_ids"] == [passed.format(tmp_path)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ask-vault-pass"], "(--ask-vault-pass): use --vault-password-file"),
        (["--vault-id", "hal@prompt"], "(--vault-id hal@prompt): use --vault-password-file"),
        (["--vault-id", "prompt"], "(--vault-id prompt): use --vault-password-file"),
        (["--vault-id", "a@file", "--vault-id", "become@prompt_ask_vault_pass"], "(--vault-id become@prompt_ask_vault"),
        (["--connection-password-file", "-"], "(--connection-password-file -): use --connection-password-file"),
        (["--become-password-file", "-"], "(--become-password-file -): use --become-password-file"),
        (
            ["-K", "-k", "-J"],
            "(--ask-vault-pass, --ask-pass, --ask-become-pass): use --vault-password-file and "
            "--connection-password-file and --become-password-file",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_all_that_asks_is_refused(monkeypatch: pytest.MonkeyPatch, words: list[str], message: str) -> None:
    plugin = action()
    program(monkeypatch, options([*words, "reimage.yml"]))
    found = ran(plugin, monkeypatch, looks)
    assert found["failed"] is True
    assert found["changed"] is False
    assert f"which cannot ask {message}" in found["msg"]


def test_so_is_a_vault_of_the_configuration_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = action()
    program(monkeypatch, options(["reimage.yml"]))
    monkeypatch.setattr("ansible.constants.DEFAULT_VAULT_IDENTITY_LIST", ["hal@prompt"])
    assert "(--vault-id hal@prompt)" in ran(plugin, monkeypatch, looks)["msg"]


@pytest.mark.parametrize("words", [*HOW, ["--vault-id", "prompt@file"]], ids=" ".join)
def test_what_does_not_ask_is_not_refused(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    plugin = action()
    program(monkeypatch, options([*words, "reimage.yml"]))
    with pytest.raises(AssertionError, match="it looks"):
        ran(plugin, monkeypatch, looks)


def looks(asked: object, connected: object) -> None:
    raise AssertionError("it looks")


@pytest.mark.parametrize("error", ["hal05", "revision 4 is not the newest of hal05"])
def test_a_record_that_another_wrote_is_a_line(monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    plugin = action()

    def reimage(asked: object, connected: object) -> None:
        raise Conflict(error)

    found = ran(plugin, monkeypatch, reimage)
    assert found == {
        "failed": True,
        "changed": False,
        "msg": f"somebody else works on these nodes: hal-reimage status on the server ({error})",
    }


def test_a_run_that_is_stopped_ends_its_playbooks(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = action()
    ended: list[bool] = []
    monkeypatch.setattr(plugin, "end_running", lambda: ended.append(True))

    def reimage(asked: object, connected: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ran(plugin, monkeypatch, reimage)
    assert ended == [True]


def ran(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, reimage: Callable[..., object]) -> dict[str, Any]:
    """Return what the action plugin says when what it calls does this."""
    monkeypatch.setattr(plugin, "reimage", reimage)
    monkeypatch.setattr(plugin, "end_with_parent", lambda: None)
    monkeypatch.setattr(call, "load_extra_vars", lambda loader: {})
    monkeypatch.setattr(plugin.ActionBase, "run", lambda *given: {})
    given = {"nodes": "hal05", "code": "", "settings": {}}
    module = plugin.ActionModule.__new__(plugin.ActionModule)
    module._loader = None
    module._task = SimpleNamespace(check_mode=False)
    monkeypatch.setattr(plugin.ActionModule, "validate_argument_spec", lambda *told, **more: (None, given))
    variables = {"hostvars": {}, "ansible_inventory_sources": [], "ansible_playbook_python": sys.executable}
    found: dict[str, Any] = module.run(None, variables)
    return found

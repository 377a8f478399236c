"""What the observer takes for a secret, what it keeps on the disk, and what it takes for the state of the site."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.parsing.yaml.objects import AnsibleVaultEncryptedUnicode

from hal_cluster.audit import observer as subject
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.observer import Observer
from hal_cluster.audit.store import Store
from tests.unit.hal_cluster.audit.observing import TASK, Playing

MODE = {"mode": "0644"}


def write(name: str, content: str = "x") -> dict[str, Any]:
    return {"name": name, "ansible.builtin.copy": {"content": content, "dest": f"/srv/{name}", **MODE}}


SEE = {"name": "see", "ansible.builtin.command": {"argv": ["cat", "{{ vault_a }}"]}, "register": "seen"}
LOOK = {"name": "look", "ansible.builtin.command": {"argv": ["date"]}, "register": "looked"}
SLURP = {"name": "slurp", "ansible.builtin.slurp": {"src": "{{ vault_a }}"}, "register": "read"}
STAT = {"name": "stat", "ansible.builtin.stat": {"path": "{{ vault_a }}"}, "register": "there"}
FACT = {"name": "fact", "ansible.builtin.set_fact": {"made": "{{ indirect }}!"}}
SAID = {"name": "said", "ansible.builtin.command": {"argv": ["x"]}}
SUM = {"checksum": "0" * 40}


@pytest.fixture(autouse=True)
def _base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hal_cluster.audit.observer.constants.CONFIG_FILE", str(tmp_path / "ansible.cfg"))


def secrets_of(playing: Playing, *names: str, **fields: Any) -> set[str]:
    """Names of those tasks whose files are noted as secret; of these no checksum is kept."""
    for name in names:
        playing.observer.ok(playing.result(name, {"changed": True, **SUM}, **fields))
    entries = playing.host().entries.items()
    assert [one for one, entry in entries if ("sha1" in entry.declared) is entry.secret] == []
    return {resource.rpartition("/")[2] for resource, entry in entries if entry.secret}


def test_a_value_is_secret_if_it_leads_to_one(tmp_path: Path) -> None:
    tasks = [
        *(write("open", "{{ colour }}"), write("named", "{{ vault_a }}"), write("through", "{{ indirect }}")),
        *(write("vaulted", "{{ token }}"), {**write("asked"), "when": "vault_a != ''"}, write("vault", "vault")),
        {**write("own", "{{ mine }}"), "vars": {"mine": "{{ vault_a }}"}},
    ]
    vaulted = AnsibleVaultEncryptedUnicode("$ANSIBLE_VAULT;1")
    hosts = {"n1": {"colour": "red", "indirect": "{{ vault_a }}", "vault_a": "s", "token": vaulted}}
    playing = Playing(tmp_path, tasks, hosts)
    assert secrets_of(playing, *(one["name"] for one in tasks)) == {"named", "through", "vaulted", "own"}


def test_defaults_lead_to_secrets_unless_the_site_says_otherwise_and_vars_count_more(tmp_path: Path) -> None:
    tasks = [write("default", "{{ first }}"), write("given", "{{ second }}"), write("fixed", "{{ third }}")]
    playing = Playing(
        tmp_path,
        tasks,
        {"n1": {"second": "open", "third": "open"}},
        defaults__main_yml={"first": "{{ vault_a }}", "second": "{{ vault_a }}"},
        vars__main_yml={"third": "{{ vault_a }}"},
    )
    assert secrets_of(playing, "default", "given", "fixed") == {"default", "fixed"}


@pytest.mark.parametrize(("fields", "outcome"), [({"no_log": True}, {}), ({}, {"censored": "hidden"})])
def test_what_is_not_logged_is_secret(tmp_path: Path, fields: dict[str, Any], outcome: dict[str, Any]) -> None:
    playing = Playing(tmp_path, [write("a"), write("b")])
    playing.observer.ok(playing.result("a", {**SUM, **outcome}, **fields))
    playing.observer.ok(playing.result("b", SUM))
    assert {name: one.secret for name, one in playing.host().entries.items()} == {
        "file:/srv/a": True,
        "file:/srv/b": False,
    }


def test_names_that_are_made_from_a_secret_are_secret_from_then_on(tmp_path: Path) -> None:
    tasks = [
        *(SEE, LOOK, STAT, FACT, write("said", "{{ seen.stdout }}"), write("date", "{{ looked.stdout }}")),
        *(write("there", "{{ there.stat }}"), write("made", "{{ made }}"), SLURP, write("read", "{{ read.content }}")),
    ]
    hosts = {"n1": {"vault_a": "s", "indirect": "{{ vault_a }}"}}
    playing = Playing(tmp_path, tasks, hosts)
    files = ("said", "date", "there", "made", "read")
    assert secrets_of(playing, *files) == set()
    for name, register in {"see": "seen", "look": "looked", "stat": "there", "slurp": "read", "fact": None}.items():
        playing.observer.ok(playing.result(name, {"stdout": "s"}, register=register))
    assert secrets_of(playing, *files) == {"said", "made", "read"}


def test_an_encrypted_file_is_secret_if_it_is_copied_from_here(tmp_path: Path) -> None:
    def copy(name: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "ansible.builtin.copy": {"src": name, "dest": f"/srv/{name}", **MODE, **more}}

    tasks = [copy("key"), copy("page"), copy("gone"), copy("there", src="key", remote_src=True)]
    playing = Playing(tmp_path, tasks, files__key_="", files__page_="")
    folder = tmp_path / "roles/web/files"
    (folder / "key").write_text("$ANSIBLE_VAULT;1.1;AES256\n00\n")
    (folder / "page").write_text("a page")
    assert secrets_of(playing, "key", "page", "gone", "there") == {"key"}


def test_a_template_is_secret_if_it_evaluates_a_secret(tmp_path: Path) -> None:
    def template(name: str) -> dict[str, Any]:
        return {"name": name, "ansible.builtin.template": {"src": f"{name}.j2", "dest": f"/srv/{name}", **MODE}}

    playing = Playing(
        tmp_path,
        [template("secret"), template("open"), template("gone")],
        templates__secret_j2="{{ vault_a }}",
        templates__open_j2="vault_a {{ colour }}",
    )
    assert secrets_of(playing, "secret", "open", "gone") == {"secret"}


def test_what_a_command_says_it_manages_is_rendered_for_its_item(tmp_path: Path) -> None:
    task = {**SAID, "loop": ["a"], "vars": {"hal_manages": ["file:/srv/{{ item }}", "package:{{ name }}"]}}
    other = {**SAID, "name": "other", "vars": {"hal_manages": [{"resource": "file:/o", "declared": {"sha1": "a"}}]}}
    wrong = {**SAID, "name": "wrong", "vars": {"hal_manages": ["file:/{{ nowhere }}"]}}
    playing = Playing(tmp_path, [task, other, wrong], {"n1": {"name": "httpd"}})
    playing.observer.item_ok(playing.result("said", {"item": "a", "ansible_loop_var": "item"}))
    playing.observer.item_ok(playing.result("said", {"item": "b"}))
    assert sorted(playing.host().entries) == ["file:/srv/a", "file:/srv/b", "package:httpd"]
    playing.observer.ok(playing.result("other", no_log=True))
    other_entry = playing.host().entries["file:/o"]
    assert (other_entry.declared, other_entry.secret) == ({}, True)
    playing.observer.ok(playing.result("wrong"))
    ((words, hosts),) = playing.observer.troubles.items()
    assert words.startswith("roles/web/tasks/main.yml:")
    assert (": hal_manages: " in words, hosts) == (True, {"n1"})


@pytest.fixture
def playing(tmp_path: Path) -> Playing:
    return Playing(tmp_path, [write("a"), write("b"), LOOK], {"n1": {}, "n2": {}})


def spools(playing: Playing, host: str = "n1") -> list[dict[str, Any]]:
    folder = playing.folder / "the state" / "spool" / playing.observer.run.id
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"{host}*"))]


def test_what_is_new_is_written_once_and_released_at_the_end(playing: Playing) -> None:
    playing.observer.ok(playing.result("a"))
    playing.observer.spool()
    (told,) = spools(playing)
    assert [one["resource"] for one in told["entries"]] == ["file:/srv/a"]
    assert len(told["roles"]["web"]["inputs_hash"]) == 64
    assert (playing.host().dirty, spools(playing, "n2")) == (False, [])
    other = Store(playing.folder / "the state")
    assert other.pending("n1") == []  # it goes on
    other.pending("n1", playing.observer.run.id)[0].unlink()
    playing.observer.spool()
    assert spools(playing) == []
    playing.observer.ok(playing.result("b"))
    playing.observer.ok(playing.result("a", host="n2"))
    playing.observer.spool()
    assert (len(spools(playing)), len(spools(playing, "n2"))) == (1, 1)
    spools_of_both = [*other.pending("n1", playing.observer.run.id), *other.pending("n2", playing.observer.run.id)]
    for path in spools_of_both:
        path.unlink()
    playing.observer.ok(playing.result("b", host="n2"))
    playing.observer.spool()
    assert (spools(playing), len(spools(playing, "n2"))) == ([], 1)
    playing.observer.end()
    assert len(other.pending("n2")) == 1


def test_a_role_of_which_only_a_part_was_called_is_told_with_its_inputs(playing: Playing) -> None:
    playing.observer._roles = {}
    playing.observer.ok(playing.result("a"))
    playing.observer.spool()
    (told,) = spools(playing)
    assert (told["roles"], len(told["entries"][0]["inputs_hash"])) == ({}, 64)


def test_values_of_a_role_are_its_own() -> None:
    roles = [
        SimpleNamespace(
            get_name=lambda name=name: name,
            get_default_vars=lambda name=name: {"default": name},
            get_vars=lambda include_params, name=name: {"var": name, "parameters": include_params},
        )
        for name in ("zeta", "web", "alpha")
    ]
    play = SimpleNamespace(roles=roles)
    assert subject.result_role(play, "web") == ({"default": "web"}, {"var": "web", "parameters": False})
    assert subject.result_role(play, "none") == ({}, {})


def test_a_worker_writes_nothing(playing: Playing) -> None:
    playing.observer.ok(playing.result("a"))
    playing.observer._process += 1
    playing.observer.spool()
    assert (spools(playing), playing.host().dirty) == ([], True)


@pytest.mark.parametrize("error", [OSError("no space"), AuditError("no space")])
def test_what_cannot_be_written_is_a_trouble_of_each_host(
    playing: Playing, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_words: Any) -> None:
        raise error

    monkeypatch.setattr(subject, "write_json", fail)
    for host in ("n1", "n2"):
        playing.observer.ok(playing.result("a", host=host))
    playing.observer.spool()
    assert playing.observer.troubles == {"no space": {"n1", "n2"}}


def test_a_run_writes_when_a_task_begins_a_quarter_of_a_minute_later(
    playing: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing.observer.ok(playing.result("a"))
    last = playing.observer._spooled
    for seconds, written in ((15.0, 0), (15.5, 1)):
        monkeypatch.setattr(subject, "time", SimpleNamespace(time=lambda now=last + seconds: now))
        playing.observer.task_starts(playing.task("b"))
        assert len(spools(playing)) == written
    assert playing.observer._spooled == last + 15.5


def test_a_proposal_is_no_spool(tmp_path: Path) -> None:
    hosts = {"n1": {"hal_audit_dir": str(tmp_path / "the {{ word }}"), "word": "state"}}
    playing = Playing(tmp_path, [write("a")], hosts, proposing=True)
    playing.observer.ok(playing.result("a", check_mode=True))
    playing.observer.spool()
    proposal = json.loads(Store(tmp_path / "the state").proposal("n1").read_text())
    assert [one["resource"] for one in proposal["adoptable"]] == ["file:/srv/a"]
    assert spools(playing) == []


def test_hosts_of_a_site_share_its_store(playing: Playing) -> None:
    for host in ("n1", "n2"):
        playing.observer.ok(playing.result("look", host=host))
    assert playing.observer.stores["n1"] is playing.observer.stores["n2"]
    assert playing.host("n2").tasks == {TASK("look"): True}


def test_a_commit_says_whether_what_is_rolled_out_differs_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert subject.commit_of(str(tmp_path)) == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x"]
    for name in ("roles/a", "hal_node/a", "docs/a"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    commit = subject.commit_of(str(tmp_path))
    assert len(commit) == 12
    (tmp_path / "docs/a").write_text("2")
    (tmp_path / "roles/new").write_text("1")
    assert subject.commit_of(str(tmp_path)) == commit
    for name in ("roles/a", "hal_node/a"):
        (tmp_path / name).write_text("2")
        assert subject.commit_of(str(tmp_path)) == f"{commit}+changes"
        (tmp_path / name).write_text("1")


def test_paths_are_of_the_folder_of_the_configuration_or_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert subject.base_folder() == str(tmp_path)
    monkeypatch.setattr("hal_cluster.audit.observer.constants.CONFIG_FILE", None)
    assert Path(subject.base_folder(), "hal_cluster", "audit", "observer.py").is_file()
    assert Observer(proposing=False)._process == os.getpid()


@pytest.mark.parametrize(("arguments", "checks"), [({"check": True}, True), ({"check": False}, False), ({}, False)])
def test_check_mode_is_what_the_command_line_says(
    arguments: dict[str, bool], checks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hal_cluster.audit.observer.context.CLIARGS", arguments)
    assert subject.in_check_mode() is checks

"""hal-audit accept: what it writes where, what it leaves as it is, and what it refuses."""

from __future__ import annotations

import argparse
import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import context
from ansible.utils.context_objects import CLIArgs

from hal_cluster.audit import accepted
from hal_cluster.audit.cli import accept as subject
from hal_cluster.audit.cli import playbook
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.store import Store, write_json

AT, BEGUN = "2026-11-26T08:00:00Z", "2026-11-26T06:59:59Z"
UNTIL = str(datetime.date.today() + datetime.timedelta(days=30))
ENTRY = {"path": "/etc/x", "nodes": "n1", "reason": 'it\'s "right"', "until": UNTIL, "as_of": BEGUN}

# The program reads one inventory and ends; here several tests read one, and Ansible warns from the second time on.
pytestmark = pytest.mark.filterwarnings("ignore:AnsibleCollectionFinder has already been configured")


def finding(host: str, path: str, kind: str = "changed", role: str = "") -> Finding:
    return Finding(host, kind, f"file:{path}", cause="node", role=role)


class Site:
    """An inventory of three nodes, and the result of its last audit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / "state")
        (folder / "hosts").write_text("n1\nn2\nn3\n")
        self.write("group_vars/all/site.yml", f"hal_audit_dir: {self.store.folder}\n")
        every = [
            finding("n1", "/etc/hosts.deny"),
            finding("n2", "/etc/hosts.deny", "mode"),
            finding("n1", "/etc/chrony.conf", "changed", "time"),
            finding("n3", "/usr/bin/sinfo", "package-file", "slurm"),
            finding("n1", "/etc/a[1]*", "extra"),
            finding("n1", "/etc/odd", "unreadable"),
            *(finding(node, "/etc/gone", "missing") for node in ("n1", "n3")),
            finding("n2", "/etc/gone", "mode"),
        ]
        document = {"at": AT, "summary": {"seconds": 3600.2}, "findings": [one.document() for one in every]}
        write_json(self.store.last, document)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def __call__(self, *paths: str, **more: Any) -> int:
        given = {"sources": [str(self.folder / "hosts")], "paths": list(paths), "reason": "r", "until": UNTIL}
        return subject.accept(argparse.Namespace(**{**given, "limit": "", "as_json": False, **more}))

    def accepted(self, name: str = subject.FILE) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = yaml.safe_load((self.folder / name).read_text())["audit_accepted"]
        return found


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("ANSIBLE_CONFIG", str(playbook.PROJECT / "ansible.cfg"))
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({}))
    monkeypatch.setattr("ansible.constants.INVENTORY_ENABLED", ["ini"])
    return Site(tmp_path)


def test_a_finding_is_accepted_on_its_nodes_as_it_was_seen(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site("/etc/hosts.deny", "/usr/bin/sinfo", reason="tcp wrappers") == 0
    # Not of its end: what changed on a node after that was looked at, nobody has seen.
    common = {"reason": "tcp wrappers", "until": UNTIL, "as_of": BEGUN}
    assert site.accepted() == [
        {"path": "/etc/hosts.deny", "nodes": "n[1-2]", **common},
        {"path": "/usr/bin/sinfo", "nodes": "n3", **common},
    ]
    out = capsys.readouterr().out
    assert f"accepted until {UNTIL}: /etc/hosts.deny on n[1-2]" in out
    assert f"Written to {site.folder / subject.FILE}: commit it with the site." in out


def test_what_is_missing_on_some_nodes_is_accepted_there_as_missing(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert site("/etc/gone") == 0
    assert [line.partition("/etc/gone on ")[2] for line in capsys.readouterr().out.splitlines()[:2]] == [
        *("n2", "n[1,3], as missing"),
    ]
    common = {"path": "/etc/gone", "reason": "r", "until": UNTIL, "as_of": BEGUN}
    assert site.accepted() == [{**common, "nodes": "n2"}, {**common, "nodes": "n[1,3]", "missing": True}]
    here = {node: accepted.in_force(site.accepted(), accepted.PATHS, node) for node in ("n1", "n2")}
    assert [one.missing for node in here.values() for one in node] == [True, False]


def test_one_path_is_meant_and_no_pattern(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site("/etc/a[1]*", limit="n1", as_json=True) == 0
    assert [one["path"] for one in site.accepted()] == ["/etc/a[[]1][*]"]
    said = json.loads(capsys.readouterr().out)
    assert said == {"accepted": site.accepted(), "file": str(site.folder / subject.FILE)}


def test_a_site_s_own_list_goes_on_with_its_comments_and_its_mode(site: Site) -> None:
    text = "---\n# ours\naudit_accepted:\n  - {path: /etc/b, reason: r} # one\n# more\nother: 1\n"
    path = site.write("group_vars/all/audit.yml", text)
    path.chmod(0o640)
    assert site("/etc/hosts.deny", limit="n2") == 0
    assert [one["path"] for one in site.accepted("group_vars/all/audit.yml")] == ["/etc/b", "/etc/hosts.deny"]
    made = path.read_text()
    assert made.startswith(f'{text.partition("# more")[0]}  - path: "/etc/hosts.deny"\n')
    assert made.endswith(f'    as_of: "{BEGUN}"\n# more\nother: 1\n')
    assert path.stat().st_mode & 0o777 == 0o640
    assert not (site.folder / subject.FILE).exists()
    assert sorted(one.name for one in path.parent.iterdir()) == ["audit.yml", "site.yml"]


@pytest.mark.parametrize(
    ("paths", "more", "words"),
    [
        (["/etc/none"], {}, f"/etc/none: the audit of {AT} has no finding of it here; run hal-audit run first"),
        (["/etc/hosts.deny"], {"limit": "n3"}, "/etc/hosts.deny: the audit of"),
        (["/etc/odd"], {}, "/etc/odd: the audit of"),
        (["/etc/chrony.conf"], {}, "/etc/chrony.conf: role time manages it: roll it out, or change what it declares"),
        (["/etc/hosts.deny"], {"reason": " "}, "--reason: say why it is right"),
        (
            ["/etc/hosts.deny"],
            {"reason": "{{ x }}"},
            "'{{ x }}' cannot be written: Ansible would run what has {{, {% or {# in it",
        ),
        (["/etc/{%x%}"], {}, "'/etc/{%x%}' cannot be written"),
        (["/etc/{#x"], {}, "'/etc/{#x' cannot be written"),
        (["/etc/hosts.deny"], {"until": "soon"}, "--until: 'soon' is not a day; write one such as 2027-01-31"),
        (["/etc/hosts.deny"], {"until": "2020-01-01"}, "--until: 2020-01-01 is in the past"),
        (["/etc/hosts.deny"], {"limit": "n1:!n1"}, '"n1:!n1" selects no node'),
    ],
)
def test_what_is_no_acceptance_is_refused_and_nothing_is_written(
    site: Site, paths: list[str], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(AuditError) as error:
        site(*paths, "/usr/bin/sinfo", **more)
    assert words in str(error.value)
    assert not (site.folder / subject.FILE).exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("secret: !vault x", "audit.yml cannot be added to: could not determine a constructor"),
        ("a: [", "audit.yml': line"),
    ],
)
def test_a_file_with_a_vaulted_value_or_that_is_no_yaml_is_named(site: Site, line: str, words: str) -> None:
    path = site.write("group_vars/all/audit.yml", f"audit_accepted: []\n{line}\n")
    with pytest.raises(AuditError, match=re.escape(words)):
        site("/etc/hosts.deny")
    assert path.read_text() == f"audit_accepted: []\n{line}\n"


def test_without_an_audit_nothing_can_be_accepted(site: Site) -> None:
    site.store.last.unlink()
    with pytest.raises(AuditError, match=r"^there is no audit yet: run hal-audit run first, and read it$"):
        site("/etc/hosts.deny")


def test_a_list_that_would_not_count_is_not_written(site: Site) -> None:
    site.write("host_vars/n2.yml", "audit_accepted: []\n")
    with pytest.raises(AuditError, match=r"^n2 has an audit_accepted of its own, which hides that of "):
        site("/etc/hosts.deny")
    assert site("/etc/hosts.deny", limit="n1") == 0


# ---------------------------------------------------------------- the text
@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n",
        "other: 1\n",
        "audit_accepted: []\nother: [1]\n",
        "audit_accepted: []",
        "audit_accepted:\n- path: /a\n  reason: b\n",
        "audit_accepted:\n  - path: /a\n    reason: b\n\n\n# end\nother: {a: 1}\n",
        "audit_accepted:\n  - {path: /a, reason: &r b}\n  - {path: /c, reason: *r}",
        "audit_accepted:\n  - path: /a\n    reason: >-\n      a\n      b\nother: 1\n",
    ],
)
def test_whatever_else_a_file_has_stays(text: str) -> None:
    made = subject.added(text, [ENTRY, {**ENTRY, "path": "/etc/y"}])
    before, after = yaml.safe_load(text) or {}, yaml.safe_load(made)
    assert after["audit_accepted"] == [*before.get("audit_accepted", []), ENTRY, {**ENTRY, "path": "/etc/y"}]
    assert {**after, "audit_accepted": None} == {**before, "audit_accepted": None}
    for line in text.splitlines():
        assert line.replace(" []", "") in made


@pytest.mark.parametrize("text", ["audit_accepted: {a: 1}\n", "audit_accepted: x\n", "- a\n", "a: [\n"])
def test_a_file_that_is_otherwise_is_left_alone(text: str) -> None:
    with pytest.raises(AuditError, match=r"^audit_accepted cannot be added to: "):
        subject.added(text, [ENTRY])


def test_a_list_in_one_line_is_left_alone() -> None:
    with pytest.raises(AuditError, match=r"^audit_accepted cannot be added to: "):
        subject.added("audit_accepted: [{path: /a, reason: b}]\n", [ENTRY])

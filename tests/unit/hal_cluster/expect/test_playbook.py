"""hal_expect as roles use it: through ansible-playbook, on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.unit import warm
from tests.unit.interpreters import LOCAL

PROJECT = Path(__file__).resolve().parents[4]
HAS_FILE = {"file": {"path": "/etc/hostname", "read": "type"}, "equal": "file", "why": "w"}


class Run(NamedTuple):
    """What a playbook run showed: its status, what was printed, and what each task returned."""

    status: int
    text: str
    kept: list[dict[str, Any]]

    @property
    def result(self) -> dict[str, Any]:
        """What the first task returned."""
        return self.kept[0]

    def by_id(self) -> dict[str, dict[str, Any]]:
        return {one["id"]: one for one in self.result["results"]}

    def statuses(self) -> dict[str, str]:
        return {one["id"]: one["status"] for one in self.result["results"]}


class Site:
    """A small project in a folder whose name has a space."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a site"
        self.folder.mkdir()
        (self.folder / "ansible.cfg").write_text(
            "\n".join(
                [
                    "[defaults]",
                    "roles_path = roles",
                    "callback_result_format = yaml",
                    "inventory = hosts",
                    f"library = {PROJECT}/plugins/modules",
                    f"module_utils = {PROJECT}/plugins/module_utils",
                    f"action_plugins = {PROJECT}/plugins/action:{PROJECT}/tests/unit/plugins/action",
                    "[connection]",
                    "pipelining = True",
                    "",
                ]
            )
        )
        (self.folder / "hosts").write_text(
            # Quoted for the shell that starts it, as a literal of the INI format, and for the line's words.
            f"here ansible_connection=local ansible_python_interpreter={LOCAL} inventory_says=inventory\n"
        )

    def role(self, name: str, expect: object, **files: object) -> None:
        """Write roles/<name>/expect.yml and, for example, defaults/main.yml from defaults__main=..."""
        folder = self.folder / "roles" / name
        for file, content in {"tasks__main": [{"hal_expect": {}}], **files}.items():
            path = folder / f"{file.replace('__', '/')}.yml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump(content))
        if expect is not None:
            text = expect if isinstance(expect, str) else yaml.safe_dump(expect, sort_keys=False)
            (folder / "expect.yml").write_text(text)

    def run(
        self,
        task: dict[str, Any] | list[dict[str, Any]] | None = None,
        *arguments: str,
        roles: tuple[str, ...] = (),
        **play: Any,
    ) -> Run:
        """Run a play of the given roles, or of tasks whose results are kept. Of several tasks each may fail."""
        tasks = [] if task is None else task if isinstance(task, list) else [task]
        body: dict[str, Any] = {"hosts": "here", "gather_facts": False, "roles": list(roles), **play}
        if tasks:
            kept = "{{ [" + ", ".join(f"r{number}" for number in range(len(tasks))) + "] }}"
            keep = {"keep": {"value": kept, "path": f"{self.folder}/result.json"}}
            proofs = [
                {"name": "Prove", **one, "register": f"r{number}", "ignore_errors": len(tasks) > 1}
                for number, one in enumerate(tasks)
            ]
            body["tasks"] = [{"block": proofs, "always": [keep]}]
        (self.folder / "play.yml").write_text(json.dumps([body]))
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "0",
            "COLUMNS": "400",
        }
        words = [str(Path(sys.executable).parent / "ansible-playbook"), "play.yml", *arguments]
        done = warm.run(words, environment, 300, self.folder)
        return Run(
            done.returncode, done.stdout + done.stderr, json.loads(result.read_text()) if result.exists() else []
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def entry(name: str, **more: Any) -> dict[str, Any]:
    """An entry that passes unless `more` says otherwise; with a command in place of the file, if that is given."""
    whole = {"id": name, **HAS_FILE, **more}
    if "command" in more:
        del whole["file"]
    return whole


def test_a_role_whose_promises_hold_passes_with_one_call_and_changes_nothing(site: Site) -> None:
    site.role(
        "demo",
        [
            entry("a"),
            entry("b", command={"argv": ["uname"]}, equal="Linux"),
            entry("c", when=False),
            *[entry(f"d{number}") for number in range(20)],
        ],
    )
    run = site.run(None, "-vvv", "--check", roles=("demo",))
    assert run.status == 0, run.text
    assert "all 22 expectations hold, 1 skipped" in run.text
    assert run.text.count("> EXEC ") == 1
    assert "changed=0" in run.text


def test_a_failure_names_every_entry_on_a_line_of_its_own_failures_first_and_sorted(site: Site) -> None:
    site.role(
        "demo",
        [
            entry("z fails", equal="directory"),
            entry("holds"),
            entry("unknown one", file={"path": "{{ nowhere }}"}),
            entry("a fails", file={"path": "/no/such"}, why="it\ncounts"),
            entry("only a warning", equal="link", severity="warning"),
            entry("bad reader", fiel={"path": "/"}),
        ],
    )
    run = site.run({"hal_expect": {"role": "demo"}})
    assert run.status == 2
    lines = run.result["msg"].splitlines()
    assert lines == [
        "demo: of 6 expectations 3 failed, 2 unknown (1 of them as a warning)",
        'fail: demo: a fails: expected equal "file", but /no/such does not exist; it counts (roles/demo/expect.yml:16)',
        'fail: demo: z fails: expected equal "directory", observed "file"; w (roles/demo/expect.yml:1)',
        lines[3],
        "unknown: demo: unknown one: file: 'nowhere' is undefined; w (roles/demo/expect.yml:11)",
    ]
    assert lines[3].startswith("unknown: demo: bad reader: fiel: is not a field, reader or matcher")
    warning = 'here: fail: demo: only a warning: expected equal "link", observed "file"; w (roles/demo/expect.yml:23)'
    assert f"[WARNING]: {warning}" in " ".join(run.text.split())  # Ansible breaks the lines of warnings
    assert all(line in run.text for line in lines)  # readable as they stand, not escaped into one
    assert run.result["summary"] == {"pass": 1, "fail": 3, "unknown": 2, "skipped": 0}
    assert "holds" not in run.statuses()
    assert run.by_id()["z fails"] == {
        "id": "z fails",
        "role": "demo",
        "status": "fail",
        "severity": "error",
        "expected": {"equal": "directory"},
        "observed": "file",
        "reason": "differs",
        "why": "w",
        "source": "roles/demo/expect.yml:1",
    }


def test_a_warning_fails_the_task_only_if_asked(site: Site) -> None:
    site.role("demo", [entry("a", equal="link", severity="warning")])
    run = site.run([{"hal_expect": {"role": "demo"}}, {"hal_expect": {"role": "demo", "severity": "warning"}}])
    assert [result["failed"] for result in run.kept] == [False, True]
    assert "fail: demo: a" in run.kept[1]["msg"]


NOT_CHECKED: list[tuple[object, dict[str, Any], str]] = [
    (None, {}, "there is no such file: role demo0 promises nothing"),
    ("", {}, "nothing was checked"),
    ("---\n[]\n", {}, "nothing was checked"),
    ("a: b", {}, "nothing was checked"),
    ("- {id: a", {}, "line 1 is not YAML: expected ',' or '}'"),
    (
        [entry("a", when=False), entry("b", when=["true", "1 > 2"])],
        {},
        "nothing was checked: all 2 expectations were skipped",
    ),
    ([], {"allow_all_skipped": True}, "nothing was checked"),
    ([entry("a")], {"limit_ids": ["b"]}, 'no expectation has the id "b"'),
    ([entry("a")], {"limit_ids": []}, "nothing was checked: no role or id was named"),
    ([entry("a"), entry("a")], {}, "an id names one entry"),
    ([entry("a", when="nowhere")], {}, "when: "),
    ([entry("a", equal="{{ 1 / 0 }}")], {}, "equal: "),
    ([entry("a", equal="{{ nothing }}")], {}, "equal is empty"),
    ([entry("a", loop="{{ nowhere }}")], {}, "loop: 'nowhere' is undefined"),
    ([entry("a", loop="x")], {}, "loop: has to be a list"),
    ([entry("a", equal="{{ lookup('file', '/no/such') }}")], {}, "equal: "),
]


def test_what_was_not_checked_does_not_pass(site: Site) -> None:
    for number, (expect, _options, _words) in enumerate(NOT_CHECKED):
        site.role(f"demo{number}", expect)
    run = site.run(
        [
            {"hal_expect": {"role": f"demo{number}", **options}}
            for number, (_expect, options, _words) in enumerate(NOT_CHECKED)
        ],
        vars={"nothing": None},
    )
    seen = {number: result["failed"] and result["msg"] for number, result in enumerate(run.kept)}
    assert {number: text for number, text in seen.items() if not text or NOT_CHECKED[number][2] not in text} == {}
    assert len(seen) == len(NOT_CHECKED)
    assert "Traceback" not in run.text


def test_all_skipped_passes_where_that_is_said_to_be_right(site: Site) -> None:
    site.role("demo", [entry("a", when=False)])
    run = site.run({"hal_expect": {"role": "demo", "allow_all_skipped": True}})
    assert run.status == 0
    assert run.result["summary"] == {"pass": 0, "fail": 0, "unknown": 0, "skipped": 1}


def test_a_report_never_fails_and_never_passes_what_was_not_read(site: Site) -> None:
    site.role("missing", None)
    site.role("empty", "")
    site.role("wrong", [entry("a", equal="x")])
    site.role("undefined", [entry("a", file={"path": "{{ nowhere }}"})])
    site.role("skipped", [entry("a", when=False)])
    site.role("good", [entry("a")])
    names = ["missing", "empty", "wrong", "undefined", "skipped", "good", "nosuch"]
    run = site.run({"hal_expect": {"roles": names, "report_only": True}})
    assert run.status == 0, run.text
    assert {one["role"]: one["status"] for one in run.result["results"]} == {
        "missing": "unknown",
        "empty": "unknown",
        "wrong": "fail",
        "undefined": "unknown",
        "skipped": "skipped",
        "good": "pass",
        "nosuch": "unknown",
    }
    assert run.result["summary"] == {"pass": 1, "fail": 1, "unknown": 4, "skipped": 1}


def test_a_report_says_unknown_when_the_call_on_the_node_fails(site: Site) -> None:
    site.role("demo", [entry("a")])
    bad = {"ansible_python_interpreter": "/no/such/python"}
    run = site.run(
        [
            {"hal_expect": {"role": "demo", "report_only": True}, "vars": bad},
            {"hal_expect": {"role": "demo"}, "vars": bad},
        ]
    )
    assert [result["failed"] for result in run.kept] == [False, True]
    assert run.by_id()["a"]["status"] == "unknown"
    assert "the call on the node failed" in run.by_id()["a"]["reason"]


def test_from_outside_a_role_variables_have_the_precedence_they_have_inside(site: Site) -> None:
    names = ["only_default", "inventory_says", "task_says", "extra_says", "only_fixed", "fixed_over_inventory"]
    shown = [
        {"id": name, "why": "w", "command": {"argv": ["echo", f"{{{{ {name} }}}}"]}, "equal": "x"} for name in names
    ]
    shown += [
        {"id": "derived", "why": "w", "command": {"argv": ["echo", "{{ __derived }}"]}, "equal": "x"},
        {
            "id": "role_name",
            "why": "w",
            "command": {"argv": ["echo", "{{ role_name }} {{ role_path | basename }}"]},
            "equal": "x",
        },
        {"id": "from dependency", "why": "w", "command": {"argv": ["echo", "{{ base_default }}"]}, "equal": "x"},
    ]
    site.role("base", None, defaults__main={"base_default": "dependency", "only_default": "dependency"}, tasks__main=[])
    site.role(
        "demo",
        shown,
        meta__main={"dependencies": ["base"]},
        defaults__main__a={"only_default": "default", "inventory_says": "default"},
        vars__main={
            "only_fixed": "fixed",
            "task_says": "fixed",
            "extra_says": "fixed",
            "fixed_over_inventory": "fixed",
            "__derived": "from {{ inventory_says }}",
        },
        tasks__main=[
            {"hal_expect": {"report_only": True}, "register": "r"},
            {"keep": {"value": "{{ r }}", "path": f"{site.folder}/inside.json"}},
        ],
    )
    with (site.folder / "hosts").open("a") as hosts:
        hosts.write("[all:vars]\nfixed_over_inventory=inventory\ntask_says=inventory\n")
    extra = ("-e", "extra_says=extra")
    outside = site.run({"hal_expect": {"role": "demo", "report_only": True}, "vars": {"task_says": "task"}}, *extra)
    observed = {name: one["observed"] for name, one in outside.by_id().items()}
    assert observed == {
        "only_default": "default",
        "inventory_says": "inventory",
        "task_says": "task",
        "extra_says": "extra",
        "only_fixed": "fixed",
        "fixed_over_inventory": "fixed",
        "derived": "from inventory",
        "role_name": "demo demo",
        "from dependency": "dependency",
    }
    assert site.run(None, *extra, roles=("demo",)).status == 0
    inside = {one["id"]: one["observed"] for one in json.loads((site.folder / "inside.json").read_text())["results"]}
    assert {**inside, "task_says": "task"} == observed


def test_a_template_that_a_lookup_renders_sees_the_variables_of_the_role_and_the_item(site: Site) -> None:
    rendered = "{{ lookup('ansible.builtin.template', role_path ~ '/templates/words.j2') }}"
    site.role(
        "demo",
        [
            {"id": "vars", "why": "w", "command": {"argv": ["echo", "{{ __rendered }}"]}, "equal": "default fixed -"},
            entry("item", loop=["one"], command={"argv": ["echo", rendered]}, equal="default fixed {{ item }}"),
        ],
        defaults__main={"only_default": "default"},
        vars__main={"only_fixed": "fixed", "__rendered": rendered},
    )
    template = site.folder / "roles/demo/templates/words.j2"
    template.parent.mkdir()
    template.write_text("{{ only_default }} {{ only_fixed }} {{ item | default('-') }}")
    run = site.run({"hal_expect": {"role": "demo", "report_only": True}})
    assert run.statuses() == {"vars": "pass", "item [one]": "pass"}, run.result
    assert site.run(None, roles=("demo",)).status == 0


def test_several_roles_take_one_call_and_each_its_own_variables(site: Site) -> None:
    for name in ("one", "two"):
        site.role(
            name,
            [{"id": "mine", "why": "w", "command": {"argv": ["echo", "{{ mine }}"]}, "equal": name}],
            defaults__main={"mine": name},
        )
    run = site.run({"hal_expect": {"roles": ["one", "two"], "report_only": True}}, "-vvv")
    assert run.status == 0, run.text
    assert [(one["role"], one["status"]) for one in run.result["results"]] == [("one", "pass"), ("two", "pass")]
    assert run.text.count("plugins/modules/hal_expect.py") == 1


def test_a_loop_makes_an_entry_of_each_item(site: Site) -> None:
    site.role(
        "demo",
        [
            entry(
                "file",
                loop="{{ paths }}",
                file={"path": "{{ item.path }}", "read": "type"},
                when="item.path != '/skip'",
            ),
            entry("word", loop=["a", "a"], command={"argv": ["echo", "{{ item }}"]}, equal="{{ item }}"),
            entry("none", loop=[]),
        ],
        defaults__main={"paths": [{"path": "/etc/hostname"}, {"path": "/etc"}, {"path": "/skip"}]},
    )
    run = site.run(
        [
            {"hal_expect": {"role": "demo", "report_only": True, **options}}
            for options in ({}, {"limit_ids": ["file [/etc]", "word"]})
        ]
    )
    assert run.statuses() == {
        "file [/etc/hostname]": "pass",
        "file [/etc]": "fail",
        "file [/skip]": "skipped",
        "word [a]": "pass",
        "word [a #2]": "pass",
        "none": "skipped",
    }
    assert [one["id"] for one in run.kept[1]["results"]] == ["file [/etc]", "word [a]", "word [a #2]"]


def test_a_file_can_be_given_without_a_role(site: Site) -> None:
    (site.folder / "gate.yml").write_text(json.dumps([entry("a", equal="{{ inventory_says }}")]))
    run = site.run(
        [
            {"hal_expect": options}
            for options in (
                {"file": "gate.yml"},
                {},
                {"file": "gate.yml", "role": "demo"},
                {"rol": "demo"},
                {"file": "none.yml"},
            )
        ]
    )
    assert [result["failed"] for result in run.kept] == [True] * 5
    words = [
        'fail: a: expected equal "inventory", observed "file"',
        "this task is in no role",
        "mutually exclusive",
        "Unsupported parameters",
        "there is no such file",
    ]
    assert [word for word, result in zip(words, run.kept, strict=True) if word not in result["msg"]] == []


def test_a_secret_is_nowhere_to_be_seen_not_even_with_debugging_output(site: Site) -> None:
    (site.folder / "key").write_text("observed-hunter2\n")
    site.role(
        "demo",
        [
            entry("key", file={"path": f"{site.folder}/key"}, equal="{{ vault_key }}", secret=True),
            entry("key template", equal="{{ vault_key | from_json }}", secret=True),
            entry("loop", loop=["{{ vault_key }}"], equal="{{ item }}", secret=True),
        ],
        defaults__main={"vault_key": "expected-hunter2"},
    )
    run = site.run([{"hal_expect": {"role": "demo", **options}} for options in ({}, {"report_only": True})], "-vvv")
    for result in run.kept:
        by_id = {one["id"]: one for one in result["results"]}
        assert {name: one["status"] for name, one in by_id.items()} == {
            "key": "fail",
            "key template": "unknown",
            "loop [0]": "fail",
        }
        assert by_id["key"]["expected"] == by_id["key"]["observed"] == "(secret)"
    assert "hunter2" not in json.dumps(run.kept)
    assert "hunter2" not in run.text


def test_what_was_observed_is_never_evaluated_as_a_template(site: Site) -> None:
    (site.folder / "trap").write_text("{{ lookup('pipe', 'echo ow' ~ 'ned') }}\n")
    site.role("demo", [entry("trap", file={"path": f"{site.folder}/trap"})])
    run = site.run({"hal_expect": {"role": "demo"}})
    assert "{{ lookup" in run.by_id()["trap"]["observed"]
    assert "owned" not in json.dumps(run.result)


def test_the_documentation_can_be_read() -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible-doc"),
            "-M",
            str(PROJECT / "plugins/modules"),
            "-t",
            "module",
            "-j",
            "hal_expect",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    document = json.loads(done.stdout)["hal_expect"]
    assert set(document["doc"]["options"]) >= {"role", "roles", "file", "limit_ids", "severity", "report_only"}
    assert document["examples"]
    assert set(document["return"]) == {"results", "summary"}

"""Which faults a line can have: each is one change that parses and says something else."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.tests.mutate.conftest import PROJECT  # isort: skip  # makes the others importable
from tests.mutate import equivalent
from tests.mutate.choose import Faulty, Tree
from tests.mutate.mutant import Mutant, area
from tests.mutate.python import Python
from tests.mutate.reach import Reach
from tests.mutate.templates import Template
from tests.mutate.wiring import Wiring


def faults(
    kind: type[Python] | type[Template] | type[Wiring], path: str, text: str
) -> list[tuple[int, str, list[str]]]:
    """Line, kind and hunk of each."""
    text = textwrap.dedent(text).lstrip("\n")
    file: Faulty = kind(path, text)
    found = [one for line in range(1, len(text.splitlines()) + 1) for one in file.at(line)]
    return [(one.line, one.kind, [line.strip() for line in one.hunk.splitlines()]) for one in found]


def test_python_loses_a_refusal_and_a_call_and_keeps_what_nothing_reads() -> None:
    text = '''
        from __future__ import annotations

        class A:
            def __init__(self, b: int | None) -> None:
                """Text with 1 number."""
                self.b = b
                if b:
                    raise OSError
                self.a().c(b)
        '''
    found = faults(Python, "hal_x/y.py", text)
    assert [(line, kind, hunk[-1]) for line, kind, hunk in found] == [
        (7, "AddNot", "+        if not b:"),
        (8, "DropStatement", "+            pass"),
        (9, "DropStatement", "+        pass"),
    ]


def test_types_of_a_dataclass_are_no_faults_and_those_that_a_program_reads_are() -> None:
    text = """
        from __future__ import annotations

        @dataclass(frozen=True)
        class A:
            b: list[int | str]

        class B(BaseModel):
            b: list[int | str]
        """
    assert {line for line, kind, _ in faults(Python, "hal_x/y.py", text) if "BitOr" in kind} == {8}


def test_python_does_not_catch_what_it_caught() -> None:
    text = """
        try:
            a()
        except (OSError, subprocess.TimeoutExpired, KeyError):
            pass
        """
    found = faults(Python, "hal_x/y.py", text)
    assert [hunk[-1] for _, kind, hunk in found if kind == "ExceptionReplacer"] == [
        "+except (CosmicRayTestingException, subprocess.TimeoutExpired, KeyError):",
        "+except (OSError, CosmicRayTestingException, KeyError):",
        "+except (OSError, subprocess.TimeoutExpired, CosmicRayTestingException):",
    ]


def test_every_line_of_python_that_catches_something_can_have_a_fault() -> None:
    tree = Tree.of(PROJECT)
    for name in tree.of_language("python"):
        clauses = [
            number
            for number, line in enumerate((PROJECT / name).read_text().splitlines(), 1)
            if line.strip().startswith("except (") and "." in line
        ]
        for number in clauses:
            assert [one for one in tree.faulty(name)[1].at(number) if one.kind == "ExceptionReplacer"], (name, number)


def test_wiring_loses_a_key_an_item_a_task_and_has_other_values() -> None:
    text = """
        # A comment stays.
        - name: Write 3 lines
          ansible.builtin.copy:
            dest: /etc/x  # here, too
            mode: "0640"
            owner: root
          notify: [Restart it, Reload it]
          when: a and not b

        - name: Start it
          ansible.builtin.service: {name: it, state: started, enabled: true}
          retries: 5
        """
    assert [(line, kind) for line, kind, _ in faults(Wiring, "roles/x/tasks/main.yml", text)] == [
        (2, "no task"),
        (5, "no mode"),
        (5, "other mode"),
        (6, "no owner"),
        (6, "other text"),
        (7, "no notify"),
        (7, "no item"),
        (7, "no item"),
        (8, "no when"),
        (8, "opposite"),
        (8, "and to or"),
        (10, "no task"),
        (11, "other state"),
        (11, "other boolean"),
        (12, "no retries"),
        (12, "other number"),
    ]
    hunks = {(line, kind): hunk for line, kind, hunk in faults(Wiring, "roles/x/tasks/main.yml", text)}
    assert hunks[5, "other mode"] == ['-    mode: "0640"', '+    mode: "0644"']
    assert hunks[6, "no owner"] == ["-    owner: root"]
    assert hunks[7, "no item"] == ["-  notify: [Restart it, Reload it]", "+  notify: [Restart it]"]
    assert hunks[8, "opposite"] == ["-  when: a and not b", "+  when: not (a and not b)"]
    assert hunks[11, "other state"][1] == "+  ansible.builtin.service: {name: it, state: stopped, enabled: true}"
    assert [line[0] for line in hunks[2, "no task"]] == ["-"] * 7


def test_what_is_declared_and_expected_has_other_texts_too() -> None:
    text = """
        - id: it runs
          service: {name: it}
          equal: "{{ a }}"
          severity: warning
          why: somebody waits
        - {id: it is there, file: {path: /x}, contain: word}
        """
    assert [(line, kind, hunk[-1]) for line, kind, hunk in faults(Wiring, "roles/x/expect.yml", text)] == [
        (1, "no task", "-  why: somebody waits"),
        (2, "other text", "+  service: {name: itx}"),
        (4, "no severity", "-  severity: warning"),
        (6, "no task", "-- {id: it is there, file: {path: /x}, contain: word}"),
        (6, "other text", "+- {id: it is there, file: {path: /xx}, contain: word}"),
        (6, "other text", "+- {id: it is there, file: {path: /x}, contain: wordx}"),
    ]


def test_a_template_loses_a_line_and_has_other_words() -> None:
    text = """
        # comment 1
        {% if a %}
        Port {{ b }}
        X11Forwarding no
        {% endif %}
        Wait 30
        """
    assert [(line, kind, hunk[-1]) for line, kind, hunk in faults(Template, "roles/x/templates/y.j2", text)] == [
        (2, "opposite", "+{% if not (a) %}"),
        (3, "no line", "-Port {{ b }}"),
        (4, "no line", "-X11Forwarding no"),
        (4, "other boolean", "+X11Forwarding yes"),
        (6, "no line", "-Wait 30"),
        (6, "other number", "+Wait 31"),
    ]


def test_every_file_of_the_project_can_have_faults_and_each_is_one_change() -> None:
    """Of wiring; Python's are cosmic-ray's."""
    tree = Tree.of(PROJECT)
    count = 0
    for name in tree.of_language("yaml"):
        lines, file = tree.faulty(name)
        for one in (mutant for line in range(1, lines + 1) for mutant in file.at(line)):
            count += 1
            assert one.hunk, one
            assert all(line[0] in "-+" for line in one.hunk.splitlines()), one.where
    assert count > 5000


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("roles/node_health/files/x.py", "node_health"),
        ("hal_cluster/reimage/engine.py", "reimage"),
        ("hal_cluster/rules/cuda/table.py", "cuda"),
        ("hal_node/slurm/change.py", "slurm"),
        ("inventory/hal/group_vars/all/slurm.yml", "slurm"),
        ("playbooks/site.yml", "playbooks"),
    ],
)
def test_a_file_belongs_to_what_it_is_about(path: str, name: str) -> None:
    assert area(path) == name


def reaching(folder: Path, texts: Mapping[str, str]) -> Reach:
    """A project of these files."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Reach(folder, list(texts))


def test_tests_that_name_a_file_come_before_those_that_reach_it_through_another(tmp_path: Path) -> None:
    texts = {
        "hal_x/deep.py": "A = 1\n",
        "hal_x/near.py": "from hal_x.deep import A\n",
        "roles/y/files/y_tool.py": "from hal_x.deep import A\n",
        "tests/unit/a/conftest.py": "from hal_x import near\n",
        "tests/unit/a/test_a.py": "def test_it(): pass\n",
        "tests/unit/b/test_b.py": "import hal_x.deep\n",
        "tests/unit/c/test_c.py": 'PROGRAM = "roles/y/files/y_tool.py"\n',
        "tests/unit/d/test_d.py": 'SOURCE = "roles/y/tasks/main.yml:2"\nimport deep_sea\n',
    }
    reach = reaching(tmp_path, texts)
    through = ["tests/unit/a/test_a.py", "tests/unit/c/test_c.py"]
    assert reach.tests("hal_x/deep.py") == ["tests/unit/b/test_b.py", *through]
    assert reach.tests("hal_x/near.py") == ["tests/unit/a/test_a.py"]
    assert reach.tests("roles/y/tasks/main.yml") == ["tests/unit/c/test_c.py"]
    assert reach.tests("roles/d/tasks/main.yml") == ["tests/unit/d/test_d.py"], "nothing names it: its folder's"


def test_tests_of_a_playbook_reach_the_tasks_that_it_imports(tmp_path: Path) -> None:
    texts = {
        "playbooks/a.yml": "- hosts: all\n  tasks:\n    - ansible.builtin.import_tasks: a/first.yml\n"
        "    - ansible.builtin.include_tasks: a/second.yml\n",
        "playbooks/a/first.yml": "- ansible.builtin.ping:\n",
        "playbooks/a/second.yml": "- ansible.builtin.ping:\n",
        "tests/unit/x/test_a.py": 'PLAYBOOK = "playbooks/a.yml"\n',
        "tests/unit/x/test_b.py": 'PLAYBOOK = "playbooks/b.yml"\n',
    }
    reach = reaching(tmp_path, texts)
    assert reach.tests("playbooks/a/first.yml") == ["tests/unit/x/test_a.py"]
    assert reach.tests("playbooks/a/second.yml") == ["tests/unit/x/test_a.py"]


def test_those_of_the_area_are_asked_last(tmp_path: Path) -> None:
    texts = {
        "hal_x/a.py": "A = 1\n",
        "tests/unit/x/test_others.py": "",
        "tests/unit/x_node/test_more.py": "",
        "tests/unit/y/test_a.py": "import hal_x.a\n",
        "tests/unit/xy/test_no.py": "",
    }
    assert reaching(tmp_path, texts).tests("hal_x/a.py") == [
        "tests/unit/y/test_a.py",
        "tests/unit/x/test_others.py",
        "tests/unit/x_node/test_more.py",
    ]


def test_tests_that_look_at_each_file_of_a_folder_are_asked_before_those_of_the_area(tmp_path: Path) -> None:
    texts = {
        "plugins/filter/hal_a.py": "A = 1\n",
        "tests/unit/a/test_others.py": "",
        "tests/unit/test_each.py": 'PLUGINS = PROJECT.glob("plugins/*/*.py")\n',
        "tests/unit/test_each_role.py": 'FILES = PROJECT.glob("roles/*/files/*.py")\n',
    }
    asked = ["tests/unit/test_each.py", "tests/unit/a/test_others.py"]
    assert reaching(tmp_path, texts).tests("plugins/filter/hal_a.py") == asked


def test_an_equivalent_one_counts_again_when_its_line_is_another(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("a > 1\n")
    (tmp_path / "tests/mutate").mkdir(parents=True)
    (tmp_path / equivalent.FILE).write_text('- {file: x.py, hunk: "-a > 1\\n+a >= 2", why: whole numbers}\n')
    known = equivalent.load(tmp_path)
    assert equivalent.known(Mutant("x.py", 1, "any", "a > 1\n", "a >= 2\n"), known)
    assert not equivalent.known(Mutant("x.py", 1, "any", "b > 1\n", "b >= 2\n"), known)
    assert equivalent.gone(known, tmp_path) == []
    (tmp_path / "x.py").write_text("b > 1\n")
    assert equivalent.gone(known, tmp_path) == known


def test_no_line_of_those_found_equivalent_is_gone() -> None:
    assert equivalent.gone(equivalent.load(PROJECT), PROJECT) == []

"""What of a file counts for a proof: what can change a run, and nothing that people read only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.register.meaning import meaning

PROJECT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("x = 1\n", "x = 1  # one\n"),
        ("x = 1\n", "# one\nx = 1\n"),
        ("def f():\n    return 1\n", 'def f():\n    """Return.\n\n    One.\n    """\n    return 1\n'),
        ("def f():\n    return 1\n", 'def f():\n    """Gr\u00f6\u00dfe."""  # \u00e9\n    return 1\n'),
        ("class A:\n    x = 1\n", 'class A:\n    """Words."""\n    x = 1\n    """More words."""\n'),
        ("x = 1\n", '"""Words\x0c of a module."""\nx = 1\n'),
        ("def f(x):\n    return x\n", "def f(x):\n    # type: (int) -> int\n    return x\n"),
    ],
)
def test_words_do_not_count(text: str, other: str) -> None:
    assert meaning("x.py", other.encode()) == meaning("x.py", text.encode()) == text.encode()


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("x = 1\n", "x = 2\n"),
        ('x = "# one"\n', 'x = "# two"\n'),
        ('x = """\none\n"""\n', 'x = """\n\none\n"""\n'),
        ('f("one")\n', 'f("two")\n'),
        ("if x:\n    y()\nz()\n", "if x:\n    y()\n    z()\n"),
        ("#!/usr/bin/python2\n", "#!/usr/bin/python3\n"),
        ("# coding: utf-8\n", "# coding: latin-1\n"),
        ('"""One."""\nprint(__doc__)\n', '"""Two."""\nprint(__doc__)\n'),
        ("print 1  # one\n", "print 1  # two\n"),  # of Python 2: nobody says where its comments are
        ("x = '''\n", "x = '''\n\n"),
    ],
)
def test_what_can_change_a_run_counts(text: str, other: str) -> None:
    assert meaning("x.py", text.encode()) != meaning("x.py", other.encode())


@pytest.mark.parametrize("name", ["DOCUMENTATION", "EXAMPLES", "RETURN"])
def test_only_of_a_module_its_documentation_does_not_count(name: str) -> None:
    one, two = (f'{name} = r"""\n- {word}\n"""\nx = 1\n'.encode() for word in ("one", "two"))
    assert meaning("plugins/modules/hal_x.py", one) == b"x = 1\n"
    assert meaning("plugins/inventory/hal.py", one) != meaning("plugins/inventory/hal.py", two)


@pytest.mark.parametrize(
    "text",
    [
        'REASON = """{}"""\n',
        'def f():\n    EXAMPLES = "{}"\n    g(EXAMPLES)\n',
        'def f():\n    RETURN = "{}"\n',
        'class A:\n    DOCUMENTATION = "{}"\n',
        'DOCUMENTATION = "{}"\nf(DOCUMENTATION)\n',
    ],
)
def test_other_strings_of_a_module_count(text: str) -> None:
    one, two = (text.format(word).encode() for word in ("one", "two"))
    assert meaning("plugins/modules/hal_x.py", one) != meaning("plugins/modules/hal_x.py", two)


@pytest.mark.parametrize("name", ["x.yml", "x.txt", "x"])
def test_comments_count_where_nobody_knows_that_they_are(name: str) -> None:
    assert meaning(name, b"a: [\n# one\n") != meaning(name, b"a: [\n# two\n")


def test_comments_of_yaml_do_not_count() -> None:
    assert meaning("x.yml", b"# one\na: 1  # two\n\nb: x\n") == meaning("x.yml", b"a: 1\nb: x\n")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("a: 1\n", "a: 2\n"),
        ("a: 1\n", "a: '1'\n"),
        ("a: |\n  # one\n", "a: |\n  # two\n"),
        ("a: >\n  x\n", "a: >-\n  x\n"),
        ("a: &x 1\nb: 1\n", "a: 1\nb: &x 1\n"),
        ("a: !unsafe x\n", "a: !vault x\n"),
        ("- a: 1\n- b: 1\n", "- a: 1\n  b: 1\n"),
    ],
)
def test_what_yaml_says_counts(text: str, other: str) -> None:
    assert meaning("x.yml", text.encode()) != meaning("x.yml", other.encode())


def test_bytes_that_are_no_text_count_as_they_are() -> None:
    assert meaning("x.py", b"\x80# x\n") == b"\x80# x\n"


def test_the_code_of_the_project_is_what_is_left() -> None:
    """Of each file: the same syntax tree, once the strings that are statements are out of both."""
    for path in (PROJECT / "hal_cluster").rglob("*.py"):
        source = path.read_bytes()
        assert _code(meaning(path.name, source).decode()) == _code(source.decode()), path


def _code(text: str) -> str:
    """The syntax tree without docstrings. A body that was nothing else is `pass`, written or not."""
    lines = text.splitlines()
    for number, line in enumerate(lines):  # a `def` whose docstring was all it had
        following = next((later for later in lines[number + 1 :] if later.strip()), "")
        indent = len(line) - len(line.lstrip())
        if line.rstrip().endswith(":") and len(following) - len(following.lstrip()) <= indent:
            lines[number] += " pass"
    tree = ast.parse("\n".join(lines))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            node.body = [
                statement
                for statement in node.body
                if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
                and not isinstance(statement, ast.Pass)
            ]
    return ast.dump(tree)

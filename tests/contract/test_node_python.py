"""Python that CentOS 7's nodes cannot read, or read otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import node_python

MODULE = "plugins/modules/hal_x.py"
HEAD = "# -*- coding: utf-8 -*-\nfrom __future__ import absolute_import, division, print_function\n"

PLANTED = (
    Planted(node_python.has_the_grammar_of_both, {MODULE: HEAD + 'print("%s" % len(*[[1]]))\n'}, []),
    Planted(
        node_python.has_the_grammar_of_both,
        {
            MODULE: "x = 1\nname = f'{x}'\n",
            "roles/base/files/probe": "#!/usr/bin/python\ndef f(a: int) -> int:\n    return a\n",
            "roles/base/files/data.txt": "def f(a: int)\n",
            "plugins/lookup/hal.py": "x: int = 1\n",
        },
        [
            f"{MODULE}:2: an f-string; use % or .format(); Python 2.7 has no such thing",
            "roles/base/files/probe:2: an annotation; say the type in the docstring; Python 2.7 has no such thing",
        ],
    ),
    Planted(
        node_python.has_the_grammar_of_both,
        {MODULE: "if (n := 1):\n    pass\n"},
        [f"{MODULE}:1: Assignment expressions are only supported in Python 3.8 and greater; not in 3.6"],
    ),
    Planted(node_python.begins_alike, {MODULE: HEAD, "hal_node/__init__.py": ""}, []),
    Planted(
        node_python.begins_alike,
        {MODULE: "#!/usr/bin/python\nfrom __future__ import absolute_import, print_function\n"},
        [
            f"{MODULE}:1: no '# -*- coding: utf-8 -*-'; Python 2.7 takes the file for ASCII",
            f"{MODULE}:1: no 'from __future__ import division'; Python 2.7 would behave otherwise",
        ],
    ),
    Planted(
        node_python.every_module_runs_under_2_7,
        {MODULE: HEAD, "plugins/modules/hal_y.py": HEAD, "molecule/python2/cases/hal_y.yml": "---\n"},
        [f"{MODULE}:1: no molecule/python2/cases/hal_x.yml; it runs the module and asserts what it returns"],
    ),
    Planted(
        node_python.everything_else_runs_under_2_7,
        {
            MODULE: HEAD + "from ansible.module_utils.hal_node.a import x\n",
            "hal_node/a.py": HEAD + "from .b import files\n",
            "hal_node/b/__init__.py": HEAD,
            "hal_node/b/files.py": HEAD + "from ..d import y\n",
            "hal_node/d.py": HEAD,
            "hal_node/c/files.py": HEAD + "from ..a import x\n",
            "roles/backup/files/job.py": HEAD + "import common\n",
            "roles/backup/files/common.py": HEAD,
            "roles/backup/files/open": "#!/usr/bin/python\nimport common\n",
            "hal_inventory/capture/node.py": HEAD,
            "molecule/python2/cases/backup.yml": "- command: /usr/bin/python /srv/job.py x; reopen a_node.py\n",
        },
        [
            f"{place}:1: no case in molecule/python2/cases runs or imports it; write one that does"
            for place in (
                "hal_inventory/capture/node.py",
                "hal_node/c/files.py",
                "roles/backup/files/open",
            )
        ],
    ),
    Planted(
        node_python.compiles_under_both,
        {MODULE: "def f(*, a):\n    pass\n", "roles/base/files/probe.py": "if (n := 1):\n    pass\n"},
        [
            f"{MODULE}:1: invalid syntax; Python 2.7 cannot read this",
            "roles/base/files/probe.py:1: invalid syntax; Python 2.7 cannot read this",
            "roles/base/files/probe.py:1: invalid syntax; Python 3.6 cannot read this",
        ],
    ),
    Planted(
        node_python.imports_what_both_have,
        {
            MODULE: """
                import json
                import pathlib
                from urllib.parse import quote
                try:
                    from shlex import quote
                    import queue
                except ImportError:
                    import Queue as queue
                MYPY = False
                if MYPY:
                    from typing import Any
                    from enum import Enum
                else:
                    import typing
                """,
        },
        [
            f"{MODULE}:2: import of pathlib, which Python 2.7 does not have; import it inside try: with a way out",
            f"{MODULE}:3: import of urllib.parse, which Python 2.7 does not have; import it inside try: with a way out",
            f"{MODULE}:12: import of enum, which Python 2.7 does not have; import it inside try: with a way out",
            f"{MODULE}:14: import of typing, which Python 2.7 does not have; import it inside try: with a way out",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("def f():\n    x = 1\n    def g():\n        nonlocal x\n    return g", "nonlocal"),
        ("def f():\n    yield from []", "yield from"),
        ("def f(a, *, b): pass", "an argument after *;"),
        ("async def f(): pass", "async"),
        ("a @ b", "@ as an operator"),
        ("a, *b = c", "* inside a list"),
        ("raise A from b", "raise ... from"),
        ("a = {**b}", "** inside a dict"),
        ("f(*a, b)", "an argument after *arguments"),
        ("f(**a, **b)", "** twice"),
        ("class A(metaclass=B): pass", "keywords of a class"),
        ("class A(B):\n    def f(self): super().f()", "super()"),
        ("print('x')", "print()"),
        ("open('x', encoding='utf-8')", "open()"),
        ("x = 1_000", "_ inside a number"),
        ("x = rb'x'", "rb before"),
        ("x = ...", "... as a value"),
        ("class A(tuple): pass\nA.__doc__ = 'x'", "__doc__ that can be set"),
        ("def f():\n    yield 1\n    return 2", "return with a value"),
    ],
)
def test_newer_syntax_is_found(code: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "plugins/modules").mkdir(parents=True)
    (tmp_path / MODULE).write_text(code + "\n")
    findings = node_python.has_the_grammar_of_both(tmp_path)
    assert any(text in finding for finding in findings), findings

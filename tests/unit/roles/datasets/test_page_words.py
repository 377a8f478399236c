"""What both pages and the table say of a version, for each state that it can be in."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

NOW = 1_790_000_000


@pytest.fixture
def page(parts: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module; what is true of a version is what the test declares of it as `state`."""
    module = parts("page")
    monkeypatch.setattr(module, "state_of", lambda _, one: one["state"])
    clock = SimpleNamespace(time=lambda: NOW, strftime=module.time.strftime, localtime=module.time.localtime)
    monkeypatch.setattr(module, "time", clock)
    return module


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Any]:
    """A function: versions -> the table of them."""
    return lambda *sets: SimpleNamespace(root=str(tmp_path), page={"title": "Data & sets"}, sets=sets)


def one(name: str, version: str, word: str, **changes: Any) -> dict[str, Any]:
    """A version with what is true of it; what is declared is text, what the root is called may be bytes."""
    state = {
        "state": word, "path": f"/d/{name}/{version}", "is_default": False, "bytes": None, "files": None,
        "verified_days": None,
    }  # fmt: skip
    state |= {key: changes.pop(key) for key in list(changes) if key in state}
    declared = {
        "name": name, "version": version, "title": f"All of {name}", "owner": "vision", "access": "all",
        "licence": "CC0", "note": "", "retired": "", "size_gb": "1.50",
    }  # fmt: skip
    # Of JSON: equal texts, each an object of its own.
    return {key: "".join(value) if isinstance(value, str) else value for key, value in (declared | changes).items()} | {
        "state": state | {"state": "".join(word)}
    }


LISTING = """\
NAME    VERSION  STATE         SIZE          OWNER   PATH
digits  2.0*     ready         1.0 kB        vision  /d/digits/2.0
digits  1.0      retired       3 bytes       vision  /d/digits/1.0
coco    2017     on its way    about 1.5 GB  vision  -
coco    2014     on its way    2.0 MB        vision  -
faces   a        not here yet  about 26 GB   faces   -
faces   b        retired       about 1.5 GB  vision  -
(* default)
"""


def everything() -> list[dict[str, Any]]:
    return [
        one("digits", "2.0", "published", is_default=True, bytes=1000, files=1234567, verified_days=1.5),
        one("digits", "1.0", "published", retired="use <2.0>", bytes=3, files=1, verified_days=0),
        one("coco", "2017", "half staged", note="a\nnote", licence=""),
        one("coco", "2014", "staged", bytes=2_000_000),
        one("faces", "a", "not staged", access="group", owner="faces", size_gb=26, verified_days=0.0),
        one("faces", "b", "retired", retired="lost"),
    ]


def test_a_terminal_gets_a_table(page: Any, table: Callable[..., Any]) -> None:
    assert page.listing(table(*everything())) == LISTING
    assert page.listing(table()) == "NAME  VERSION  STATE  SIZE  OWNER  PATH\n(* default)\n"


def test_the_page_in_plain_text_says_it_all(page: Any, table: Callable[..., Any]) -> None:
    made = table(*everything())
    expected = [
        "Data & sets", "===========", "",
        "Read-only, for all. Use them where they are: a copy in your home takes room and is not faster.", "",
        *LISTING.splitlines(), "",
        "digits 2.0: All of digits", "  Path     /d/digits/2.0", "  Licence  CC0", "",
        "digits 1.0: All of digits", "  Path     /d/digits/1.0", "  Retired  use <2.0>", "  Licence  CC0", "",
        "coco 2017: All of coco", "  Note     a", "note", "",
        "coco 2014: All of coco", "  Licence  CC0", "",
        "faces a: All of faces", "  Licence  CC0", "",
        "faces b: All of faces", "  Retired  lost", "  Licence  CC0", "",
        'In a job (name the version instead of "default" where results have to be repeated):', "",
        "    #!/bin/bash", "    #SBATCH --job-name=train", f"    DATA={made.root}/digits/default",
        '    python train.py --data "$DATA"', "", "    # in a container: its own homes hide the folder",
        f"    singularity exec --nv --bind {made.root}:{made.root}:ro image.sif"
        ' python train.py --data "$DATA"',
    ]  # fmt: skip
    assert page.plain(made).splitlines() == expected
    assert page.plain(made).endswith("\n")


def day(ago: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(NOW - ago * 86400))


def rows(html: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Version -> (its heading after the version, what is said of it)."""
    found = {}
    for article in re.findall(r"<article>\n(.*?)\n</article>", html, re.DOTALL):
        version, rest = re.findall(r"<h3>Version (\S+)(.*)</h3>", article)[0]
        found[version] = (rest, dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", article, re.DOTALL)))
    return found


def test_the_page_for_browsers_says_it_all(page: Any, table: Callable[..., Any]) -> None:
    html = page.html(table(*everything()))
    quiet = ' <span class="quiet">default</span>'
    known = {"Owner": "vision", "Licence": "CC0"}
    assert rows(html) == {
        "2.0": (
            quiet + ' <span class="state good">ready</span>',
            known | {"Path": "<code>/d/digits/2.0</code>", "Size": "1.0 kB, 1,234,567 files", "Checked": day(1.5)},
        ),
        "1.0": (
            ' <span class="state wait">retired</span>',
            known | {"Path": "<code>/d/digits/1.0</code>", "Retired": "use &lt;2.0&gt;", "Size": "3 bytes, 1 file",
                     "Checked": day(0)},
        ),
        "2017": (
            ' <span class="state wait">on its way</span>',
            {"Owner": "vision", "Size": "about 1.5 GB", "Note": "a\nnote"},
        ),
        "2014": (' <span class="state wait">on its way</span>', known | {"Size": "2.0 MB"}),
        "a": (
            ' <span class="state wait">not here yet</span>',
            {"Owner": "faces", "Licence": "CC0", "Size": "about 26 GB", "For": "members of group faces",
             "Checked": day(0)},
        ),
        "b": (' <span class="state wait">retired</span>', known | {"Size": "about 1.5 GB", "Retired": "lost"}),
    }  # fmt: skip
    assert re.findall(r'<li><a href="#(.*?)">(.*?)</a>', html) == [
        ("digits", "digits"), ("coco", "coco"), ("faces", "faces"), ("use", "In a job"),
    ]  # fmt: skip
    assert re.findall(r'<section aria-labelledby="(.*?)">\n<h2 id="(.*?)">(.*?)</h2>\n<p>(.*?)</p>', html) == [
        (name, name, name, f"All of {name}") for name in ("digits", "coco", "faces")
    ]
    assert html.count("<title>Data &amp; sets</title>") == html.count("<h1>Data &amp; sets</h1>") == 1
    assert "None is declared yet" not in html
    assert "<p>None is declared yet.</p>" in page.html(table())


@pytest.mark.parametrize(
    ("sets", "name"),
    [
        ([one("a", "1", "staged"), one("b", "1", "published", retired="x"), one("c", "1", "published")], "c"),
        ([one("a", "1", "staged"), one("b", "1", "published", retired="x")], "a"),
        ([], "NAME"),
    ],
)
def test_the_example_is_one_that_works_where_there_is_one(
    page: Any, table: Callable[..., Any], sets: list[dict[str, Any]], name: str
) -> None:
    made = table(*sets)
    assert f"\n    DATA={made.root}/{name}/default\n" in page.plain(made)
    assert f"\nDATA={made.root}/{name}/default\n" in page.html(made)

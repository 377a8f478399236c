"""What users read is whole, harmless and in step with what is there."""

from __future__ import annotations

import json
import os
import re
import stat
from html.parser import HTMLParser

import pytest

from tests.unit.roles.datasets.conftest import Server, Site

pytestmark = pytest.mark.root  # who alone moves a folder that nobody may write

FILES = {"a": b"1" * 1000}


class Page(HTMLParser):
    """The tags of a page; a tag that is left open or closed twice is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()

    def values(self, tag: str, name: str) -> list[str | None]:
        return [attributes[name] for seen, attributes in self.seen if seen == tag and name in attributes]


def test_both_pages_say_what_there_is(site: Site, server: Server) -> None:
    server.files = FILES
    site.declare(FILES, source=server.url, note="train and test", name="coco", version="2017", size_gb=26, title="COCO")
    site.declare(FILES, source=server.url, default=False, retired="use 2.0")
    site.declare(FILES, source=server.url, version="2.0")
    site.done("stage", "digits")
    html = (site.root / "index.html").read_text(encoding="utf-8")
    plain = (site.root / "README.txt").read_text(encoding="utf-8")
    for text in (html, plain):
        for words in (
            f"{site.root}/digits/2.0",
            "Handwritten größe",
            "CC BY 4.0",
            "train and test",
            "use 2.0",
            "1.0 kB",
        ):
            assert words in text
        assert f"DATA={site.root}/digits/default" in text
        assert f"{site.root}/coco/2017" not in text, "it is not here"
    assert re.search(r"^digits +2\.0\* +ready +1\.0 kB +root +/", plain, re.MULTILINE)
    assert re.search(r"^coco +2017 +not here yet +about 26 GB", plain, re.MULTILINE)
    page = Page(html)
    anchors = {f"#{name}" for name in page.values("h2", "id")}
    assert set(page.values("a", "href")) <= {*anchors, "#sets"}, "every link leads somewhere in the page"
    assert page.values("link", "href") + page.values("script", "src") + page.values("img", "src") == []
    assert "url(" not in html
    assert page.values("html", "lang") == ["en"]
    assert "width=device-width, initial-scale=1" in page.values("meta", "content")


def test_what_is_declared_cannot_change_the_page(site: Site, server: Server) -> None:
    server.files = FILES
    evil = '</dd><script>alert("1")</script>&amp;'
    site.declare(FILES, source=server.url, title=evil, licence=evil, note=evil, owner=evil)
    site.done("stage", "digits")
    html = (site.root / "index.html").read_text()
    assert "<script" not in html
    assert html.count("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;amp;") == 4
    Page(html)


def test_a_page_is_written_when_it_differs(site: Site, server: Server) -> None:
    server.files = FILES
    site.declare(FILES, source=server.url)
    assert "index.html is written" in site.done("setup")
    assert site.done("setup") == ""
    (site.root / "README.txt").write_text("mine")
    assert site.done("setup") == f"{site.root}/README.txt is written\n"
    site.done("stage", "digits")
    assert site.done("setup") == "", "stage has written them"


def test_the_root_is_made_and_belongs_to_root_alone(site: Site) -> None:
    site.declare(FILES)
    (site.root).rmdir()
    assert site.refused("list") == f"{site.root} is not there: hal-dataset setup"
    assert f"{site.root} is made" in site.done("setup")
    site.root.chmod(0o777)
    assert site.done("setup") == f"{site.root} belongs to root alone\n"
    assert site.root.stat().st_mode & 0o7777 == 0o755


def test_an_empty_mount_point_is_left_alone(site: Site) -> None:
    site.settings["mount"] = str(site.root)
    site.declare(FILES)
    assert site.refused("setup") == f"{site.root} is not mounted: nothing is done"
    assert list(site.root.iterdir()) == []


def test_a_folder_with_somebody_s_files_is_left_as_it_is_until_it_is_given(site: Site) -> None:
    """Its owner, mode and files stay; what is declared is listed, and nothing is brought."""
    (site.root / "README.txt").write_text("ask me")
    site.root.chmod(0o775)
    site.declare({"a": b"a"}, source="/nowhere")
    before = site.root.stat()
    for words in (["setup"], ["stage", "digits"], ["verify"]):
        done = site.call(*words)
        assert done.returncode == 3
        assert done.stdout == ""
        assert done.stderr == (
            f"{site.root} is not hal-dataset's: it has files already (owner {os.getuid()}, mode 0775), and stays as it"
            f" is. mkdir {site.root}/.hal, as root, gives it to hal-dataset; or name another folder in datasets_root\n"
        )
    assert json.loads(site.done("status"))["foreign"] + "\n" == done.stderr
    assert "not here yet" in site.done("list")
    assert [path.name for path in site.root.iterdir()] == ["README.txt"]
    assert (site.root / "README.txt").read_text() == "ask me"
    after = site.root.stat()
    assert (after.st_mode, after.st_uid, after.st_mtime) == (before.st_mode, before.st_uid, before.st_mtime)

    (site.root / ".hal").symlink_to("/")
    assert site.call("setup").returncode == 3, "who may write there made that"
    (site.root / ".hal").unlink()
    (site.root / ".hal").mkdir(mode=0o700)
    said = site.done("setup")
    assert f"{site.root} belongs to root alone" in said
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in (site.root, site.hidden)} == {
        "datasets": 0o755,
        ".hal": 0o755,
    }
    assert json.loads(site.done("status"))["foreign"] == ""
    assert "not here yet" in (site.root / "README.txt").read_text()

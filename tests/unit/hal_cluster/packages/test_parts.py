"""Parts of hal-packages without a repository: what is read of metadata, what two nodes may need, who signed."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import shutil
import subprocess
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_cluster.packages import repodata, resolve, signatures
from hal_cluster.packages.declared import Nodes, Origin, Repository
from hal_cluster.packages.errors import HalPackagesError
from hal_cluster.packages.metadata import AtHand, gather
from hal_cluster.packages.repodata import Metadata, local, obtain, read
from hal_cluster.packages.universe import Found, Solution, without

NAMESPACE = 'xmlns="http://linux.duke.edu/metadata/repo"'
KEY = "A" * 24 + "0123456789ABCDEF"


def repository(folder: Path, *, kinds: tuple[str, ...] = ("primary", "filelists"), **changes: str) -> Path:
    """Make the metadata of an empty repository; ``changes`` of what stands there of each file."""
    data = []
    for kind in kinds:
        content = gzip.compress(changes.get("content", f"content of {kind}").encode())[: int(changes.get("end", 999))]
        (folder / "repodata").mkdir(parents=True, exist_ok=True)
        (folder / f"repodata/x-{kind}.xml.gz").write_bytes(content)
        checksum = changes.get(
            "checksum", f'<checksum type="sha256">\n{hashlib.sha256(content).hexdigest()} </checksum>'
        )
        location = changes.get("location", f'<location href="repodata/x-{kind}.xml.gz"/>')
        data.append(f'<data type="{kind}">{checksum}{location}</data>')
    (folder / "repodata/repomd.xml").write_text(f"<repomd {NAMESPACE}>{''.join(data)}</repomd>")
    return folder


def test_metadata_is_kept_by_its_kind(tmp_path: Path) -> None:
    place = repository(tmp_path / "base", kinds=("other", "primary", "filelists", "group"))
    found = obtain(str(place), tmp_path)
    repomd = (place / "repodata/repomd.xml").read_bytes()
    files = {kind: tmp_path / f"{kind}-x-{kind}.xml.gz" for kind in ("primary", "filelists")}
    assert found == Metadata(str(place), hashlib.sha256(repomd).hexdigest(), files)
    assert {path.name: gzip.decompress(path.read_bytes()).decode() for path in tmp_path.glob("*.gz")} == {
        "primary-x-primary.xml.gz": "content of primary",
        "filelists-x-filelists.xml.gz": "content of filelists",
    }


@pytest.mark.parametrize(
    ("kinds", "changes", "words"),
    [
        (("primary",), {}, "/repodata/repomd.xml names no filelists"),
        (("filelists",), {}, "/repodata/repomd.xml names no primary"),
        (("primary",), {"checksum": ""}, "/repodata/repomd.xml names no primary"),
        (("primary",), {"location": ""}, "/repodata/repomd.xml names no primary"),
        (
            ("primary",),
            {"checksum": '<checksum type="crc">1</checksum>'},
            "/repodata/x-primary.xml.gz: its checksum is of an unknown kind, crc",
        ),
        (
            ("primary",),
            {"checksum": '<checksum type="sha">1</checksum>'},
            "/repodata/x-primary.xml.gz: is not what repomd.xml says (sha1 differs)",
        ),
        (
            ("primary",),
            {"checksum": '<checksum type="md5"/>'},
            "/repodata/x-primary.xml.gz: is not what repomd.xml says (md5 differs)",
        ),
    ],
)
def test_metadata_that_lacks_something_is_refused(
    tmp_path: Path, kinds: tuple[str, ...], changes: dict[str, str], words: str
) -> None:
    place = repository(tmp_path / "base", kinds=kinds, **changes)
    with pytest.raises(HalPackagesError) as caught:
        obtain(str(place), tmp_path)
    assert str(caught.value) == f"{place}{words}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"content": "a" * 2001}, "more than 0.00190735 MiB when it is unpacked: not read"),
        ({"end": "30"}, "cannot be unpacked: Compressed file ended before the end-of-stream marker was reached"),
    ],
)
def test_metadata_is_unpacked_to_a_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], words: str
) -> None:
    """Who has the mirror has its checksums, too: 1 MB becomes 1 GB, and libsolv takes all of it."""
    monkeypatch.setattr(repodata, "MOST_UNPACKED", 2000)
    obtain(str(repository(tmp_path / "right", content="a" * 2000)), tmp_path)
    place = repository(tmp_path / "base", kinds=("primary",), **changes)
    with pytest.raises(HalPackagesError) as caught:
        obtain(str(place), tmp_path)
    assert str(caught.value) == f"{place}/repodata/x-primary.xml.gz: {words}"


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, bytes])
def test_every_packing_that_nodes_read_is_looked_into(
    monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(repodata, "MOST_UNPACKED", 2000)
    name = "x.xml" + {bz2.compress: ".bz2", lzma.compress: ".xz"}.get(pack, "")
    repodata._refuse_bomb(name, pack(b"a" * 2000))
    with pytest.raises(HalPackagesError, match=f"^{name}: more than .* when it is unpacked: not read$"):
        repodata._refuse_bomb(name, pack(b"a" * 2001))


def test_what_is_packed_otherwise_is_not_handed_on() -> None:
    with pytest.raises(HalPackagesError) as caught:
        repodata._refuse_bomb("x.xml.zst", b"")
    assert str(caught.value) == "x.xml.zst: is packed in a way that nodes do not read; they read .xml, .gz, .bz2, .xz"


def test_a_file_is_read_to_a_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repodata, "MOST_FILE", 1024)
    asked: list[int] = []

    class Endless(io.BytesIO):
        """A mirror's answer that never ends."""

        def read(self, size: int | None = -1) -> bytes:
            """So many bytes."""
            assert size is not None
            asked.append(size)
            return b"a" * (10**6 if size < 0 else size)

    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: Endless())
    (tmp_path / "a").write_bytes(b"a" * 1025)
    for place in ("http://x/base", str(tmp_path)):
        for size in (None, 10**9):
            with pytest.raises(HalPackagesError) as caught:
                read(place, "a", size)
            assert str(caught.value) == f"{place}/a: more than 0.000976562 MiB: not read"
    assert asked == [1025, 1025]
    (tmp_path / "a").write_bytes(b"a" * 1024)
    assert len(read(str(tmp_path), "a")) == 1024


def test_what_is_no_xml_is_no_metadata(tmp_path: Path) -> None:
    place = repository(tmp_path / "base")
    (place / "repodata/repomd.xml").write_text("<html>")
    with pytest.raises(HalPackagesError, match=rf"^{place}/repodata/repomd\.xml is not metadata: no element found"):
        obtain(str(place), tmp_path)


@pytest.mark.parametrize(
    ("place", "folder"),
    [("/a b", Path("/a b")), ("file:///a%20b", Path("/a b")), ("http://x/a", None), ("ftp://x/a", None)],
)
def test_a_place_is_a_folder_or_an_address(place: str, folder: Path | None) -> None:
    assert local(place) == folder


def test_a_file_is_read_whole_or_its_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0123456789")
    assert read(str(tmp_path), "a") == b"0123456789"
    assert read(str(tmp_path), "a", 4) == b"0123"
    assert read(str(tmp_path), "a", 0) == b""


def test_an_address_is_asked_for_no_more_than_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def answer(request: urllib.request.Request, timeout: float) -> io.BytesIO:
        asked.append((request.full_url, request.get_header("Range"), timeout))
        return io.BytesIO(b"0123456789")

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert read("http://x/base/", "a") == b"0123456789"
    assert read("http://x/base", "a", 4) == b"0123"
    assert asked == [("http://x/base/a", None, 60), ("http://x/base/a", "bytes=0-3", 60)]


@pytest.mark.parametrize("error", [OSError("no way"), urllib.error.URLError("no way")])
def test_an_address_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    with pytest.raises(HalPackagesError) as caught:
        read("http://x/base", "a")
    assert str(caught.value) == f"http://x/base/a cannot be read: {error}"


def test_metadata_comes_from_where_it_is_said_to_be(tmp_path: Path) -> None:
    places = {one: str(repository(tmp_path / one)) for one in ("first", "second", "third")}
    wanted = {("a", "x86_64"): "/gone", ("a", "ppc64le"): "/gone", ("b", "x86_64"): places["third"], ("c", "x"): "/no"}
    given = {"a/x86_64": places["first"], "a": places["second"]}
    found = gather(wanted, given, tmp_path / "kept")
    assert {key: one.place for key, one in found.known.items()} == {
        ("a", "x86_64"): places["first"],
        ("a", "ppc64le"): places["second"],
        ("b", "x86_64"): places["third"],
    }
    assert found.known["b", "x86_64"].files["primary"].parent == tmp_path / "kept" / "b-x86_64"
    assert list(found.missing) == [("c", "x")]
    assert found.missing["c", "x"].startswith("/no/repodata/repomd.xml cannot be read: ")
    only = gather(wanted, given, tmp_path / "kept", only_given=True)
    assert sorted(only.known) == [("a", "ppc64le"), ("a", "x86_64")]
    assert only.missing == dict.fromkeys([("b", "x86_64"), ("c", "x")], "its metadata was not given (--from)")


def found(name: str, version: str = "0:1-1", **changes: Any) -> Found:
    values = {"repository": "base", "arch": "x86_64", "file": f"{name}.rpm", "size": 1, "sha256": "0" * 64}
    return Found(**{**values, "name": name, "version": version, "header_end": 9, **changes})


class Universe:
    """Whose solutions are given."""

    def __init__(self, *packages: Found, solution: Solution) -> None:
        self.packages, self.solution, self.seen = packages, solution, list[Any]()

    def install(self, names: list[str], visible: Collection[Found]) -> Solution:
        self.seen.append((names, list(visible)))
        return self.solution

    def providers(self, name: str, among: Collection[Found]) -> list[Found]:
        return [one for one in among if name in (one.name, f"{one.name}-api")]


def nodes(*names: str, repositories: tuple[Repository, ...] = ()) -> Nodes:
    origins = {name: (Origin("roles/tool/tasks/install.yml", 2, "tool"),) for name in names}
    return Nodes("x86_64", repositories or (Repository("base", "http://x", (), ()),), origins, ["hal01", "hal02"])


def test_two_nodes_need_the_same_version_of_a_name() -> None:
    new, old, lib = found("tool", "0:2-1"), found("tool"), found("lib")
    chosen: Any = defaultdict(dict, {("base", "x86_64"): {"tool": old}})
    also: Any = defaultdict(set)
    universe: Any = Universe(new, old, lib, solution=Solution(frozenset([new, lib]), ()))
    assert resolve._choose(nodes("tool", "lib-api"), universe, [], chosen, also) == [
        "hal[01-02] (x86_64): needs tool 0:2-1 x86_64, other nodes 0:1-1 x86_64; a lock has one of a name in a "
        "repository"
    ]
    assert chosen == {("base", "x86_64"): {"tool": old, "lib": lib}}
    assert also == {lib: {"lib-api"}}
    assert universe.seen == [(["tool", "lib-api"], [new, old, lib])]


def test_nodes_see_what_their_repositories_have_and_do_not_hide() -> None:
    own, hidden, other = found("tool"), found("tool-libs"), found("tool", repository="extra")
    universe: Any = Universe(own, hidden, other, solution=Solution(frozenset(), ("needs tool", "nobody")))
    some = nodes("tool", repositories=(Repository("base", "http://x", (), ("*-libs",)),))
    assert resolve._choose(some, universe, [], {}, {}) == [
        "hal[01-02] (x86_64): needs tool (declared in roles/tool/tasks/install.yml:2)",
        "hal[01-02] (x86_64): nobody",
    ]
    assert universe.seen == [(["tool"], [own])]


def test_a_pattern_hides_names_of_its_repository_only() -> None:
    packages = [found("tool"), found("Tool"), found("tool", repository="extra"), found("atool")]
    assert without(packages, {"base": ["x", "tool*"]}) == packages[1:]


def test_a_package_is_signed_by_a_key_of_its_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {"b": found("b"), "a": found("a"), "c": found("c")}
    signers: list[str | None] = [KEY[-16:]] * 3
    asked: list[Any] = []

    def keys_of(place: str, files: Any) -> list[str | None]:
        asked.append((place, files))
        return signers

    monkeypatch.setattr(resolve, "keys_of", keys_of)
    base = Repository("base", "http://x", (("site", KEY),), ())
    at_hand = Metadata("/base", "", {})
    entries = resolve._signed(packages, {packages["a"]: {"z", "y"}}, base, "x86_64", at_hand)
    assert [(name, one.also, one.key) for name, one in entries.items()] == [
        ("a", ("y", "z"), KEY[-16:]),
        *[("b", (), KEY[-16:]), ("c", (), KEY[-16:])],
    ]
    assert asked == [("/base", [("a.rpm", 9), ("b.rpm", 9), ("c.rpm", 9)])]
    signers[:2] = [None, "F" * 16]
    with pytest.raises(HalPackagesError) as caught:
        resolve._signed(packages, {}, base, "x86_64", at_hand)
    assert str(caught.value).splitlines() == [
        f"base/x86_64: a.rpm is signed by nobody; signed_by: site {KEY[-16:]}",
        f"base/x86_64: b.rpm is signed by key {'F' * 16}; signed_by: site {KEY[-16:]}",
    ]
    with pytest.raises(HalPackagesError, match=r"c\.rpm is signed by key .*; signed_by: no key is declared$"):
        resolve._signed(packages, {}, Repository("base", "http://x", (), ()), "x86_64", at_hand)


def answering(monkeypatch: pytest.MonkeyPatch, status: int, out: str, err: str = "") -> list[Any]:
    asked: list[Any] = []

    def run(argv: list[str], **how: Any) -> Any:
        asked.append(
            [Path(one).read_bytes() if Path(one).is_file() else one for one in argv[argv.index("--queryformat") + 2 :]]
        )
        assert how["env"]["LC_ALL"] == "C"
        return SimpleNamespace(returncode=status, stdout=out, stderr=err)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/rpm")
    return asked


def test_signers_come_in_the_order_of_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, 0, "RSA/SHA256, Key ID 0123456789abcdef \n(none)\n")
    assert signatures.keys_of("/base", [("a.rpm", 1), ("b.rpm", 2)]) == ["0123456789ABCDEF", None]
    assert asked == [["/base/a.rpm", "/base/b.rpm"]]
    heads = {("a.rpm", 1): b"A", ("b.rpm", 2): b"BB"}
    monkeypatch.setattr(signatures, "read", lambda place, file, end: heads[file, end])
    assert signatures.keys_of("http://x", list(heads)) == ["0123456789ABCDEF", None]
    assert asked[1:] == [[b"A", b"BB"]]
    assert signatures.keys_of("/base", []) == []
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("status", "out", "err", "words"),
    [(1, "x\n", " odd \n", "odd"), (0, "", "", ""), (0, "x\ny\n", "", "x\ny"), (1, "x\n", "", "x")],
)
def test_what_rpm_cannot_read_is_said(
    monkeypatch: pytest.MonkeyPatch, status: int, out: str, err: str, words: str
) -> None:
    answering(monkeypatch, status, out, err)
    with pytest.raises(HalPackagesError) as caught:
        signatures.keys_of("/base", [("a.rpm", 1)])
    assert str(caught.value) == f"rpm cannot read the packages: {words}"


def test_signers_need_rpm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(HalPackagesError, match=r"^rpm is not installed here; "):
        signatures.keys_of("/base", [("a.rpm", 1)])


def test_a_universe_has_the_metadata_of_its_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[Any] = []
    made = SimpleNamespace(add=lambda *words: added.append(words))

    def make(*words: Any) -> Any:
        added.append(words)
        return made

    monkeypatch.setattr("hal_cluster.packages.metadata.Universe", make)
    known: Any = {("b", "x86_64"): 1, ("a", "x86_64"): 2, ("a", "ppc64le"): 3}
    assert AtHand(known).universe("x86_64", ("g",)) is made  # type: ignore[comparison-overlap]
    assert added == [("x86_64", ("g",)), ("a", 2), ("b", 1)]

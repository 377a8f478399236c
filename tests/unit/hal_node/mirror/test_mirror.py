"""What the mirror does on its node: transfers that break, signatures as two releases of rpm print them, snapshots."""

from __future__ import annotations

import hashlib
import http.server
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ansible.module_utils.hal_node.mirror.fetch import MirrorError, fetch
from ansible.module_utils.hal_node.mirror.keys import by_package, fault_of, primary_fingerprints
from ansible.module_utils.hal_node.mirror.snapshot import (
    current,
    free_name,
    is_whole,
    make,
    pooled,
    prune,
    surplus,
    switch,
)

CONTENT = random.Random(7).randbytes(300_000)  # the same in every process of a run
SHA256 = hashlib.sha256(CONTENT).hexdigest()
CAPTURES = Path(__file__).parent / "captures" / "rpmkeys"
CENTOS = "24C6A8A7F4A80EB5"


class Server(http.server.BaseHTTPRequestHandler):
    """Gives CONTENT, knows ranges, and breaks off where a test says so."""

    breaks_after: int | None = None
    ranges = True
    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        """One file, whatever the path."""
        wanted = self.headers.get("Range")
        type(self).asked.append(wanted)
        start = int(wanted[6:-1]) if wanted and self.ranges else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        end = len(CONTENT) if self.breaks_after is None else start + self.breaks_after
        self.wfile.write(CONTENT[start:end])
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    Server.breaks_after, Server.ranges, Server.asked = None, True, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/tool.rpm"
    server.shutdown()
    thread.join()
    server.server_close()


def get(address: str, path: Path, **changed: Any) -> int:
    count: int = fetch(address, str(path), changed.get("size", len(CONTENT)), changed.get("sha256", SHA256), 5)
    return count


def test_a_transfer_that_breaks_is_gone_on_with(address: str, tmp_path: Path) -> None:
    path = tmp_path / "tool.rpm"
    Server.breaks_after = 100_000
    with pytest.raises(MirrorError, match="the next run goes on"):
        get(address, path)
    assert not path.exists()
    assert (tmp_path / "tool.rpm.part").stat().st_size == 100_000
    Server.breaks_after = None
    assert get(address, path) == 200_000
    assert path.read_bytes() == CONTENT
    assert Server.asked == [None, "bytes=100000-"]
    assert not (tmp_path / "tool.rpm.part").exists()


def test_a_server_that_cannot_resume_sends_all_of_it(address: str, tmp_path: Path) -> None:
    (tmp_path / "tool.rpm.part").write_bytes(b"\0" * 1000)
    Server.ranges = False
    assert get(address, tmp_path / "tool.rpm") == len(CONTENT)
    assert (tmp_path / "tool.rpm").read_bytes() == CONTENT


@pytest.mark.parametrize(("size", "sha256"), [(len(CONTENT), "0" * 64), (len(CONTENT) - 10, SHA256)])
def test_another_file_than_the_locked_one_is_not_kept(address: str, tmp_path: Path, size: int, sha256: str) -> None:
    with pytest.raises(MirrorError, match=f"locked is {sha256} .*not published"):
        get(address, tmp_path / "tool.rpm", size=size, sha256=sha256)
    assert list(tmp_path.iterdir()) == []


def test_a_half_that_is_not_of_this_file_is_found_and_the_next_run_starts_afresh(address: str, tmp_path: Path) -> None:
    (tmp_path / "tool.rpm.part").write_bytes(b"\0" * 1000)
    with pytest.raises(MirrorError, match="not published"):
        get(address, tmp_path / "tool.rpm")
    assert get(address, tmp_path / "tool.rpm") == len(CONTENT)


def test_a_file_address_is_read_from_where_it_ended(tmp_path: Path) -> None:
    source = tmp_path / "a folder" / "tool.rpm"
    source.parent.mkdir()
    source.write_bytes(CONTENT)
    (tmp_path / "tool.rpm.part").write_bytes(CONTENT[:1234])
    assert get(f"file://{tmp_path}/a%20folder/tool.rpm", tmp_path / "tool.rpm") == len(CONTENT) - 1234


@pytest.mark.parametrize(
    ("capture", "key", "fault"),
    [
        ("el7_signed.txt", CENTOS, ""),
        ("el7_signed.txt", "0000000000000000", "is signed by F4A80EB5"),
        ("rpm418_signed.txt", "7ACCAB93C0A994D7", ""),
        ("rpm418_no_key.txt", "7ACCAB93C0A994D7", "NOKEY"),
        ("rpm418_unsigned.txt", CENTOS, "is not signed"),
        ("rpm418_broken.txt", "7ACCAB93C0A994D7", "BAD"),
    ],
)
def test_a_signature_is_judged_as_rpm_prints_it(capture: str, key: str, fault: str) -> None:
    text = (CAPTURES / capture).read_text()
    path = text.splitlines()[0][:-1]
    found = fault_of(by_package(text, [path])[path], key)
    assert (fault in found) if fault else found == ""


def test_a_key_that_el7_does_not_know_and_an_unsigned_package_are_refused() -> None:
    """rpm 4.11 of the capture, with the words that its warnings have for a missing key, and without its signatures."""
    lines = (CAPTURES / "el7_signed.txt").read_text().splitlines()[1:]
    unknown = [line.replace("f4a80eb5: OK", "f4a80eb5: NOKEY") for line in lines]
    assert fault_of(unknown, CENTOS) == "Header V3 RSA/SHA256 Signature, key ID f4a80eb5: NOKEY"
    assert fault_of([line for line in lines if "Signature" not in line], CENTOS) == "is not signed"


def test_a_package_of_which_rpm_says_nothing_is_not_passed() -> None:
    assert fault_of([], CENTOS) == "is not signed"


def test_only_primary_keys_count() -> None:
    colons = f"pub:-:4096:1:X:1:::-:\nfpr:::::::::{'A' * 40}:\nsub:-:4096:1:Y:1:::::\nfpr:::::::::{'B' * 40}:\n"
    assert primary_fingerprints(colons) == ["A" * 40]


def package(folder: Path, name: str) -> dict[str, Any]:
    content = name.encode() * 100
    entry = {"file": f"p/{name}.rpm", "size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "key": ""}
    path = Path(pooled(str(folder), entry))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return entry


def tree(*packages: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"repository": "base", "arch": "x86_64", "url": "http://x", "packages": list(packages)}]


def index(folder: str) -> None:
    metadata = Path(folder) / "repodata"
    metadata.mkdir()
    (metadata / "repomd.xml").write_text("made")


def publish(folder: Path, name: str, trees: list[dict[str, Any]], keys: dict[str, str]) -> None:
    make(str(folder), name, trees, keys, index)
    switch(str(folder), name)


def test_a_snapshot_that_somebody_touched_is_not_whole(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("key")
    trees, keys = tree(package(tmp_path, "tool"), package(tmp_path, "libs")), {"site": str(key)}
    publish(tmp_path, "one", trees, keys)
    root = tmp_path / "snapshots/one"

    def whole() -> bool:
        return bool(is_whole(str(tmp_path), "one", trees, keys))

    assert whole()
    assert not is_whole(str(tmp_path), "one", tree(trees[0]["packages"][0]), keys)
    assert not is_whole(str(tmp_path), "one", trees, {**keys, "other": str(key)})
    (root / "base/x86_64/Packages/added.rpm").write_text("x")
    assert not whole()
    (root / "base/x86_64/Packages/added.rpm").unlink()
    assert whole()
    (root / "base/x86_64/repodata/repomd.xml").write_text("changed")
    assert not whole()
    (root / "base/x86_64/repodata/repomd.xml").write_text("made")
    (root / "base/x86_64/Packages/tool.rpm").unlink()
    assert not whole()


def test_old_snapshots_go_by_count_and_packages_with_the_last_that_has_them(tmp_path: Path) -> None:
    old, new = package(tmp_path, "old"), package(tmp_path, "new")
    for number, name in enumerate(("one", "two", "three")):
        publish(tmp_path, name, tree(old if name == "one" else new), {})
        os.utime(tmp_path / "snapshots" / name, (number, number))
    assert current(str(tmp_path)) == "three"
    assert surplus(str(tmp_path), 2) == []
    prune(str(tmp_path), surplus(str(tmp_path), 2), tree(new))
    assert Path(pooled(str(tmp_path), old)).exists(), "snapshot one still has it"
    prune(str(tmp_path), surplus(str(tmp_path), 1), tree(new))
    assert sorted(path.name for path in (tmp_path / "snapshots").iterdir()) == ["three", "two"]
    assert not Path(pooled(str(tmp_path), old)).exists()
    assert Path(pooled(str(tmp_path), new)).exists()


def test_a_spoilt_snapshot_is_replaced_by_another_name(tmp_path: Path) -> None:
    publish(tmp_path, "digest", tree(package(tmp_path, "tool")), {})
    assert free_name(str(tmp_path), "digest") == "digest.1"
    assert free_name(str(tmp_path), "other") == "other"


def test_a_snapshot_without_metadata_is_not_whole(tmp_path: Path) -> None:
    trees = tree(package(tmp_path, "tool"))
    make(str(tmp_path), "bare", trees, {}, lambda folder: None)
    assert not is_whole(str(tmp_path), "bare", trees, {})
    make(str(tmp_path), "full", trees, {}, index)
    assert is_whole(str(tmp_path), "full", trees, {})

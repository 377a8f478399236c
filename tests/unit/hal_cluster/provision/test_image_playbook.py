"""playbooks/image.yml: what cannot be built is refused in one line, before any node is contacted; how a build ends."""

from __future__ import annotations

import hashlib
import http.server
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.provision.images import make_key
from tests.unit.interpreters import LOCAL
from tests.unit.playing import ROOT, play, play_text


def refusal(folder: Path, *words: str) -> str:
    made = folder / "image_key"
    make_key(made)
    done = play(
        "playbooks/image.yml",
        *("-e", f"image_key={made}"),
        *(word for one in words for word in ("-e", one)),
        state=folder,
        ANSIBLE_SSH_ARGS="-o ProxyCommand=false",  # no node is there, and none is to be asked
    )
    assert done.returncode != 0
    assert "unreachable=0" in done.stdout, done.stdout + done.stderr
    assert "Nothing was changed." in " ".join(done.stdout.split())
    assert done.stdout.count("fatal: ") == 1
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name what it is for, a profile of cluster.yml: -e image_profile=ac922"),
        (["image_profile=hal01"], "image_profile is hal01: no profile of cluster.yml that has nodes"),
        (["image_profile=x86"], "profile x86 is x86_64, and hal-mgmt1 is ppc64le: "),
        (["image_profile=ac922", "image_builder=hal-mgmt2"], "profile ac922 is ppc64le, and hal-mgmt2 is x86_64: "),
        (
            ["image_profile=ac922", "image_builder=hal[01-02]"],
            "one node builds an image, and these were named: hal[01-02]",
        ),
        (["image_profile=ac922", "image_key=/nowhere/key"], "/nowhere/key: the key that signs images is missing"),
        (
            ["image_profile=ac922", '{"image_roles": {"base": ["instal"]}}'],
            "image_roles.base names instal: there is no roles/base/tasks/instal.yml",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    assert said in refusal(tmp_path, *words)


def test_a_limit_is_refused_whatever_it_leaves(tmp_path: Path) -> None:
    """One that leaves out the building node would be a play of no hosts, which ends well."""
    for limit in ("hal01", "hal-mgmt1"):
        done = play("playbooks/image.yml", "--limit", limit, "-e", "image_profile=ac922", state=tmp_path)
        assert done.returncode != 0
        assert "image.yml is for one image: leave --limit away" in " ".join((done.stdout + done.stderr).split())


# ---------------------------------------------------------------- how a build ends

NAME = "ac922-20261122.155549-ppc64le"
CONTENT = b"what was made"


@pytest.fixture
def serving() -> Iterator[dict[str, Any]]:
    """A web server that gives `content` for whatever it is asked, or 404 without one."""
    has: dict[str, Any] = {"content": CONTENT}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if has["content"] is None else 200)
            self.end_headers()
            self.wfile.write(has["content"] or b"")

        def log_message(self, format: str, *words: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    has["address"] = f"127.0.0.1:{server.server_port}"
    try:
        yield has
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ended(folder: Path, address: str) -> subprocess.CompletedProcess[str]:
    """The last tasks of the playbook itself, on this machine: looking at what was published, and cleaning up.

    Ending the build fails here: nobody says of which folder.
    """
    play_of_image = yaml.safe_load((ROOT / "playbooks/image.yml").read_text())[1]
    whole = next(task for task in play_of_image["tasks"] if "always" in task)
    look = next(task for task in whole["block"] if task["name"] == "See that a node gets it")
    tasks = [{"name": "The end", "block": [look], "always": whole["always"]}]
    variables: dict[str, Any] = {
        "ansible_connection": "local", "ansible_python_interpreter": LOCAL, "ansible_become": False,
        "hal_image_builder": "hal-mgmt1", "__image_server": "hal-mgmt1", "__image_address": address,
        "__image_published": str(folder / "www"), "__image_incoming": str(folder / "www/.incoming"),
        "__image_folder_name": NAME, "__image_file": "rootfs.tar.gz",
        "__image_made": {"sha256": hashlib.sha256(CONTENT).hexdigest()},
        "__image_signed_in": {"path": str(folder / "signed")},
    }  # fmt: skip
    for name in (f"www/{NAME}", "www/.incoming", "www/another-1-ppc64le", "signed"):
        (folder / name).mkdir(parents=True)
    text = yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}])
    return play_text(folder, text, "hal-mgmt1", sites=["hal"], **variables)


def test_what_a_node_gets_stays_published(tmp_path: Path, serving: dict[str, Any]) -> None:
    done = ended(tmp_path, serving["address"])
    assert "is not published" not in done.stdout
    assert {path.name for path in (tmp_path / "www").iterdir()} == {NAME, ".incoming", "another-1-ppc64le"}


@pytest.mark.parametrize(
    ("content", "why"), [(b"something else", ""), (None, ": curl: (22) The requested URL returned")]
)
def test_what_no_node_gets_is_taken_back(
    tmp_path: Path, serving: dict[str, Any], content: bytes | None, why: str
) -> None:
    serving["content"] = content
    done = ended(tmp_path, serving["address"])
    assert done.returncode != 0
    said = f"{NAME} was published and taken back: hal-mgmt1 served something else than what was made, or nothing{why}"
    assert said in " ".join(done.stdout.split()), done.stdout[-4000:]
    assert {path.name for path in (tmp_path / "www").iterdir()} == {".incoming", "another-1-ppc64le"}
    assert list((tmp_path / "www/.incoming").iterdir()) == []


def test_cleaning_up_goes_on_after_a_part_of_it_failed(tmp_path: Path, serving: dict[str, Any]) -> None:
    done = ended(tmp_path, serving["address"])
    assert done.returncode != 0  # what was left is told
    assert "missing required arguments: folder" in done.stdout
    assert not (tmp_path / "signed").exists()

"""What a build is told by the controller, part by part: its machine, who builds, and what must not be in it."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.provision import building as subject
from hal_cluster.provision.building import Machine, abandoned, digests, machine, made_from, owner, problem
from hal_cluster.provision.errors import ProvisionError

NODES = {
    "a": {"profile": "gpu", "arch": "ppc64le", "kernel": "4", "name": "a", "gpus": []},
    "b": {"profile": "gpu", "arch": "ppc64le", "kernel": "4", "name": "b", "gpus": []},
}
GROUPS = {"a": ["all", "ungrouped", "rack1", "nodes", "gpu"], "b": ["all", "ungrouped", "nodes", "gpu", "rack2"]}


def test_a_machine_is_what_all_nodes_of_a_profile_are() -> None:
    node = {"profile": "gpu", "arch": "ppc64le", "kernel": "4", "gpus": []}
    assert machine("gpu", NODES, GROUPS) == Machine(node, ("gpu", "nodes"))


@pytest.mark.parametrize(
    ("profile", "nodes", "words"),
    [
        ("gpu", {}, "image_profile is gpu: no profile of cluster.yml that has nodes"),
        ("gpu", {**NODES, "c": {"profile": "x"}}, "image_profile is gpu: no profile of cluster.yml that has nodes"),
        (
            "gpu",
            {"a": {**NODES["a"], "kernel": ""}},
            "image_profile is gpu: cluster.yml, profiles.gpu.kernel declares none",
        ),
    ],
)
def test_a_profile_without_a_machine_is_refused(profile: str, nodes: Any, words: str) -> None:
    with pytest.raises(ProvisionError) as error:
        machine(profile, nodes, GROUPS)
    assert str(error.value) == words


def told(folder: Path, **changes: Any) -> str:
    (folder / "roles/time/tasks").mkdir(parents=True, exist_ok=True)
    (folder / "roles/time/tasks/install.yml").touch()
    (folder / "key").touch()
    usual: dict[str, Any] = {
        **{"profile": "gpu", "name": "compute", "wanted": Machine({"arch": "ppc64le"}, ())},
        **{"builder": {"arch": "ppc64le", "name": "hal05"}, "key": folder / "key"},
        **{"parts": {"time": ["install"]}, "roles": folder / "roles"},
    }
    return problem(**{**usual, **changes})


def test_why_nothing_can_be_built_is_one_line(tmp_path: Path) -> None:
    assert told(tmp_path) == ""
    assert told(tmp_path, name="Com pute") == "image_name is Com pute: small letters, digits, . _ and -"
    assert told(tmp_path, builder={"arch": "x86_64", "name": "front"}) == (
        "profile gpu is ppc64le, and front is x86_64: packages' scripts run only on their own architecture."
        " Name a node that is ppc64le: -e image_builder=NODE"
    )
    key = tmp_path / "none"
    said = f"{key}: the key that signs images is missing; python -m hal_cluster.provision key {key} makes it, once"
    assert told(tmp_path, key=key) == said
    (tmp_path / "roles/time/tasks/In-stall.yml").touch()
    for entry in ("other", "In-stall", "../tasks/install"):
        said = f"image_roles.time names {entry}: there is no roles/time/tasks/{entry}.yml"
        assert told(tmp_path, parts={"time": ["install", entry]}) == said


def test_a_build_is_abandoned_when_its_process_is_no_more() -> None:
    here, born = socket.gethostname(), subject._born(os.getpid())
    assert born > 0
    assert owner("x-1") == f"image x-1 by {here} process {os.getpid()} of {born}"
    assert not abandoned(owner("x-1"))
    for other in (born - 1, born + 1):
        assert abandoned(f"image x by {here} process {os.getpid()} of {other}")
    assert abandoned(f"image x by {here} process 999999999 of 1")
    assert not abandoned(f"image x by {here}-other process 999999999 of 1")
    assert not abandoned(f"image x by {here} process 999999999 of 1 more")
    assert subject._born(999999999) == 0
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert born == int(stat[19])


def names(found: dict[str, Any], form: bytes) -> str | None:
    name: str | None = found["digests"].get(hmac.new(found["key"].encode(), form, hashlib.sha256).hexdigest())
    return name


def test_secrets_are_looked_for_in_each_form_that_they_may_have() -> None:
    found = digests(
        {
            "a": {"x": ["short", " long enough \n", ("in a tuple",)], "y": 12345678, "z": 1234567, "t": True},
            "b": b"bytes of it\xff",
            "c": "line number one\n  line number two\n",
            "d": "00112233445566778899",
            "e": "bXVuZ2Uta2V5",
            "f": None,
        }
    )
    assert len(found["key"]) == 64
    assert digests({})["key"] != found["key"]
    expected = {
        **{b"long enough": "a", b"in a tuple": "a", b"12345678": "a", "bytes of it\ufffd".encode(): "b"},
        **{b"line number one": "c", b"line number two": "c", b"line number one\n  line number two": "c"},
        **{b"00112233445566778899": "d", bytes.fromhex("00112233445566778899"): "d"},
        **{b"bXVuZ2Uta2V5": "e", b"munge-key": "e"},
    }
    assert {form: names(found, form) for form in expected} == expected
    for form in (b"short", b"1234567", b"True", b"None"):
        assert names(found, form) is None


def test_a_manifest_says_what_an_image_was_made_from(tmp_path: Path) -> None:
    lock, base = tmp_path / "lock", tmp_path / "base"
    lock.write_bytes(b"x" * (1024 * 1024 + 1))
    base.write_bytes(b"")
    assert made_from("abc", lock, {"time": [], "base": []}, base) == {
        **{"commit": "abc", "roles": "time base"},
        "lock_sha256": hashlib.sha256(lock.read_bytes()).hexdigest(),
        "base_sha256": hashlib.sha256(b"").hexdigest(),
    }
    assert made_from("", None, {}, tmp_path / "none") == {"commit": "unknown", "roles": ""}

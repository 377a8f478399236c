"""hal-packages: what it writes, what it says, and its exit status, on real repositories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hal_cluster.packages import cli
from hal_cluster.packages.declared import Site
from hal_cluster.packages.lock import Lock, load
from tests.unit.hal_cluster.packages.conftest import World


class Desk:
    """Where somebody calls the program for a site that installs `tool`, which needs /bin/sh."""

    def __init__(self, world: World, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.site: Site = world.site("tool")
        self.lock = folder / "packages.lock.yml"
        self.places = ["--lock", str(self.lock), "--from", f"base={world.places['base']}"]
        self._capsys = capsys

    def call(self, *words: str) -> tuple[int, str, str]:
        """Return exit status, output and errors."""
        status = cli.main(list(words))
        said = self._capsys.readouterr()
        return status, said.out, said.err


@pytest.fixture
def desk(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    made = Desk(world, tmp_path, capsys)
    monkeypatch.setattr("hal_cluster.packages.declared.declared", lambda sources: made.site)
    return made


def test_what_nodes_have_already_is_given_by_name_or_in_a_file(desk: Desk, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("# what a node has\n\nzsh 5.0\n  bash\t4.2 x86_64\n/bin/sh\n")
    status, out, err = desk.call("lock", *desk.places, "--given", "awk", "--given", "bash", "--given-file", str(given))
    made = load(desk.lock).lock
    assert (status, out, err) == (0, f"{desk.lock}: 2 packages in 1 trees, {made.digest()}\n", "")
    assert made.given == ("/bin/sh", "awk", "bash", "zsh")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given", "packages.lock.yml"]


def test_what_cannot_be_resolved_leaves_the_lock_file_as_it_was(desk: Desk, world: World) -> None:
    desk.lock.write_text("as it was")
    desk.site = world.site("tool", "orphan")
    status, out, err = desk.call("lock", *desk.places, "--given", "/bin/sh")
    assert (status, out) == (2, "")
    assert "nothing provides nowhere needed by orphan" in err
    assert desk.lock.read_text() == "as it was"


def test_a_site_without_a_mirror_has_to_name_its_lock_file(desk: Desk) -> None:
    said = "this site has no mirror, so no lock file is declared: name one with --lock\n"
    assert desk.call("lock") == (2, "", said)
    desk.site = Site(desk.site.nodes, desk.lock)
    assert desk.call("lock", *desk.places[2:], "--given", "/bin/sh")[0] == 0
    assert desk.lock.exists()


@pytest.mark.parametrize("place", ["base", "=/x", "base="])
def test_a_place_has_a_repository_and_a_folder_or_address(desk: Desk, place: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        desk.call("lock", "--from", place)


def test_a_lock_file_that_holds_is_checked_as_far_as_can_be_seen(desk: Desk, world: World, tmp_path: Path) -> None:
    desk.call("lock", *desk.places, "--given", "/bin/sh")
    name = str(desk.lock)
    assert desk.call("verify", *desk.places) == (0, f"{name}: checked, nothing wrong\n", "")
    status, out, err = desk.call("verify", *desk.places[:2])
    first, last = out.splitlines()
    assert (status, err, last) == (3, "", f"{name}: nothing wrong in what was checked")
    assert (
        first
        == "not checked: base/x86_64: releases, checksums, closure and conflicts: its metadata was not given (--from)"
    )
    (tmp_path / "mirror/base").mkdir(parents=True)
    (tmp_path / "mirror/base/x86_64").symlink_to(world.folder / "base")
    assert desk.call("verify", *desk.places, "--files", str(tmp_path / "mirror"))[0] == 0


def test_every_fault_of_a_lock_file_is_a_line(desk: Desk, world: World, tmp_path: Path) -> None:
    desk.call("lock", *desk.places, "--given", "/bin/sh")
    desk.site = world.site("tool", "late")
    status, out, err = desk.call("verify", *desk.places, "--files", str(tmp_path / "nowhere"))
    assert status == 2
    assert out == ""
    assert len(err.splitlines()) == len(set(err.splitlines())) > 1
    assert any("late" in line for line in err.splitlines())
    assert any("nowhere" in line for line in err.splitlines())


def test_what_roles_install_is_shown_with_where_it_is_declared(desk: Desk) -> None:
    line = f"  {'tool':<28} roles/tool/tasks/install.yml:2"
    assert desk.call("declared") == (0, f"hal[01-02] (x86_64) from base\n{line}\n", "")
    status, out, _err = desk.call("declared", "--json")
    assert (status, json.loads(out)) == (
        0,
        [
            {
                "nodes": "hal[01-02]",
                "arch": "x86_64",
                "repositories": {"base": "http://archive.example/base"},
                "names": {"tool": ["roles/tool/tasks/install.yml:2"]},
            }
        ],
    )


def test_the_schema_is_that_of_the_lock_file(desk: Desk) -> None:
    status, out, _err = desk.call("schema")
    assert (status, yaml.safe_load(out)) == (0, Lock.model_json_schema())


def test_an_interrupted_call_ends_as_one(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(options: object) -> Site:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_site", interrupted)
    assert desk.call("declared") == (130, "", "")

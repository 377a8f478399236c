"""Debian's files end at Enterprise Linux's places, with the owner and the scriptlets that the recipe declares."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from testbed import rpm
from testbed.errors import VirtualNodesError
from testbed.recipes import Group, Mode, Recipe, User


@pytest.fixture
def deb(tmp_path: Path) -> dict[str, Path]:
    """A small Debian package with a daemon, Debian's own unit and documentation."""
    tree = tmp_path / "tree"
    for path in (
        "DEBIAN/control",
        "usr/sbin/timed-debian",
        "lib/systemd/system/timed.service",
        "usr/share/doc/timed/README",
        "etc/default/timed",
        "lib/x86_64-linux-gnu/libtime.so.1",
    ):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text("")
    (tree / "usr/sbin/timed-debian").chmod(0o755)
    (tree / "DEBIAN/control").write_text(
        "Package: timed\nVersion: 2:4.3+x-2+deb12u3\nArchitecture: amd64\n"
        "Maintainer: x <x@example.org>\nDescription: x\n"
    )
    subprocess.run(["dpkg-deb", "--build", tree, tmp_path / "timed.deb"], check=True, capture_output=True)
    return {"timed": tmp_path / "timed.deb"}


def paths(root: Path) -> list[str]:
    """Return the files below a folder."""
    return sorted("/" + str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def test_debians_own_places_are_dropped_and_paths_are_moved(tmp_path: Path, deb: dict[str, Path]) -> None:
    recipe = Recipe(summary="x", payload=("timed",), move={"/usr/sbin/timed-debian": "/usr/sbin/timed"})
    root = rpm.lay_out("timed", recipe, deb, tmp_path / "files", tmp_path / "work")
    assert paths(root) == ["/usr/lib/x86_64-linux-gnu/libtime.so.1", "/usr/sbin/timed"]


def test_of_libraries_only_the_shared_objects_are_taken(tmp_path: Path, deb: dict[str, Path]) -> None:
    root = rpm.lay_out("x", Recipe(summary="x", libraries=("timed",)), deb, tmp_path / "files", tmp_path / "work")
    assert paths(root) == ["/usr/lib/x86_64-linux-gnu/libtime.so.1"]


def test_own_files_are_taken_and_a_missing_unit_is_an_error(tmp_path: Path, deb: dict[str, Path]) -> None:
    recipe = Recipe(summary="x", payload=("timed",), units=("timed.service",))
    with pytest.raises(VirtualNodesError, match=r"^timed: unit timed\.service is neither in the payload nor in files/"):
        rpm.lay_out("timed", recipe, deb, tmp_path / "files", tmp_path / "one")
    unit = tmp_path / "files/timed/usr/lib/systemd/system/timed.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Unit]\n")
    assert "/usr/lib/systemd/system/timed.service" in paths(
        rpm.lay_out("timed", recipe, deb, tmp_path / "files", tmp_path / "two")
    )


def test_a_move_of_nothing_is_an_error(tmp_path: Path, deb: dict[str, Path]) -> None:
    recipe = Recipe(summary="x", payload=("timed",), move={"/usr/sbin/other": "/usr/sbin/timed"})
    with pytest.raises(VirtualNodesError, match=r"^timed: move /usr/sbin/other: the payload has no such file$"):
        rpm.lay_out("timed", recipe, deb, tmp_path / "files", tmp_path / "work")


def test_the_version_is_debians_without_epoch_and_revision(deb: dict[str, Path]) -> None:
    recipe = Recipe(summary="x", payload=("timed",))
    assert rpm.version_of(recipe, deb) == "4.3+x"
    assert rpm.version_of(Recipe(summary="x", payload=("timed",), version="7"), deb) == "7"
    assert rpm.architecture_of(recipe, deb, "ppc64le") == "ppc64le"
    assert rpm.architecture_of(Recipe(summary="x"), deb, "ppc64le") == "noarch"


def test_the_spec_declares_owners_folders_and_scriptlets(tmp_path: Path, deb: dict[str, Path]) -> None:
    own = tmp_path / "files/timed/etc/timed.conf"
    own.parent.mkdir(parents=True)
    own.write_text("x")
    recipe = Recipe(
        summary="A clock",
        payload=("timed",),
        groups=(Group(name="clock", gid=27),),
        users=(User(name="timed", home="/var/lib/timed", comment="O'Clock"),),
        folders={"/var/lib/timed": Mode(mode="0700", owner="timed", group="timed")},
        modes={"/etc/timed.conf": Mode(mode="0640", group="timed")},
    )
    root = rpm.lay_out("timed", recipe, deb, tmp_path / "files", tmp_path / "work")
    lines = rpm.spec("timed", recipe, root, "4.3", "timed 4.3").splitlines()
    assert '%dir %attr(0700, timed, timed) "/var/lib/timed"' in lines
    assert '%config(noreplace) %attr(0640, root, timed) "/etc/timed.conf"' in lines
    assert '%attr(0755, root, root) "/usr/sbin/timed-debian"' in lines
    assert "getent group clock >/dev/null || groupadd -r -g 27 clock || exit 1" in lines
    (user,) = [line for line in lines if "useradd" in line]
    assert "-d /var/lib/timed -s /sbin/nologin -c 'O'\"'\"'Clock' timed || exit 1" in user
    assert "%post" in lines
    assert "ldconfig" in lines, "it has a shared library"
    assert not [line for line in lines if "systemctl" in line]  # and no unit

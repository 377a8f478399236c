"""What unmount.sh of role nfs_client takes away: run by sh over planted tables; umount and systemctl are stand-ins."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PROGRAM = ROOT / "roles/nfs_client/files/unmount.sh"
PARENT, CHILD, DEEP = "10.0.0.1:/home /home nfs4", "10.0.0.1:/home/a /home/a nfs4", "10.0.0.1:/home/a/b /home/a/b nfs4"
FOREIGN = "10.0.0.2:/vendor /home/vendor nfs"
AUTOMOUNT = "systemd-1 /home autofs"


class Node:
    """A client below a folder; `done` is what was called."""

    def __init__(self, folder: Path) -> None:
        self.home, self.folder = folder / "home", folder
        self.home.mkdir()
        self.busy = folder / "busy"
        self.busy.touch()
        text = PROGRAM.read_text().replace("/proc/self/mounts", str(folder / "mounts"))
        (folder / "unmount.sh").write_text(text.replace("/etc/fstab", str(folder / "fstab")))
        # The last word is the folder. -l takes it although it is used, as umount(8) does.
        self.stand_in(
            "umount",
            f'echo "umount $*" >>{folder}/done; for at; do :; done\n'
            f'case $* in *-l*) ;; *) grep -qx "$at" {self.busy} && exit 32 ;; esac\n'
            f"awk -v at=\"$at\" '$2 != at' {folder}/mounts >{folder}/new && cp {folder}/new {folder}/mounts",
        )
        self.stand_in("systemctl", f'echo "systemctl $1" >>{folder}/done')
        self.stand_in("systemd-escape", "echo home")

    def stand_in(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / name).chmod(0o755)

    def table(self, *rows: str) -> str:
        return "".join(f"{row.replace(' /home', f' {self.home}')} rw,hard 0 0\n" for row in rows)

    def unmount(self, how: str, *rows: str, fstab: tuple[str, ...] = ()) -> str:
        """Return the answer with these mounts; PARENT's line is in fstab."""
        (self.folder / "mounts").write_text(self.table("/dev/sda1 / xfs", *rows))
        (self.folder / "fstab").write_text(self.table(PARENT, *fstab))
        return subprocess.run(
            ["/bin/sh", str(self.folder / "unmount.sh"), str(self.home), how],
            env={"PATH": f"{self.folder}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    @property
    def done(self) -> str:
        path = self.folder / "done"
        return path.read_text().replace(str(self.home), "/home") if path.exists() else ""

    @property
    def mounts(self) -> list[str]:
        lines = (self.folder / "mounts").read_text().splitlines()[1:]
        return [line.split()[1].replace(str(self.home), "/home") for line in lines]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("how", ["leave", "detach"])
def test_an_idle_mount_goes_with_what_the_kernel_mounted_below(node: Node, how: str) -> None:
    assert node.unmount(how, AUTOMOUNT, PARENT, CHILD, DEEP) == "unmounted"
    assert node.mounts == []
    assert node.done.splitlines()[:2] == ["umount /home/a/b", "umount /home/a"]


def test_what_is_not_mounted_has_no_answer(node: Node) -> None:
    assert node.unmount("detach", "10.0.0.2:/x /home2 nfs") == ""
    assert node.done == ""


@pytest.mark.parametrize("how", ["leave", "detach"])
@pytest.mark.parametrize(
    ("row", "fstab"),
    [
        (FOREIGN, ()),
        (FOREIGN, (FOREIGN,)),
        ("10.0.0.1:/vendor /home/vendor nfs4", ("10.0.0.1:/vendor /home/vendor nfs4",)),
        ("tmpfs /home/vendor tmpfs", ()),
        ("systemd-1 /home/vendor autofs", ()),
        ("10.0.0.10:/vendor /home/vendor nfs4", ()),
    ],
)
def test_what_somebody_mounted_below_stays_and_so_does_all(
    node: Node, how: str, row: str, fstab: tuple[str, ...]
) -> None:
    assert node.unmount(how, PARENT, CHILD, row, fstab=fstab) == "left"
    assert node.mounts == ["/home", "/home/a", "/home/vendor"]
    assert node.done == ""


def test_a_mount_that_is_used_keeps_its_children(node: Node) -> None:
    sleeper = subprocess.Popen(["sleep", "3600"], cwd=node.home)
    try:
        assert node.unmount("leave", PARENT, CHILD) == "left"
        assert node.mounts == ["/home", "/home/a"]
        assert node.done == ""
        assert node.unmount("detach", PARENT, CHILD) == "unmounted"
    finally:
        sleeper.kill()
        sleeper.wait()


def test_an_open_file_is_a_use(node: Node) -> None:
    with (node.home / "file").open("w"):
        assert node.unmount("leave", PARENT) == "left"
    assert node.unmount("leave", PARENT) == "unmounted"


def test_what_the_kernel_holds_is_left_with_its_automount(node: Node) -> None:
    """No program is seen, and umount says that it is busy."""
    node.busy.write_text(f"{node.home}\n")
    assert node.unmount("leave", PARENT) == "left"
    assert node.done.splitlines()[-1] == "systemctl start"
    assert node.unmount("detach", PARENT) == "unmounted"
    assert "umount -f -l /home" in node.done

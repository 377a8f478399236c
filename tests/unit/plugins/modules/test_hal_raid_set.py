"""hal_raid_set, the module: rounds of reading, planning and acting; the disks are states, the planner is its own."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.hal_node.storage.conftest import plan_module
from tests.unit.hal_node.storage.test_plan import EXT4, MIRROR, member, running, state
from tests.unit.modules import Answer, Ran, as_program, loaded

XFS = {"TYPE": "xfs", "LABEL": MIRROR[0]["label"], "UUID": "7b88-4fd2"}
PATHS = [disk["path"] for disk in MIRROR[0]["disks"]]
CREATE = [
    "mdadm", "--create", "/dev/md/images", "--metadata=1.2", "--homehost=data01", "--name=images", "--level=raid1",
    "--raid-devices=2", "--bitmap=internal", *PATHS,
]  # fmt: skip
MKFS = ["mkfs.xfs", "-L", "images", "/dev/md/images"]
SETTLE = ["udevadm", "settle", "--timeout=30"]
OTHER = "ARRAY /dev/md/imsm UUID=549c2ba4:1e03463b:d429e75b:398c67a3"


def empty() -> dict[str, Any]:
    return state(MIRROR)


def with_array(**on_it: Any) -> dict[str, Any]:
    """The array runs, of both disks."""
    found = state(MIRROR)
    running(found, MIRROR[0]["arrays"][0], "md127", **on_it)
    found["arrays"]["md127"]["members"] = {found["kernel_names"][path]: {} for path in PATHS}
    return found


def complete() -> dict[str, Any]:
    return with_array(file_system=XFS, blank=False)


def full() -> dict[str, Any]:
    return state(MIRROR, a=EXT4)


LISTED = [{"name": "images", "uuid": "u1"}]


class Node:
    """The node data01 as one round after the other finds it; the last goes on."""

    def __init__(self, folder: Path, *patched: Any) -> None:
        self.rounds: list[Any] = []
        self.seen: list[Any] = []
        self.answers: dict[str, Answer] = {}
        self.zeroed: list[str] = []
        self.config = folder / "mdadm.conf"
        self.ran = Ran(loaded("hal_raid_set"), self.answer, *patched)
        names = empty()["kernel_names"]
        node = SimpleNamespace(kernel_name=names.get, text=lambda *_: "")
        self.ran.module.__dict__.update(
            CONFIG=str(self.config), Node=lambda: node, state_of=self.state_of, zero_edges=self.zero_edges
        )

    def state_of(self, _node: Any, sets: Any) -> Any:
        assert sets == MIRROR
        found = self.rounds.pop(0) if len(self.rounds) > 1 else self.rounds[0]
        self.seen.append(found)
        if isinstance(found, Exception):
            raise found
        return found

    def zero_edges(self, path: str) -> None:
        self.zeroed.append(path)

    def answer(self, argv: list[str]) -> Answer:
        return next((said for words, said in self.answers.items() if words in " ".join(argv)), (0, "", ""))

    def __call__(self, *rounds: Any, check: bool = False, **given: Any) -> dict[str, Any]:
        self.rounds, self.seen = list(rounds), []
        return self.ran(check, node="data01", sets=MIRROR, **given)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Node:
    return Node(tmp_path, monkeypatch, capsys)


def answer(**changes: Any) -> dict[str, Any]:
    nothing = {"changed": False, "steps": [], "file_systems": {}, "arrays": [], "other_arrays": [], "erased": []}
    return {**nothing, "code": "", "msg": "", **changes}


def test_as_a_program_it_asks_for_what_it_needs() -> None:
    assert as_program("hal_raid_set") == {"failed": True, "msg": "missing required arguments: node, sets"}


def test_a_set_that_is_there_is_left_alone_and_listed(node: Node) -> None:
    node.config.write_text(f"ARRAY /dev/md/images UUID=u0\n{OTHER}\n", encoding="utf-8")
    wanted = answer(file_systems={"images": "7b88-4fd2"}, arrays=LISTED, other_arrays=[OTHER])
    assert node(complete()) == wanted
    assert node(complete(), check=True) == wanted
    assert node.ran.told == []
    node.config.write_bytes(b"# of \xfc\n" + OTHER.encode())
    assert node(complete())["other_arrays"] == [OTHER]
    node.config.unlink()
    assert node(complete())["other_arrays"] == []


def test_empty_disks_are_made_a_set_with_permission_and_in_this_order(node: Node) -> None:
    waiting = "images: not there yet, and its disks are empty: -e local_storage_create_ok=true makes it"
    assert node(empty()) == {**answer(msg=waiting), "failed": True}
    assert node(empty(), check=True) == answer(msg=waiting)
    assert node.ran.told == []
    done = answer(changed=True, file_systems={"images": "7b88-4fd2"}, arrays=LISTED)
    steps = ["make images", "make the file system of images"]
    assert node(empty(), with_array(), complete(), create_ok=True) == {**done, "steps": steps}
    assert node.ran.told == [CREATE, SETTLE, MKFS, SETTLE]
    assert node.ran.environments == [{"LC_ALL": "C"}, {}] * 2
    assert len(node.seen) == 3


def test_check_mode_says_the_next_steps_and_does_none(node: Node) -> None:
    assert node(empty(), check=True, create_ok=True) == answer(changed=True, steps=["make images"])
    assert (node.ran.told, len(node.seen)) == ([], 1)


def test_what_is_on_the_disks_is_erased_with_the_code_of_exactly_that(node: Node) -> None:
    said = node(full(), create_ok=True)
    code, erased = said["code"], said["erased"]
    assert len(erased) == 2
    lines = [
        "These disks of data01 are not empty. This would be ERASED:",
        *(f"  {line}" for line in erased),
        f"If that is right: -e local_storage_confirm={code} with --limit data01",
    ]
    assert said == {**answer(erased=erased, code=code, msg="\n".join(lines)), "failed": True}
    assert code == plan_module.code_of("data01", erased)
    assert (node.ran.told, node.zeroed) == ([], [])
    # What the array then shows was on these disks: the same code was for it, too.
    done = node(full(), with_array(**EXT4), complete(), confirm=code)
    erase = ["wipefs", "--all"]
    assert node.ran.told[:6:2] == [[*erase, PATHS[0]], CREATE, [*erase, "/dev/md/images"]]
    assert node.ran.told[1::2] == [SETTLE] * 4
    assert node.ran.told[6:] == [MKFS, SETTLE]
    assert node.zeroed == [PATHS[0], "/dev/md/images"]
    steps = ["make images", "erase /dev/md/images", "make the file system of images"]
    assert done["steps"] == [f"erase {PATHS[0]}", *steps]
    assert (done["code"], done["erased"], done["msg"], done["changed"]) == ("", [], "", True)


def test_another_code_is_refused(node: Node) -> None:
    said = node(full(), confirm="0000-0000")
    assert said["msg"].splitlines()[0] == "the code 0000-0000 does not fit what is on these disks now"
    assert (said["failed"], said["changed"], node.ran.told) == (True, False, [])


def test_what_is_refused_is_said_and_ends_it(node: Node) -> None:
    said = node(state(MIRROR, a=None), create_ok=True)
    name = PATHS[0].rsplit("/", 1)[-1]
    assert said == {**answer(msg=f"images: images cannot be made: not in the machine: a ({name})"), "failed": True}


def test_what_is_interrupted_is_assembled_again(node: Node) -> None:
    array = MIRROR[0]["arrays"][0]
    broken = state(MIRROR, a=member(array), b=member(array))
    assert node(broken, complete())["steps"] == ["assemble images"]
    assert node.ran.told[0] == ["mdadm", "--assemble", "/dev/md/images", "--uuid=u1", *PATHS]


@pytest.mark.parametrize(("out", "err", "said"), [("", " mdadm: no \n", "mdadm: no"), ("on out\n", "", "on out")])
def test_a_step_that_fails_ends_it(node: Node, out: str, err: str, said: str) -> None:
    node.answers = {"--create": (1, out, err)}
    assert node(empty(), create_ok=True) == {"failed": True, "msg": f"could not make images: {said}", "argv": CREATE}
    assert node.ran.told == [CREATE]


def test_edges_are_zeroed_only_after_the_signatures_went_and_must_be(node: Node) -> None:
    code = node(full())["code"]
    node.answers = {"wipefs": (1, "", "busy")}
    assert node(full(), confirm=code)["msg"] == f"could not erase {PATHS[0]}: busy"
    assert node.zeroed == []
    node.answers = {}

    def refused(path: str) -> None:
        raise OSError(16, "Device or resource busy")

    node.ran.module.__dict__["zero_edges"] = refused
    words = f"could not erase {PATHS[0]}: {PATHS[0]}: [Errno 16] Device or resource busy"
    assert node(full(), confirm=code) == {"failed": True, "msg": words, "argv": ["wipefs", "--all", PATHS[0]]}


def test_disks_that_cannot_be_read_end_it_with_what_was_done(node: Node) -> None:
    unread = node.ran.module.__dict__["CannotRead"]("wipefs: no answer")
    said = "what is on the disks cannot be read, so nothing is done: wipefs: no answer"
    assert node(unread) == {"failed": True, "msg": said, "steps": []}
    assert node(empty(), unread, create_ok=True) == {"failed": True, "msg": said, "steps": ["make images"]}


def test_steps_that_change_nothing_end_after_a_dozen_rounds(node: Node) -> None:
    assert node(empty(), create_ok=True)["steps"] == ["make images"] * 12
    assert len(node.seen) == 12


def test_the_edges_of_a_disk_are_zero_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    zero_edges, mib = loaded("hal_raid_set").zero_edges, 2**20
    disk = tmp_path / "disk"
    for size in (1, 1000, mib, mib + 1, 2 * mib, 3 * mib):
        disk.write_bytes(b"x" * size)
        zero_edges(str(disk))
        middle = max(0, size - 2 * mib)
        edge = min(mib, size)
        assert disk.read_bytes() == (b"\0" * edge + b"x" * middle + b"\0" * edge)[:size] + b"" * (size - edge), size
        assert disk.stat().st_size == size
    with pytest.raises(FileNotFoundError):
        zero_edges(str(tmp_path / "none"))


def test_a_disk_that_anything_uses_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    module, asked = loaded("hal_raid_set"), list[Any]()

    def opened(*given: Any) -> int:
        asked.append(given)
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(module.os, "open", opened)
    with pytest.raises(OSError, match="busy"):
        module.zero_edges("/dev/sda")
    assert asked == [("/dev/sda", os.O_RDWR | os.O_EXCL)]

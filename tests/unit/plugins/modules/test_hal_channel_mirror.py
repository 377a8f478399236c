"""hal_channel_mirror brings exactly the locked packages, reads none twice, and never empties a mirror."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest
from ansible.module_utils import basic

PROJECT = Path(__file__).resolve().parents[4]
SHIPPED = str(PROJECT / "plugins" / "module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)
NAMES = ("a-1.0-0.conda", "größe-1.0-0.tar.bz2")
Run = Callable[..., dict[str, Any]]


class Ended(Exception):
    """What the module returned."""


def package(source: Path, name: str) -> dict[str, Any]:
    content = (source / name).read_bytes()
    return {"channel": "ibm", "subdir": "noarch", "file": name, "url": (source / name).as_uri(),
            "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A channel with two packages."""
    (tmp_path / "source").mkdir()
    for name in NAMES:
        (tmp_path / "source" / name).write_text(f"content of {name}")
    return tmp_path / "source"


@pytest.fixture
def mirror(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the module; `read` in what it returns: the files that it read whole."""
    path = PROJECT / "plugins/modules/hal_channel_mirror.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    whole: Callable[[str], str] = module.sha256_of
    read: list[str] = []

    def noted(path: str) -> str:
        read.append(Path(path).name)
        return whole(path)

    def end(_: Any, **result: Any) -> None:
        raise Ended(result)

    monkeypatch.setattr(module, "sha256_of", noted)
    monkeypatch.setattr(basic.AnsibleModule, "exit_json", end)
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", end)

    def run(**changes: Any) -> dict[str, Any]:
        packages = [package(source, name) for name in NAMES]
        given = {"folder": str(tmp_path / "mirror"), "packages": packages, **changes}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": given}).encode())
        read.clear()
        with pytest.raises(Ended) as ended:
            module.main()
        time.sleep(0.05)  # longer than the steps of a file system's clock
        return {**ended.value.args[0], "read": list(read)}

    return run


@pytest.fixture
def served(tmp_path: Path) -> Path:
    return tmp_path / "mirror/ibm/noarch"


def test_a_file_that_was_right_and_is_untouched_is_not_read_again(mirror: Run) -> None:
    first = mirror()
    assert (first["changed"], first["fetched"]) == (True, 2)
    again = mirror()
    assert (again["changed"], again["read"]) == (False, [])


def test_a_file_that_changed_since_is_read_and_brought_again(mirror: Run, served: Path) -> None:
    mirror()
    good = (served / NAMES[0]).read_text()
    (served / NAMES[0]).write_text("x" * len(good))
    os.utime(served / NAMES[0], (0, 0))
    done = mirror()
    assert (done["read"], done["fetched"]) == ([NAMES[0]], 1)
    assert (served / NAMES[0]).read_text() == good
    assert mirror()["read"] == []
    (served / NAMES[0]).write_text(good + "x")
    assert mirror()["fetched"] == 1


def test_a_file_of_another_lock_file_or_without_a_list_is_read(mirror: Run, source: Path, served: Path) -> None:
    mirror()
    old = (source / NAMES[1]).read_text()
    (source / NAMES[1]).write_text(old.upper())
    assert mirror()["fetched"] == 1, "the same name and size, another checksum"
    assert (served / NAMES[1]).read_text() == old.upper()
    (served.parents[1] / "SHA256SUMS").unlink()
    done = mirror()
    assert (done["changed"], sorted(done["read"]), done["fetched"]) == (True, sorted(NAMES), 0)


def test_prune_removes_what_no_lock_file_names_and_never_all(mirror: Run, source: Path, served: Path) -> None:
    mirror()
    done = mirror(packages=[], prune=True)
    assert done["msg"].startswith("mirror: no lock file names a package, and ")
    assert sorted(path.name for path in served.iterdir()) == sorted(NAMES)
    assert mirror(packages=[package(source, NAMES[0])], prune=True)["removed"] == [f"ibm/noarch/{NAMES[1]}"]
    assert not (served / NAMES[1]).exists()


def test_an_empty_mirror_of_no_lock_file_is_no_fault(mirror: Run) -> None:
    assert mirror(packages=[], prune=True)["removed"] == []


def test_every_package_that_cannot_be_published_is_named_and_the_others_stay(
    mirror: Run, source: Path, served: Path
) -> None:
    good = package(source, NAMES[0])
    wrong = [{**good, "file": f"{number}.conda", "sha256": "0" * 64} for number in range(2)]
    done = mirror(packages=[wrong[0], good, wrong[1]])
    assert len(done["faults"]) == 2
    assert done["msg"] == "mirror: 2 packages of channels cannot be published\n" + "\n".join(done["faults"])
    assert all("not published" in fault for fault in done["faults"])
    assert [path.name for path in served.iterdir()] == [NAMES[0]]
    assert not (served.parents[1] / "SHA256SUMS").exists()


@pytest.mark.parametrize(("count", "more"), [(20, ""), (21, "\nand 1 more")])
def test_of_many_faults_twenty_are_shown(mirror: Run, source: Path, count: int, more: str) -> None:
    wrong = {**package(source, NAMES[0]), "sha256": "0" * 64}
    done = mirror(packages=[{**wrong, "file": f"{number}.conda"} for number in range(count)])
    assert len(done["faults"]) == count
    assert done["msg"].endswith("\n".join(["published", *done["faults"][:20]]) + more)


def test_nothing_is_removed_unless_it_is_asked_for(mirror: Run, source: Path, served: Path) -> None:
    mirror()
    assert mirror(packages=[package(source, NAMES[0])])["removed"] == []
    assert (served / NAMES[1]).exists()


def test_check_mode_says_what_is_missing_and_fetches_nothing(mirror: Run, served: Path) -> None:
    done = mirror(_ansible_check_mode=True)
    assert (done["changed"], done["fetched"]) == (True, 2)
    assert not served.exists()


def test_the_web_server_may_read_whatever_the_umask_of_who_runs_it(mirror: Run, served: Path) -> None:
    before = os.umask(0o077)
    try:
        mirror()
    finally:
        os.umask(before)
    paths = [served.parents[1], served, served / NAMES[0], served.parents[1] / "SHA256SUMS"]
    assert [oct(path.stat().st_mode & 0o777) for path in paths] == ["0o755", "0o755", "0o644", "0o644"]

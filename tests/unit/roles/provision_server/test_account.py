"""What root's programs do in folders of the service's account: what that account could do, and through no link."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hal_cluster.provision.conftest import PROJECT, node
from tests.unit.interpreters import EVERY, beside, interpreter
from tests.unit.roles.provision_server import reimages
from tests.unit.roles.provision_server.refusals import problem
from tests.unit.roles.provision_server.test_server import FIRST, Running
from tests.unit.roles.provision_server.test_store import an_order, settings_of

common: Any = importlib.import_module("provision_common")
store: Any = importlib.import_module("provision_store")
trails: Any = importlib.import_module("provision_trail")
images: Any = importlib.import_module("provision_images")
ACCOUNT = 65534
FILES = PROJECT / "roles/provision_server/files"


@pytest.mark.parametrize("kind", common.FOLDERS)
def test_a_link_in_place_of_a_folder_is_refused(tmp_path: Path, kind: str) -> None:
    of = node()
    place = common.Place(str(settings_of(tmp_path, [of])))
    folder = tmp_path / "state" / kind
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/hal05").write_text("somebody else's")
    folder.symlink_to(tmp_path / "elsewhere")
    said = f"{folder}: is a link, where a folder has to be; find out who made it, remove it, and roll out"
    said += " provision_server"
    order = an_order(of, expires=time.time() + 60)
    for what, *words in (
        (store.arm, "hal05", order), (store.disarm, "hal05"), (store.spool, "hal05", b"key"), (store.status,),
        (store.armed, "hal05", 0), (store.unfinished, "hal05"), (trails.done, 0, "hal05", None, "x", "y"),
    ):  # fmt: skip
        assert problem(what, place, *words) == said
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["hal05"]
    assert (tmp_path / "elsewhere/hal05").read_text() == "somebody else's"


class Site:
    """A server's folder that others may look into, whose state is the account's."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python
        (folder / "served").mkdir()
        self.settings = settings_of(folder, [node()])
        for path in (folder / "state", *(folder / "state").iterdir()):
            os.chown(path, ACCOUNT, ACCOUNT)

    def run(self, program: str, *words: str, given: object = None) -> subprocess.CompletedProcess[str]:
        argv = [*beside(self.python), str(FILES / program), "--settings", str(self.settings), *words]
        text = None if given is None else json.dumps(given)
        return subprocess.run(argv, input=text, capture_output=True, text=True, timeout=600, check=False)

    def refused(self, program: str, *words: str, given: object = None) -> str:
        done = self.run(program, *words, given=given)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
        return done.stderr

    def owners(self) -> set[tuple[int, int]]:
        return {(one.stat().st_uid, one.stat().st_gid) for one in (self.folder / "state").rglob("*")}


@pytest.fixture(params=EVERY)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    folder = Path(tempfile.mkdtemp(prefix="hal-provision-"))  # not pytest's, which root alone may look into
    folder.chmod(0o755)
    try:
        yield Site(folder, interpreter(request.param))
    finally:
        shutil.rmtree(folder)


@pytest.mark.root  # whose programs they are
def test_what_root_does_there_is_the_accounts(site: Site) -> None:
    order = an_order(node(), expires=time.time() + 600)
    assert site.run("provision_cli.py", "arm", "hal05", given=order).returncode == 0
    assert site.run("provision_cli.py", "spool", "hal05", given="key").returncode == 0
    assert json.loads(site.run("provision_cli.py", "status").stdout)["armed"] == ["hal05"]
    record = json.loads(json.dumps(reimages.record()))
    assert site.run("reimage_cli.py", "write", "hal05", given={**record, "revision": 0}).returncode == 0
    assert site.owners() == {(ACCOUNT, ACCOUNT)}
    assert {one.stat().st_uid for one in (site.folder / "records").iterdir()} == {0}
    done = site.run("reimage_cli.py", "abort", "hal05")
    assert "hal05: disarmed\n" in done.stdout, done
    assert site.owners() == {(ACCOUNT, ACCOUNT)}


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o755, 0o770])  # what root's user may write, and what its group may
def test_root_has_no_more_rights_there_than_the_account(site: Site, mode: int) -> None:
    """So where a link leads to, that was laid after it was looked for, does not matter."""
    for kind in ("armed", "tokens"):
        (site.folder / "state" / kind).chmod(mode)
        os.chown(site.folder / "state" / kind, 0, 0)
    order = an_order(node(), expires=time.time() + 600)
    for words, given in ((["arm", "hal05"], order), (["spool", "hal05"], "key")):
        assert "Permission denied" in site.refused("provision_cli.py", *words, given=given)
    assert not [path for kind in ("armed", "tokens") for path in (site.folder / "state" / kind).iterdir()]
    path = site.folder / "state/armed/hal05"
    path.write_text("{}")
    path.chmod(0o600)
    for words in (["status", "hal05"], ["disarm", "hal05"]):
        assert "Permission denied" in site.refused("provision_cli.py", *words)


@pytest.mark.root
@pytest.mark.parametrize("site", ["local"], indirect=True)  # the account may not read those that were built for tests
def test_a_server_that_root_starts_serves_as_the_account(site: Site) -> None:
    served = Running(site.folder / "served", site.python)
    for path in (served.folder / "state", *(served.folder / "state").iterdir()):
        os.chown(path, ACCOUNT, ACCOUNT)
    served.start()
    try:
        assert served.figures("Uid")[1] == served.figures("Gid")[1] == ACCOUNT  # in effect
        assert served.figures("Groups") == [ACCOUNT]
        assert served.ask(FIRST, "/boot/hal05")[0] == 200
    finally:
        served.stop()


@pytest.mark.root
def test_root_is_root_again_afterwards(site: Site) -> None:
    place = common.Place(str(site.settings))
    before = (os.geteuid(), os.getegid(), os.getgroups())
    with common.as_account(place), common.as_account(place):
        assert (os.geteuid(), os.getegid(), os.getgroups()) == (ACCOUNT, ACCOUNT, [ACCOUNT])
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before
    with pytest.raises(ValueError, match="broke"), common.as_account(place):
        raise ValueError("broke")
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before
    os.chown(place.state, 0, 0)
    with common.as_account(place):
        assert (os.geteuid(), os.getegid(), os.getgroups()) == before

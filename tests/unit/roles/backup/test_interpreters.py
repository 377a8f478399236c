"""Under each Python that a node may have, archives are made, taken, opened, shown and put back; hostile ones are not.

As programs, in the locale C, which a unit of systemd has; with names that are no ASCII and no UTF-8. What one Python
has written another one reads: a node's may be older than the controller's.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, interpreter
from tests.unit.roles.backup.archives import Member, folders, manifest, request, write

FILES = Path(__file__).resolve().parents[4] / "roles" / "backup" / "files"
Program = Callable[..., str]
# As the program itself, but for where it sets aside what was there.
RESTORE = """import sys
sys.path.insert(0, sys.argv[1])
import backup_restore
backup_restore.ASIDE = sys.argv[2]
backup_restore.main(lambda arguments: backup_restore.command(arguments[2:]))
"""


def runs(version: str, folder: Path) -> Program:
    """Return a function: a program and its words -> what it writes; an error is what it says, and no traceback."""
    python = interpreter(version)
    environment = {"LC_ALL": "C", "PATH": os.environ["PATH"], "HOME": str(folder)}

    def run(name: str, *words: str, stdin: bytes = b"", asked: str = "") -> str:
        argv = [python, "-B", str(FILES / f"backup_{name}.py"), *words]
        if name == "restore":
            argv = [python, "-B", "-c", RESTORE, str(FILES), str(folder / "aside"), *words]
        done = subprocess.run(
            argv, input=stdin, capture_output=True, check=False, env={**environment, "SSH_ORIGINAL_COMMAND": asked}
        )
        error = done.stderr.decode(errors="replace")
        assert "Traceback" not in error, error
        if done.returncode:
            return error or f"exit status {done.returncode}"
        assert error == ""
        return done.stdout.decode()

    return run


@pytest.fixture
def site(programs: Any, key: SimpleNamespace, tmp_path: Path) -> dict[str, Any]:
    """What a node saves, and the store; with the names of its files, as bytes."""
    for name in ("work", "store", "opened", "größe/leer", "größe/tief"):
        (tmp_path / name).mkdir(parents=True)
    root = os.fsencode(tmp_path / "größe")
    names = [root + name for name in ("/länge".encode(), b"/no\xfftext", "/tief/länge".encode(), b"/tief/\xff")]
    for path in names:
        with open(path, "wb") as target:
            target.write(b"kostbar: " + path)
        os.chmod(path, 0o640)
    os.symlink(b"tief/\xff", root + "/länk".encode())
    (tmp_path / "public.asc").write_bytes(key.public)
    programs.sign.make_key(str(tmp_path / "signing_key"))
    (tmp_path / "signers").mkdir()
    (tmp_path / "signers" / "x.pem").write_text(programs.sign.public(str(tmp_path / "signing_key")))
    source = {"name": "data", "kind": "files", "paths": [str(tmp_path / "größe")], "left_out": ["netz"], "stops": []}
    job = {
        **{"site": "hal", "node": "hal-mgmt1", "reserve_mb": 0, "max_age_hours": 36, "sources": [source]},
        **{name: str(tmp_path / path) for name, path in (("key", "public.asc"), ("work", "work"))},
        "signing_key": str(tmp_path / "signing_key"),
        "server": {"name": "x", "address": "x", "user": "x", "identity": str(tmp_path / "id")},
    }
    store = {"root": str(tmp_path / "store"), "reserve_mb": "0", "keep_daily": 3, "keep_weekly": 2, "quota_mb": "9"}
    (tmp_path / "job.json").write_text(json.dumps(job))
    (tmp_path / "store.json").write_text(json.dumps(store))
    return {"source": source, "names": names, "root": root}


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("other", EVERY)
def test_an_archive_goes_its_way(
    programs: Any, key: SimpleNamespace, site: dict[str, Any], tmp_path: Path, version: str, other: str
) -> None:
    """The node's Python saves and restores, the other one keeps and opens."""
    node, controller = runs(version, tmp_path), runs(other, tmp_path)
    status = json.loads(node("job", str(tmp_path / "job.json"), "status"))
    assert status["due"][0] == "none was ever stored"
    assert node("job", str(tmp_path / "job.json"), "key") == programs.sign.public(str(tmp_path / "signing_key"))
    archive = tmp_path / "archive"
    stored = json.loads(node("job", str(tmp_path / "job.json"), "save", str(archive)))
    assert stored["refused"] == ""
    words = programs.sign.statement("hal", "hal-mgmt1", stored["at"], stored["sha256"])
    signature = programs.sign.sign(str(tmp_path / "signing_key"), words)
    asked = "put {archive} {size} {sha256} signature={0}".format(signature, **stored)
    keep = str(tmp_path / "store.json")
    said = controller("store", keep, "put", "hal-mgmt1", stdin=archive.read_bytes(), asked=asked)
    assert said == "stored {archive} {sha256}\n".format(**stored)
    assert controller("store", keep, "check") == "every archive is whole\n"
    state = json.loads(controller("store", keep, "status"))
    assert (state["damaged"], state["nodes"]["hal-mgmt1"]["archives"]) == (0, [stored["archive"]])
    again = controller("store", keep, "put", "hal-mgmt1", stdin=b"x", asked=asked)
    assert again == f"{stored['archive']} is there already\n"

    path = tmp_path / "store" / "hal-mgmt1" / stored["archive"]
    given = {"sources": [site["source"]], "signature": signature, "signers": str(tmp_path / "signers")}
    wanted = request(path, tmp_path / "opened", sha256=stored["sha256"], permitted=[], **given)
    result, opened = str(tmp_path / "opened" / "result.json"), str(tmp_path / "opened" / "archive.tar.gz")
    assert controller("open", json.dumps(wanted), stdin=key.private) == ""
    found = json.loads(Path(result).read_text())
    assert (found["error"], found["signed_by"]) == ("", "node")
    same = json.loads(node("restore", "look", result))["sources"][0]
    assert same["lines"] == ["data: 5 files, the same as in the archive"]

    changed, gone = site["names"][0], site["names"][3]
    with open(changed, "wb") as target:
        target.write(b"spoilt")
    os.chmod(changed, 0o600)
    os.unlink(gone)
    os.rmdir(site["root"] + b"/leer")
    seen = json.loads(node("restore", "look", result))["sources"][0]
    home = str(tmp_path / "größe")
    assert [line.strip().partition(":")[0] for line in seen["lines"][1:]] == [
        *(f"{home}/{name}" for name in ("leer", "länge", r"tief/\ufffd"))
    ]
    assert seen["newer"] is True
    assert "is newer than the archive" in node(
        "restore", "put", result, opened, str(tmp_path / "work"), "newer-refused"
    )
    said = node("restore", "put", result, opened, str(tmp_path / "work"), "newer-ok")
    assert said == "data: 2 files replaced\n"
    for name in site["names"]:
        with open(name, "rb") as source:
            assert source.read() == b"kostbar: " + name
        assert os.stat(name).st_mode & 0o777 == 0o640
    assert (tmp_path / "größe" / "leer").is_dir()
    assert [path.read_bytes() for path in (tmp_path / "aside").rglob("l*nge")] == [b"spoilt"]
    assert sorted(os.listdir(tmp_path / "work")) == ["lock"]


HOSTILE = {
    "outside": [Member("data/etc/cron.d", "folder"), Member("data/etc/cron.d/evil")],
    "up": [Member("data/../evil")],
    "through": [Member("data{}/web/link", "link", target="/etc"), Member("data{}/web/link/evil")],
    "away": [Member("data{}/web/link", "link", target="../../etc")],
    "setuid": [Member("data{}/web/sh", mode=0o4755)],
    "twice": [Member("data{}/web/a"), Member("data{}/web/a")],
    "pipe": [Member("data{}/web/a", "pipe")],
    "hard": [Member("data{}/web/a", "hard", target="/etc/shadow")],
    "undeclared": [Member("evil", "folder")],
    "time": [Member("data{}/web/a", fields={"pax_headers": {"mtime": "nan"}})],
    "owner": [Member("data{}/web/a", fields={"pax_headers": {"uid": "4294967295"}})],
    "size": [Member("data{}/web/a", fields={"pax_headers": {"size": "-512"}})],
}


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_opened_by_none(
    programs: Any, key: SimpleNamespace, tmp_path: Path, version: str, name: str
) -> None:
    members = [replace(one, name=one.name.format(tmp_path)) for one in HOSTILE[name]]
    write(tmp_path / "plain", [*folders(f"data{tmp_path}/web"), *members], manifest("data"))
    programs.archive.encrypt(str(tmp_path / "plain"), str(tmp_path / "sealed"), key.public)
    (tmp_path / "opened").mkdir()
    source = {"name": "data", "kind": "files", "paths": [f"{tmp_path}/web"]}
    wanted = request(tmp_path / "sealed", tmp_path / "opened", sources=[source])
    assert runs(version, tmp_path)("open", json.dumps(wanted), stdin=key.private) == "exit status 1"
    assert os.listdir(tmp_path / "opened") == ["result.json"]
    error = json.loads((tmp_path / "opened" / "result.json").read_text())["error"]
    assert error.startswith(("data: ", f"{tmp_path}/opened/archive.tar.gz: ", "evil is not of a source")), error


@pytest.mark.parametrize("version", EVERY)
def test_what_is_no_dump_is_loaded_by_none(tmp_path: Path, version: str) -> None:
    (tmp_path / "right").write_bytes("INSERT INTO `t` VALUES ('größe \\' \\\\',0x00,NULL);\n".encode())
    (tmp_path / "wrong").write_bytes(b"INSERT INTO `t` VALUES (1) /* ' */ \\! touch /tmp/x ;# ';\n")
    script = "import sys; sys.path.insert(0, sys.argv[1]); import backup_dump; backup_dump.refuse_commands(sys.argv[2])"
    for name, status in (("right", 0), ("wrong", 1)):
        argv = [interpreter(version), "-B", "-c", script, str(FILES), str(tmp_path / name)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert ("line 1 of the dump is not one that mysqldump writes" in done.stderr) == (status == 1)

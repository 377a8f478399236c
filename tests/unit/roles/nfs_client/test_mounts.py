"""What role nfs_client compares on a client: tables of mounts, and the words for what differs."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.alike import alike

HERE = Path(__file__).parent
PROGRAM = HERE.parents[3] / "roles/nfs_client/files/mounts.py"
LIVE = (HERE / "captures/proc-mounts-automounted.txt").read_text()
VERSIONS = (HERE / "captures/proc-mounts-versions.txt").read_text()
MODULES = "/opt/jboss/jboss-eap/modules"
SOURCE = "10.116.95.13:/export/jboss_modules64"
MARK = "x-hal.nfs_client"
FSTAB = f"tmpfs /scratch tmpfs size=1m 0 0\n# {SOURCE} /old nfs4 rw 0 0\n{SOURCE} {MODULES} nfs4 rw,hard,{MARK} 0 0\n"

sys.path.insert(0, str(PROGRAM.parent))
alike("mounts")
mounts: Any = importlib.import_module("mounts")


def declared(**more: Any) -> dict[str, Any]:
    """What the role hands to the program."""
    mount = {"source": SOURCE, "type": "nfs4", "options": ["rw", "hard"]}
    entry = {"type": "nfs4", "kept": ["/mnt"], "mark": MARK, "fstab_options": [MARK], "binds": {}}
    return {**entry, "mounts": {MODULES: {**mount, **more}}}


def found(live: str = LIVE, fstab: str = FSTAB, **more: Any) -> dict[str, Any]:
    """What differs from MODULES alone; `more` is of the declaration."""
    result: dict[str, Any] = mounts.compare({**declared(), **more}, live, fstab)
    return result


def test_what_is_as_declared_has_no_words() -> None:
    assert found() == {"ours": [], "others": [], "foreign": {}, "otherwise": {}, "lines": [], "plain": [MODULES]}


def test_an_automount_is_seen_below_its_mount() -> None:
    assert found(LIVE + f"systemd-1 {MODULES} autofs rw 0 0\n")["plain"] == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"source": "10.0.0.1:/export"}, f"{MODULES} is mounted from {SOURCE}, declared 10.0.0.1:/export"),
        ({"options": ["ro", "hard"]}, f"{MODULES} is mounted with rw, declared ro"),
        ({"options": ["rw", "hard", "nosuid"]}, f"{MODULES} is mounted with no nosuid"),
        ({"options": ["ro", "soft"]}, f"{MODULES} is mounted with hard, declared soft, rw, declared ro"),
    ],
)
def test_a_mount_that_is_otherwise_has_its_words(more: dict[str, Any], said: str) -> None:
    result = mounts.compare(declared(**more), LIVE, FSTAB)
    assert result["otherwise"] == {MODULES: said}
    assert result["lines"] == [f"{MODULES} has another line in /etc/fstab"]


@pytest.mark.parametrize(
    ("source", "used", "wrong"),
    [
        ("10.0.0.13:/home", "10.0.0.13", False),
        ("10.0.2.13:/home", "10.0.0.13", True),
        ("[fd00::13]:/home", "fd00::13", False),
        ("[fd00:2::13]:/home", "fd00::13", True),
        ("filer:/home", "10.0.0.13", False),  # a name has whatever address it has
    ],
)
def test_a_mount_that_goes_by_another_address_of_its_server_is_named_and_not_made_anew(
    source: str, used: str, wrong: bool
) -> None:
    """As a kernel of 6.1 showed two mounts of one server, of which the second one was by its other address."""
    line = (
        f"{source} {MODULES} nfs4 rw,vers=4.1,hard,proto=tcp,sec=sys,clientaddr={used}1,local_lock=none,addr={used} 0 0"
    )
    result = mounts.compare(declared(source=source), line, f"{source} {MODULES} nfs4 rw,hard,{MARK} 0 0")
    address = source.rpartition(":/")[0].strip("[]")
    said = f"{MODULES} goes by {used}, declared {address}: the first mount of this server here is by that address"
    assert result["lines"] == ([said] if wrong else [])
    assert result["otherwise"] == {}


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("/LAB", "rw,hard,vers=3,sec=sys", ""),
        ("/LAB", "rw,hard,vers=4.1", "vers=3, declared vers=4.1"),
        ("/sa/net", "rw,hard,nfsvers=3", "soft, declared hard"),
        ("/users/PZS0710", "rw,hard,vers=4.0,sec=sys", ""),
        ("/users/PZS0710", "rw,hard,vers=4.1,sec=krb5p", "sec=sys, declared sec=krb5p, vers=4.0, declared vers=4.1"),
        ("/media/video1", "rw,hard,vers=4.1,sec=sys", ""),
        ("/media/video1", "rw,hard,vers=4,sec=sys", ""),
        ("/media/video1", "rw,hard,timeo=600,retrans=2,retry=0,vers=4.1,sec=sys,nosuid,nodev", "no nosuid, no nodev"),
        ("/nfs", "rw,hard,vers=4.1", "vers=4.2, declared vers=4.1"),
        ("/mnt/dir1", "rw,hard,vers=4.2,sec=sys,nosuid,nodev", ""),
    ],
)
def test_what_the_kernel_holds_is_compared_with_what_is_declared(path: str, options: str, said: str) -> None:
    (source,) = (line.split()[0] for line in VERSIONS.splitlines() if line.split()[1] == path)
    mount = {"source": source, "type": "nfs4", "options": options.split(",")}
    otherwise = found(VERSIONS, "", mounts={path: mount})["otherwise"]
    assert otherwise == ({path: f"{path} is mounted with {said}"} if said else {})


def test_of_another_type_that_is_all_that_is_compared() -> None:
    """It shows neither hard nor a version."""
    live = f"{SOURCE} {MODULES} fuse.nfs ro,nosuid,nodev,relatime,user_id=0,group_id=0,allow_other 0 0\n"
    mount = {"source": SOURCE, "type": "nfs4", "options": ["rw", "hard", "vers=4.1"]}
    said = {MODULES: f"{MODULES} is mounted with ro, declared rw"}
    assert found(live, type="fuse.nfs", mounts={MODULES: mount})["otherwise"] == said


def test_what_nobody_declared_is_named_live_or_saved() -> None:
    assert found(kept=[])["others"] == ["/mnt"]
    assert found("", FSTAB + "filer:/x /with\\040blank nfs rw 0 0\n", kept=[])["others"] == ["/with blank"]


def test_what_is_kept_covers_what_is_below_it_and_nothing_beside_it() -> None:
    more = "filer:/a /mnt/a/b nfs rw 0 0\nfiler:/a /mnt2 nfs rw 0 0\n"
    assert found(LIVE + more)["others"] == ["/mnt2"]
    assert found("", FSTAB + more)["others"] == ["/mnt2"]
    assert found(LIVE + more, kept=["/mnt/", "/mnt2"])["others"] == []


def test_what_the_kernel_mounts_below_a_mount_belongs_to_it() -> None:
    """Where the server has another file system, of whatever depth; not what somebody mounts there from elsewhere."""
    below = f"{SOURCE}/x {MODULES}/x nfs4 rw,relatime,vers=4.1 0 0\n{SOURCE}/x/y {MODULES}/x/y nfs4 rw,vers=4.1 0 0\n"
    assert found(LIVE + below)["others"] == []
    assert found(LIVE + f"10.0.0.9:/z {MODULES}/z nfs4 rw 0 0\n")["others"] == [f"{MODULES}/z"]
    assert found(LIVE + below, FSTAB + below.splitlines()[0])["others"] == [f"{MODULES}/x"], "a line is no kernel's"
    assert found(LIVE + f"{SOURCE}/x {MODULES}2 nfs4 rw 0 0\n")["others"] == [f"{MODULES}2"]


def test_what_autofs_mounts_belongs_to_it() -> None:
    more = "filer:/m /misc/m nfs4 rw,relatime,vers=4.0 0 0\n"
    others = found(VERSIONS + more, "", mounts={}, kept=[])["others"]
    assert "/misc/m" not in others
    assert "/mntdir" not in others
    assert others == ["/LAB", "/media/video1", "/mnt/dir1", "/nfs", "/sa/net", "/users/PZS0710"]
    systemd = "systemd-1 /misc/m autofs rw,relatime,fd=60,direct 0 0\n"
    assert found(systemd + more, "", mounts={})["others"] == ["/misc/m"], "an automount of fstab has its own line there"


def test_the_root_of_a_diskless_node_is_nobodys_concern_and_nobodys_parent() -> None:
    root = VERSIONS.splitlines()[0]
    assert root.split()[1] == "/"
    assert found(root, "filer:/root / nfs defaults 0 0\n")["others"] == []
    assert found(root + "\npitzer_root.ten.osc.edu:/x /x nfs rw 0 0\n")["others"] == ["/x"]


def test_lines_of_this_role_are_its_own_when_the_model_has_them_no_more() -> None:
    bind = f"/disk/own /own none bind,nofail,{MARK} 0 0\n/a /b none bind 0 0\n"
    result = found(fstab=FSTAB + bind, mounts={})
    assert (result["ours"], result["others"]) == (["/opt/jboss/jboss-eap/modules", "/own"], [])
    assert found(fstab=FSTAB + bind, binds={"/own": {"source": "/disk/own"}})["ours"] == []
    bound = f"/disk/own {MODULES} none bind,{MARK} 0 0\n"
    assert found("", bound)["ours"] == [MODULES], "now it is mounted from another node"


def test_a_line_that_is_there_twice_or_missing_is_named() -> None:
    said = [f"{MODULES} has another line in /etc/fstab"]
    assert found("", FSTAB + FSTAB.splitlines()[2] + "\n")["lines"] == said
    assert found("", "")["lines"] == said


@pytest.mark.parametrize(
    ("live", "fstab"),
    [
        (f"filer:/old {MODULES} nfs rw,hard 0 0\n", ""),
        (f"systemd-1 {MODULES} autofs rw 0 0\nfiler:/old {MODULES} nfs rw,hard 0 0\n", ""),
        ("", f"filer:/old {MODULES} nfs rw,noauto 0 0\n"),
        (f"filer:/old {MODULES} ext4 rw 0 0\n", f"filer:/old {MODULES} ext4 defaults 0 0\n"),
    ],
)
def test_what_somebody_else_has_at_a_declared_path_is_not_taken_for_ours(live: str, fstab: str) -> None:
    result = found(live, fstab)
    said = f"{MODULES} belongs to somebody else, from filer:/old, declared {SOURCE}"
    nothing: dict[str, Any] = {"ours": [], "others": [], "otherwise": {}, "lines": [], "plain": []}
    assert result == {**nothing, "foreign": {MODULES: said}}


def test_with_the_mark_or_the_source_it_is_ours() -> None:
    moved = found(f"10.0.0.9:/old {MODULES} nfs4 rw 0 0\n", f"10.0.0.9:/old {MODULES} nfs4 rw,{MARK} 0 0\n")
    assert (moved["foreign"], list(moved["otherwise"])) == ({}, [MODULES])
    by_hand = found(f"{SOURCE} {MODULES} nfs4 rw,soft 0 0\n", f"{SOURCE} {MODULES} nfs4 rw,soft 0 0\n")
    assert (by_hand["foreign"], list(by_hand["otherwise"])) == ({}, [MODULES])
    assert by_hand["lines"] == [f"{MODULES} has another line in /etc/fstab"]


def test_a_user_s_mount_whose_name_is_no_text_hides_no_other(tmp_path: Path) -> None:
    """The health check asks by this program, and what does not answer drains the node."""
    table = tmp_path / "mounts"
    table.write_bytes(b"me:/ /tmp/\xff\xfe fuse.sshfs rw 0 0\n" + LIVE.encode())
    assert found(mounts.read(str(table))) == found()


def test_so_it_is_where_a_folder_of_the_node_is_to_be_bound() -> None:
    binds = {"/own": {"source": "/disk/own"}}
    said = {"/own": "/own belongs to somebody else, from filer:/old, declared /disk/own"}
    assert found("filer:/old /own nfs rw 0 0\n", "", mounts={}, binds=binds)["foreign"] == said
    assert found("", "filer:/old /own xfs rw 0 0\n", mounts={}, binds=binds)["foreign"] == said
    assert found("/dev/sda1 /own xfs rw 0 0\n", "/disk/own /own none bind 0 0\n", binds=binds)["foreign"] == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["others"], [f"{MODULES} belongs to somebody else, from filer:/old, declared {SOURCE}"]),
        ([], []),
    ],
)
def test_it_is_said_with_the_mounts_of_others(
    words: list[str], said: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mounts, "read", lambda path: f"filer:/old {MODULES} nfs rw 0 0\n" if "mounts" in path else "")
    mounts.main([json.dumps(declared()), *words])
    assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize(
    ("options", "said"), [("hard", "mounted without its automount"), ("soft", "mounted with soft, declared hard")]
)
def test_a_mount_without_automount_is_named_unless_more_is_wrong(
    options: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    live, line = f"{SOURCE} {MODULES} nfs4 rw,{options} 0 0\n", f"{SOURCE} {MODULES} nfs4 rw,hard,{MARK} 0 0\n"
    monkeypatch.setattr(mounts, "read", lambda path: live if "mounts" in path else line)
    mounts.main([json.dumps(declared())])
    assert capsys.readouterr().out.splitlines() == [f"{MODULES} is {said}"]

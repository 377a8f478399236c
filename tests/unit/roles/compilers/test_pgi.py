"""PGI comes whole or not at all, and what is wrong with it is said."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import os
import shutil
import stat
import tarfile
import time
from pathlib import Path

import pytest

from tests.unit.opened import opened
from tests.unit.roles.compilers.conftest import PROJECT, Site, make_pgi

pytestmark = pytest.mark.skipif(not os.path.exists("/usr/bin/gcc"), reason="PGI needs the system's gcc, as on a node")


def test_it_is_installed_once_and_users_find_their_compiler(site: Site) -> None:
    assert site.status()["wrong"] == "pgi/19.10 is not installed"
    said = site.done("install")
    assert "installed to" in said
    assert site.status()["wrong"] == ""
    assert os.access(site.place / "bin/pgcc", os.X_OK)
    assert not [path for path in site.root.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o022]
    assert site.done("install") == ""
    assert not list((site.root / "19.10").glob(".unpack*"))


def test_a_call_without_a_command_is_refused(site: Site) -> None:
    done = site.call()
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] in ("hal-pgi: error: which command?", "hal-pgi: error: too few arguments")


def test_without_the_licence_nothing_is_unpacked(site: Site) -> None:
    site.set(accept_eula=False)
    assert "its licence is not accepted" in site.refused("install")
    assert not site.root.exists()


def test_an_archive_that_is_not_there_is_said_with_where_to_get_it_and_where_to_put_it(site: Site) -> None:
    site.archive.unlink()
    said = site.refused("install")
    assert f"its archive is not at {site.archive}: get it from PGI's download page" in said
    assert "compilers_pgi" in said


def test_an_installed_version_needs_no_archive_any_more(site: Site) -> None:
    site.done("install")
    site.archive.unlink()
    assert site.done("install") == ""


def test_another_checksum_is_refused_before_unpacking(site: Site) -> None:
    site.declare(sha256="0" * 64)
    said = site.refused("install")
    assert "declared is 0000" in said
    assert "it was not unpacked; what was there" in said
    assert site.archive.exists(), "the administrator's own"
    assert not list((site.root / "19.10").glob("*/linuxpower"))


def test_a_broken_download_is_removed_and_brought_again(site: Site) -> None:
    whole = site.archive.read_bytes()
    site.declare(source=site.archive.as_uri().replace("file://", "http://127.0.0.1:9"))
    brought = site.root / ".archives/pgilinux.tar.gz"
    brought.parent.mkdir(parents=True)
    brought.write_bytes(whole[:1000])
    said = site.refused("install")
    assert "it was not unpacked, and is removed: the next time it is brought again" in said
    assert not brought.exists()
    assert "cannot be fetched" in site.refused("install")
    brought.write_bytes(whole)
    site.done("install")
    assert site.status()["wrong"] == ""


def test_what_is_unpacked_is_what_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive is where somebody else may write, who exchanges it as soon as its checksum was made."""
    site = Site(tmp_path, "")
    wanted, other = site.archive, tmp_path / "other.tar.gz"
    make_pgi.make(other, breaks=True)
    monkeypatch.syspath_prepend(str(PROJECT / "roles/compilers/files"))
    monkeypatch.setenv("HAL_PGI_LOG", str(tmp_path / "log"))
    pgi_install, pgi_tree = (importlib.import_module(name) for name in ("pgi_install", "pgi_tree"))
    new = hashlib.sha256

    class Digest:
        """A checksum; when it is asked for, the archive is another."""

        def __init__(self, data: bytes = b"") -> None:
            self._real = new(data)
            self.update = self._real.update

        def hexdigest(self) -> str:
            if other.exists() and not (site.root / "19.10/current").exists():
                os.replace(other, wanted)
            return self._real.hexdigest()

    table = pgi_tree.Table(str(tmp_path / "compilers.json"))
    monkeypatch.setattr(pgi_tree.hashlib, "sha256", Digest)
    pgi_install.install(table.versions[0], lambda words: None)
    assert not other.exists(), "it was exchanged"
    assert table.versions[0].wrong() == ""
    assert not [path for path in (site.root / "19.10").rglob("*") if path.name == ".archive"]


def test_an_installer_that_breaks_half_way_leaves_what_was_there(site: Site) -> None:
    site.done("install")
    before = os.readlink(site.root / "19.10/current")
    site.make(breaks=True)
    site.declare()
    assert "is installed as it was declared before" in site.status()["wrong"]
    said = site.refused("install")
    assert "its installer ended with 2: cp: write error" in said
    assert "what was there before is as it was" in said
    assert os.readlink(site.root / "19.10/current") == before
    assert os.access(site.place / "bin/pgcc", os.X_OK)
    folders = [one.name for one in (site.root / "19.10").iterdir() if one.is_dir() and not one.is_symlink()]
    assert folders == [before]


def test_what_was_left_half_way_is_made_again(site: Site) -> None:
    site.done("install")
    whole = site.root / "19.10" / os.readlink(site.root / "19.10/current")
    (site.root / "19.10/current").unlink()
    (whole / ".hal.json").unlink()
    (whole / "linuxpower/19.10/bin/pgcc").unlink()
    assert "broke half-way" in site.status()["wrong"]
    site.done("install")
    assert site.status()["wrong"] == ""


def test_a_changed_program_is_found_and_the_repair_changes_nothing_under_running_compilers(site: Site) -> None:
    site.done("install")
    damaged = (site.root / "19.10/current").resolve()
    (site.place / "bin/localrc.other").write_text("# GCC version 4.8.5\n")
    with (damaged / "linuxpower/19.10/bin/pgcc").open("a") as stream:
        stream.write("# edited\n")
    assert site.status()["wrong"] == "1 changed (linuxpower/19.10/bin/pgcc)"
    site.done("install")
    assert site.status()["wrong"] == ""
    assert damaged.exists()
    assert (site.root / "19.10/current").resolve() != damaged
    assert (site.place / "bin/localrc.other").read_text() == "# GCC version 4.8.5\n", "other hosts' settings are kept"
    assert json.loads(site.done("status"))["undeclared"] == [str(damaged)]
    assert "would be removed" in site.done("prune", "--check")
    assert damaged.exists()
    site.done("prune")
    assert not damaged.exists()
    assert site.status()["wrong"] == ""


def test_missing_and_loose_files_are_found(site: Site) -> None:
    site.done("install")
    (site.place / "lib/libpgc.so").unlink()
    (site.place / "bin/pgc++").unlink()
    (site.place / "bin").chmod(0o777)
    loose = "1 writable by others than root (linuxpower/19.10/bin)"
    assert site.status()["wrong"] == f"{loose}, 1 missing (linuxpower/19.10/bin/pgc++)", "quickly seen"
    said = site.call("verify")
    assert (said.returncode, said.stdout) == (1, f"pgi/19.10: {loose}, 2 missing (linuxpower/19.10/bin/pgc++)\n")


@pytest.mark.parametrize("folder", ["..", "../..", "lib"])
def test_a_folder_through_which_others_could_exchange_the_compiler_is_seen_quickly(site: Site, folder: str) -> None:
    site.done("install")
    (site.place.resolve() / folder).chmod(0o777)
    assert "1 writable by others than root" in site.status()["wrong"]


def test_what_only_a_full_reading_finds_is_found_by_it_said_by_status_and_mended(site: Site) -> None:
    site.done("install")
    assert site.done("verify") == "pgi/19.10: every file is as it was installed\n"
    library = site.place / "lib/libpgc.so"
    damaged = library.resolve()
    library.write_text("STAND-IN\n")
    program = site.place / "bin/pgc++"
    program.write_text(program.read_text().swapcase())
    assert site.status()["wrong"] == site.status()["verified"] == "", "not looked at each time"
    assert site.call("verify").stdout == "pgi/19.10: 2 changed (linuxpower/19.10/bin/pgc++)\n"
    found = site.status()
    assert found["wrong"] == ""
    assert found["verified"].startswith("2 changed (linuxpower/19.10/bin/pgc++); seen 20")
    assert "would be installed, for 2 changed" in site.done("install", "--check")
    site.done("install")
    assert library.read_text() == "stand-in\n"
    assert damaged.read_text() == "STAND-IN\n", "jobs may have it open"
    assert site.status()["verified"] == site.done("install") == ""


def test_a_reading_of_long_ago_is_late(site: Site) -> None:
    site.done("install")
    assert site.status()["verified"] == site.status()["late"] == "", "it was read when it was made"
    record = site.place.resolve().parents[1] / ".hal.json"
    said = json.loads(record.read_text())
    for moment in (time.time() - 16 * 86400, time.time() + 30 * 86400):
        record.write_text(json.dumps({**said, "installed_at": int(moment)}))
        assert site.status()["late"].startswith("not since 20")
        assert "systemctl start hal-pgi-verify.service" in site.status()["late"]
        assert site.status()["verified"] == "", "nothing was found"
    site.done("verify")
    assert site.status()["late"] == ""
    assert site.status()["repair"] == ""


def test_an_installation_of_an_earlier_release_is_believed_as_it_was_recorded(site: Site) -> None:
    """It has checksums of what is below a bin alone, and was never read by `verify`."""
    site.done("install")
    record = site.place.resolve().parents[1] / ".hal.json"
    said = json.loads(record.read_text())
    for path, seen in said["files"].items():
        if "/bin/" not in path and not seen[1].startswith("->"):
            seen[1] = ""
    record.write_text(json.dumps(said))
    assert site.done("install") == ""
    assert site.status()["verified"] == ""
    assert "every file is as it was installed" in site.done("verify")
    (site.place / "lib/libpgc.so").write_text("longer than it was\n")
    assert "1 changed (linuxpower/19.10/lib/libpgc.so)" in site.call("verify").stdout


def test_nothing_is_read_where_the_shared_file_system_is_not_mounted(site: Site) -> None:
    site.done("install")
    site.set(mount=str(site.folder))
    assert "is not mounted" in site.refused("verify")
    site.set(versions=[])
    assert site.done("verify") == ""


def test_other_choices_make_another_installation(site: Site) -> None:
    site.done("install")
    site.declare(mpi=True)
    site.done("install")
    assert (site.place / "mpi/openmpi-3.1.3/bin").is_dir()
    assert len(json.loads(site.done("status"))["undeclared"]) == 1


def test_somebody_else_s_folder_is_left(site: Site) -> None:
    (site.root / "19.10").mkdir(parents=True)
    (site.root / "19.10/notes").write_text("mine")
    assert "was not made by hal-pgi; move it away, or give it to hal-pgi: touch" in site.refused("install")
    assert [one.name for one in (site.root / "19.10").iterdir()] == ["notes"]


def test_nothing_goes_where_the_shared_file_system_is_not_mounted(site: Site) -> None:
    site.set(mount=str(site.folder))
    assert "is not mounted" in site.refused("install")
    assert not site.root.exists()


def test_another_node_does_not_install(site: Site) -> None:
    site.set(installer=False)
    assert "this node does not install to the shared tree" in site.refused("install")


def test_each_host_has_its_settings_and_old_ones_are_made_again(site: Site) -> None:
    site.done("install")
    assert site.status()["localrc"] == ""
    mine = next((site.place / "bin").glob("localrc.*"))
    mine.write_text("# GCC version 3.2\n")
    assert "is for gcc 3.2, and this node has" in site.status()["localrc"]
    assert "would be told" in site.done("localrc", "--check")
    assert "knows the compiler of this node" in site.done("localrc")
    assert site.status()["localrc"] == ""
    assert site.done("localrc") == ""
    mine.unlink()
    assert "the compilers do not know this node's gcc" in site.status()["localrc"]


def test_an_archive_of_another_version_is_no_installation(site: Site) -> None:
    site.make("19.4")
    site.declare()
    assert "is the archive of this version and architecture?" in site.refused("install")
    assert not (site.root / "19.10/current").exists()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("../../escaped", tarfile.REGTYPE, "leads out of it"),
        ("components/../../../escaped", tarfile.REGTYPE, "leads out of it"),
        ("{folder}/escaped", tarfile.REGTYPE, "leads out of it"),
        ("components/disk", tarfile.BLKTYPE, "is a device"),
        ("components/terminal", tarfile.CHRTYPE, "is a device"),
    ],
)
def test_an_archive_that_writes_outside_of_its_folder_or_makes_devices_is_refused(
    site: Site, name: str, kind: bytes, words: str
) -> None:
    member = tarfile.TarInfo(name.format(folder=site.folder))
    member.type = kind
    with tarfile.open(site.archive, "a") as tar:
        tar.addfile(member)
    site.declare()
    before = sorted(site.folder.rglob("*"))
    made = [site.folder / name for name in ("apps", "apps/pgi", "apps/pgi/19.10", "apps/pgi/19.10/.hal")]
    made += [site.folder / "compilers.json.lock"]
    assert site.refused("install") == (
        f"hal-pgi: pgi/19.10: the archive's member {member.name} {words}; what was there before is as it was"
    )
    assert sorted(site.folder.rglob("*")) == sorted([*before, *made])


def test_what_is_withdrawn_stays_until_somebody_says_so(site: Site) -> None:
    site.done("install")
    shutil.copytree(site.root / "19.10", site.root / "mine-19.10", symlinks=True)
    (site.root / "mine-19.10/.hal").unlink()
    site.set(versions=[])
    assert json.loads(site.done("status"))["undeclared"] == [str(site.root / "19.10")]
    site.done("prune")
    assert [one.name for one in site.root.iterdir()] == ["mine-19.10"], "what nobody of ours made is left"


def test_check_says_what_would_be_done_and_does_nothing(site: Site) -> None:
    site.set(accept_eula=False)
    assert "would be installed, for pgi/19.10 is not installed; but" in site.done("install", "--check")
    assert not site.root.exists()


def test_the_scenario_declares_its_stand_in(tmp_path: Path) -> None:
    make_pgi.make(tmp_path / "pgi.tar")
    found = hashlib.sha256((tmp_path / "pgi.tar").read_bytes()).hexdigest()
    assert found in (PROJECT / "molecule/compilers/group_vars/all/compilers.yml").read_text()
    assert found in (PROJECT / "molecule/compilers/tests/test_compilers.py").read_text()


def test_a_folder_that_others_may_write_is_found_and_closed(site: Site) -> None:
    site.done("install")
    site.root.chmod(0o777)
    assert site.status()["wrong"].startswith(f"{site.root} can be written by others than root")
    assert "can be written by root alone again" in site.done("install")
    assert site.status()["wrong"] == ""
    made = [one.name for one in (site.root / "19.10").iterdir() if one.is_dir() and not one.is_symlink()]
    assert len(made) == 1, "nothing else is made again"


def test_a_finished_installation_whose_link_is_gone_is_loaded_again(site: Site) -> None:
    site.done("install")
    made = os.readlink(site.root / "19.10/current")
    (site.root / "19.10/current").unlink()
    assert site.status()["wrong"] != ""
    site.done("install")
    assert os.readlink(site.root / "19.10/current") == made
    assert site.status()["wrong"] == ""


def test_the_folders_of_all_versions_are_open_to_users_and_root_s_alone_to_write(site: Site) -> None:
    site.done("install")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (site.root, site.root / "19.10")] == [0o755, 0o755]


def test_of_two_at_once_the_second_waits_and_who_only_looks_does_not(site: Site) -> None:
    path = site.folder / "compilers.json.lock"
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = site.start("install")
        while second.poll() is None and not opened(second.pid, path):
            time.sleep(0.01)
        assert second.poll() is None, "it did not wait"
        assert not site.root.exists()
        assert site.status()["wrong"] == "pgi/19.10 is not installed"
    assert second.wait() == 0
    assert site.status()["wrong"] == ""

"""The steps of a build on the node: the package manager, cleaning, secrets, packing. Real tar, no root needed."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ansible.module_utils
import pytest

from hal_provision import building
from tests.unit.interpreters import NODES, interpreter
from tests.unit.provision.conftest import PROJECT

SHIPPED = str(PROJECT / "plugins/module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)

hold: Any = importlib.import_module("ansible.module_utils.hal_image_hold")
install: Any = importlib.import_module("ansible.module_utils.hal_image_install")
cleaning: Any = importlib.import_module("ansible.module_utils.hal_image_clean")
packing: Any = importlib.import_module("ansible.module_utils.hal_image_pack")
ImageError: Any = hold.ImageError

REPOSITORIES = """\
# Written by the role
[base]
name=Base
baseurl=http://10.1.0.11/mirror/base/ppc64le
enabled=1
gpgcheck=1

[epel]
name=EPEL
baseurl=file:///srv/epel
gpgcheck=1
exclude=slurm*
"""


def run(argv: Sequence[str], environ_update: dict[str, str] | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        list(argv), capture_output=True, text=True, check=False, env={**os.environ, **(environ_update or {})}
    )
    return done.returncode, done.stdout, done.stderr


# ---------------------------------------------------------------- packages
@pytest.mark.parametrize("there", [{"running": False, "owner": "me"}, {"running": True, "owner": "other"}])
def test_nothing_is_installed_into_a_build_that_has_ended(tmp_path: Path, there: dict[str, Any]) -> None:
    """The unit may be somebody else's by now, and its root this machine's."""
    path = PROJECT / "plugins/modules/hal_image.py"
    module = ModuleType("hal_image")
    exec(compile(path.read_text(), path, "exec"), module.__dict__)
    begun: list[Any] = []
    module.__dict__.update(state=lambda _: there, install=lambda *given: begun.append(given))
    given = SimpleNamespace(params={"owner": "me", "manager": "yum", "packages": [], "release": "7", "kernel": ""})
    with pytest.raises(ImageError, match="this build has ended"):
        module._install(given, run, str(tmp_path))
    assert begun == []


def test_the_package_manager_sees_the_declared_repositories_and_no_others() -> None:
    import configparser

    text = install.settings(REPOSITORIES, ["/b/keys/centos", "/b/keys/epel"])
    found = configparser.RawConfigParser()
    found.read_string(text)
    assert found.sections() == ["main", "base", "epel"]
    assert (found["main"]["reposdir"], found["main"]["gpgcheck"], found["main"]["plugins"]) == ("/dev/null", "1", "0")
    for section in ("base", "epel"):
        assert found[section]["gpgkey"] == "file:///b/keys/centos file:///b/keys/epel"
        assert found[section]["gpgcheck"] == "1"
    assert found["epel"]["exclude"] == "slurm*"
    with pytest.raises(ImageError, match="no repository is declared"):
        install.settings("# nothing\n", [])
    with pytest.raises(ImageError, match="section"):
        install.settings("[main]\ngpgcheck=0\n", [])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "Loaded\nNo match for argument: nosuch\nError: Unable to find a match: nosuch\n",
            "Error: Unable to find a match: nosuch",
        ),
        ("No package nosuch available.\nError: Nothing to do\n", "No package nosuch available.; Error: Nothing to do"),
        (
            "Public key for bash-4.2.rpm is not installed\n",
            "Public key for bash-4.2.rpm is not installed",
        ),
        ("a line\nthe last line\n\n", "the last line"),
        ("", "it said nothing"),
    ],
)
def test_why_packages_cannot_be_installed_is_one_line(said: str, reason: str) -> None:
    assert install.reason(said) == reason


class Root:
    """What rpm answers in a root."""

    def __init__(self, packages: Sequence[str], provided: Sequence[str] = (), kernels: str = "") -> None:
        self.packages, self.provided, self.kernels = packages, provided, kernels

    def __call__(self, argv: Sequence[str], **_: Any) -> tuple[int, str, str]:
        assert list(argv[:2]) == ["chroot", "/b/root"]
        words = list(argv)[list(argv).index("rpm") + 1 :]
        if "--whatprovides" in words:
            return (0 if words[-1] in self.provided else 1), "", ""
        if "--queryformat" in words:
            return 0, self.kernels, ""
        lines = [f"{one}-1-1" if one in self.packages else f"package {one} is not installed" for one in words[1:]]
        return int(any("not installed" in line for line in lines)), "\n".join(lines), ""


def test_a_package_that_yum_passed_over_is_missed() -> None:
    root = Root(["bash"], provided=["vi"])
    assert install.missing(root, "/b/root", ["bash", "vi", "nosuch", "@core"]) == ["nosuch"]
    assert install.missing(root, "/b/root", ["bash"]) == []


def test_keys_are_no_packages_and_every_kernel_is_seen() -> None:
    root = Root([], kernels="kernel-4.18.0-80.7.2.el7.ppc64le\ngpg-pubkey-f4a80eb5-53a7ff4b.(none)\nbash-1-1.ppc64le\n")
    assert install.all_packages(root, "/b/root") == ["bash-1-1.ppc64le", "kernel-4.18.0-80.7.2.el7.ppc64le"]
    two = Root([], kernels="4.18.0-80.7.2.el7\n3.10.0-1062.el7\n")
    assert install.kernels(two, "/b/root") == ["3.10.0-1062.el7", "4.18.0-80.7.2.el7"]


# ---------------------------------------------------------------- the folder, and who builds


def test_only_a_folder_of_ours_is_cleared(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "root").mkdir(parents=True)
    (theirs / "root" / "precious").touch()
    with pytest.raises(ImageError, match="has files of others in it: name a folder of its own"):
        hold.clear(run, str(theirs))
    assert (theirs / "root" / "precious").exists()
    ours = tmp_path / "ours"
    hold.clear(run, str(ours))
    assert ours.stat().st_mode & 0o777 == 0o700
    for name in ("root", "keys"):
        (ours / name).mkdir()
    (ours / "rootfs.tar.gz").touch()
    (ours / "notes").touch()
    hold.clear(run, str(ours))
    assert sorted(os.listdir(ours)) == [".hal-image-build", "notes"]
    assert (ours / ".hal-image-build").read_text().startswith("Images are built here, by playbooks/image.yml; ")


class Systemd:
    """systemctl and systemd-run with one unit, which is there or not."""

    def __init__(self, owner: str = "") -> None:
        self.owner, self.calls = owner, []  # type: tuple[str, list[str]]

    def __call__(self, argv: Sequence[str], **_: Any) -> tuple[int, str, str]:
        self.calls.append(" ".join(argv[:2]))
        if argv[0] == "systemctl" and argv[1] == "show":
            state = "active" if self.owner else "inactive"
            return 0, f"ActiveState={state}\nMainPID=0\nDescription={self.owner or 'hal-image.service'}\n", ""
        if argv[0] == "systemctl" and argv[1] == "stop":
            self.owner = ""
        if argv[0] == "systemd-run":
            return 1, "", "Failed to start transient service unit: Unit hal-image.service already exists.\n"
        return (0, "", "") if argv[0] != "rm" else run(argv)


def test_the_keeper_is_told_to_systemd_as_it_is() -> None:
    assert "$$" not in hold.KEEPER
    assert "${" not in hold.KEEPER
    assert subprocess.run(["sh", "-n", "-c", hold.KEEPER], check=False).returncode == 0


def test_a_second_build_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    hold.clear(run, str(tmp_path / "b"))
    (tmp_path / "b" / "root").mkdir()
    with pytest.raises(ImageError, match=r"^another build is under way: image x by y$"):
        hold.begin(Systemd("image x by y"), str(tmp_path / "b"), "image z by me", 60, [])
    assert (tmp_path / "b" / "root").is_dir()
    with pytest.raises(ImageError, match=r"the unit hal-image\.service does not start: Failed to start"):
        hold.begin(Systemd(), str(tmp_path / "b"), "image z by me", 60, [])


def test_a_build_that_cannot_begin_holds_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "RUN", str(tmp_path))
    (tmp_path / "held").write_text("1\n")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "precious").touch()

    class Starts(Systemd):
        def __call__(self, argv: Sequence[str], **_: Any) -> tuple[int, str, str]:
            if argv[0] == "systemd-run":
                self.owner = "image z by me"
                return 0, "", ""
            status, output, errors = super().__call__(argv)
            return status, output.replace("MainPID=0", "MainPID=1"), errors

    systemd = Starts()
    with pytest.raises(ImageError, match="has files of others in it"):
        hold.begin(systemd, str(tmp_path / "theirs"), "image z by me", 60, [])
    assert systemd.owner == ""


def test_a_build_ends_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "RUN", str(tmp_path / "run"))
    hold.clear(run, str(tmp_path / "b"))
    (tmp_path / "b" / "root").mkdir()
    systemd = Systemd("image x by y")
    assert hold.end(systemd, str(tmp_path / "b"), "image z by me") is False
    assert systemd.owner
    assert (tmp_path / "b" / "root").is_dir()
    assert hold.end(systemd, str(tmp_path / "b"), "image x by y") is True
    assert not systemd.owner
    assert not (tmp_path / "b" / "root").exists()
    assert hold.end(systemd, str(tmp_path / "b"), "image x by y") is False
    # What an interrupted build left, with nobody building.
    (tmp_path / "b" / "rootfs.tar.gz").touch()
    assert hold.end(systemd, str(tmp_path / "b"), "image z by me") is True
    assert os.listdir(tmp_path / "b") == [".hal-image-build"]


def test_a_keeper_that_has_no_namespace_of_its_own_takes_no_program_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All programs of the machine would be in it."""
    assert hold.own_namespace(0) is None
    assert hold.own_namespace(os.getpid()) is None
    monkeypatch.setattr(hold, "_link", lambda path: "mnt:[2]" if path == "/proc/4711/ns/mnt" else "mnt:[1]")
    assert hold.own_namespace(4711) == "mnt:[2]"
    monkeypatch.undo()
    asked: list[Any] = []

    def programs(namespace: Any, *_: Any) -> list[int]:
        asked.append(namespace)
        return []

    monkeypatch.setattr(hold, "RUN", str(tmp_path / "run"))
    monkeypatch.setattr(hold, "programs", programs)

    class Here(Systemd):
        def __call__(self, argv: Sequence[str], **_: Any) -> tuple[int, str, str]:
            status, output, errors = super().__call__(argv)
            return status, output.replace("MainPID=0", f"MainPID={os.getpid()}"), errors

    hold.end(Here("image x by y"), str(tmp_path / "b"), "image x by y")
    assert asked
    assert set(asked) == {None}


class Keeper:
    """systemd with a keeper that runs as `pid`; `answers` are of other commands, by how they begin."""

    def __init__(self, pid: int = 1, state: str = "active", **answers: tuple[int, str, str]) -> None:
        self.pid, self.state, self.answers = pid, state, answers
        self.calls: list[list[str]] = []

    def __call__(self, argv: Sequence[str], **more: Any) -> tuple[int, str, str]:
        self.calls.append(list(argv))
        if "show" in argv:
            assert more == {"environ_update": {"LC_ALL": "C"}}
        if argv[:2] == ["systemctl", "show"] and "show" not in self.answers:
            return 0, f"ActiveState={self.state}\nMainPID={self.pid}\nDescription=image x = y\n", ""
        return self.answers.get(argv[1] if argv[0] == "systemctl" else argv[0], (0, "", ""))


@pytest.mark.parametrize("state", ["active", "activating", "deactivating"])
def test_who_builds_is_asked_of_systemd(state: str) -> None:
    assert hold.state(Keeper(7, state)) == {"running": True, "owner": "image x = y", "pid": 7}
    for over in ("inactive", "failed"):
        assert hold.state(Keeper(7, over)) == {"running": False, "owner": "", "pid": 0}
    for answer in ((1, "", "no bus\n"), (1, "no bus\n", "")):
        with pytest.raises(ImageError, match=r"^systemctl does not say whether an image is built here: no bus$"):
            hold.state(Keeper(show=answer))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The keeper's folder, in which process 1 has said that it is there."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "held").write_text("1\n")
    monkeypatch.setattr(hold, "RUN", str(run))
    return run


def test_a_build_begins_with_an_empty_folder_and_a_keeper_of_its_own(place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    keeper = Keeper()
    assert hold.begin(keeper, str(folder), "image z by me", 60, ["/srv/a", "/srv/b"]) == 1
    assert oct((folder / "root").stat().st_mode) == "0o40755"
    begun = next(call for call in keeper.calls if call[0] == "systemd-run")
    assert begun[begun.index("unshare") :] == [
        *("unshare", "--mount", "/bin/sh", "-c", hold.KEEPER, "hal-image", f"{folder}/root", "60", "/srv/a", "/srv/b")
    ]
    assert {"--unit=hal-image.service", "--description=image z by me"} < set(begun)
    assert ["systemctl", "reset-failed", "hal-image.service"] in keeper.calls[: keeper.calls.index(begun)]


def test_programs_find_what_they_need_mounted_and_nothing_is_mounted_over_what_is_no_folder(
    place: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "dev").mkdir(mode=0o700)
    (place / "ready").touch()
    assert hold.enter(Keeper(), str(root)) == 1
    assert sorted(path.name for path in root.iterdir()) == ["dev", "proc", "run", "sys"]
    assert oct((root / "proc").stat().st_mode) == "0o40755"
    assert oct((root / "dev").stat().st_mode) == "0o40700", "as it was"
    assert (place / "go").exists()
    assert hold.inside(1) == ["nsenter", "--mount=/proc/1/ns/mnt", "--"]
    (root / "sys").rmdir()
    for to in (tmp_path, Path("/dev/null")):
        (root / "sys").symlink_to(to)
        (place / "go").unlink(missing_ok=True)
        with pytest.raises(ImageError, match=rf"^{root}/sys: is no folder; nothing is mounted there$"):
            hold.enter(Keeper(), str(root))
        assert not (place / "go").exists()
        (root / "sys").unlink()


@pytest.mark.parametrize(
    ("keeper", "held", "words"),
    [
        (Keeper(state="failed"), "1", "the unit hal-image.service ended at once: journalctl -u hal-image says why"),
        (Keeper(pid=2), "1", "the unit hal-image.service is not ready after -1 s: journalctl -u hal-image"),
        (Keeper(pid=0), "0", "the unit hal-image.service is not ready after -1 s: journalctl -u hal-image"),
        (Keeper(), "", "the unit hal-image.service is not ready after -1 s: journalctl -u hal-image"),
    ],
)
def test_only_the_keeper_that_runs_now_is_waited_for(
    place: Path, monkeypatch: pytest.MonkeyPatch, keeper: Keeper, held: str, words: str
) -> None:
    """What an older one said is in the folder, too."""
    monkeypatch.setattr(hold, "START_SECONDS", -1)
    (place / "held").write_text(held) if held else (place / "held").unlink()
    with pytest.raises(ImageError) as error:
        hold.wait(keeper, "held" if held else "")
    assert str(error.value) == words


def test_nothing_is_removed_where_something_is_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "b"
    hold.clear(run, str(folder))
    (folder / "root").mkdir()
    mounts = tmp_path / "mounts"

    def opened(path: str, mode: str = "r") -> Any:
        return open(mounts if path == "/proc/self/mounts" else path, mode)

    monkeypatch.setattr(hold, "open", opened, raising=False)
    mounts.write_text(f"proc /proc proc rw 0 0\nproc {folder}/root/proc proc rw 0 0\n")
    with pytest.raises(ImageError, match=rf"^{folder}/root/proc: is mounted, and nothing below {folder} may be$"):
        hold.clear(run, str(folder))
    assert (folder / "root").is_dir()
    mounts.write_text(f"x {folder} ext4 rw 0 0\nx {folder}-other/root ext4 rw 0 0\n")
    hold.clear(run, str(folder))
    assert os.listdir(folder) == [".hal-image-build"]


def test_what_cannot_be_removed_or_stopped_is_said(place: Path, tmp_path: Path) -> None:
    keeper = Keeper(rm=(1, "", "rm: cannot remove 'a'\nrm: cannot remove 'b'\n"))
    with pytest.raises(ImageError, match=rf"^{tmp_path} cannot be cleared: rm: cannot remove 'a'$"):
        hold.remove(keeper, str(tmp_path))
    (call,) = keeper.calls
    assert call[:4] == ["rm", "-rf", "--one-file-system", "--"]
    assert call[4:] == [f"{tmp_path}/{name}" for name in (
        "root", "keys", "check", "base.tar", "yum.conf", "names", "rootfs.tar.gz"
    )]  # fmt: skip
    with pytest.raises(ImageError, match=r"^the unit hal-image\.service cannot be stopped: no bus$"):
        hold.end(Keeper(stop=(1, "", "no bus\n")), str(tmp_path), "image x = y")


def test_a_folder_without_our_mark_keeps_its_files_when_a_build_ends(place: Path, tmp_path: Path) -> None:
    (tmp_path / "b/root").mkdir(parents=True)
    keeper = Keeper(state="inactive")
    assert hold.end(keeper, str(tmp_path / "b"), "image x = y") is False
    assert [call for call in keeper.calls if call[0] == "rm"] == [["rm", "-rf", "--one-file-system", "--", str(place)]]


def test_programs_in_the_root_of_an_image_are_asked_to_end_and_then_made_to(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold, "END_SECONDS", -1)  # nobody is waited for
    heard: list[tuple[int, int]] = []
    left = {4711, 4712}

    def sent(pid: int, sign: int) -> None:
        heard.append((pid, sign))
        if (pid, sign) in ((4711, signal.SIGTERM), (4712, signal.SIGKILL)):
            left.discard(pid)

    monkeypatch.setattr(hold, "_signal", sent)
    monkeypatch.setattr(hold, "programs", lambda *_: sorted(left))
    assert hold.end(Keeper(), str(tmp_path / "b"), "image x = y") is True
    assert heard == [(4711, signal.SIGTERM), (4712, signal.SIGTERM), (4712, signal.SIGKILL)]
    left.add(4713)
    keeper = Keeper()
    with pytest.raises(ImageError, match=r"^programs of an older build do not end: process 4713$"):
        hold.end(keeper, str(tmp_path / "b"), "image x = y")
    assert not [call for call in keeper.calls if "stop" in call], "what is mounted is still used"


def test_programs_of_a_build_are_known_by_their_namespace(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert sleeper.stdout is not None
        assert sleeper.stdin is not None
        sleeper.stdout.readline()
        namespace = os.readlink(f"/proc/{sleeper.pid}/ns/mnt")
        assert sleeper.pid in hold.programs(namespace, str(tmp_path), 0)
        assert sleeper.pid not in hold.programs(namespace, str(tmp_path), sleeper.pid)  # the keeper is no program
        assert sleeper.pid not in hold.programs("mnt:[1]", str(tmp_path), 0)
        assert sleeper.pid not in hold.programs(None, str(tmp_path), 0)
        hold._signal(sleeper.pid, signal.SIGTERM)
        over = os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
        assert over is not None
        assert over.si_status == signal.SIGTERM
        assert sleeper.pid not in hold.programs(namespace, str(tmp_path), 0)  # over, and nobody has looked yet
    finally:
        sleeper.kill()
        sleeper.wait()
    hold._signal(sleeper.pid, signal.SIGTERM)  # which is nobody's any more


# ---------------------------------------------------------------- what does not belong into an image


def write(root: Path, name: str, content: str = "x") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_what_belongs_to_one_machine_goes_and_the_rest_stays(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", write(tmp_path, "outside/file")
    gone = [
        *[
            "etc/ssh/ssh_host_rsa_key",
            "etc/ssh/ssh_host_rsa_key.pub",
            "etc/hostname",
            "etc/resolv.conf",
            "root/.ssh/id",
        ],
        *["root/.bash_history", "var/lib/hal/record.json", "var/lib/systemd/random-seed", "var/cache/dnf/x/y", "tmp/a"],
        *["tmp/.b/c", "var/tmp/a", "etc/sysconfig/network-scripts/ifcfg-eth0", "var/log/journal/1/system.journal"],
        "var/lib/rpm/__db.001",
    ]
    kept = [
        *["etc/ssh/sshd_config", "etc/hosts", "root/.bashrc", "var/lib/rpm/Packages", "var/log/yum.log"],
        *["etc/sysconfig/network-scripts/ifcfg-lo", "etc/sysconfig/network-scripts/ifup-eth", "usr/share/tmp/a"],
    ]
    for name in gone + kept:
        write(root, name)
    write(root, "etc/machine-id", "0123\n").chmod(0o444)
    (root / "var/spool").mkdir()
    (root / "var/cache/link").symlink_to(outside.parent)
    (root / "etc/lvm").symlink_to(outside.parent)
    cleaning.clean(str(root))
    assert [name for name in gone if (root / name).exists()] == []
    assert [name for name in kept if not (root / name).exists()] == []
    assert (root / "etc/machine-id").read_text() == ""
    assert (root / "var/log/yum.log").read_text() == ""  # the file stays
    assert outside.read_text() == "x"
    assert (root / "tmp").is_dir()
    assert (root / "var/cache/dnf").is_dir()


SHADOW = "root:*:18000:0:99999:7:::\nbin:!!:18000::::::\nmunge:!:18000::::::\n"
PRIVATE = "-----BEGIN {}PRIVATE KEY-----\nMIIE\n"


def faults(root: Path, **values: Any) -> list[str]:
    told = building.digests(values)
    found: list[str] = cleaning.faults(str(root), told["digests"], told["key"])
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    write(root, "etc/shadow", SHADOW)
    write(root, "etc/gshadow", "root:::\nwheel:!::\n")
    write(root, "usr/share/doc/example.pem", PRIVATE.format("RSA "))
    write(root, "etc/ssl/cert.pem", "-----BEGIN CERTIFICATE-----\n")
    return root


def test_an_image_without_secrets_is_not_refused(root: Path) -> None:
    assert faults(root, vault_password="correct-horse-battery") == []
    cleaning.refuse([])


@pytest.mark.parametrize("form", [bytes.hex, lambda key: base64.b64encode(key).decode()])
def test_a_key_is_found_by_its_bytes_though_the_vault_has_it_as_text(root: Path, form: Callable[[bytes], str]) -> None:
    key = bytes(range(200, 248))
    write(root, "etc/munge/munge.key", "").write_bytes(key)
    assert faults(root, vault_munge_key=form(key)) == ["/etc/munge/munge.key has the secret vault_munge_key"]


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_is_found(root: Path, kind: str) -> None:
    write(root, "etc/pki/tls/private/x.key", "# key\n" + PRIVATE.format(kind))
    assert faults(root) == ["/etc/pki/tls/private/x.key is a private key"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("alice:$6$salt$hash:18000::::::", "/etc/shadow has a password of alice"),
        ("alice:!!$6$salt$hash:18000::::::", "/etc/shadow has a password of alice"),
        ("alice::18000::::::", "/etc/shadow lets alice in without a password"),
    ],
)
def test_a_password_is_found(root: Path, line: str, said: str) -> None:
    write(root, "etc/shadow", SHADOW + line + "\n")
    assert faults(root) == [said]


@pytest.mark.parametrize(
    "content",
    [
        "correct-horse-battery",
        "correct-horse-battery\n",
        "StoragePass=correct-horse-battery\n",
        '{"password": "correct-horse-battery"}',
        "url=mysql://slurm:correct-horse-battery@host/db\n",
        "# first\nx y correct-horse-battery z\n",
    ],
)
def test_a_secret_of_the_site_is_found_wherever_it_stands(root: Path, content: str) -> None:
    write(root, "etc/slurm/slurmdbd.conf", content)
    said = ["/etc/slurm/slurmdbd.conf has the secret vault_password"]
    assert faults(root, vault_password="correct-horse-battery") == said
    assert faults(root, vault_password="correct-horse-batter") == []


def test_a_secret_of_several_words_is_found_as_a_line(root: Path) -> None:
    write(root, "var/lib/x", "key = a secret: of words\n")
    assert faults(root, vault_words="a secret: of words") == ["/var/lib/x has the secret vault_words"]


def test_a_refusal_names_files_and_no_secret() -> None:
    with pytest.raises(ImageError) as refused:
        cleaning.refuse([f"/etc/{name} is a private key" for name in "abcde"])
    assert str(refused.value) == (
        "the image would hold a secret: /etc/a is a private key; /etc/b is a private key; /etc/c is a private key"
        " and 2 more. Nothing was published"
    )


# ---------------------------------------------------------------- one file


def test_the_packed_root_is_whole_and_its_sum_is_right(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in (
        "etc/passwd",
        "usr/bin/a b",
        "usr/bin/ü",
        "proc/1/stat",
        "dev/null",
        "run/x",
        "sys/y",
        "boot/vmlinuz-4.18",
    ):
        write(root, name, name)
    (root / "usr/bin/a b").chmod(0o4755)
    (root / "bin").symlink_to("usr/bin")
    made = packing.pack(str(tmp_path), 6)
    packed = tmp_path / "rootfs.tar.gz"
    assert made == {"size": packed.stat().st_size, "sha256": hashlib.sha256(packed.read_bytes()).hexdigest()}
    with tarfile.open(packed) as archive:
        members = {member.name: member for member in archive.getmembers()}
    assert list(members) == sorted(members, key=os.fsencode)
    assert {"./etc/passwd", "./usr/bin/a b", "./usr/bin/ü", "./proc", "./dev", "./run", "./sys", "./bin"} <= {
        name if name.startswith(".") else f"./{name}" for name in members
    }
    assert not [name for name in members if name.startswith(("./proc/", "./dev/", "./run/", "./sys/"))]
    assert members["./usr/bin/a b"].mode & 0o7777 == 0o4755
    assert members["./bin"].issym()
    # How Anaconda of CentOS 7 finds the kernels of an image.
    assert [name.split("/")[-1][8:] for name in members if "boot/vmlinuz-" in name] == ["4.18"]


def test_a_root_that_cannot_be_packed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "root", "etc/passwd")
    monkeypatch.setattr(packing, "names", lambda root: [b"./etc/passwd", b"./nosuch"])
    with pytest.raises(ImageError, match=r"tar ended with 2, gzip with 0: tar: \./nosuch: Cannot stat: No such file"):
        packing.pack(str(tmp_path), 6)


@pytest.mark.parametrize("version", NODES)
def test_the_pythons_of_nodes_do_the_same(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    shipped = tmp_path / "shipped/ansible/module_utils"
    shipped.mkdir(parents=True)
    for folder in (shipped, shipped.parent):
        (folder / "__init__.py").touch()
    for name in ("hold", "clean", "pack"):
        shutil.copy(PROJECT / f"plugins/module_utils/hal_image_{name}.py", shipped)
    root = tmp_path / "b" / "root"
    write(root, "etc/ssh/ssh_host_rsa_key")
    write(root, "etc/ü", "password=correct-horse-battery\n")
    write(root, "etc/shadow", SHADOW)
    write(root, "var/log/yum.log")
    told = building.digests({"vault_password": "correct-horse-battery"})
    script = (
        "import json, sys\n"
        "from ansible.module_utils.hal_image_clean import clean, faults\n"
        "from ansible.module_utils.hal_image_pack import pack\n"
        "folder, told = sys.argv[1], json.load(sys.stdin)\n"
        "clean(folder + '/root')\n"
        "print(json.dumps([len(faults(folder + '/root', told['digests'], told['key'])), pack(folder, 1)]))\n"
    )
    done = subprocess.run(
        [python, "-c", script, str(tmp_path / "b")],
        input=json.dumps(told), capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "shipped"), "LC_ALL": "C"},
    )  # fmt: skip
    assert done.stderr == ""
    number, made = json.loads(done.stdout)
    packed = tmp_path / "b" / "rootfs.tar.gz"
    assert number == 1
    assert made == {"size": packed.stat().st_size, "sha256": hashlib.sha256(packed.read_bytes()).hexdigest()}
    with tarfile.open(packed) as archive:
        names = archive.getnames()
    assert "./etc/ü" in names
    assert "./etc/ssh/ssh_host_rsa_key" not in names


REFUSALS = r"""# -*- coding: utf-8 -*-
import os, sys
from ansible.module_utils import hal_image_clean, hal_image_hold, hal_image_install

folder = sys.argv[1]
hal_image_install.LOG = os.path.join(folder, "log")
hal_image_hold.RUN = folder


def said(words, step, *given):
    try:
        step(*given)
    except hal_image_hold.ImageError as error:  # as the module does
        line = "%s" % error
        line = line if isinstance(line, bytes) else line.encode("utf-8")
        getattr(sys.stdout, "buffer", sys.stdout).write(words.encode("ascii") + b": " + line + b"\n")


said("install", hal_image_install.install, 1, folder, "yum", ["x"], "7")
said("secret", lambda: hal_image_clean.refuse(hal_image_clean.faults(os.path.join(folder, "root"), {}, "")))
asked = []


def run(argv, environ_update=None):
    asked.append(" ".join(argv[:2]))
    if argv[0] == "rm":  # what is there instead of the mark cannot be written
        os.mkdir(os.path.join(folder, "work", hal_image_hold.MARK))
    return 0, "ActiveState=active\nMainPID=%d\nDescription=me\n" % 4711, ""


try:
    hal_image_hold.begin(run, os.path.join(folder, "work"), "me", 1, [])
except (IOError, OSError) as error:
    print("begin: %s, then %s" % (error.strerror, asked[-1]))
"""


@pytest.mark.parametrize("version", NODES)
def test_what_is_refused_is_said_in_any_letters_and_the_lock_is_given_back(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    shipped = tmp_path / "shipped/ansible/module_utils"
    shipped.mkdir(parents=True)
    for folder in (shipped, shipped.parent):
        (folder / "__init__.py").touch()
    for name in ("hold", "clean", "install"):
        shutil.copy(PROJECT / f"plugins/module_utils/hal_image_{name}.py", shipped)
    (shipped / "hal_mirror_fetch.py").write_text("class MirrorError(Exception):\n    pass\n")
    (shipped / "hal_mirror_keys.py").write_text("Keyring = None\n")
    write(tmp_path / "root", "etc/schlüssel.pem", PRIVATE.format("RSA "))
    (tmp_path / "held").write_text("4711")
    (tmp_path / "nsenter").write_text("#!/bin/sh\necho 'Error: Paket größe fehlt'\nexit 1\n")
    (tmp_path / "nsenter").chmod(0o755)
    (tmp_path / "script.py").write_text(REFUSALS, encoding="utf-8")
    done = subprocess.run(
        [python, "-B", str(tmp_path / "script.py"), str(tmp_path)], capture_output=True, check=False, timeout=120,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "shipped"), "LC_ALL": "C"},
    )  # fmt: skip
    assert done.stderr.decode() == ""
    assert done.stdout.decode().splitlines() == [
        f"install: yum could not install into the root: Error: Paket größe fehlt. All of it is in {tmp_path}/log",
        "secret: the image would hold a secret: /etc/schlüssel.pem is a private key. Nothing was published",
        "begin: Is a directory, then systemctl stop",
    ]


def test_labels_are_made_by_the_machine_that_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert packing.label(run, str(tmp_path)) == "no policy"
    write(tmp_path, packing.CONTEXTS)
    calls: list[Sequence[str]] = []

    def setfiles(argv: Sequence[str]) -> tuple[int, str, str]:
        calls.append(argv)
        return 0, "", ""

    monkeypatch.setattr(packing.os.path, "isdir", lambda path: path == "/sys/fs/selinux/booleans")
    assert packing.label(setfiles, str(tmp_path)) == "labelled"
    assert calls == [["setfiles", "-F", "-r", str(tmp_path), f"{tmp_path}/{packing.CONTEXTS}", str(tmp_path)]]
    monkeypatch.setattr(packing.os.path, "isdir", lambda path: False)
    assert packing.label(setfiles, str(tmp_path)) == "at the first boot"
    assert (tmp_path / ".autorelabel").read_bytes() == b""

"""The package manager of a build, what is packed, and what the Pythons of nodes make of it. Real tar, no root."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hal_cluster.provision import building
from tests.unit.hal_cluster.provision.conftest import PROJECT
from tests.unit.hal_node.image.image_parts import PRIVATE, SHADOW, ImageError, install, packing, run, write
from tests.unit.interpreters import NODES, interpreter

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


def ship(folder: Path, *names: str) -> Path:
    """Bring these of hal_node/image as a module finds them; return where hal_node is."""
    shipped = folder / "shipped/ansible/module_utils/hal_node"
    for package in (shipped / "image", shipped / "mirror"):
        package.mkdir(parents=True)
    for package in (shipped / "image", shipped / "mirror", shipped, shipped.parent, shipped.parent.parent):
        (package / "__init__.py").touch()
    for name in names:
        shutil.copy(PROJECT / f"hal_node/image/{name}.py", shipped / "image")
    return shipped


@pytest.mark.parametrize("version", NODES)
def test_the_pythons_of_nodes_do_the_same(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    ship(tmp_path, "hold", "clean", "pack")
    root = tmp_path / "b" / "root"
    write(root, "etc/ssh/ssh_host_rsa_key")
    write(root, "etc/ü", "password=correct-horse-battery\n")
    write(root, "etc/shadow", SHADOW)
    write(root, "var/log/yum.log")
    told = building.digests({"vault_password": "correct-horse-battery"})
    script = (
        "import json, sys\n"
        "from ansible.module_utils.hal_node.image.clean import clean, faults\n"
        "from ansible.module_utils.hal_node.image.pack import pack\n"
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
from ansible.module_utils.hal_node.image import clean as hal_image_clean
from ansible.module_utils.hal_node.image import hold as hal_image_hold
from ansible.module_utils.hal_node.image import install as hal_image_install

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
    shipped = ship(tmp_path, "hold", "clean", "install")
    (shipped / "mirror/fetch.py").write_text("class MirrorError(Exception):\n    pass\n")
    (shipped / "mirror/keys.py").write_text("Keyring = None\n")
    write(tmp_path / "root", "etc/schlüssel.pem", PRIVATE.format("RSA "))
    (tmp_path / "held").write_text("4711")
    (tmp_path / "nsenter").write_text("#!/bin/sh\necho 'Error: Paket größe fehlt'\nexit 1\n")
    (tmp_path / "nsenter").chmod(0o755)
    (tmp_path / "script.py").write_text(REFUSALS, encoding="utf-8")
    done = subprocess.run(
        [python, "-B", str(tmp_path / "script.py"), str(tmp_path)], capture_output=True, check=False, timeout=600,
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

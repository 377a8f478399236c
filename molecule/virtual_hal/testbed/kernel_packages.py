"""Kernels as packages, in a repository of their own beside the others: what an image of the virtual HAL installs.

Nodes get their kernel's files from the testbed when they are made (kernel.py); the package holds the same. The
repository is inside the folder that nodes see as /srv/hal-packages, so a kernel more changes no package of the other.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from testbed import kernel, repository
from testbed.cache import cache_dir, content_hash, locked
from testbed.errors import VirtualNodesError
from testbed.run import logged, need

FOLDER = "kernels"
_KERNEL = re.compile(r"[0-9][0-9A-Za-z._]*-[0-9][0-9A-Za-z._]*")


def publish(release: str, machine: str, arch: str = "x86_64") -> Path:
    """Make sure that the repository of kernels has this one, and return its folder.

    ``release``: as the model declares it, 4.18.0-80.7.2.el7; ``machine``: architecture of the model's nodes, which is
    in the files' names; ``arch``: that of the virtual nodes, for which the package is.
    """
    if not _KERNEL.fullmatch(release) or machine not in kernel.MACHINES:
        raise VirtualNodesError(f"no kernel is known as {release} of {machine}; write 4.18.0-80.7.2.el7, ppc64le")
    folder = repository.build(arch) / FOLDER
    stamp = content_hash([Path(kernel.__file__), Path(__file__)], release, machine)
    made = folder / f"{release}.{machine}.stamp"
    if made.is_file() and made.read_text() == stamp:
        return folder
    with locked(f"kernels-{arch}"):
        if not made.is_file() or made.read_text() != stamp:
            _add(folder, release, machine, arch, stamp)
            made.write_text(stamp)
    return folder


def _add(folder: Path, release: str, machine: str, arch: str, stamp: str) -> None:
    need("createrepo_c", "createrepo-c")
    log = cache_dir() / "log" / f"kernels-{arch}.log"
    with tempfile.TemporaryDirectory(prefix="hal-kernel-", dir="/tmp") as place:
        work, out = Path(place), Path(place) / "signed"
        provides = [f"kernel-stand-in = {stamp}"]
        made = kernel.files(release, machine)
        package = kernel.rpm(work, release, machine, made, target=arch, provides=provides)
        out.mkdir()
        shutil.move(package, out / package.name)
        repository.sign(out, work / "gnupg", log)
        # Beside, with the packages that are there, and put in its place at once: a node may be reading it.
        new = folder.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        if folder.is_dir():
            shutil.copytree(folder, new, ignore=shutil.ignore_patterns("repodata"))
        new.mkdir(exist_ok=True)
        shutil.copy(out / package.name, new / package.name)
        logged(["createrepo_c", "--quiet", new], log, "indexing the kernels")
        old = folder.with_suffix(".old")
        shutil.rmtree(old, ignore_errors=True)
        if folder.is_dir():
            folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)

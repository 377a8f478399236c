"""The package repository: every recipe built, signed and indexed, once for each content of the recipes."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed import debian, elf, recipes, rpm
from testbed.cache import cache_dir, content_hash, locked
from testbed.errors import VirtualNodesError
from testbed.run import LAB, capture, logged, need, say

RECIPES = LAB / "packages"
LAYOUT_CODE = [Path(__file__).parent / name for name in ("rpm.py", "elf.py")]  # a change there changes the packages
KEEP_OLD_DAYS = 7
KEY_FILE = "RPM-GPG-KEY-hal"
KEY_USER = "HAL virtual nodes, package repository of this machine"


def location(arch: str = "x86_64") -> Path:
    """Return the folder of the repository as the recipes are now, built or not."""
    recipe = content_hash([RECIPES, *LAYOUT_CODE], arch, debian.SUITE)
    return cache_dir() / "packages" / f"{arch}-{recipe}"


def fingerprint(arch: str = "x86_64") -> str:
    """Return the fingerprint, 40 hex digits, of the key that signed the packages; the repository must be built."""
    home = tempfile.mkdtemp(prefix="hal-gpg-", dir="/tmp")
    try:
        key = location(arch) / KEY_FILE
        shown = capture(["gpg", "--homedir", home, "--batch", "--with-colons", "--show-keys", key])
    finally:
        shutil.rmtree(home)
    return next(line.split(":")[9] for line in shown.splitlines() if line.startswith("fpr:"))


def build(arch: str = "x86_64") -> Path:
    """Make sure the repository exists and return its folder; quiet when it does."""
    target = location(arch)
    if (target / "repodata").is_dir():
        return target
    with locked(f"packages-{arch}"):
        if not (target / "repodata").is_dir():
            _build(target, arch)
    return target


def _build(target: Path, arch: str) -> None:
    every = recipes.load(RECIPES / "recipes.yml")
    declared = {name: recipe for name, recipe in every.items() if arch in recipe.arches}
    for program, package in (
        ("rpmbuild", "rpm"),
        ("createrepo_c", "createrepo-c"),
        ("gpg", "gnupg"),
        ("dpkg-deb", "dpkg"),
        ("apt-get", "apt"),
    ):
        need(program, package)
    log = cache_dir() / "log" / f"packages-{arch}.log"
    log.unlink(missing_ok=True)
    say(f"package repository: building {len(declared)} packages for {arch} (log: {log})")
    started = time.monotonic()
    debs = _download(declared, arch, log)
    # rpmbuild cannot work below a path with spaces, gpg not below a long one.
    with tempfile.TemporaryDirectory(prefix="hal-packages-", dir="/tmp") as folder:
        work = Path(folder)
        result = work / "repository"
        result.mkdir()

        def pack(name: str) -> None:
            own_log = log.with_name(f"package-{arch}-{name}.log")
            own_log.unlink(missing_ok=True)
            made = rpm.build(name, declared[name], debs, RECIPES / "files", work / name, arch, own_log)
            shutil.move(made, result / made.name)
            own_log.unlink(missing_ok=True)

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            list(pool.map(pack, declared))
        sign(result, work / "gnupg", log)
        logged(["createrepo_c", "--quiet", result], log, "indexing the package repository")
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(result, unfinished)
        unfinished.rename(target)
    _forget_old(target)
    say(f"package repository: built in {time.monotonic() - started:.0f} s")


def _download(declared: Mapping[str, recipes.Recipe], arch: str, log: Path) -> dict[str, Path]:
    """Return the .deb files of all recipes by package name; those of another suite with who needs them, if it fails."""
    apt = debian.Apt(cache_dir() / "packages" / f"debian-{arch}", arch)
    apt.update(log)
    usual: set[str] = set()
    others: dict[str, dict[str, str]] = {}
    for name, recipe in declared.items():
        for package in (*recipe.payload, *recipe.libraries, *recipe.private):
            suite = recipe.suites.get(package)
            if suite is None:
                usual.add(package)
            else:
                others.setdefault(suite, {})[package] = name
    debs = apt.download(usual, log)
    for suite, packages in others.items():
        newer = debian.Apt(cache_dir() / "packages" / f"debian-{arch}-{suite}", arch, suite)
        try:
            newer.update(log)
            fetched = newer.download(packages, log)
        except VirtualNodesError as error:
            needed = ", ".join(sorted(set(packages.values())))
            raise VirtualNodesError(
                f"Debian {suite} cannot be read, which has what package {needed} is made of: {error}"
            ) from None
        twice = sorted(debs.keys() & fetched.keys())
        if twice:
            raise VirtualNodesError(f"recipes.yml: {twice[0]} is wanted from {suite} and from another suite")
        debs |= fetched
    if any(recipe.private for recipe in declared.values()):
        own = debian.Apt(cache_dir() / "packages" / "debian-tools", os.uname().machine)
        own.update(log)
        debs |= own.download([elf.PATCHELF], log)
    return debs


def sign(folder: Path, home: Path, log: Path) -> None:
    """Sign all packages with this machine's own key, which is made at the first build, and export its public half."""
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
    kept = cache_dir() / "packages" / "signing-key.asc"
    try:
        if kept.exists():
            logged([*gpg, "--import", kept], log, "reading the signing key")
        else:
            logged([*gpg, "--quick-generate-key", KEY_USER, "rsa3072", "sign", "never"], log, "making a signing key")
            secret = capture([*gpg, "--armor", "--export-secret-keys"])
            with open(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as handle:
                handle.write(secret)
        public = capture([*gpg, "--armor", "--export"])
        if "BEGIN PGP PUBLIC KEY BLOCK" not in public:
            raise VirtualNodesError(f"gpg exported no public key; remove {kept} to have a new one made")
        (folder / KEY_FILE).write_text(public)
        # Debian's rpm leaves the place of gpg open.
        settings = [f"--define=__gpg {need('gpg', 'gnupg')}", f"--define=_gpg_name {KEY_USER}"]
        logged(
            ["env", f"GNUPGHOME={home}", "rpmsign", *settings, "--addsign", *sorted(folder.glob("*.rpm"))],
            log,
            "signing the packages",
        )
    finally:
        logged(["gpgconf", "--homedir", home, "--kill", "all"], log, "stopping gpg's agent")


def _forget_old(current: Path) -> None:
    """Remove repositories of older recipes; not the recent ones, which running nodes may still have mounted."""
    arch = current.name.partition("-")[0]
    oldest = time.time() - KEEP_OLD_DAYS * 86400
    for path in current.parent.glob(f"{arch}-*"):
        if path != current and (path / "repodata").is_dir() and path.stat().st_mtime < oldest:
            shutil.rmtree(path, ignore_errors=True)

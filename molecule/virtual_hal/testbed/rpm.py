"""Make one RPM from a recipe: Debian's files at Enterprise Linux's places, with users, folders and scriptlets."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed import elf
from testbed.errors import VirtualNodesError
from testbed.recipes import Mode, Recipe
from testbed.run import capture, logged

RELEASE = "1.deb12.el7"

# Debian's own places and what nobody reads on a virtual node.
DROPPED = (
    "/etc/apparmor.d/*",
    "/etc/apt/*",
    "/etc/cron*/*",
    "/etc/default/*",
    "/etc/dhcp/*",
    "/etc/init.d/*",
    "/etc/network/*",
    "/etc/mysql/*",
    "/etc/ppp/*",
    "/usr/lib/systemd/*",
    "/usr/lib/sysusers.d/*",
    "/usr/lib/tmpfiles.d/*",
    "/usr/share/apport/*",
    "/usr/share/bug/*",
    "/usr/share/doc/*",
    "/usr/share/doc-base/*",
    "/usr/share/icons/*",
    "/usr/share/applications/*",
    "/usr/share/info/*",
    "/usr/share/lintian/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
    "/usr/share/menu/*",
    "/usr/share/pixmaps/*",
)
MERGED = ("/bin/", "/sbin/", "/lib/", "/lib64/")


def deb_field(deb: Path, field: str) -> str:
    """Return a control field of a .deb file."""
    return capture(["dpkg-deb", "--field", deb, field]).strip()


def version_of(recipe: Recipe, debs: Mapping[str, Path]) -> str:
    """Return the RPM version: the recipe's, else Debian's without epoch and Debian revision."""
    if recipe.version:
        return recipe.version
    version = deb_field(debs[recipe.payload[0]], "Version").partition(":")
    upstream = (version[2] or version[0]).rpartition("-")
    return re.sub(r"[^A-Za-z0-9._+~]", "_", upstream[0] or upstream[2])


def architecture_of(recipe: Recipe, debs: Mapping[str, Path], arch: str) -> str:
    """Return noarch when nothing in the package depends on the architecture."""
    names = [*recipe.payload, *recipe.libraries]
    return arch if any(deb_field(debs[name], "Architecture") != "all" for name in names) else "noarch"


def lay_out(name: str, recipe: Recipe, debs: Mapping[str, Path], files: Path, work: Path, arch: str = "x86_64") -> Path:
    """Fill work/root with the package's files at their final places; return it. The debs are taken as they come."""
    root = work / "root"
    newer: list[Path] = []
    for kind, packages in (("payload", recipe.payload), ("libraries", recipe.libraries)):
        for package in packages:
            unpacked = work / "deb" / package
            unpacked.mkdir(parents=True)
            capture(["dpkg-deb", "--extract", debs[package], unpacked])
            for source, path in _files(unpacked):
                if _wanted(path, recipe, kind):
                    _place(source, root, _moved(path, recipe.move))
                    if package in recipe.suites:
                        newer.append(root / _moved(path, recipe.move).lstrip("/"))
            shutil.rmtree(unpacked)
    if recipe.private:
        elf.own_libraries(name, arch, [debs[package] for package in recipe.private], root, work)
        elf.lead_to(name, arch, newer, elf.tool(debs, work / "tool"))
    for old, new in recipe.move.items():
        if not (root / new.lstrip("/")).exists():
            raise VirtualNodesError(f"{name}: move {old}: the payload has no such file")
    own = files / name
    for source, path in _files(own) if own.is_dir() else ():
        _place(source, root, path, copy=True)
    for path, target in recipe.links.items():
        link = root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    for path in recipe.folders:
        (root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for unit in recipe.units:
        if not (root / "usr/lib/systemd/system" / unit).is_file():
            place = f"files/{name}/usr/lib/systemd/system/"
            raise VirtualNodesError(f"{name}: unit {unit} is neither in the payload nor in {place}")
    for path in recipe.modes:
        if not os.path.lexists(root / path.lstrip("/")):
            raise VirtualNodesError(f"{name}: modes: the package has no {path}")
    return root


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield every file and link below a folder with its path on the node, /bin and /lib merged into /usr."""
    for source in sorted(folder.rglob("*")):
        if (source.is_dir() and not source.is_symlink()) or "__pycache__" in source.parts:
            continue
        path = "/" + str(source.relative_to(folder))
        yield source, "/usr" + path if path.startswith(MERGED) else path


def _wanted(path: str, recipe: Recipe, kind: str) -> bool:
    if any(fnmatch.fnmatchcase(path, pattern) for pattern in DROPPED):
        return False
    if kind == "libraries":
        return fnmatch.fnmatchcase(path, "/usr/lib/*.so*")
    return not recipe.keep or any(fnmatch.fnmatchcase(path, pattern) for pattern in recipe.keep)


def _moved(path: str, moves: Mapping[str, str]) -> str:
    if path in moves:
        return moves[path]
    for old, new in moves.items():
        if old.endswith("/") and path.startswith(old):
            return new + path[len(old) :]
    return path


def _place(source: Path, root: Path, path: str, copy: bool = False) -> None:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if copy:
        shutil.copyfile(source, target)
        target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    else:
        os.replace(source, target)


def spec(name: str, recipe: Recipe, root: Path, version: str, origin: str) -> str:
    """Return the spec file of a package whose files are below root."""
    what = "Stand-in of the virtual HAL: it has the name and the outside of the real package and does nothing."
    parts = [
        "%global debug_package %{nil}",
        "%global __os_install_post %{nil}",
        "%global _build_id_links none",
        "%global _binary_payload w1.gzdio",
        f"Name: {name}",
        f"Version: {version}",
        f"Release: {RELEASE}",
        f"Summary: {recipe.summary}",
        "License: as the Debian packages it is made of",
        "AutoReqProv: no",
        *(f"Requires: {word}" for word in recipe.requires),
        *(f"Provides: {word}" for word in recipe.provides),
        "",
        "%description",
        what if recipe.stand_in else f"{recipe.summary}. For the virtual HAL, made of {origin}.",
        "",
        "%install",
        f"cp -a {shlex.quote(str(root))}/. %{{buildroot}}/",
        "",
        *_scriptlets(recipe, root),
        "%files",
        *_file_list(recipe, root),
    ]
    return "\n".join(parts) + "\n"


def _scriptlets(recipe: Recipe, root: Path) -> list[str]:
    before = []
    named = {group.name for group in recipe.groups}
    for group in recipe.groups:
        number = f" -g {group.gid}" if group.gid is not None else ""
        before.append(f"getent group {group.name} >/dev/null || groupadd -r{number} {group.name} || exit 1")
    for user in recipe.users:
        if user.name not in named:
            before.append(f"getent group {user.name} >/dev/null || groupadd -r {user.name} || exit 1")
        number = f" -u {user.uid}" if user.uid is not None else ""
        before.append(
            f"getent passwd {user.name} >/dev/null || useradd -r{number} -M -g {user.name} -d {user.home} "
            f"-s {user.shell} -c {shlex.quote(user.comment)} {user.name} || exit 1"
        )
    libraries = any(fnmatch.fnmatchcase(str(path), "*/usr/lib/*.so*") for path in root.rglob("*.so*"))
    after = [*(["ldconfig"] if libraries else []), *recipe.after]
    removal, gone = [], []
    if recipe.units:
        units = " ".join(recipe.units)
        reload = "[ ! -d /run/systemd/system ] || systemctl daemon-reload || :"
        after.insert(0, reload)
        # Enabled by nobody: on Enterprise Linux the administrator or the role does that.
        removal.append(f'[ "$1" -ne 0 ] || systemctl --no-reload disable --now {units} >/dev/null 2>&1 || :')
        gone.append(reload)
    removal += [f'[ "$1" -ne 0 ] || {{ {command}; }}' for command in recipe.before_removal]
    if libraries:
        gone.append("ldconfig")
    sections = (("%pre", before), ("%post", after), ("%preun", removal), ("%postun", gone))
    return [line for title, body in sections if body for line in (title, *body, "exit 0", "")]


def _file_list(recipe: Recipe, root: Path) -> list[str]:
    lines = []
    for path, mode in sorted(recipe.folders.items()):
        lines.append(f'%dir %attr({mode.mode or "0755"}, {mode.owner}, {mode.group}) "{path}"')
    for source, path in _files(root):
        config = "%config(noreplace) " if path.startswith("/etc/") and not source.is_symlink() else ""
        if source.is_symlink():
            lines.append(f'%attr(-, root, root) "{path}"')
            continue
        own = recipe.modes.get(path, Mode())
        bits = own.mode or f"{stat.S_IMODE(source.stat().st_mode):04o}"
        lines.append(f'{config}%attr({bits}, {own.owner}, {own.group}) "{path}"')
    return lines


def build(name: str, recipe: Recipe, debs: Mapping[str, Path], files: Path, work: Path, arch: str, log: Path) -> Path:
    """Return the finished, unsigned RPM below work; work must be a path without spaces (rpmbuild's own limit)."""
    work.mkdir(parents=True)
    root = lay_out(name, recipe, debs, files, work, arch)
    origin = ", ".join(f"{package} {deb_field(debs[package], 'Version')}" for package in recipe.payload)
    version = version_of(recipe, debs)
    (work / "package.spec").write_text(spec(name, recipe, root, version, f"Debian's {origin}"))
    target = architecture_of(recipe, debs, arch)
    logged(
        [
            "rpmbuild",
            "-bb",
            "--quiet",
            f"--target={target}",
            f"--define=_topdir {work}",
            f"--define=_rpmdir {work}/out",
            "--define=_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
            work / "package.spec",
        ],
        log,
        f"package {name}",
    )
    (made,) = (work / "out").glob("*.rpm")
    shutil.rmtree(root)
    return made

"""Make small packages, sign them and index them: real ones, of rpmbuild, rpmsign and createrepo_c, for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SPEC = """\
Name: {name}
Version: {version}
Release: 1.el7
Summary: Package of a test
License: none
AutoReqProv: no
{tags}
%description
Package of a test.
%install
install -D -m 0644 {filler} %{{buildroot}}/usr/share/{name}/filler
%files
/usr/share/{name}/filler
"""


@dataclass(frozen=True)
class Key:
    """A signing key: its user id, fingerprint (40 hex digits) and public file."""

    user: str
    fingerprint: str
    public: Path


class Workshop:
    """A folder in which packages are made."""

    def __init__(self, folder: Path) -> None:
        """`folder` is made; gpg wants a short path."""
        self._folder = folder
        self._home = folder / "gnupg"
        self._home.mkdir(parents=True, mode=0o700)

    def key(self, user: str) -> Key:
        """Make a signing key."""
        self._gpg("--quick-generate-key", user, "rsa2048", "sign", "never")
        shown = self._gpg("--with-colons", "--list-keys", user)
        fingerprint = next(line.split(":")[9] for line in shown.splitlines() if line.startswith("fpr:"))
        public = self._folder / f"RPM-GPG-KEY-{user}"
        public.write_text(self._gpg("--armor", "--export", user))
        return Key(user, fingerprint, public)

    def package(
        self,
        name: str,
        into: Path,
        key: Key | None,
        *tags: str,
        version: str = "1.0",
        arch: str = "noarch",
        filler_bytes: int = 100,
    ) -> Path:
        """Build a package into a folder, signed when a key is given. `tags`: lines of its spec, as "Requires: x"."""
        work = self._folder / f"build-{name}"
        work.mkdir()
        filler = work / "filler"
        # Does not compress, so that the package has a size to interrupt.
        filler.write_bytes(os.urandom(filler_bytes))
        spec = work / f"{name}.spec"
        spec.write_text(SPEC.format(name=name, version=version, tags="\n".join(tags), filler=filler))
        defines = [f"--define=_topdir {work}", f"--define=_rpmdir {work}/out"]
        file_name = "--define=_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"
        _run("rpmbuild", "-bb", "--quiet", f"--target={arch}", *defines, file_name, str(spec))
        (made,) = (work / "out").glob("*.rpm")
        if key is not None:
            gpg = shutil.which("gpg")
            settings = [f"--define=__gpg {gpg}", f"--define=_gpg_name {key.user}"]
            _run("env", f"GNUPGHOME={self._home}", "rpmsign", *settings, "--addsign", str(made))
        into.mkdir(parents=True, exist_ok=True)
        result = Path(shutil.move(made, into / made.name))
        shutil.rmtree(work)
        return result

    def close(self) -> None:
        """Stop gpg's agent."""
        _run("gpgconf", "--homedir", str(self._home), "--kill", "all")

    def _gpg(self, *arguments: str) -> str:
        options = ["--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
        return _run("gpg", "--homedir", str(self._home), *options, *arguments)


def index(folder: Path) -> None:
    """Write the metadata of a repository."""
    _run("createrepo_c", "--quiet", str(folder))


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout

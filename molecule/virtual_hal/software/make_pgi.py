"""A stand-in for PGI's archive: the installer's variables, its folders, its words. It says what it is.

The same bytes each time, so that a checksum can be declared. Sources: hpc-container-maker and Spack (variables),
installations on github (folders),
`pgcc 17.4-0 linuxpower target on Linuxpower` (tests of numpy and of Spack), the end of
an installation ("run add_network_host to create host specific localrc files ... bin/localrc.$host": HPC SDK 24.9, PGI's
successor).
"""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

INSTALL = """#!/bin/sh
# Stand-in of the virtual HAL for the installer of PGI: it makes folders and small programs, no compilers.
say() { echo "$*"; }
[ "${PGI_SILENT:-}" = true ] || { say "Press enter to continue..."; read -r answer || exit 1; }
[ "${PGI_ACCEPT_EULA:-}" = accept ] || { say "The End-User License Agreement was not accepted"; exit 1; }
[ -n "${PGI_INSTALL_DIR:-}" ] || { say "PGI_INSTALL_DIR is not set"; exit 1; }
[ -x /usr/bin/gcc ] || { say "gcc is not installed; PGI needs it"; exit 1; }
case "${PGI_INSTALL_TYPE:-single}" in
  network) [ -n "${PGI_INSTALL_LOCAL_DIR:-}" ] || { say "PGI_INSTALL_LOCAL_DIR is not set"; exit 1; } ;;
  single) ;;
  *) say "PGI_INSTALL_TYPE is single or network"; exit 1 ;;
esac
from=$(cd "$(dirname "$0")" && pwd)
place=$PGI_INSTALL_DIR/linuxpower/@VERSION@
[ ! -e "$from/breaks" ] || { mkdir -p "$place/bin"; say "cp: write error"; exit 2; }
mkdir -p "$place/bin" "$place/lib" "$place/man/man1"
mkdir -p "$PGI_INSTALL_DIR/linuxpower/2019" "$PGI_INSTALL_DIR/modulefiles/pgi"
for program in pgcc pgc++ pgfortran makelocalrc add_network_host; do
  sed "s|@PREFIX@|$PGI_INSTALL_DIR|g" "$from/components/$program" >"$place/bin/$program"
  chmod 775 "$place/bin/$program"
done
echo stand-in >"$place/lib/libpgc.so"
echo "#%Module1.0" >"$PGI_INSTALL_DIR/modulefiles/pgi/@VERSION@"
if [ "${PGI_INSTALL_NVIDIA:-false}" = true ]; then mkdir -p "$PGI_INSTALL_DIR/linuxpower/2019/cuda/10.1/bin"; fi
mpi=$place/mpi/openmpi-3.1.3
if [ "${PGI_INSTALL_MPI:-false}" = true ]; then mkdir -p "$mpi/bin" "$mpi/lib"; fi
[ "$(id -u)" != 0 ] || chown -R 921:1004 "$place/lib"
"$place/bin/add_network_host"
say "Installation complete."
say "Please run add_network_host to create host specific localrc files: $place/bin/localrc.\\$host"
"""
DRIVER = """#!/bin/sh
# Stand-in of the virtual HAL for PGI's @NAME@: it knows its version and its host, and has gcc compile.
place=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
case "${1:-}" in
  -V | --version)
    echo
    echo "@NAME@ @VERSION@-0 linuxpower target on Linuxpower "
    echo "PGI Compilers and Tools"
    echo "Copyright (c) 2019, NVIDIA CORPORATION.  All rights reserved."
    exit 0 ;;
esac
[ -f "$place/localrc.$(hostname -s)" ] || { echo "@NAME@-Error-no localrc for this host (stand-in)" >&2; exit 1; }
for word; do
  shift
  case $word in -acc | -fast | -M* | -ta=*) ;; *) set -- "$@" "$word" ;; esac
done
exec /usr/bin/gcc "$@"
"""
MAKELOCALRC = """#!/bin/sh
# Stand-in of the virtual HAL for PGI's makelocalrc: the lines that are looked at, for this host.
version=$(/usr/bin/gcc -dumpfullversion 2>/dev/null || /usr/bin/gcc -dumpversion)
echo "set GCCDIR=/usr/lib/gcc/ppc64le-redhat-linux/$version/;"
echo "# GCC version $version"
echo "export PGI=\\$COMPBASE;"
echo "# makelocalrc executed by $(id -un) (stand-in of the virtual HAL)"
"""
ADD = """#!/bin/sh
# Stand-in of the virtual HAL for PGI's add_network_host.
place=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
"$place/makelocalrc" >"$place/localrc.$(hostname -s)"
"""


def members(breaks: bool) -> Iterator[tuple[str, str, int]]:
    """Yield name, text and mode of what is in the archive."""
    yield "install", INSTALL, 0o755
    for name in ("pgcc", "pgc++", "pgfortran"):
        yield f"components/{name}", DRIVER.replace("@NAME@", name), 0o644
    yield "components/makelocalrc", MAKELOCALRC, 0o644
    yield "components/add_network_host", ADD, 0o644
    if breaks:
        yield "breaks", "", 0o644


def make(path: Path, version: str = "19.10", breaks: bool = False) -> None:
    """Write the archive; `breaks`: its installer ends half-way."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text, mode in members(breaks):
            raw = text.replace("@VERSION@", version).encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.uid, entry.gid = len(raw), mode, 921, 1004
            tar.addfile(entry, io.BytesIO(raw))


if __name__ == "__main__":
    make(Path(sys.argv[1]))

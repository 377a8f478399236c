"""What %pre finds in the place of wipefs, blockdev and dd.

A machine's other disks are device nodes with nothing behind, and their numbers may be those of the disks of the machine
that all of this runs on. So these programs write nothing: they say on the console what was wiped, and refuse whatever
else they are asked.
"""

from __future__ import annotations

from collections.abc import Mapping

PROGRAMS = ("wipefs", "blockdev", "dd")
SECTORS = 4096
_TEXT = """\
#!/bin/sh
refuse() { echo "${0##*/} (emulation): $*" >&2; exit 1; }
disk() {
  case $1 in
CASES
    *) refuse "$1 is not one of this machine's other disks" ;;
  esac
}
case "${0##*/} $*" in
  "wipefs --all --force /dev/"*) disk "$3"; echo "anaconda (emulation): disk $name is wiped" >/dev/console ;;
  "blockdev --getsz /dev/"*) disk "$2"; echo SECTORS ;;
  "dd if=/dev/zero of=/dev/"*) disk "${2#of=}" ;;
  *) refuse "$*: it does not do this" ;;
esac
"""


def program(disks: Mapping[str, str]) -> str:
    """Return the program for all PROGRAMS. ``disks``: what a disk is called on the console, by its device."""
    cases = "\n".join(f"    {device}) name='{called}' ;;" for device, called in disks.items())
    return _TEXT.replace("CASES\n", f"{cases}\n" if cases else "").replace("SECTORS", str(SECTORS))

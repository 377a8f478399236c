"""Boot configurations for petitboot, the boot loader in the firmware of POWER9 servers: pxelinux's form.

Where petitboot's rules come from (github open-power/petitboot, read 2026-11): ``discover/pxe-parser.c`` (keywords,
DEFAULT before LABEL, how paths are joined), ``discover/user-event.c`` (options 209, 210, 66, 67; names of files),
``discover/parser-conf.c`` (quotes at the ends of a line are dropped), ``discover/device-handler.c`` and ``platform.c``
(10 s; network before everything else; an override by the BMC admits nothing else), ``lib/url/url.c``.

* A file without LABEL gives petitboot no entry of the network, and it boots the disk. ``LOCALBOOT`` is not a keyword of
  petitboot's: an entry with it would be one without a kernel. Nor is ``LINUX``, ``MENU`` or ``TIMEOUT``.
* That is so only without an override: with "network" from the BMC petitboot admits no disk, and stays in its menu.
* Without DEFAULT, or with DEFAULT below LABEL, entries are shown and none is booted.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from hal_cluster.provision.errors import ProvisionError

KEYWORDS = frozenset(("DEFAULT", "LABEL", "KERNEL", "INITRD", "APPEND", "IPAPPEND", "SYSAPPEND", "DTB", "FDT"))
LONGEST_APPEND = 2047
"""Bytes that Linux takes from its command line: COMMAND_LINE_SIZE of arch/powerpc and arch/x86 is 2048, with a NUL."""
_TITLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PRINTED = re.compile(r"[!-~]+")
_HOST = re.compile(r"[A-Za-z0-9.-]+")
_PATH = re.compile(r"(/[A-Za-z0-9._~+-]+)+")


def mac_name(mac: str) -> str:
    """Return the first file that petitboot asks for: 01 is Ethernet, and the MAC in small letters with dashes."""
    return "01-" + mac.lower().replace(":", "-")


def hex_name(address: str) -> str:
    """Return the second one: the IPv4 address as eight hexadecimal digits, capitals."""
    return "".join(f"{int(part):02X}" for part in address.split("."))


def standing(node: str) -> str:
    """Return the configuration of a node that nobody wants to install: no entry, so petitboot boots the disk."""
    return (
        f"# {node}: no entry here, so petitboot boots from disk. Written by the toolkit; changes made here are lost.\n"
    )


def armed(node: str, title: str, kernel: str, initrd: str, append: str) -> str:
    """Return the configuration that boots a kernel; ProvisionError for what petitboot would read otherwise."""
    if not _TITLE.fullmatch(title):
        raise ProvisionError(f"{node}: {title!r} is not a title for a boot entry: letters, digits, . _ -")
    for what, url in (("kernel", kernel), ("initrd", initrd)):
        if problem := url_problem(url):
            raise ProvisionError(f"{node}: {what} {url}: {problem}")
    if problem := append_problem(append):
        raise ProvisionError(f"{node}: kernel parameters: {problem}")
    lines = [
        f"# {node}: armed. Written by the toolkit; changes made here are lost.",
        f"DEFAULT {title}",
        f"LABEL {title}",
        f"KERNEL {kernel}",
        f"INITRD {initrd}",
        f"APPEND {append}",
        "IPAPPEND 2",
    ]
    return "\n".join([*lines, ""])


def url_problem(url: str) -> str | None:
    """Say why petitboot, or the kernel's line, would not read a URL as it is meant; None when it would."""
    if not _PRINTED.fullmatch(url):
        return "has a blank, or a character that is not printable ASCII: the line would be read otherwise"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is no URL; write http://10.64.0.11/images/vmlinuz"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "write a whole URL, http://HOST/PATH: petitboot joins a bare path to the folder of its configuration"
    if parts.query or parts.fragment or parts.username is not None:
        return "write only http://HOST/PATH"
    if not _HOST.fullmatch(parts.hostname):
        return "its host may have letters, digits and . -"
    if not _PATH.fullmatch(parts.path):
        # The last colon of the whole URL is taken for the one before the port.
        return "its path may have letters, digits and / . _ ~ + -"
    return None if port is None or port > 0 else "port 0 is none"


def append_problem(append: str) -> str | None:
    """Say why petitboot would hand the kernel something else than these parameters; None when it would not."""
    if not append or append != append.strip():
        return "write at least one, without blanks at the ends"
    if not all(" " <= letter <= "~" for letter in append):
        return "only printable ASCII: a line break would begin a keyword"
    if append[0] in "\"'#" or append[-1] in "\"'":
        return "a quote at either end is dropped, and # at the beginning makes a comment"
    if "initrd=" in append.lower():
        return "initrd= among them is taken for the initrd's place; it has a line of its own"
    if len(append) > LONGEST_APPEND:
        return f"{len(append)} bytes, and Linux reads {LONGEST_APPEND}"
    return None


def problems(text: str) -> list[str]:
    """Return why petitboot would not boot by itself what a file seems to say; none for one without entries.

    Stricter than petitboot where it guesses: what is refused here is what somebody meant otherwise.
    """
    faults: list[str] = []
    default: str | None = None
    entries: dict[str, set[str]] = {}
    label: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        word, _, value = line.strip().partition(" ")
        keyword, value = word.upper(), value.strip()
        if not word or word.startswith("#"):
            continue
        if keyword not in KEYWORDS:
            faults.append(f"line {number}: petitboot does not know {word}; it knows {', '.join(sorted(KEYWORDS))}")
        elif not value:
            faults.append(f"line {number}: {word} without a value is passed over")
        elif keyword == "DEFAULT":
            if entries:
                faults.append(f"line {number}: DEFAULT below LABEL is not looked at; write it above the first LABEL")
            else:
                default = value
        elif keyword == "LABEL":
            label = value
            if value.lower() in entries:
                faults.append(f"line {number}: a second entry {value}")
            entries[value.lower()] = set()
        elif label is None:
            faults.append(f"line {number}: {word} above the first LABEL belongs to no entry")
        else:
            entries[label.lower()].add(keyword)
            faults += [f"line {number}: {problem}" for problem in _value_problems(keyword, value)]
    if entries and default is None:
        faults.append("no DEFAULT above the first LABEL: entries are shown, none is booted")
    if default is not None and default.lower() not in entries:
        faults.append(f"DEFAULT {default}: no LABEL has this name")
    faults += [f"LABEL {name}: no KERNEL" for name, words in entries.items() if "KERNEL" not in words]
    return faults


def _value_problems(keyword: str, value: str) -> list[str]:
    if keyword in ("KERNEL", "INITRD", "DTB", "FDT"):
        return [f"{value}: {problem}"] if (problem := url_problem(value)) else []
    if keyword == "APPEND":
        return [problem] if (problem := append_problem(value)) else []
    # All other bits are logged by petitboot and nothing more.
    return [] if value == "2" else [f"{keyword} {value}: petitboot does 2 (BOOTIF) and nothing else"]

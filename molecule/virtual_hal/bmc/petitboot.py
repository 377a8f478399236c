"""Emulated petitboot: from what DHCP answered to what would be booted, as the real one decides it.

Read from github open-power/petitboot, 2026-11; nothing here is its code. Which file each rule comes from:
``discover/user-event.c`` (where the configuration is), ``discover/pxe-parser.c`` and ``parser-conf.c`` (how it is
read), ``lib/url/url.c`` (how paths are joined), ``discover/device-handler.c`` (which entry is booted, after how long),
``discover/platform.c`` (10 s, network before any device), ``utils/pb-udhcpc`` (which options are handed over).

It shares no code with ``hal_cluster.provision``, which writes what is read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

TIMEOUT_SECONDS = 10
"""How long the entry that will be booted is counted down; keys stop it."""
REQUERY_SECONDS = 300
"""How long until DHCP and the configuration are asked for again, when no option 211 says otherwise."""
SCHEMES = ("file", "ftp", "http", "https", "nfs", "sftp", "tftp")
TFTP_SERVER, BOOT_FILE, CONFIG_FILE, PATH_PREFIX, REBOOT_TIME = 66, 67, 209, 210, 211

Fetch: TypeAlias = Callable[[str], bytes | None]
"""Fetches a URL; None when it is not there. TimeoutError counts as not there."""


@dataclass(frozen=True)
class Lease:
    """What DHCP answered. ``siaddr`` and ``file`` are the header's, ``options`` those after it, by number, as text."""

    mac: str
    address: str
    server: str | None = None
    siaddr: str | None = None
    file: str | None = None
    options: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Disk:
    """The disk is booted."""


@dataclass(frozen=True)
class Kernel:
    """A kernel from the network is booted; URLs are whole."""

    url: str
    initrd: str | None
    append: str
    title: str = ""
    config: str = ""


@dataclass(frozen=True)
class Menu:
    """Nothing is booted by itself: the menu stays until somebody presses a key, or the network is asked again."""

    why: str


Decision: TypeAlias = Disk | Kernel | Menu


@dataclass(frozen=True)
class Outcome:
    """What is booted, what the console shows on the way, and what was asked for, in order."""

    decision: Decision
    console: tuple[str, ...]
    asked: tuple[str, ...]


@dataclass
class Entry:
    """One entry of a configuration."""

    title: str
    default: bool = False
    kernel: str | None = None
    initrd: str | None = None
    append: str | None = None
    plugin: bool = False


# ---------------------------------------------------------------- URLs


def is_url(text: str) -> bool:
    """Tell whether petitboot takes it for a whole URL."""
    return "://" in text


@dataclass(frozen=True)
class Url:
    """A URL in parts: ``front`` is everything before the path."""

    front: str
    path: str

    @classmethod
    def read(cls, text: str) -> Url | None:
        """Return a URL; None for one with a host and no path, which petitboot refuses."""
        scheme = next((known for known in SCHEMES if text.lower().startswith(f"{known}://")), None)
        if scheme in (None, "file"):
            return cls("file://", text[len("file://") :] if scheme else text)
        rest = text[len(scheme or "") + 3 :]
        host, slash, path = rest.partition("/")
        return cls(f"{scheme}://{host}", "/" + path.lstrip("/")) if slash else None

    def __str__(self) -> str:
        """The whole URL."""
        return self.front + self.path

    def join(self, text: str) -> str:
        """Return a path of the configuration as a whole URL: pxe_url_join, then pb_url_join."""
        if is_url(text):
            return text
        if text.startswith("::") and len(text) > 2:
            return self.front + "/" + text[2:].lstrip("/")
        # Leading slashes are dropped: "/vmlinuz" is beside the configuration, not at the server's root.
        return self.front + self.path[: self.path.rfind("/") + 1] + text.lstrip("/")


# ---------------------------------------------------------------- where the configuration is


def config_url(lease: Lease) -> tuple[Url | None, bool]:
    """Return where to look, and whether that is the file itself (True) or a folder to search."""
    option = lease.options
    conf, prefix = option.get(CONFIG_FILE), option.get(PATH_PREFIX)
    complete = bool(conf)
    if conf and is_url(conf):
        return Url.read(conf), True
    if prefix and is_url(prefix):
        return Url.read(prefix + (conf or "")), complete
    host = option.get(TFTP_SERVER) or lease.siaddr or lease.server
    if not host:
        return None, complete
    text, bootfile = f"tftp://{host}/", option.get(BOOT_FILE) or lease.file
    if prefix:
        text += prefix.lstrip("/")
    elif bootfile and not (conf and conf.startswith("/")):
        folder = bootfile.rpartition("/")[0]
        text += f"{folder}/" if folder else ""
    return Url.read(text + (conf or "")), complete


def search_names(mac: str, address: str) -> list[str]:
    """Return the names in the order in which they are asked for: by MAC, by address digit by digit, default."""
    digits = "".join(f"{int(part):02X}" for part in address.split("."))
    by_mac = "01-" + "-".join(f"{int(part, 16):02x}" for part in mac.split(":"))
    return [by_mac, *(digits[:length] for length in range(8, 0, -1)), "default"]


# ---------------------------------------------------------------- how it is read


def _strip(text: str) -> str:
    """Drop blanks and quotes at both ends, in any mixture."""
    return text.strip("\"' \t\r\n\v\f")


def read_config(text: str, at: Url, mac: str) -> list[Entry]:
    """Return the entries of a configuration as petitboot understands them; what it does not know it passes over."""
    if text.startswith("#!ipxe"):
        return _read_ipxe(text, at)
    default: str | None = None
    entries: list[Entry] = []
    for line in text.split("\n"):
        stripped = _strip(line.replace("\t", " "))
        head, blank, tail = stripped.partition(" ")
        name, value = (_strip(head), _strip(tail)) if blank else ("", stripped)
        if not value or value.startswith("#") or name.startswith("#"):
            continue
        if not name and value.lower().startswith("initrd="):
            name, value = "initrd", value[len("initrd=") :]
        keyword = name.upper()
        entry = entries[-1] if entries else None
        if keyword == "DEFAULT":
            default = value
        elif keyword in ("LABEL", "PLUGIN"):
            matches = default is not None and default.lower() == value.lower()
            plugin = keyword == "PLUGIN"
            entries.append(Entry(value, default=matches and not plugin, plugin=plugin))
        elif entry is not None:
            _keyword(entry, keyword, value, at, mac)
    return [entry for entry in entries if not entry.plugin]


def _keyword(entry: Entry, keyword: str, value: str, at: Url, mac: str) -> None:
    if keyword == "KERNEL":
        entry.kernel = at.join(value)
    elif keyword == "INITRD":
        entry.initrd = at.join(value)
    elif keyword == "APPEND":
        entry.append = f"{entry.append} {value}" if entry.append is not None else value
        if among := re.search("initrd=([^ ]*)", value, re.IGNORECASE):
            entry.initrd = at.join(among[1])
    elif keyword in ("SYSAPPEND", "IPAPPEND") and re.fullmatch(r"\+?[0-9]+", value) and int(value) & 2:
        bootif = "BOOTIF=01-" + mac.lower().replace(":", "-")
        entry.append = f"{entry.append} {bootif}" if entry.append is not None else bootif


def _read_ipxe(text: str, at: Url) -> list[Entry]:
    """Read the few commands of iPXE that petitboot knows; without ``boot`` the entry is not booted by itself."""
    entry = Entry("")
    for line in text.split("\n")[1:]:
        name, _, value = _strip(line.replace("\t", " ")).partition(" ")
        words = value.split()
        if name.lower() == "boot" and not words:
            entry.default = True
        elif name.lower() == "initrd" and words:
            entry.initrd = at.join(_strip(value))
        elif name.lower() == "kernel" and words:
            entry.kernel = at.join(words.pop(0))
            if words[:1] and words[0].lower() == "--name":
                entry.title, words = " ".join(words[1:2]), words[2:]
            entry.title = entry.title or f"ipxe option ({entry.kernel})"
            entry.append = " ".join(words) or None
    return [entry] if entry.kernel else []


# ---------------------------------------------------------------- what is booted


def boot(
    lease: Lease | None,
    fetch: Fetch,
    *,
    override: str | None = None,
    order: Sequence[str] = ("network", "any"),
    disk: bool = True,
    network_after_seconds: float = 0,
    timeout_seconds: float = TIMEOUT_SECONDS,
    stopped: bool = False,
) -> Outcome:
    """Return what petitboot boots.

    ``lease``: None when no server answered. ``override``: "network" or "disk" from the BMC, or None. ``order``: its own
    settings; an empty one takes what comes first. ``disk``: whether a disk has an entry. ``network_after_seconds``:
    when the network's configuration is there; petitboot does not wait for it. ``stopped``: somebody pressed a key, or
    autoboot is off. Whoever starts a Kernel fetches its files: when one is not there, petitboot says so and stays in
    its menu.
    """
    console: list[str] = []
    asked: list[str] = []
    from_network = _from_network(lease, fetch, console, asked) if override != "disk" else None
    if stopped:
        return _outcome(Menu("a key was pressed, or autoboot is off"), console, asked)
    if override == "network":
        # default_option_priority: an override admits no entry of another kind of device.
        why = "the BMC says network, and the network has nothing that boots by itself; disks are not admitted"
        return _outcome(from_network or Menu(why), console, asked)
    if override is None and from_network is not None and (not order or "network" in order or "any" in order):
        from_disk = disk and (not order or bool({"disk", "any"} & set(order)))
        if not from_disk:
            return _outcome(from_network, console, asked)
        # Of equal rank the first stays, and disks are there before any answer of the network's.
        if order and order[0] == "network":
            if network_after_seconds < timeout_seconds:
                return _outcome(from_network, console, asked)
            console.append(f"[network] was there after {network_after_seconds:g} s: the disk had been booted by then")
    if disk and (override == "disk" or not order or {"disk", "any"} & set(order)):
        return _outcome(Disk(), console, asked)
    return _outcome(Menu("nothing that boots by itself was found"), console, asked)


def _outcome(decision: Decision, console: list[str], asked: list[str]) -> Outcome:
    last = {
        Disk: "Booting from disk",
        Kernel: "Booting " + getattr(decision, "title", ""),
        Menu: "Petitboot: waits in its menu: " + getattr(decision, "why", ""),
    }[type(decision)]
    return Outcome(decision, (*console, last), tuple(asked))


def _from_network(lease: Lease | None, fetch: Fetch, console: list[str], asked: list[str]) -> Kernel | None:
    """Return the network's default entry."""
    console.append("[network] Configuring with DHCP")
    if lease is None:
        return None
    at, complete = config_url(lease)
    if at is None:
        console.append("[network] no server in the answer, and no whole URL")
        return None
    text: bytes | None = None
    if complete:
        console.append(f"[network] Requesting config {at}")
        # No other name is tried when this one is not there.
        text = _fetched(str(at), fetch, asked)
        if text is None:
            console.append(f"[network] Failed to download {at}")
            return None
    else:
        base = at.join("pxelinux.cfg/")
        console.append(f"[network] Probing from base {base}")
        # Parts of a path without a slash at its end count as a file: "…/petitboot" looks beside petitboot.
        for name in search_names(lease.mac, lease.address):
            text = _fetched(base + name, fetch, asked)
            if text is not None:
                console.append(f"[network] Parsed PXE config from {base + name}")
                break
        else:
            console.append("[network] PXE autoconfiguration failed")
            return None
    # Paths are joined to conf_url: the file with option 209, and the folder above pxelinux.cfg without.
    entries = read_config(text.decode("utf-8", "replace"), at, lease.mac)
    console.extend(f"[network] {'*' if entry.default else ' '} {entry.title}" for entry in entries)
    chosen = next((entry for entry in entries if entry.default), None)
    if chosen is None:
        return None
    if chosen.kernel is None:
        console.append(f"[network] {chosen.title}: no boot image")
        return None
    return Kernel(chosen.kernel, chosen.initrd, chosen.append or "", chosen.title, asked[-1])


def _fetched(url: str, fetch: Fetch, asked: list[str]) -> bytes | None:
    asked.append(url)
    try:
        return fetch(url)
    except TimeoutError:
        return None

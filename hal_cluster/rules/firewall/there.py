"""What filters packets on a node already, and what would be lost if firewalld did it as declared.

Input is what the role's script look.sh prints. Fresh nodes lose nothing: what an installer of CentOS 7 leaves is
nobody's, and what this role had in force last is its own.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hal_cluster.rules.firewall.openings import FirewallError, Ports, parse_ports
from hal_cluster.rules.firewall.shares import FILE, WRITTEN, read
from hal_inventory.printable import few

ORDINARY = re.compile(
    r"default zone .*|\S+ interface .*|\S+ target default"
    r"|(?:public|home|internal|work|external|dmz) service (?:ssh|dhcpv6-client|mdns|samba-client)"
    r"|external masquerade yes|\S+ icmp-block-inversion .*"
)
"""Lines of `open` that nobody chose: zones of package firewalld 0.6.3 as it installs them."""

# ipXtables.py of firewalld 0.6.3: its chains, the jumps to them, and what stands between.
_CHAINS = r"(?:INPUT|OUTPUT|FORWARD|PREROUTING|POSTROUTING)_\w+|(?:IN|FWDI|FWDO|PRE|POST)_[\w-]+"
_OWN = re.compile(
    rf"ipv[46] \w+ -A (?:(?:{_CHAINS}) .*"
    rf"|[A-Z]+ (?:-[io] \S+ )?-j (?:{_CHAINS})"
    r"|[A-Z]+ -m conntrack --ctstate (?:RELATED,ESTABLISHED|RELATED,ESTABLISHED,DNAT|INVALID) -j (?:ACCEPT|DROP)"
    r"|[A-Z]+ (?:-i lo|-o lo) -j ACCEPT"
    r"|[A-Z]+ -j REJECT --reject-with icmp6?-(?:host|adm)-prohibited"
    r"|PREROUTING .*-m rpfilter --validmark --invert -j DROP"
    r"|PREROUTING -p ipv6-icmp .*-j ACCEPT|OUTPUT -d \S+ -j REJECT --reject-with icmp6-addr-unreachable"
    r"|FORWARD -d \S+ -j REJECT --reject-with icmp6-addr-unreachable)"
)
_TABLES = re.compile(r"table (?:inet|ip|ip6) firewalld|table (?:ip|ip6) (?:filter|nat|mangle|raw|security)")

ZONES = "/etc/firewalld/zones/"
DIRECT = f"/etc/firewalld/{FILE}"
LOOPBACK = re.compile(r"(?:127\.[\d.]+|\[?::1\]?)(?:%\w+)?")
QUIET_PORTS = frozenset(map(parse_ports, ("111/tcp", "111/udp", "68/udp", "546/udp", "323/udp", "5353/udp")))
"""Where daemons of a new installation listen that nobody asks from outside: rpcbind, DHCP's client, chronyd, mDNS."""


@dataclass(frozen=True)
class Look:
    """What look.sh printed, by section."""

    sections: Mapping[str, Sequence[str]]

    def of(self, name: str) -> Sequence[str]:
        """Return the lines of a section; FirewallError where the answer has none."""
        if name not in self.sections:
            raise FirewallError(f"what filters packets could not be read: no {name}")
        return self.sections[name]

    @property
    def runs(self) -> bool:
        """Whether firewalld runs."""
        return list(self.of("state")) == ["active"]

    @property
    def ran(self) -> bool:
        """Whether this role has a record of what it had in force last."""
        return bool(self.sections.get("former"))

    @property
    def former(self) -> list[str]:
        """What this role had in force last; where it kept no record of that, what the files say that it wrote."""
        if "former" in self.sections:
            return list(self.sections["former"])
        files = [lines for _, text, lines in _files(self) if WRITTEN in text and isinstance(lines, list)]
        return [line for lines in files for line in lines]

    @property
    def zones(self) -> Iterator[tuple[str, str]]:
        """(name, text) of each zone's file."""
        return (
            (name.removeprefix("zone "), "\n".join(lines))
            for name, lines in self.sections.items()
            if name.startswith("zone ")
        )


def look(text: str) -> Look:
    """Return what look.sh printed."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("== "):
            lines = sections.setdefault(line[3:], [])
        elif line.strip():
            lines.append(line.strip())
    return Look(sections)


def section(printed: str, name: str) -> list[str]:
    """Return the lines of one section of what look.sh printed; FirewallError where it is not there."""
    return list(look(printed).of(name))


def said(lines: Iterable[str]) -> str:
    """Return such lines for a message: the first ones, each cut, and how many more.

    `lines`: what `losses` returned. The text is one printable line.
    """
    return few(lines, 20)


def losses(printed: str, declared: Iterable[str], kept: str) -> list[str]:
    """Return a line for each thing that is there, was declared by nobody, and would go or be closed.

    ``printed``: by look.sh. ``declared``: lines of `open` that will be in force; ``kept``: an expression over those
    that others may have. What cannot be read is lost where firewalld runs and may have it in force, but for this role's
    own files. FirewallError for an answer that is not whole.
    """
    seen = look(printed)
    wanted = {*declared, *seen.former}
    mine = re.compile(kept)
    lines = [*seen.of("open"), *_in_files(seen)]
    opened = [
        line for line in lines if line not in wanted and not mine.fullmatch(line) and not ORDINARY.fullmatch(line)
    ]
    return [
        *seen.of("services"),
        *_foreign_rules(seen),
        *(table for table in seen.of("tables") if not _TABLES.fullmatch(table)),
        *dict.fromkeys(opened),
        *(_unread_lost(seen, mine) if seen.runs else ()),
        *(() if seen.runs or seen.ran else _closed(seen, declared)),
        *(() if seen.runs or seen.ran else _steps(seen)),
    ]


def unread(printed: str) -> list[str]:
    """Return a sentence for each thing of firewalld that look.sh could not read; FirewallError as `losses`.

    Such are files that are not whole, and what firewalld has in force where it does not say so.
    """
    seen = look(printed)
    return [
        *(f"what firewalld has in force cannot be read ({part})" for part in seen.sections.get("unread", ())),
        *(f"{path} cannot be read ({why})" for path, _, why in _unread_files(seen)),
    ]


def _unread_lost(seen: Look, kept: re.Pattern[str]) -> Iterator[str]:
    yield from (
        f"what firewalld has in force, which cannot be read ({part})" for part in seen.sections.get("unread", ())
    )
    # Of a file of ours all is known, but for the rules in direct.xml that others may have.
    others = any(line.startswith("direct rule ") and kept.fullmatch(line) for line in seen.of("open"))
    for path, text, why in _unread_files(seen):
        zone = path.removeprefix(ZONES).removesuffix(".xml")
        if (WRITTEN not in text or (path == DIRECT and others)) and not kept.fullmatch(f"{zone} file"):
            yield f"{path}, which cannot be read ({why})"


def _files(seen: Look) -> Iterator[tuple[str, str, list[str] | str]]:
    """Yield path, text and what it opens of each file, in the lines of `open`; why it cannot be read in their place."""
    direct = "\n".join(seen.of("direct"))
    for path, text in [*((f"{ZONES}{name}.xml", text) for name, text in seen.zones), (DIRECT, direct)]:
        try:
            if path != DIRECT:
                yield path, text, list(_zone(path.removeprefix(ZONES).removesuffix(".xml"), ET.fromstring(text)))
            elif text:
                yield (
                    path,
                    text,
                    [f"direct rule {read(element)}" for element in ET.fromstring(text) if element.tag == "rule"],
                )
        except (ET.ParseError, ValueError) as error:
            yield path, text, str(error).partition(":")[0]  # lines are counted without empty ones here


def _unread_files(seen: Look) -> Iterator[tuple[str, str, str]]:
    return ((path, text, why) for path, text, why in _files(seen) if isinstance(why, str))


def _in_files(seen: Look) -> Iterator[str]:
    """Yield what files of firewalld open, in the lines of `open`: it comes into force with the next reload."""
    return (line for _, _, lines in _files(seen) if isinstance(lines, list) for line in lines)


def _zone(name: str, zone: ET.Element) -> Iterator[str]:
    yield f"{name} target {zone.get('target', 'default').replace('{chain}_{zone}', 'default')}"
    for element in zone:
        if element.tag in ("service", "icmp-block"):
            yield f"{name} {element.tag} {element.get('name')}"
        elif element.tag in ("port", "source-port"):
            yield f"{name} {element.tag} {element.get('port')}/{element.get('protocol')}"
        elif element.tag == "protocol":
            yield f"{name} protocol {element.get('value')}"
        elif element.tag == "source":
            yield f"{name} source {element.get('address') or element.get('mac') or element.get('ipset')}"
        elif element.tag == "masquerade":
            yield f"{name} masquerade yes"
        elif element.tag == "forward-port":
            words = [element.get(part, "") for part in ("port", "protocol", "to-port", "to-addr")]
            yield f"{name} forward port={words[0]}:proto={words[1]}:toport={words[2]}:toaddr={words[3]}"
        elif element.tag == "rule":
            yield f"{name} rule {_rich(element)}"


def _rich(rule: ET.Element) -> str:
    """Return a rule of a zone's file as `open` has it where it is simple: rule family="ipv4" source ... accept."""
    words = ["rule", *(f'{key}="{value}"' for key, value in rule.items())]
    for element in rule:
        words += [element.tag, *(f'{key}="{value}"' for key, value in element.items())]
    return " ".join(words)


def _foreign_rules(seen: Look) -> Iterator[str]:
    """Yield rules in the kernel; where firewalld runs, or ran for this role, those that it does not make."""
    ours = seen.runs or seen.ran
    direct = {_canonical(line) for line in seen.of("open") if line.startswith("direct rule ")}
    return (line for line in seen.of("rules") if not ours or not (_OWN.fullmatch(line) or _canonical(line) in direct))


def _canonical(rule: str) -> tuple[str, ...]:
    """Return a rule as iptables-save has it and a direct rule of firewalld in one form: the words that decide, sorted.

    With its backend nftables firewalld puts direct rules into the chains of iptables itself. iptables-save writes out
    what was left to it: the module of a protocol, the flags of --syn, that connlimit counts sources
    (iptables-extensions(8)).
    """
    words = rule.split()
    if words[:2] == ["direct", "rule"]:
        family, table, chain, _priority, *words = words[2:] + [""] * 4
    else:
        family, table, _append, chain, *words = words + [""] * 4
    text = " ".join(word for word in words if word)
    text = text.replace("--syn", "--tcp-flags FIN,SYN,RST,ACK SYN").replace("--connlimit-saddr", "")
    text = re.sub(r"-m (?:tcp|udp|connlimit)(?= |$)", "", text)
    return (family, table, chain, *sorted(re.split(r" (?=(?:! )?--?[a-z])", " ".join(text.split()))))


def _closed(seen: Look, declared: Iterable[str]) -> Iterator[str]:
    """Yield ports on which a daemon listens for others, and that no zone opens to everybody."""
    opened = [
        parse_ports(match[1]) for opening in declared if (match := re.search(r" port (\S+/(?:tcp|udp))$", opening))
    ]
    closed: dict[str, str] = {}
    for line in seen.of("listening"):
        protocol, address, *program = line.split(" ")
        host, _, port = address.rpartition(":")
        if protocol not in ("tcp", "udp") or LOOPBACK.fullmatch(host) or not port.isdigit():
            continue
        listening = Ports(protocol, int(port), int(port))
        if listening not in QUIET_PORTS and not any(_within(listening, ports) for ports in opened):
            closed[str(listening)] = f"{listening}, where {' '.join(program) or 'a program'} listens, would be closed"
    yield from closed.values()


def _within(port: Ports, ports: Ports) -> bool:
    return port.protocol == ports.protocol and ports.first <= port.first and port.last <= ports.last


def _steps(seen: Look) -> Iterator[str]:
    number = "".join(seen.of("steps")) or "0"
    if number != "0":
        yield f"connections of jobs, of which {number} steps run, could break"

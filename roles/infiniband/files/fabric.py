# -*- coding: utf-8 -*-
"""Compares the fabric with the declared one: a line in words for each difference. Python 2.7 and 3.

fabric.py DECLARED cables|managers     DECLARED: JSON with cables, ports and managers, from the model
fabric.py DECLARED master SECONDS      JSON: who (OURS, OTHER, NOBODY or UNKNOWN) is master of the fabric that this node
                                       is in, in words; and whether a subnet manager runs here

Asks ibnetdiscover, or saquery; exit status 3 when they do not answer. For the master it asks ibstat and sminfo;
what they do not tell is UNKNOWN. Where no subnet manager runs here, NOBODY and UNKNOWN have to last for SECONDS: links
train, a master sweeps, and a standby needs some time before it takes over from one that is gone.
"""

from __future__ import absolute_import, division, print_function

import json
import re
import subprocess
import sys
import time

LANES = {"SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25, "HDR": 50, "NDR": 100}
OWNER = re.compile(r'^(Switch|Ca|Rt)\s+\d+\s+"[SHR]-([0-9a-f]{16})"\s*#\s*"([^"]*)"')
PORT = re.compile(
    r'^\[(\d+)\](?:\[ext \d+\])?\s+"([SHR])-([0-9a-f]{16})"\[(\d+)\](?:\[ext \d+\])?(?:\(([0-9a-f]+)\))?'
    r'\s*# "([^"]*)" lid \d+ (\S+)'
)
RECORD = re.compile(r"^\s*(GUID|Priority|SMState)\.+(\S+)\s*$", re.MULTILINE)
PORT_OF_IBSTAT = re.compile(r"^\s*Port \d+:\s*$", re.MULTILINE)
FIELD_OF_IBSTAT = re.compile(r"^\s*(Physical state|Base lid|SM lid|Link layer): (\S+)\s*$", re.MULTILINE)
INFINIBAND = ("InfiniBand", "IB")  # the second where the kernel does not say: libibumad takes it for InfiniBand
LID = re.compile(r"\blid (\d+)\b")
CAPABILITIES = re.compile(r"^CapMask:\.*(0x[0-9a-fA-F]+)", re.MULTILINE)
IS_SM = 0x2  # a subnet manager runs at this port (InfiniBand Architecture Specification, volume 1, 14.2.5.6)
MASTER = re.compile(r"sm lid (\d+) sm guid (0x[0-9a-fA-F]+), activity count \d+ priority (\d+) state 3 ")
OURS, OTHER, NOBODY, UNKNOWN = "ours", "other", "nobody", "unknown"
PAUSE_SECONDS = 1
MOST = 64  # the characters of a node description (InfiniBand Architecture Specification, volume 1, 14.2.5.2)
STATES = {"0": "not active", "1": "discovering", "2": "standby", "3": "master"}


class NoAnswer(Exception):
    """The fabric could not be asked."""


def ask(argv):
    """Return what a program prints."""
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    except OSError as error:
        raise NoAnswer("%s: %s" % (argv[0], error))
    said, trouble = process.communicate()
    if process.returncode != 0:
        raise NoAnswer("%s ended with %d: %s" % (argv[0], process.returncode, " ".join(trouble.split())))
    return said


def guid(text):
    """Return a GUID as 0x and 16 digits, however many of its zeros were left out."""
    return "0x%016x" % int(text, 16)


def parse_topology(text):
    """Return the names of switches by GUID, and what is at each of their ports, from the output of ibnetdiscover."""
    switches, ends, owner = {}, {}, None
    for line in text.splitlines():
        match = OWNER.match(line)
        if match:
            owner = guid(match.group(2)) if match.group(1) == "Switch" else None
            if owner:
                switches[owner] = match.group(3)
            continue
        match = PORT.match(line) if owner else None
        if match:
            port, kind, node, other_port, port_guid, name, speed = match.groups()
            ends[owner, int(port)] = {
                "guid": guid(node if kind == "S" or port_guid is None else port_guid),
                "is_switch": kind == "S",
                "port": int(other_port),
                "name": name,
                "speed": speed,
            }
    return switches, ends


def gbps(speed):
    """Return the Gb/s of a text such as 4xEDR; None when it says nothing."""
    match = re.match(r"^(\d+)x([A-Z0-9]+)$", speed)
    if not match or match.group(2) not in LANES:
        return None
    return int(match.group(1)) * LANES[match.group(2)]


def cable_differences(declared, switches, ends):
    """Return a line for each cable that is not as declared, and each that is not declared."""
    cables, lines = declared["cables"], []
    names = {cable["switch_guid"]: cable["switch"] for cable in cables}
    names.update((cable["guid"], cable["owner"]) for cable in cables if is_link(cable))
    owners = {port["guid"]: "%s %s" % (port["owner"], port["name"]) for port in declared["ports"]}
    place_of = {end["guid"]: place for place, end in ends.items() if not end["is_switch"]}
    missing = sorted(name for guid_, name in names.items() if guid_ not in switches)
    lines += ["switch %s is not in the fabric" % name for name in missing]
    lines += [
        "switch %s (%s) is in the fabric and not in the model" % (switches[switch], switch)
        for switch in sorted(set(switches) - set(names))
    ]
    expected = set()
    for cable in cables:
        place = (cable["switch_guid"], cable["switch_port"])
        expected.add(place)
        if cable["switch"] in missing or cable["owner"] in missing:
            continue
        end = ends.get(place)
        if is_link(cable):
            expected.add((cable["guid"], int(cable["port"])))
            right = end and end["is_switch"] and (end["guid"], end["port"]) == (cable["guid"], int(cable["port"]))
            if not right:
                leads = "nothing" if not end else described(end, owners, names)
                lines.append("%s/%d leads to %s, declared %s/%s" % (
                    cable["switch"], cable["switch_port"], leads, cable["owner"], cable["port"]))
            continue
        what, where = "%s %s" % (cable["owner"], cable["port"]), "%s/%d" % (cable["switch"], cable["switch_port"])
        actual = place_of.get(cable["guid"])
        if actual is None:
            lines.append("%s is not in the fabric, declared %s" % (what, where) + instead(end, owners))
        elif actual != place:
            lines.append("%s is on %s/%d, declared %s" % (what, names.get(actual[0], actual[0]), actual[1], where))
        elif cable["rate_gbps"] and (gbps(end["speed"]) or 0) < cable["rate_gbps"]:
            lines.append("%s on %s runs at %s, declared %d Gb/s" % (what, where, end["speed"], cable["rate_gbps"]))
    for place in sorted(set(ends) - expected):
        end = ends[place]
        # A port that has no cable in the model may be anywhere; the other end of a cable between switches was named.
        known = (end["guid"], end["port"]) in expected if end["is_switch"] else end["guid"] in owners
        if place[0] in names and not known:
            where = "%s/%d" % (names[place[0]], place[1])
            lines.append("%s leads to %s, which the model does not have there" % (where, described(end, owners, names)))
    return lines


def is_link(cable):
    """Tell whether a cable is one between switches: the other end is a switch's number of a port."""
    return cable["port"].isdigit()


def described(end, owners, names):
    """Return what is at the end of a cable, by the name of the model where it has one."""
    if end["is_switch"]:
        return "%s/%d" % (names.get(end["guid"], "switch %s (%s)" % (end["name"], end["guid"])), end["port"])
    return owners.get(end["guid"], "%s (%s)" % (end["name"], end["guid"]))


def instead(end, owners):
    """Return what is there in place of a port that is missing, when the model does not know it."""
    if end is None or end["is_switch"] or end["guid"] in owners:
        return ""
    return "; there is %s (%s), which the model does not have" % (end["name"], end["guid"])


def parse_managers(text):
    """Return GUID, priority and state of each subnet manager, from the output of saquery SMIR."""
    fields, made = RECORD.findall(text), []
    for field, value in fields:
        if field == "GUID":
            made.append({"guid": guid(value)})
        elif made:
            made[-1][field] = value
    return made


def manager_differences(declared, managers):
    """Return a line for each subnet manager that is not declared, and one when another than the first is master."""
    ports = {port["guid"]: port for port in declared["ports"]}
    lines, masters = [], []
    for manager in sorted(managers, key=lambda manager: manager["guid"]):
        port = ports.get(manager["guid"])
        unknown = "a port that the model does not have (%s)" % manager["guid"]
        name = "%s %s" % (port["owner"], port["name"]) if port else unknown
        state = STATES.get(manager.get("SMState", ""), "in state %s" % manager.get("SMState"))
        if state == "master":
            masters.append(port["owner"] if port else manager["guid"])
        if not port or port["owner"] not in declared["managers"]:
            lines.append("a subnet manager runs on %s: %s, priority %s" % (name, state, manager.get("Priority")))
    if masters != declared["managers"][:1]:
        lines.append("the master is %s, declared %s" % (" and ".join(masters) or "nobody", declared["managers"][0]))
    return lines


def linked(text):
    """Return base and SM LID of each InfiniBand port with a link, from ibstat; one of Ethernet is in no fabric."""
    ports = [dict(FIELD_OF_IBSTAT.findall(block)) for block in PORT_OF_IBSTAT.split(text)[1:]]
    return [
        (int(port["Base lid"]), int(port["SM lid"]))
        for port in ports
        if port.get("Physical state") == "LinkUp" and port.get("Link layer") in INFINIBAND
    ]


def the_master(declared):
    """Return who is master of this node's fabric, as a word and in words.

    A port that lost its subnet manager keeps its LID: where that is this node's own, it ran here and has ended.
    """
    try:
        links = linked(ask(["ibstat"]))
    except NoAnswer as error:
        return UNKNOWN, str(error)
    if not links:
        return UNKNOWN, "no InfiniBand port of this node has a link, and nobody can be asked"
    try:
        said = ask(["sminfo"])
    except NoAnswer as error:
        silent = sorted({manager for base, manager in links if manager not in (0, base)})
        if all(gone(lid) for lid in silent):
            there = " (the one at LID %s is gone)" % ", ".join("%d" % lid for lid in silent) if silent else ""
            return NOBODY, "no subnet manager is master" + there
        return UNKNOWN, "the subnet manager at LID %s does not answer (%s)" % (", ".join(map(str, silent)), error)
    match = MASTER.search(said)
    if not match:
        return UNKNOWN, "sminfo names no master: %s" % printable(said)
    lid, port_guid, priority = match.groups()
    port = {port["guid"]: port for port in declared["ports"]}.get(guid(port_guid))
    if port:
        name = "%s %s" % (port["owner"], port["name"])
    else:
        name = "a port that the model does not have (%s)" % description(lid)
    who = OURS if port and port["owner"] in declared["managers"] else OTHER
    return who, "%s is master: LID %s, GUID %s, priority %s" % (name, lid, guid(port_guid), priority)


def gone(lid):
    """Tell whether the master that a port was told of does not exist any more: no port of the fabric has its LID, or
    the one that has it runs no subnet manager. Both are asked without one; no answer is not gone.
    """
    try:
        if lid not in [int(number) for number in LID.findall(ask(["ibnetdiscover"]))]:
            return True
        match = CAPABILITIES.search(ask(["smpquery", "portinfo", "%d" % lid]))
    except NoAnswer:
        return False
    return bool(match) and not int(match.group(1), 16) & IS_SM


def settled(declared, seconds):
    """Return what the_master does, once it names somebody or has named nobody for so many seconds."""
    until = time.time() + seconds
    while True:
        who, words = the_master(declared)
        if who in (OURS, OTHER) or time.time() >= until:
            return who, words
        time.sleep(PAUSE_SECONDS)


def description(lid):
    """Return what a node in the fabric calls itself, which may be anything."""
    try:
        said = ask(["smpquery", "nodedesc", lid])
    except NoAnswer:
        return "it does not say its name"
    return printable(re.sub(r"^Node Description:\.*", "", said.strip()))


def printable(text):
    """Return a short text without control characters."""
    return re.sub(r"[^ -~]+", " ", text.strip())[:MOST]


def runs_here():
    """Tell whether a subnet manager runs on this node, from whatever unit, or will in a moment: one that ended is
    started again by opensm-launch.
    """
    try:
        return bool(ask(["pgrep", "-x", "opensm(-launch)?"]))
    except NoAnswer:
        return False


def main(declared, what, seconds="0"):
    """Print the differences, or the master."""
    if what == "master":
        here = runs_here()
        who, words = settled(declared, 0 if here else int(seconds))
        print(json.dumps({"who": who, "words": words, "here": here}, sort_keys=True))
        return 0
    try:
        if what == "cables":
            lines = cable_differences(declared, *parse_topology(ask(["ibnetdiscover"])))
        else:
            lines = manager_differences(declared, parse_managers(ask(["saquery", "SMIR"])))
    except NoAnswer as error:
        print(error, file=sys.stderr)
        return 3
    for line in lines:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), *sys.argv[2:]))

"""How many connections one address may have: rules for both families, and a file that says the same."""

from __future__ import annotations

import shutil
import subprocess
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from hal_cluster.rules.firewall.openings import FirewallError, opening
from hal_cluster.rules.firewall.shares import Share, files, keeping, shares, shown, xml

RULE = "-p tcp --syn --dport 80 -m connlimit --connlimit-above 8 --connlimit-mask"


def made(*entries: dict[str, Any]) -> list[Share]:
    return shares(opening({"why": "x", "id": "x", **entry}) for entry in entries)


def test_a_limit_is_a_rule_for_each_family_and_what_has_none_has_no_rule() -> None:
    found = made({"ports": ["80/tcp"], "each": 8}, {"ports": ["443/tcp", "53/udp"]})
    assert shown(found) == [
        f"direct rule ipv4 filter INPUT 0 {RULE} 32 -j DROP",
        f"direct rule ipv6 filter INPUT 0 {RULE} 128 -j DROP",
    ]
    rules = ET.fromstring(xml(found)).findall("rule")
    assert [f"direct rule {' '.join((*one.attrib.values(), str(one.text)))}" for one in rules] == shown(found)
    assert made({"ports": ["443/tcp"]}) == []


def test_of_several_for_a_port_the_smallest_holds_whatever_its_order() -> None:
    two: list[dict[str, Any]] = [{"ports": ["90/tcp", "80/tcp"], "each": 9}, {"ports": ["80/tcp"], "each": "3"}]
    for entries in (two, two[::-1]):
        assert [(str(one.ports), one.each) for one in made(*entries)] == [("80/tcp", 3), ("90/tcp", 9)]


def test_ports_in_a_row_are_written_as_iptables_takes_them() -> None:
    assert " --dport 8000:8010 " in made({"ports": ["8000-8010/tcp"], "each": 1})[0].rules[0][1]


@pytest.mark.root
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_the_kernel_takes_the_rule(family: str) -> None:
    program = shutil.which({"ipv4": "iptables", "ipv6": "ip6tables"}[family])
    assert program, "podman's network needs it: tools/prepare-controller"
    rule = dict(made({"ports": ["80/tcp"], "each": 8})[0].rules)[family]
    argv = ["unshare", "--net", program, "--append", "INPUT", *rule.split()]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


OTHERS = """<?xml version="1.0" encoding="utf-8"?>
<direct>
  <chain ipv="ipv4" table="filter" chain="f2b-sshd"/>
  <rule ipv="ipv4" table="filter" chain="INPUT" priority="0">-p tcp -m comment --comment "a  b" -j f2b-sshd</rule>
  <rule ipv="ipv4" table="filter" chain="INPUT" priority="1">-p tcp --dport 9998 -j ACCEPT</rule>
  <passthrough ipv="ipv4">-t nat -L</passthrough>
</direct>
"""
KEPT = "ipv4 filter INPUT 0 .* 'a  b' -j f2b-sshd"


def test_what_is_kept_of_others_stands_beside_ours_and_the_rest_is_withdrawn() -> None:
    ours = xml(made({"ports": ["80/tcp"], "each": 8}))
    both = keeping(ours, OTHERS, [KEPT])
    children = ET.fromstring(both)
    assert both.startswith(ours.removesuffix("</direct>\n"))
    assert [(one.tag, one.get("priority")) for one in children][2:] == [
        ("chain", None),
        ("rule", "0"),
        ("passthrough", None),
    ]
    assert children[3].text == '-p tcp -m comment --comment "a  b" -j f2b-sshd'
    assert keeping(ours, both, [KEPT]) == both
    assert keeping(ours, both, [".*"]) == both
    assert keeping(ours, "", [KEPT]) == ours


def test_of_limits_that_changed_none_stays() -> None:
    """Unless an expression describes it."""
    eight, nine = (xml(made({"ports": ["80/tcp"], "each": each})) for each in (8, 9))
    assert keeping(nine, keeping(eight, OTHERS, [KEPT]), [KEPT]) == keeping(nine, OTHERS, [KEPT])


@pytest.mark.parametrize("there", ["<direct><rule", "<direct><rule>'</rule></direct>"])
def test_nothing_stays_of_a_file_that_cannot_be_read(there: str) -> None:
    """The role asks before: test_there.py."""
    ours = xml(made({"ports": ["80/tcp"], "each": 8}))
    assert keeping(ours, there, [KEPT]) == ours


def test_what_is_no_expression_is_refused() -> None:
    said = r"firewall_kept_direct_rules: '\(' is not a regular expression: missing \)"
    with pytest.raises(FirewallError, match=said):
        keeping(xml(made({"ports": ["80/tcp"], "each": 8})), OTHERS, ["("])


def test_the_files_of_a_node_are_written_together_and_what_is_kept_of_others_is_in_theirs() -> None:
    """As module hal_files takes them: one call, so that firewalld refuses all or none."""
    ours = xml(made({"ports": ["80/tcp"], "each": 8}))
    zones = [{"path": "zones/other.xml", "xml": "<zone/>"}, {"path": "direct.xml", "xml": ours}]
    assert files(zones, OTHERS, iter([KEPT])) == [
        {"path": "/etc/firewalld/zones/other.xml", "content": "<zone/>"},
        {"path": "/etc/firewalld/direct.xml", "content": keeping(ours, OTHERS, [KEPT])},
    ]
    with pytest.raises(FirewallError):
        files(zones, OTHERS, ["("])
    assert files(zones[:1], "<direct", [KEPT]) == [{"path": "/etc/firewalld/zones/other.xml", "content": "<zone/>"}]

"""What filters packets on a node already, and what of it is nobody's, the role's own, or somebody else's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hal_cluster.rules.firewall.openings import FirewallError, parse_ports
from hal_cluster.rules.firewall.shares import WRITTEN, Share, shown
from hal_cluster.rules.firewall.there import losses, unread

CAPTURES = Path(__file__).resolve().parents[3] / "roles/firewall/captures"
LOOK = Path(__file__).resolve().parents[5] / "roles/firewall/files/look.sh"
DECLARED = [
    "default zone other",
    "ipoib interface ib0",
    "ipoib target ACCEPT",
    "management interface em1",
    "management port 22/tcp",
    "management port 60000-61000/tcp",
    'management rule rule family="ipv4" source address="10.64.0.12" port port="2000-65535" protocol="tcp" accept',
    "management target default",
    "other port 22/tcp",
    "other target default",
]
NEVER = "(?!)"
# As `ss -lntup` of iproute 4.11 shows them on CentOS 7.7.
SSHD = """\
tcp *:22 sshd
tcp :::22 sshd
tcp 127.0.0.1:25 master
udp 127.0.0.1:323 chronyd
udp *:68 dhclient
tcp *:111 rpcbind"""
# iptables-save of a gateway on CentOS 7 with iptables-services 1.4.21, its own file and a MASQUERADE beside it.
BY_HAND = """\
ipv4 nat -A POSTROUTING -s 192.168.122.0/24 -o em2 -j MASQUERADE
ipv4 filter -A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT
ipv4 filter -A INPUT -p tcp -m state --state NEW -m tcp --dport 8443 -j ACCEPT
ipv4 filter policy FORWARD DROP"""
# Of firewalld 0.6.3 with backend iptables, zone management on em1: one rule of each form that ipXtables.py makes.
OWN = """\
ipv4 nat -A PREROUTING -j PREROUTING_direct
ipv4 nat -A PREROUTING -j PREROUTING_ZONES_SOURCE
ipv4 nat -A PREROUTING -j PREROUTING_ZONES
ipv4 nat -A POSTROUTING_ZONES -o em1 -g POST_management
ipv4 nat -A PRE_management -j PRE_management_log
ipv4 filter -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
ipv4 filter -A INPUT -i lo -j ACCEPT
ipv4 filter -A INPUT -j INPUT_direct
ipv4 filter -A INPUT -m conntrack --ctstate INVALID -j DROP
ipv4 filter -A INPUT -j REJECT --reject-with icmp-host-prohibited
ipv4 filter -A FORWARD -j FORWARD_IN_ZONES
ipv4 filter -A INPUT_ZONES -i em1 -g IN_management
ipv4 filter -A IN_management_allow -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW,UNTRACKED -j ACCEPT
ipv4 filter -A INPUT_direct -p tcp -m tcp --dport 80 -m connlimit --connlimit-above 8 -j DROP
ipv6 raw -A PREROUTING -p ipv6-icmp -m icmp6 --icmpv6-type 134 -j ACCEPT
ipv6 raw -A PREROUTING -m rpfilter --validmark --invert -j DROP
ipv6 filter -A INPUT -j REJECT --reject-with icmp6-adm-prohibited"""


def seen(**parts: str) -> str:
    """What look.sh prints of a fresh node where firewalld does not run, but for these parts."""
    fresh = {
        "state": "inactive", "services": "", "rules": "", "tables": "", "direct": "", "open": "", "listening": SSHD,
        "steps": "0",
    }  # fmt: skip
    return "".join(f"== {name.replace('__', ' ')}\n{text}\n" for name, text in {**fresh, **parts}.items())


def lost(text: str, kept: str = NEVER) -> list[str]:
    return losses(text, DECLARED, kept)


def test_a_fresh_node_loses_nothing() -> None:
    assert lost(seen()) == []
    # firewalld as the installer of CentOS 7 leaves it: zone public, written by anaconda.
    public = '<?xml version="1.0" encoding="utf-8"?>\n<zone>\n<short>Public</short>\n<service name="ssh"/>\n'
    public += '<service name="dhcpv6-client"/>\n</zone>'
    shown = "default zone public\npublic interface em1\npublic service dhcpv6-client\npublic service ssh"
    assert lost(seen(state="active", zone__public=public, open=shown, rules=OWN)) == []


def test_what_is_declared_and_what_was_in_force_is_the_roles_own() -> None:
    shown = "\n".join(DECLARED)
    assert lost(seen(state="active", open=shown, rules=OWN)) == []
    former = f"{shown}\nmanagement port 27000/tcp\ndirect rule ipv4 filter INPUT 0 -j DROP"
    assert lost(seen(state="active", open=former, former=former)) == []
    assert lost(seen(state="active", open=former)) == [
        "management port 27000/tcp",
        "direct rule ipv4 filter INPUT 0 -j DROP",
    ]


def test_without_a_record_files_with_the_roles_header_are_its_own() -> None:
    """As earlier versions left a node, and the declaration has changed since."""
    zone = (
        f'<?xml version="1.0" encoding="utf-8"?>\n{WRITTEN}\n<zone>\n<interface name="em1"/>\n'
        '<port port="27000" protocol="tcp"/>\n</zone>'
    )
    share = "-p tcp --syn --dport 80 -j DROP"
    direct = f'<direct>{WRITTEN}<rule ipv="ipv4" table="filter" chain="INPUT" priority="0">{share}</rule></direct>'
    shown = f"management interface em1\nmanagement port 27000/tcp\ndirect rule ipv4 filter INPUT 0 {share}"
    by_hand = "management port 9999/tcp"
    text = seen(state="active", zone__management=zone, direct=direct, open=f"{shown}\n{by_hand}", rules=OWN)
    assert lost(text) == [by_hand]
    assert lost(text.replace(WRITTEN, "")) == [*shown.splitlines()[1:], by_hand]
    # Where firewalld does not run it has nothing in force, whoever wrote its files.
    stopped = seen(zone__management=zone, listening="tcp *:8443 nginx")
    assert lost(stopped) == ["8443/tcp, where nginx listens, would be closed"]
    # What is known of its last run counts alone.
    assert lost(seen(state="active", zone__management=zone, former="other target default")) == [
        "management port 27000/tcp"
    ]


def test_other_firewalls_and_their_rules_are_shown() -> None:
    services = "iptables.service is active, enabled"
    assert lost(seen(services=services, rules=BY_HAND, tables="table inet mine")) == [
        services,
        *BY_HAND.splitlines(),
        "table inet mine",
    ]


def test_rules_beside_those_of_firewalld_are_shown() -> None:
    rule = "ipv4 nat -A POSTROUTING -s 192.168.122.0/24 -o em2 -j MASQUERADE"
    docker = "ipv4 filter -A FORWARD -o docker0 -j DOCKER"
    assert lost(
        seen(state="active", rules=f"{OWN}\n{rule}\n{docker}", tables="table ip nat\ntable inet firewalld")
    ) == [
        rule,
        docker,
    ]


def test_direct_rules_are_firewalld_s_where_it_puts_them_into_the_chains_of_iptables() -> None:
    """As the backend nftables does. iptables-save of iptables 1.8 on a node with the shares of a web server."""
    direct = shown([Share(parse_ports("80/tcp"), 8)])
    limit = "-p tcp -m tcp --dport 80 --tcp-flags FIN,SYN,RST,ACK SYN -m connlimit --connlimit-above"
    saved = [
        f"{family} filter -A INPUT {limit} {above} --connlimit-mask {mask} --connlimit-saddr -j DROP"
        for family, mask in (("ipv4", 32), ("ipv6", 128))
        for above in (8, 9)
    ]
    in_force = [*DECLARED, *direct]
    text = seen(state="active", rules="\n".join(saved), open="\n".join(in_force))
    assert losses(text, in_force, NEVER) == saved[1::2], "another number is another rule"


def test_zones_and_direct_rules_in_files_are_shown_unless_they_are_kept() -> None:
    zone = (
        '<zone target="ACCEPT"><source address="192.0.2.0/24"/><port port="9999" protocol="tcp"/><masquerade/>'
        '<forward-port port="80" protocol="tcp" to-port="8080" to-addr="10.0.0.1"/>'
        '<rule family="ipv4"><source address="10.0.0.7"/><port port="1" protocol="tcp"/><accept/></rule></zone>'
    )
    direct = (
        '<direct><rule ipv="ipv4" table="nat" chain="POSTROUTING" priority="0">-o em2 -j MASQUERADE</rule></direct>'
    )
    text = seen(state="active", zone__docker=zone, direct=direct)
    assert lost(text) == [
        "docker target ACCEPT",
        "docker source 192.0.2.0/24",
        "docker port 9999/tcp",
        "docker masquerade yes",
        "docker forward port=80:proto=tcp:toport=8080:toaddr=10.0.0.1",
        'docker rule rule family="ipv4" source address="10.0.0.7" port port="1" protocol="tcp" accept',
        "direct rule ipv4 nat POSTROUTING 0 -o em2 -j MASQUERADE",
    ]
    assert lost(text, "docker .*|direct rule .*MASQUERADE") == []


def test_ports_at_which_daemons_listen_are_not_closed_unasked() -> None:
    listening = (
        f"{SSHD}\ntcp *:8443 nginx\ntcp [::]:8443 nginx\nudp 10.0.0.1:514 rsyslogd\ntcp *:60123 mmfsd\ntcp *:3000 "
    )
    assert lost(seen(listening=listening)) == [
        # Of the range that is open to the portal alone.
        "8443/tcp, where nginx listens, would be closed",
        "514/udp, where rsyslogd listens, would be closed",
        "3000/tcp, where a program listens, would be closed",
    ]
    assert lost(seen(state="active", listening=listening)) == []  # closed or open already


def test_jobs_that_run_are_named_before_firewalld_starts_for_the_first_time() -> None:
    assert lost(seen(steps="3")) == ["connections of jobs, of which 3 steps run, could break"]
    assert lost(seen(steps="3", former="\n".join(DECLARED))) == []
    assert lost(seen(steps="3", state="active")) == []


@pytest.mark.parametrize("part", ["state", "services", "rules", "tables", "direct", "open", "listening", "steps"])
def test_an_answer_that_is_not_whole_is_not_fine(part: str) -> None:
    with pytest.raises(FirewallError, match=f"could not be read: no {part}"):
        lost(seen().replace(f"== {part}\n", "== other\n"))


ZONE = "/etc/firewalld/zones/x.xml, which cannot be read (unclosed token)"
DIRECT = "/etc/firewalld/direct.xml, which cannot be read (No closing quotation)"
RULE = "direct rule ipv4 filter f2b-sshd 0 -j DROP"


@pytest.mark.parametrize(
    ("parts", "kept", "expected"),
    [
        ({"zone__x": "<zone", "direct": "<direct><rule>'</rule></direct>"}, NEVER, [ZONE, DIRECT]),
        ({"zone__x": f"\n{WRITTEN}<zone", "direct": f"{WRITTEN}<direct>"}, NEVER, []),
        ({"zone__x": "<zone"}, "x .*", []),
        # Others may have rules in a file of ours; what it said of them is lost with it.
        (
            {"direct": f"<direct>{WRITTEN}<rule>'</rule></direct>", "open": RULE},
            "direct rule .*f2b.*",
            [DIRECT],
        ),
        (
            {"unread": "Failed to activate service: timed out"},
            NEVER,
            ["what firewalld has in force, which cannot be read (Failed to activate service: timed out)"],
        ),
    ],
    ids=["somebody's", "ours", "kept", "ours with others' rules", "nothing said"],
)
def test_what_cannot_be_read_is_lost_where_firewalld_may_have_it_in_force(
    parts: dict[str, str], kept: str, expected: list[str]
) -> None:
    assert lost(seen(state="active", **parts), kept) == expected
    assert lost(seen(**{**parts, "open": ""}), kept) == []
    assert len(unread(seen(**parts))) == len(parts.keys() - {"open"})


PROGRAMS = {
    "systemctl": """case "$*" in
      "is-active iptables.service") echo active ;;
      "is-enabled iptables.service") echo enabled ;;
      *--quiet*) exit 3 ;;
      *) echo inactive; exit 3 ;;
    esac""",
    "iptables-save": """cat <<END
# Generated
*nat
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
COMMIT
END""",
    "ip6tables-save": "true",
    "nft": "echo table inet mine",
    "ss": "printf '%s\\n' 'Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port'"
    """ 'tcp LISTEN 0 128 *:8443 *:* users:(("nginx",pid=7,fd=6))'""",
    "pgrep": "echo 0; exit 1",
}


def test_the_script_shows_it(tmp_path: Path) -> None:
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "if_inet6").touch()
    script = LOOK.read_text().replace("PATH=$PATH:", f"PATH={tmp_path}:$PATH:").replace("/etc/firewalld", str(tmp_path))
    script = script.replace("/proc/net/", f"{tmp_path}/")
    argv = ["sh", "-c", script, "look", str(tmp_path / "open"), "exit 1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert lost(done.stdout) == [
        "iptables.service is active, enabled",
        "ipv4 nat -A POSTROUTING -j MASQUERADE",
        "ipv4 filter policy INPUT DROP",
        "table inet mine",
        "8443/tcp, where nginx listens, would be closed",
    ]
    (tmp_path / "systemctl").write_text("#!/bin/sh\necho active\n")
    done = subprocess.run(
        [*argv[:-1], "echo half; echo 'no answer' >&2; exit 1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "what firewalld has in force, which cannot be read (no answer)" in lost(done.stdout)
    (tmp_path / "ip6tables-save").write_text("#!/bin/sh\nexit 1\n")
    assert subprocess.run(argv, capture_output=True, text=True, check=False).returncode != 0
    (tmp_path / "if_inet6").unlink()  # ipv6.disable=1
    assert subprocess.run(argv, capture_output=True, text=True, check=False).returncode == 0
    (tmp_path / "iptables-save").write_text("#!/bin/sh\nexit 1\n")
    assert subprocess.run(argv, capture_output=True, text=True, check=False).returncode != 0

"""dnsmasq's configuration, and a real dnsmasq with it: who gets an answer, and which."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bmc.petitboot import Lease, config_url

from hal_cluster.provision.dhcp import PREFIX, Served, Server, files, host_file, main_file, options_file
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.nodes import BootNode
from tests.unit.hal_cluster.provision.conftest import URL, Wire, node, server, write_all

X86: dict[str, Any] = {"arch": "x86_64"}


def laid(folder: Path, nodes: list[BootNode], **changes: Any) -> Path:
    one = server(folder, "srv0", **changes)
    write_all({}, [one.hosts_dir, one.options_dir, one.tftp_root])
    write_all(files(nodes, one))
    (folder / "dnsmasq.conf").write_text(main_file(one))
    return folder / "dnsmasq.conf"


def file_of(got: dict[str, Any]) -> str | None:
    """The boot file: an option for who asks for it, else in the header."""
    named: str | None = got["options"].get("67") or got["file"]
    return named


def test_a_node_has_its_lease_and_the_place_of_its_configuration(tmp_path: Path) -> None:
    one = server(tmp_path)
    assert files([node()], one) == {
        f"{tmp_path}/hosts/hal05": "02:48:41:4c:02:05,set:node-hal05,10.1.0.105,hal05\n",
        f"{tmp_path}/options/hal05": f"tag:node-hal05,tag:opal,209,{URL}hal05\n",
    }


def test_an_x86_node_is_led_to_its_script_once_iPXE_runs(tmp_path: Path) -> None:
    expected = f"tag:node-hal05,tag:ipxe,option:bootfile-name,{URL}hal05\n"
    assert options_file(node(**X86), server(tmp_path)) == expected


def test_with_a_prefix_no_node_has_options_of_its_own(tmp_path: Path) -> None:
    one = server(tmp_path, search=PREFIX)
    assert list(files([node()], one)) == [f"{tmp_path}/hosts/hal05"]
    assert f"dhcp-option=tag:opal,tag:net-management,210,{URL}" in main_file(one).splitlines()


def test_a_BMC_is_served_where_its_network_is_and_not_as_the_node(tmp_path: Path) -> None:
    both = [Served("management", "eno1", "10.1.0.0/24"), Served("bmc", "eno2", "10.1.1.0/24")]
    assert host_file(node(), server(tmp_path, networks=both)) == (
        "02:48:41:4c:02:05,set:node-hal05,10.1.0.105,hal05\n02:48:41:4c:03:05,10.1.1.105,hal05-bmc\n"
    )


def test_a_node_whose_MAC_nobody_knows_has_no_files(tmp_path: Path) -> None:
    assert files([node(macs={})], server(tmp_path)) == {}


def test_dnsmasq_is_not_made_a_router_and_gives_no_name_server(tmp_path: Path) -> None:
    lines = main_file(server(tmp_path)).splitlines()
    assert "dhcp-option=tag:net-management,option:router" in lines
    assert "port=0" in lines
    with_gateway = server(tmp_path, networks=[Served("management", "eno1", "10.1.0.0/24", "10.1.0.254")])
    assert "dhcp-option=tag:net-management,option:router,10.1.0.254" in main_file(with_gateway).splitlines()


def test_the_main_file_names_no_node_and_nobody_else_gets_an_answer(tmp_path: Path) -> None:
    text = main_file(server(tmp_path))
    assert "hal05" not in text
    assert "dhcp-ignore=tag:!known" in text.splitlines()
    assert [line for line in text.splitlines() if line.startswith("interface=")] == ["interface=eno1"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"search": "209"}, "search is 209; file (option 209) or prefix (option 210)"),
        ({"lease_seconds": 60}, "lease_seconds is 60; dnsmasq gives none for less than 120"),
        ({"url": "http://10.1.0.11:8480/boot"}, "with / at its end"),
        ({"url": "https://10.1.0.11/boot/"}, "write one as http://"),
        ({"boot_network": "access"}, "nodes boot in network access, which is not among those that are served"),
        ({"networks": [Served("management", "eno1 ", "10.1.0.0/24")]}, "'eno1 ' is no interface"),
        ({"networks": [Served("management", "eno1", "fd00::/64")]}, "fd00::/64 is of IPv6"),
        ({"loaders": {"bios": "a b"}}, "loader bios: a b"),
        ({"loaders": {"opal": "x"}}, "loader opal: x: a file's name for bios, one for efi"),
    ],
)
def test_what_dnsmasq_would_take_otherwise_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ProvisionError) as refused:
        main_file(server(tmp_path, **changes))
    assert said in str(refused.value)


# Those of the man page of dnsmasq, tag v2.76, which CentOS 7.7 has.
WORDS_OF_276 = {
    "port", "bind-dynamic", "no-hosts", "no-resolv", "log-dhcp", "dhcp-ignore", "dhcp-authoritative", "dhcp-lease-max",
    "dhcp-leasefile", "domain", "dhcp-hostsdir", "dhcp-optsdir", "interface", "dhcp-range", "dhcp-option", "dhcp-match",
    "dhcp-boot", "enable-tftp", "tftp-no-fail", "tftp-root",
}  # fmt: skip


@pytest.mark.parametrize("changes", [{}, {"search": PREFIX}, {"loaders": {"bios": "undionly.kpxe", "efi": "ipxe.efi"}}])
def test_every_word_is_known_to_the_dnsmasq_of_CentOS_7(tmp_path: Path, changes: dict[str, Any]) -> None:
    lines = main_file(server(tmp_path, **changes)).splitlines()
    words = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    assert words <= WORDS_OF_276
    assert len(words) > 15


def test_two_nodes_with_one_MAC_are_refused_by_name(tmp_path: Path) -> None:
    twin = node("hal06", 6, macs={"management": "02:48:41:4c:02:05"})
    with pytest.raises(ProvisionError, match="hal06: 02:48:41:4c:02:05 is hal05's too"):
        files([node(), twin], server(tmp_path))
    outside = node(addresses={"management": "10.2.0.5"})
    with pytest.raises(ProvisionError, match=r"hal05: addresses.management is 10.2.0.5, outside 10.1.0.0/24"):
        files([outside], server(tmp_path))


# ---------------------------------------------------------------- a real dnsmasq


@pytest.mark.skipif(not shutil.which("dnsmasq"), reason="dnsmasq is not installed")
@pytest.mark.parametrize("changes", [{}, {"search": PREFIX}, {"loaders": {"bios": "undionly.kpxe", "efi": "ipxe.efi"}}])
def test_dnsmasq_accepts_the_configuration(tmp_path: Path, changes: dict[str, Any]) -> None:
    conf = laid(tmp_path, [node(), node("hal-dtn", 9, **X86)], **changes)
    done = subprocess.run(["dnsmasq", "--test", f"--conf-file={conf}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    conf.write_text(conf.read_text() + "dhcp-range=nonsense\n")
    done = subprocess.run(["dnsmasq", "--test", f"--conf-file={conf}"], capture_output=True, text=True, check=False)
    assert done.returncode != 0  # it does look at it


def test_DHCP_answers_only_known_MACs_each_with_its_own_configuration(wire: Wire, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    conf = laid(tmp_path, [node(), node("hal06", 6)])
    wire.serve(conf, tmp_path / "log")
    first, second = wire.ask("02:48:41:4c:02:05"), wire.ask("02:48:41:4c:02:06")
    assert first is not None
    assert second is not None
    assert (first["address"], first["options"]) == ("10.1.0.105", {"209": f"{URL}hal05"})
    assert (second["address"], second["options"]) == ("10.1.0.106", {"209": f"{URL}hal06"})
    assert wire.ask("02:48:41:4c:02:99") is None
    assert wire.ask("02:48:41:4c:03:05") is None  # the BMC's, whose network is not served
    said = (tmp_path / "log").read_text()
    for stranger in ("02:48:41:4c:02:99", "02:48:41:4c:03:05"):
        assert f"DHCPDISCOVER(srv0) {stranger} ignored" in said  # as docs/provisioning.md has it
    # No router (3) and no name server (6): this machine is neither.
    assert {3, 6} & set(first["raw"]) == set()


def test_each_firmware_gets_what_it_can_load(wire: Wire, tmp_path: Path) -> None:
    conf = laid(tmp_path, [node(), node("hal-dtn", 9, **X86)], loaders={"bios": "undionly.kpxe", "efi": "ipxe.efi"})
    wire.serve(conf, tmp_path / "log")
    firmware, uefi = wire.ask("02:48:41:4c:02:09", "0"), wire.ask("02:48:41:4c:02:09", "7")
    script, power = wire.ask("02:48:41:4c:02:09", "0", "iPXE"), wire.ask("02:48:41:4c:02:05", "14")
    assert firmware is not None
    assert uefi is not None
    assert script is not None
    assert power is not None
    assert file_of(firmware) == "undionly.kpxe"
    assert file_of(uefi) == "ipxe.efi"
    assert file_of(script) == f"{URL}hal-dtn"
    # petitboot shows an entry for every boot file it is given: it gets none.
    assert (power["file"], power["options"]) == (None, {"209": f"{URL}hal05"})


def test_petitboot_searches_below_the_prefix_that_dnsmasq_gives(wire: Wire, tmp_path: Path) -> None:
    wire.serve(laid(tmp_path, [node()], search=PREFIX), tmp_path / "log")
    got = wire.ask("02:48:41:4c:02:05")
    assert got is not None
    lease = Lease(got["mac"], got["address"], got["server"], options={int(k): v for k, v in got["options"].items()})
    where, complete = config_url(lease)
    assert (str(where), complete) == (URL, False)


def test_a_changed_node_changes_its_own_files_and_no_other(tmp_path: Path) -> None:
    nodes = [node(f"hal{at:02}", at) for at in range(1, 17)]
    one: Server = server(tmp_path)
    before = files(nodes, one)
    nodes[4] = replace(nodes[4], macs={"management": "02:00:00:00:00:05"})
    after = files(nodes, one)
    assert {path for path in before | after if before.get(path) != after.get(path)} == {f"{tmp_path}/hosts/hal05"}
    del nodes[4]
    gone = files(nodes, one)
    assert before.keys() - gone.keys() == {f"{tmp_path}/hosts/hal05", f"{tmp_path}/options/hal05"}
    assert all(before[path] == text for path, text in gone.items())

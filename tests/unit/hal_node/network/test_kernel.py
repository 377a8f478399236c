"""hal_node.network.kernel: which programs are asked, and which files are read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hal_node.network import kernel


def test_a_route_is_without_the_words_that_ip_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def run(_: Any, *argv: str) -> str:
        asked.append(argv)
        return "10.0.0.0/8 via 10.1.0.1 dead linkdown offload metric 5 \\ nexthop\n1.2.3.4 scope link\n"

    monkeypatch.setattr(kernel, "run", run)
    found = kernel.routes(None, "dev", "eno1")
    assert found == ["10.0.0.0/8 via 10.1.0.1 metric 5 nexthop", "1.2.3.4 scope link"]
    assert asked == [("ip", "-o", "-4", "route", "show", "dev", "eno1")]


def test_a_program_has_to_be_there_and_to_succeed_unless_somebody_says_otherwise() -> None:
    asked: list[Any] = []

    def command(argv: list[str], **words: Any) -> tuple[int, str, str]:
        asked.append((argv, words))
        return 0, "said", "not this"

    def found(name: str, required: bool) -> str:
        assert required
        return f"/sbin/{name}"

    module = SimpleNamespace(run_command=command, get_bin_path=found)
    assert kernel.run(module, "ip", "-o", "link") == "said"
    kernel.run(module, "ip", check_rc=False)
    environment = {"environ_update": {"LC_ALL": "C"}}
    assert asked == [
        (["/sbin/ip", "-o", "link"], {"check_rc": True, **environment}),
        (["/sbin/ip"], {"check_rc": False, **environment}),
    ]


def test_what_the_kernel_has_is_asked_of_ip_and_read_of_bonds(monkeypatch: pytest.MonkeyPatch) -> None:
    link = "2: ib0: <BROADCAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP mode DEFAULT group default qlen 256\\"
    asked: list[str] = []

    def run(_module: Any, *argv: str) -> str:
        asked.append(" ".join(argv))
        return link + "    link/ether 52:54:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n" if argv[-1] == "link" else ""

    files = {"/sys/class/net/ib0/mode": b"datagram\n"}
    monkeypatch.setattr(kernel, "run", run)
    monkeypatch.setattr(kernel, "content_of", files.get)
    found = kernel.look(None)
    assert asked == ["ip -o link", "ip -o -4 addr", "ip -4 route show default"]
    assert (list(found["links"]), found["modes"], found["bonds"]) == (["ib0"], {"ib0": "datagram"}, {})
    files["/proc/net/bonding/ib0"] = b"Bonding Mode: fault-tolerance (active-backup)\n"
    assert list(kernel.look(None)["bonds"]) == ["ib0"]

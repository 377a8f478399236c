"""A node for hal_node.network, which is a folder, and its kernel a dictionary; an ip that knows some answers."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from ansible.module_utils.hal_node.network import change, places, write

CONNECTION = "10.1.0.1 33 10.1.0.5 22"


OURS = "# Written by the role network; changes made here are lost.\n"


SCRIPTS = "/etc/sysconfig/network-scripts"


ANSWERS = {
    "ip -o route get 192.0.2.9": "192.0.2.9 via 10.1.0.254 dev eno2 src 10.1.0.5 uid 0 \\    cache\n",
    "ip -o route get 10.1.0.1": "10.1.0.1 dev eno1 src 10.1.0.5 uid 0 \\    cache\n",
    "ip -o -4 route show dev eno1": (
        "default via 10.1.0.254 proto static \n"
        "10.1.0.0/24 proto kernel scope link\n"
        "10.9.0.0/16 via 10.1.0.9 linkdown \n"
    ),
    "ip -o -4 route show default": (
        "default via 10.1.0.254 dev eno1 proto static \n"
        "default metric 9 \\\tnexthop via 10.8.0.1 dev eno8 weight 1 \\\tnexthop via 10.8.0.2 dev eno8 weight 1 \n"
    ),
    "firewall-cmd --state": "running\n",
    "firewall-cmd --get-zone-of-interface=eno1": "management\n",
}


PERMISSIONS = ("contact_ok", "ipoib_ok", "no_default_route_ok")


def declared(name: str, **more: Any) -> dict[str, Any]:
    text = f"# Written by the role network\nDEVICE={name}\n"
    plain: dict[str, Any] = {
        "master": None,
        "members": [],
        "gateway": None,
        "path": f"{SCRIPTS}/ifcfg-{name}",
        "text": text,
    }
    return {"name": name, **plain, **more}


DEVICES = [
    declared("bond0", members=["eno2", "eno3"], bond_mode="802.3ad", address="192.0.2.5/25"),
    declared("eno1", address="10.1.0.5/24"),
    declared("eno2", master="bond0"),
    declared("eno3", master="bond0"),
    declared("ib0", address="10.1.2.5/24", mode="connected"),
]


def link(**changes: Any) -> dict[str, Any]:
    return {"up": True, "mtu": 1500, "mac": None, "master": None, **changes}


def now() -> dict[str, Any]:
    """A node on which no bond was made yet, and IPoIB is in its old mode."""
    return {
        "links": {"eno1": link(), "eno2": link(up=False), "eno3": link(), "ib0": link(mtu=2044)},
        "addresses": {
            "eno1": [{"address": "10.1.0.5/24", "broadcast": "10.1.0.255"}],
            "ib0": [{"address": "10.1.2.5/24", "broadcast": None}],
        },
        "routes": {},
        "modes": {"ib0": "datagram"},
        "bonds": {},
    }


def call(**params: Any) -> SimpleNamespace:
    """As AnsibleModule, with an ip that knows ANSWERS."""

    def run_command(argv: list[str], **_: Any) -> tuple[int, str, str]:
        out = ANSWERS.get(" ".join(argv))
        return (0, out, "") if out is not None else (2, "", "RTNETLINK answers: Network is unreachable")

    return SimpleNamespace(
        params={"devices": DEVICES, **params}, run_command=run_command, get_bin_path=lambda name, required=False: name
    )


class Refused(Exception):
    """What fail_json would say."""


class Node:
    """Two interfaces that are as declared; the connection came in by eno1."""

    def __init__(self, root: Path) -> None:
        self.root, self.called = root, list[str]()
        self.scripts, self.state = root / "etc/sysconfig/network-scripts", root / "var/lib/hal/network"
        self.scripts.mkdir(parents=True)
        self.state.mkdir(parents=True)
        up = {"up": True, "mtu": 1500, "mac": None, "master": None}
        self.now: dict[str, Any] = {
            "links": {"eno1": up, "eno2": up, "eno3": up},
            "addresses": {
                "eno1": [{"address": "10.1.0.5/24", "broadcast": None}],
                "eno2": [{"address": "10.2.0.5/24", "broadcast": None}],
            },
            "routes": {},
            "modes": {},
            "bonds": {},
        }
        self.devices = [self.device("eno1", "10.1.0.5/24"), self.device("eno2", "10.2.0.5/24")]

    def device(self, name: str, address: str | None, extra: str = "", **more: Any) -> dict[str, Any]:
        text, path = f"{OURS}DEVICE={name}\n{extra}", str(self.scripts / f"ifcfg-{name}")
        plain: dict[str, Any] = {"mtu": None, "mac": None, "gateway": None, "mode": None, "master": None, "members": []}
        return {"name": name, "address": address, "text": text, "path": path, **plain, **more}

    def phase(self, name: str, *, check: bool = False, **params: Any) -> dict[str, Any]:
        def fail(msg: str) -> NoReturn:
            raise Refused(msg)

        def run(argv: list[str], **_: Any) -> tuple[int, str, str]:
            self.called.append(" ".join(argv))
            return 1 if argv[0] == "firewall-cmd" else 0, "", ""

        module = SimpleNamespace(
            params={"devices": self.devices, **dict.fromkeys(PERMISSIONS, False), **params},
            check_mode=check,
            fail_json=fail,
            run_command=run,
            get_bin_path=lambda name, required=False: name,
            tmpdir=str(self.root),
            atomic_move=os.rename,
            load_file_common_arguments=dict,
            set_fs_attributes_if_different=self.attributes,
        )
        phases = {"write": write.write, "apply": change.apply, "confirm": change.confirm}
        result: dict[str, Any] = phases[name](module)
        return result

    @staticmethod
    def attributes(wanted: dict[str, Any], changed: bool) -> bool:
        """Give the mode, as AnsibleModule does; the test's user need not be root."""
        assert (wanted["owner"], wanted["group"]) == ("root", "root")
        path, mode = Path(wanted["path"]), int(wanted["mode"], 8)
        differs = path.stat().st_mode & 0o7777 != mode
        path.chmod(mode)
        return changed or differs

    def text(self, name: str) -> str:
        return (self.scripts / name).read_text()


def with_mtu(node: Node, name: str, mtu: int) -> None:
    for device in node.devices:
        if device["name"] == name:
            device["mtu"], device["text"] = mtu, f"{device['text']}MTU={mtu}\n"


def confirmed(node: Node) -> None:
    (node.root / "run/hal/network/done").write_text("")
    assert [node.phase("confirm")["confirmed"] for _ in range(2)] == [False, True]


def started(node: Node) -> None:
    """A change of eno2 that is at work."""
    with_mtu(node, "eno2", 9000)
    node.phase("write")
    assert node.phase("apply")["started"] == ["eno2"]
    node.now["links"]["eno2"] = {**node.now["links"]["eno2"], "mtu": 9000}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def folder(name: str) -> Path:
    """A folder or file that a change needs, by the name that it has in places."""
    return Path(vars(places)[name])


def everything(node: Node) -> dict[str, str]:
    return {str(path.relative_to(node.root)): path.read_text() for path in node.root.rglob("*") if path.is_file()}

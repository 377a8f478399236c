"""What role infiniband compares on the subnet manager: captures of real fabrics, and the words for what differs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import LOCAL, NODES, interpreter

HERE = Path(__file__).parent
PROGRAM = HERE.parents[3] / "roles/infiniband/files/fabric.py"
SWITCHES = {"edr1": "0x248a070300f82d40", "spine": "0x248a070300f82e60"}
PORTS = [
    ("edr1", 1, "hal-mgmt1", "0x506b4b0300c2b0f0"),
    ("edr1", 2, "hal01", "0x506b4b0300c2b1f0"),
    ("edr1", 3, "hal02", "0x506b4b0300c2b2f0"),
    ("edr1", 4, "flash1", "0x506b4b0300c2b3f0"),
]


def declared() -> dict[str, Any]:
    """Return what the role hands to the program for the fabric of the captures."""
    ends = [
        {
            "switch": switch,
            "switch_guid": SWITCHES[switch],
            "switch_port": port,
            "owner": owner,
            "port": "mlx5_0/1",
            "guid": guid,
            "rate_gbps": 100,
        }
        for switch, port, owner, guid in PORTS
    ]
    link = {
        "switch": "edr1",
        "switch_guid": SWITCHES["edr1"],
        "switch_port": 8,
        "owner": "spine",
        "port": "1",
        "guid": SWITCHES["spine"],
        "rate_gbps": None,
    }
    ports = [{"owner": owner, "name": "mlx5_0/1", "guid": guid} for _, _, owner, guid in PORTS]
    return {"cables": [*ends, link], "ports": ports, "managers": ["hal-mgmt1"]}


def run(
    folder: Path, what: str, capture: str | None, model: dict[str, Any], python: str = LOCAL
) -> subprocess.CompletedProcess[str]:
    """Run the program where ibnetdiscover or saquery prints a capture, or fails."""
    command = f"cat '{HERE / 'captures' / capture}'" if capture else "echo 'ibwarn: no port' >&2; exit 1"
    for name in ("ibnetdiscover", "saquery"):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{command}\n")
        program.chmod(0o755)
    return subprocess.run(
        [python, "-c", PROGRAM.read_text(), " " + json.dumps(model), what],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def differences(folder: Path, what: str, capture: str, model: dict[str, Any] | None = None) -> list[str]:
    done = run(folder, what, capture, model or declared())
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_fabric_as_declared_has_no_differences(tmp_path: Path) -> None:
    assert differences(tmp_path, "cables", "ibnetdiscover_healthy.txt") == []
    assert differences(tmp_path, "managers", "saquery_one_master.txt") == []


@pytest.mark.parametrize("version", NODES)
def test_it_runs_on_the_pythons_of_nodes(tmp_path: Path, version: str) -> None:
    done = run(tmp_path, "cables", "ibnetdiscover_swapped.txt", declared(), interpreter(version))
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)


@pytest.mark.parametrize(
    ("capture", "lines"),
    [
        (
            "ibnetdiscover_two_down.txt",
            [
                "hal01 mlx5_0/1 is not in the fabric, declared edr1/2",
                "hal02 mlx5_0/1 is not in the fabric, declared edr1/3",
            ],
        ),
        (
            "ibnetdiscover_swapped.txt",
            ["hal01 mlx5_0/1 is on edr1/3, declared edr1/2", "hal02 mlx5_0/1 is on edr1/2, declared edr1/3"],
        ),
        (
            "ibnetdiscover_slow.txt",
            [
                "hal02 mlx5_0/1 on edr1/3 runs at 1xEDR, declared 100 Gb/s",
                "flash1 mlx5_0/1 on edr1/4 runs at 4xFDR, declared 100 Gb/s",
            ],
        ),
        (
            "ibnetdiscover_replaced.txt",
            [
                "hal01 mlx5_0/1 is not in the fabric, declared edr1/2; there is hal01 mlx5_0 (0xb8599f0300aabbf0),"
                " which the model does not have",
                "edr1/8 leads to spine/2, declared spine/1",
            ],
        ),
        (
            "ibnetdiscover_manual.txt",
            [
                "switch edr1 is not in the fabric",
                "switch spine is not in the fabric",
                "switch ISR9024 Voltaire (0x005442ba00003080) is in the fabric and not in the model",
            ],
        ),
    ],
)
def test_each_difference_of_the_cables_is_a_line(tmp_path: Path, capture: str, lines: list[str]) -> None:
    assert differences(tmp_path, "cables", capture) == lines


def test_a_port_that_nobody_declared_is_named(tmp_path: Path) -> None:
    model = declared()
    model["cables"] = [one for one in model["cables"] if one["owner"] != "hal02"]
    model["ports"] = [one for one in model["ports"] if one["owner"] != "hal02"]
    assert differences(tmp_path, "cables", "ibnetdiscover_healthy.txt", model) == [
        "edr1/3 leads to hal02 mlx5_0 (0x506b4b0300c2b2f0), which the model does not have there"
    ]


def test_a_port_without_a_declared_cable_may_be_anywhere(tmp_path: Path) -> None:
    model = declared()
    model["cables"] = [one for one in model["cables"] if one["owner"] != "hal02"]
    assert differences(tmp_path, "cables", "ibnetdiscover_healthy.txt", model) == []


def test_a_second_subnet_manager_and_another_master_are_named(tmp_path: Path) -> None:
    second = "a subnet manager runs on hal02 mlx5_0/1: standby, priority 3"
    assert differences(tmp_path, "managers", "saquery_two.txt") == [second]
    other = {**declared(), "managers": ["hal02"]}
    assert differences(tmp_path, "managers", "saquery_two.txt", other) == [
        "a subnet manager runs on hal-mgmt1 mlx5_0/1: master, priority 15",
        "the master is hal-mgmt1, declared hal02",
    ]
    unknown = {**declared(), "ports": declared()["ports"][:2]}
    assert differences(tmp_path, "managers", "saquery_two.txt", unknown) == [
        "a subnet manager runs on a port that the model does not have (0x506b4b0300c2b2f0): standby, priority 3"
    ]


def test_a_fabric_without_a_master_is_named(tmp_path: Path) -> None:
    assert differences(tmp_path, "managers", "ibnetdiscover_healthy.txt") == [
        "the master is nobody, declared hal-mgmt1"
    ]


@pytest.mark.parametrize("what", ["cables", "managers"])
def test_no_answer_is_not_no_difference(tmp_path: Path, what: str) -> None:
    done = run(tmp_path, what, None, declared())
    assert (done.returncode, done.stdout) == (3, "")
    assert "ended with 1: ibwarn: no port" in done.stderr


@pytest.mark.parametrize(("speed", "right"), [("4xSDR", 10), ("4xDDR", 20), ("4xQDR", 40), ("4xHDR", 200)])
def test_a_rate_is_counted_by_lanes(tmp_path: Path, speed: str, right: int) -> None:
    """The links of the capture, as ibnetdiscover prints them at another speed."""
    healthy = (HERE / "captures/ibnetdiscover_healthy.txt").read_text()
    (tmp_path / "said").write_text(healthy.replace("4xEDR", speed))
    model = declared()
    for one in model["cables"]:
        one["rate_gbps"] = one["rate_gbps"] and right
    assert differences(tmp_path, "cables", str(tmp_path / "said"), model) == []
    for one in model["cables"]:
        one["rate_gbps"] = one["rate_gbps"] and right + 1
    assert len(differences(tmp_path, "cables", str(tmp_path / "said"), model)) == len(PORTS)


@pytest.mark.parametrize("speed", ["4xXDR", "fast"])
def test_a_speed_of_no_known_name_is_not_taken_for_right(tmp_path: Path, speed: str) -> None:
    healthy = (HERE / "captures/ibnetdiscover_healthy.txt").read_text()
    (tmp_path / "said").write_text(healthy.replace("4xEDR", speed))
    found = differences(tmp_path, "cables", str(tmp_path / "said"))
    assert found[1] == f"hal01 mlx5_0/1 on edr1/2 runs at {speed}, declared 100 Gb/s"
    assert len(found) == len(PORTS)


# ---------------------------------------------------------------- who is master
UP = (HERE / "captures/ibstat_raw.txt").read_text()  # LID 8, its master's 5
DOWN = (HERE / "captures/ibstat_down.txt").read_text()
FRESH = UP.replace("State: Active", "State: Initializing").replace("SM lid: 5", "SM lid: 0")
ENDED_HERE = UP.replace("SM lid: 5", "SM lid: 8")
SMINFO = (HERE / "captures/sminfo_master.txt").read_text()  # of hal-mgmt1
FOREIGN = SMINFO.replace("0x506b4b0300c2b0f0", "0x2c9020048c3a0").replace("priority 15", "priority 4")
# infiniband-diags, sminfo.c: a standby that was asked by its LID; and what all programs say when nobody answers.
STANDBY = SMINFO.replace("state 3 SMINFO_MASTER", "state 2 SMINFO_STANDBY")
# Its port is in the fabric, and a subnet manager runs there; or does not; or the port is not there any more.
THERE = (HERE / "captures/ibnetdiscover_two_down.txt").read_text()  # LID 5 is in it, 9 is not
HUNG = {"ibnetdiscover": THERE, "portinfo": (HERE / "captures/smpquery_portinfo_sm.txt").read_text()}
ENDED = {**HUNG, "portinfo": HUNG["portinfo"].replace("0x50c04a", "0x50c048").replace("IsSM\n", "")}
AWAY = UP.replace("SM lid: 5", "SM lid: 9")
# libibumad says IB where the kernel does not say what it is, as of the emulated fabric; kernels of nodes do.
ETHERNET = UP.replace("Link layer: IB", "Link layer: Ethernet").replace("lid: 8", "lid: 0").replace("lid: 5", "lid: 0")
TWO = ETHERNET + UP.replace("ibsim0", "mlx5_1").replace("Link layer: IB", "Link layer: InfiniBand")
SILENT = "ibwarn: [4711] mad_rpc: _do_madrpc failed; dport (Lid 5)"


Text = str | list[str | None] | None


def master(folder: Path, ibstat: Text, sminfo: Text, python: str = LOCAL, **changes: Any) -> dict[str, Any]:
    """What the program says where these programs print these texts; of a list the next each time; None: it fails."""
    others = ("ibnetdiscover", "portinfo", "nodedesc", "pgrep")
    said = {"ibstat": ibstat, "sminfo": sminfo, **{name: changes.get(name) for name in others}}
    for name, text in said.items():
        texts = text if isinstance(text, list) else [text]
        program = ["#!/bin/sh", f"echo >>'{folder}/{name}.asked'", f"case $(wc -l <'{folder}/{name}.asked') in"]
        for number, one in enumerate(texts, 1):
            (folder / f"{name}.{number}").write_text(one or "")
            does = f"cat '{folder}/{name}.{number}'" if one is not None else f"echo '{SILENT}' >&2; exit 1"
            program.append(f"{number if number < len(texts) else '*'}) {does};;")
        (folder / name).write_text("\n".join([*program, "esac\n"]))
        (folder / name).chmod(0o755)
    (folder / "smpquery").write_text(f"#!/bin/sh\nexec '{folder}'/$1\n")
    (folder / "smpquery").chmod(0o755)
    done = subprocess.run(
        [python, "-c", PROGRAM.read_text(), " " + json.dumps(declared()), "master", str(changes.get("seconds", 0))],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    ("ibstat", "sminfo", "who", "words"),
    [
        (UP, SMINFO, "ours", "hal-mgmt1 mlx5_0/1 is master: LID 5, GUID 0x506b4b0300c2b0f0, priority 15"),
        (UP, SMINFO.replace("b0f0", "b1f0"), "other", "hal01 mlx5_0/1 is master: LID 5, GUID 0x506b4b0300c2b1f0, prio"),
        (
            UP,
            FOREIGN,
            "other",
            "a port that the model does not have (it does not say its name) is master: LID 5, GUID 0x0002c9020048c3a0,",
        ),
        (FRESH, None, "nobody", "no subnet manager is master"),
        (ENDED_HERE, None, "nobody", "no subnet manager is master"),
        # What cannot be told is not taken for nobody.
        (UP, None, "unknown", "the subnet manager at LID 5 does not answer (sminfo ended with 1: ibwarn: [4711]"),
        (UP, STANDBY, "unknown", "sminfo names no master: sminfo: sm lid 5 "),
        (DOWN, SMINFO, "unknown", "no InfiniBand port of this node has a link"),
        (None, SMINFO, "unknown", "ibstat ended with 1: "),
        # A port of Ethernet has a link, and is in no fabric.
        (ETHERNET, None, "unknown", "no InfiniBand port of this node has a link"),
        (TWO, SMINFO, "ours", "hal-mgmt1 mlx5_0/1 is master"),
        (TWO, None, "unknown", "the subnet manager at LID 5 does not answer"),
    ],
)
def test_who_is_master_is_found(tmp_path: Path, ibstat: str | None, sminfo: str | None, who: str, words: str) -> None:
    said = master(tmp_path, ibstat, sminfo)
    assert (said["who"], said["here"]) == (who, False)
    assert said["words"].startswith(words)


@pytest.mark.parametrize("version", NODES)
def test_a_switch_that_is_master_is_named_as_it_names_itself(tmp_path: Path, version: str) -> None:
    """Its description may be anything."""
    nodedesc = "Node Description:........................MF0;ib-sw\x1b1:SX6036/U1 " + "x" * 80 + "\n"
    said = master(tmp_path, UP, FOREIGN, interpreter(version), nodedesc=nodedesc, pgrep="4711\n")
    name = ("MF0;ib-sw 1:SX6036/U1 " + "x" * 80)[:64]
    assert said == {
        "who": "other",
        "words": f"a port that the model does not have ({name}) is master: LID 5, GUID 0x0002c9020048c3a0, priority 4",
        "here": True,
    }


@pytest.mark.parametrize(
    ("ibstat", "programs", "who", "words"),
    [
        (AWAY, HUNG, "nobody", "no subnet manager is master (the one at LID 9 is gone)"),  # its node is down
        (UP, ENDED, "nobody", "no subnet manager is master (the one at LID 5 is gone)"),  # its program has ended
        (UP, HUNG, "unknown", "the subnet manager at LID 5 does not answer"),
        # Who cannot be asked is not taken for gone.
        (UP, {**HUNG, "portinfo": None}, "unknown", "the subnet manager at LID 5 does not answer"),
        (UP, {**HUNG, "portinfo": "nothing"}, "unknown", "the subnet manager at LID 5 does not answer"),
        (AWAY, {}, "unknown", "the subnet manager at LID 9 does not answer"),
    ],
)
def test_a_master_that_is_gone_is_nobody(
    tmp_path: Path, ibstat: str, programs: dict[str, Any], who: str, words: str
) -> None:
    """So that the second of two is started where the first has failed."""
    said = master(tmp_path, ibstat, None, **programs)
    assert said["who"] == who
    assert said["words"].startswith(words)


@pytest.mark.parametrize("version", NODES)
def test_links_that_train_and_a_master_that_sweeps_are_waited_for(tmp_path: Path, version: str) -> None:
    """A fresh node: no adapter yet, no link, a link of which the master does not know yet."""
    stages: list[str | None] = [None, DOWN, FRESH, UP]
    said = master(tmp_path, stages, [None, SMINFO], interpreter(version), seconds=600)
    assert (said["who"], said["here"]) == ("ours", False)


def test_who_stays_silent_is_nobody_in_the_end(tmp_path: Path) -> None:
    assert master(tmp_path, FRESH, None, seconds=1)["who"] == "nobody"


def test_where_one_runs_nobody_is_waited_for(tmp_path: Path) -> None:
    assert master(tmp_path, DOWN, None, seconds=600, pgrep="4711\n")["here"] is True

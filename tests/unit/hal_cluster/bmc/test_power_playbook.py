"""playbooks/power.yml as administrators call it, on emulated BMCs. One run proves what it can: each takes seconds."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from bmc import redfish
from bmc.machine import Processor

from hal_cluster.bmc import operations
from hal_cluster.bmc.models import BootTarget
from tests.unit.hal_cluster.bmc.emulated import PATIENT, SECRET
from tests.unit.hal_cluster.bmc.site import MODEL, Site, recap, said


@contextmanager
def command_lines() -> Iterator[set[str]]:
    """Collect the command lines of all processes meanwhile."""
    over, seen = threading.Event(), set[str]()

    def watch() -> None:
        while not over.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    seen.add(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        over.set()
        watching.join()


def test_the_power_of_all_is_one_screen_and_no_command_line_has_a_password(site: Site) -> None:
    site.serve("work1", "work2", "work3", "work4", "front")
    for name in ("work1", "work2", "work3"):
        site.bmcs[name].machine.set_power("On")
    operations.boot_once(site.bmcs["work3"].client(), BootTarget.NETWORK, PATIENT)
    site.bmcs["front"].fault(gateway_timeout=True)
    with command_lines() as seen:
        words = ("-e", "power_nodes=work[1-4],front", "-e", '{"bmc_wait_seconds": 1}')
        done = site.play("power.yml", *words, started=True)
    text = said(done)
    for line in (
        "- on work[1-2]",
        "- 'on, next start network: work3'",
        "- off work4",
        "- 'busy front: login of admin: 504",
    ):
        assert line in text
    assert done.returncode != 0, "one did not answer"
    assert any("ansible-playbook" in line for line in seen), "the watch saw nothing"
    assert not [line for line in seen if SECRET in line]


def test_each_node_is_a_line_whatever_comes_of_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One has no BMC, one answers what no client foresaw, one is on already, one's BMC is another's, two go on."""
    complete = redfish._complete_system

    def odd(processor: Processor, body: dict[str, Any]) -> None:
        complete(processor, body)
        if processor.own.spec.name == "work1":
            body["MemorySummary"] = "much"

    monkeypatch.setattr(redfish, "_complete_system", odd)
    site.serve("work1", "work2", "work3", "work4", "front")
    site.bmcs["work2"].machine.set_power("On")
    site.bmcs["work3"].fault(swapped_with="work4")
    site.policy(bmc_on_at_once=2, bmc_on_pause_seconds=1)
    done = site.play("power.yml", "-e", "power_nodes=aside,front,work[1-4]", "-e", "power_action=on")
    text = said(done)
    for line in (
        "aside has no BMC in the model: fill that in in cluster.yml",
        "- on front,work[2,4]",
        "- 'not asked aside: nothing came of it'",
        "- 'refused work1: on: what this program does not understand: AttributeError'",
        "- 'another machine work3: whether it is the machine S3: it is S4, which is work4: their BMCs are swapped",
    ):
        assert line in text
    assert done.returncode != 0
    on = {name: bmc.machine.power() for name, bmc in site.bmcs.items()}
    assert on == {"work1": False, "work2": True, "work3": False, "work4": True, "front": True}
    changed = {name: changed for name, (changed, _) in recap(done).items()}
    assert changed == {"aside": 0, "work1": 0, "work2": 0, "work3": 0, "work4": 1, "front": 1}
    assert len(json.loads((site.folder / "state" / "power_on").read_text())["turns"]) == 2, "both took a turn"


def test_a_check_changes_nothing(site: Site) -> None:
    site.serve("work4")
    done = site.play("power.yml", "-e", "power_nodes=work4", "-e", "power_action=on", "--check", "--diff")
    assert "- on work4" in said(done)
    assert "-off" in done.stdout
    assert "+on" in done.stdout
    assert not site.bmcs["work4"].machine.power()


def test_one_start_from_the_network(site: Site) -> None:
    site.serve("work3", "work4")
    done = site.play("power.yml", "-e", "power_nodes=work4", "-e", "power_action=boot", "-e", "power_boot=network")
    assert done.returncode == 0, said(done)
    assert site.bmcs["work4"].machine.override().target == "network"
    assert site.bmcs["work3"].machine.override().target == "none"


def test_nodes_on_which_jobs_run_or_may_start_keep_their_power_without_permission(site: Site) -> None:
    site.serve("work1", "work2", "front")
    site.slurm(work2="MIXED")
    for bmc in site.bmcs.values():
        bmc.machine.set_power("On")
    done = site.play("power.yml", "-e", "power_nodes=work[1-2]", "-e", "power_action=off")
    assert done.returncode != 0
    assert (
        "jobs run on work2; jobs may start on work1: Slurm says IDLE; jobs may start on work2: Slurm says MIXED. Drain"
        " them first: scontrol update NodeName=work[1-2] State=DRAIN Reason=..., and wait until no job is there; or say"
        " power_jobs_ok. Nothing was changed."
    ) in said(done)
    assert all(bmc.machine.power() for bmc in site.bmcs.values())
    site.slurm(work1="IDLE+DRAIN", work2="MIXED+DRAIN")
    done = site.play("power.yml", "-e", "power_nodes=work1", "-e", "power_action=off")
    assert done.returncode == 0, said(done)
    assert not site.bmcs["work1"].machine.power()
    words = ("-e", "power_jobs_ok=true", "-e", '{"power_roles_ok": ["login"]}')
    done = site.play("power.yml", "-e", "power_nodes=front,work2", "-e", "power_action=force_off", *words)
    assert "- off front,work2" in said(done), "permission for a role comes on top of compute and test nodes"
    assert done.returncode == 0, said(done)
    assert not any(bmc.machine.power() for bmc in site.bmcs.values())


def test_where_slurm_does_not_answer_power_stays(site: Site) -> None:
    site.serve("work1")
    site.bmcs["work1"].machine.set_power("On")
    (site.folder / "bin" / "scontrol").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
    done = site.play("power.yml", "-e", "power_nodes=work1", "-e", "power_action=force_off")
    assert "slurmctld does not say whether jobs run there: " in said(done)
    assert "Unable to contact slurm controller. Mend that, or say power_jobs_ok. Nothing was changed." in said(done)
    assert site.bmcs["work1"].machine.power()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("power_nodes=front,work1", "power_action=boot", "power_boot=network"),
            "not permitted: front; power_roles_ok has to name their role. Nothing was changed.",
        ),
        (
            ("power_nodes=front,work1", "power_action=off"),
            "not permitted: front; power_roles_ok has to name their role.",
        ),
        (
            ("power_nodes=work1", "power_action=reset"),
            "power_action=reset is none of status, on, off, force_off, cycle,",
        ),
        (
            ("power_nodes=work1", "power_action=boot"),
            "boot needs -e power_boot=network, disk, setup or none. Nothing was",
        ),
        # A task without a result, as a module that crashed leaves it.
        (("power_nodes=work1", "bmc_wait_seconds=soon"), "- 'not asked work1: argument ''wait_seconds'' is of type"),
        (("power_action=status",), "name them: -e power_nodes=hal[05-06]"),
        (("{power_nodes: 'aside and work1'}",), "power_nodes names no node"),
    ],
)
def test_what_nobody_means_is_refused(site: Site, words: tuple[str, ...], message: str) -> None:
    done = site.play("power.yml", *(word for each in words for word in ("-e", each)))
    assert done.returncode != 0
    assert message in said(done), done.stdout[-1500:]


def test_placeholders_of_a_real_site_are_contacted_by_nobody(site: Site) -> None:
    site.serve("work1", "front")
    site.model(MODEL.replace('serial: "S[1-4]"', 'serial: [S1, !placeholder "S[2-4]"]'))
    done = site.play("power.yml", "-e", "power_nodes=work1", "-e", "power_action=on")
    assert "work1 has placeholders: nodes.work[1-4].serial[1]: fill that in" in said(done)
    site.model(MODEL.replace("bmc: 127.0.9.[101-104]", "bmc: !placeholder 127.0.9.[101-104]"))
    done = site.play("power.yml", "-e", "power_nodes=work1,front", "-e", "power_action=on")
    assert "work1 has placeholders: nodes.work[1-4].addresses.bmc: fill that in" in said(done)
    assert site.bmcs["front"].machine.power(), "the others are done"
    assert not site.bmcs["work1"].machine.power()
    done = site.play("power.yml", "-e", "power_nodes=work1")
    assert "its address is a placeholder: put the real one into cluster.yml" in said(done)

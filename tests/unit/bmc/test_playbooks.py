"""playbooks/power.yml and playbooks/bmc.yml as administrators call them, on emulated BMCs."""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from bmc import redfish
from bmc.machine import Processor

from hal_bmc import operations
from hal_bmc.models import BootTarget
from tests.unit.bmc.emulated import LIMITS, NEW_SECRET, SECRET, Emulation
from tests.unit.bmc.site import MODEL, Site, must_listen_at_low_ports

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def site(tmp_path: Path, emulation: Emulation) -> Site:
    must_listen_at_low_ports()
    return Site(tmp_path / "site", emulation)


def said(done: Done) -> str:
    """Return what a run printed, after a look whether it tells what it must not."""
    text = done.stdout + done.stderr
    assert SECRET not in text
    assert NEW_SECRET not in text
    assert "Traceback" not in text
    return " ".join(text.split())


def test_the_power_of_all_is_one_screen(site: Site) -> None:
    site.serve()
    for name in ("work1", "work2", "work3"):
        operations.power_on(site.bmcs[name].client(), LIMITS)
    operations.boot_once(site.bmcs["work3"].client(), BootTarget.NETWORK, LIMITS)
    site.bmcs["front"].fault(gateway_timeout=True)
    done = site.play("power.yml", "-e", "power_nodes=work[1-4],front", "-e", '{"bmc_wait_seconds": 1}')
    text = said(done)
    for line in (
        "- on work[1-2]",
        "- 'on, next start network: work3'",
        "- off work4",
        "- 'busy front: login of admin: 504",
    ):
        assert line in text
    assert done.returncode != 0, "one did not answer"


def test_nodes_are_switched_on_and_off_as_they_are_asked(site: Site) -> None:
    site.serve()
    done = site.play("power.yml", "-e", "power_nodes=work[3-4]", "-e", "power_action=on", "--check", "--diff")
    assert "- on work[3-4]" in said(done)
    assert "-off" in done.stdout
    assert "+on" in done.stdout
    assert not site.bmcs["work3"].machine.power(), "a check changes nothing"
    done = site.play("power.yml", "-e", "power_nodes=work[3-4]", "-e", "power_action=on")
    assert "- on work[3-4]" in said(done)
    assert done.returncode == 0
    assert all(site.bmcs[name].machine.power() for name in ("work3", "work4"))
    assert not site.bmcs["work1"].machine.power()
    again = site.play("power.yml", "-e", "power_nodes=work[3-4]", "-e", "power_action=on")
    assert "changed=0" in said(again)


def test_one_start_from_the_network(site: Site) -> None:
    site.serve()
    done = site.play("power.yml", "-e", "power_nodes=work4", "-e", "power_action=boot", "-e", "power_boot=network")
    assert done.returncode == 0, said(done)
    assert site.bmcs["work4"].machine.override().target == "network"
    assert site.bmcs["work3"].machine.override().target == "none"
    refused = site.play("power.yml", "-e", "power_nodes=work4", "-e", "power_action=boot")
    assert "boot needs -e power_boot=network, disk, setup or none. Nothing was changed." in said(refused)


def test_nodes_with_jobs_keep_their_power_without_permission(site: Site) -> None:
    site.serve()
    site.policy(ansible_connection="local", ansible_python_interpreter="{{ ansible_playbook_python }}")
    for name in ("work1", "work2"):
        operations.power_on(site.bmcs[name].client(), LIMITS)
    done = site.play("power.yml", "-e", "power_nodes=work[1-2]", "-e", "power_action=off")
    assert done.returncode != 0
    assert "jobs run on work2. Drain them first" in said(done)
    assert all(site.bmcs[name].machine.power() for name in ("work1", "work2"))
    done = site.play("power.yml", "-e", "power_nodes=work1", "-e", "power_action=off")
    assert done.returncode == 0, said(done)
    assert not site.bmcs["work1"].machine.power()
    done = site.play("power.yml", "-e", "power_nodes=work2", "-e", "power_action=off", "-e", "power_jobs_ok=true")
    assert done.returncode == 0, said(done)
    assert not site.bmcs["work2"].machine.power()


def test_where_slurm_does_not_answer_power_stays(site: Site) -> None:
    site.serve()
    operations.power_on(site.bmcs["work1"].client(), LIMITS)
    site.policy(ansible_connection="local", ansible_python_interpreter="{{ ansible_playbook_python }}")
    (site.folder / "bin" / "scontrol").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
    done = site.play("power.yml", "-e", "power_nodes=work1", "-e", "power_action=force_off")
    assert "slurmctld does not say whether jobs run there: " in said(done)
    assert "Unable to contact slurm controller. Drain them first" in said(done)
    assert site.bmcs["work1"].machine.power()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("power_nodes=front", "power_action=off"), "not permitted: front; power_roles_ok has to name their role."),
        (
            ("power_nodes=work1", "power_action=reset"),
            "power_action=reset is none of status, on, off, force_off, cycle,",
        ),
        # A task without a result, as a module that crashed leaves it.
        (("power_nodes=work1", "bmc_wait_seconds=soon"), "- 'not asked work1: argument ''wait_seconds'' is of type"),
        (("power_nodes=aside", "power_action=status"), "aside has no BMC in the model: fill that in in cluster.yml"),
        (("power_action=status",), "name them: -e power_nodes=hal[05-06]"),
        (("{power_nodes: 'aside and work1'}",), "power_nodes names no node"),
    ],
)
def test_what_nobody_means_is_refused(site: Site, words: tuple[str, ...], message: str) -> None:
    done = site.play("power.yml", *(word for each in words for word in ("-e", each)))
    assert done.returncode != 0
    assert message in said(done), done.stdout[-1500:]


def test_a_node_whose_bmc_is_anothers_is_left_alone(site: Site) -> None:
    site.serve()
    site.bmcs["work3"].fault(swapped_with="work4")
    done = site.play("power.yml", "-e", "power_nodes=work[3-4]", "-e", "power_action=on")
    text = said(done)
    assert (
        "another machine work3: whether it is the machine S3: it is S4, which is work4: their BMCs are swapped" in text
    )
    assert "- on work4" in text
    assert not site.bmcs["work3"].machine.power()
    assert site.bmcs["work4"].machine.power()


def test_a_node_that_was_refused_is_a_line_beside_the_others(site: Site) -> None:
    site.serve()
    done = site.play("power.yml", "-e", "power_nodes=aside,work1", "-e", "power_action=on")
    text = said(done)
    assert "- on work1" in text
    assert "- 'not asked aside: nothing came of it'" in text
    assert done.returncode != 0
    assert site.bmcs["work1"].machine.power()


def test_an_answer_that_no_client_foresaw_is_a_failure(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = redfish._complete_system

    def odd(processor: Processor, body: dict[str, Any]) -> None:
        complete(processor, body)
        if processor.own.spec.name == "work1":
            body["MemorySummary"] = "much"

    monkeypatch.setattr(redfish, "_complete_system", odd)
    site.serve()
    done = site.play("power.yml", "-e", "power_nodes=work[1-2]", "-e", "power_action=on")
    text = said(done)
    assert "- on work2" in text
    assert "- 'refused work1: on: what this does not understand: AttributeError'" in text
    assert done.returncode != 0


@pytest.mark.parametrize("words", ['{"bmc_ntp_servers": {"first": 1}}', '{"bmc_certificate_days": 1.5}'])
def test_what_came_to_nothing_is_not_taken_for_unsupported(site: Site, words: str) -> None:
    """The task ends without a result, as one does whose module crashed."""
    site.serve()
    done = site.play("bmc.yml", "-e", "bmc_nodes=work2", "-e", words)
    assert "Show it" not in said(done)
    assert done.returncode != 0


def test_login_nodes_need_their_role_beside_the_others(site: Site) -> None:
    site.serve()
    words = ("-e", "power_nodes=front,work1", "-e", "power_action=off", "-e", "power_jobs_ok=true")
    assert "not permitted: front; power_roles_ok has to name their role." in said(site.play("power.yml", *words))
    done = site.play("power.yml", *words, "-e", '{"power_roles_ok": ["login"]}')
    assert "- off front,work1" in said(done)
    assert done.returncode == 0


def test_placeholders_of_a_real_site_are_contacted_by_nobody(site: Site) -> None:
    site.serve()
    site.model(MODEL.replace("bmc: 127.0.9.[101-104]", "bmc: !placeholder 127.0.9.[101-104]"))
    done = site.play("power.yml", "-e", "power_nodes=work1", "-e", "power_action=on")
    assert "work1 has placeholders: nodes.work[1-4].addresses.bmc: fill that in" in said(done)
    done = site.play("power.yml", "-e", "power_nodes=work1")
    assert "its address is a placeholder: put the real one into cluster.yml" in said(done)
    site.model(MODEL.replace('serial: "S[1-4]"', 'serial: !placeholder "S[1-4]"'))
    done = site.play("power.yml", "-e", "power_nodes=work1", "-e", "power_action=on")
    assert "work1 has placeholders: nodes.work[1-4].serial: fill that in" in said(done)
    assert not site.bmcs["work1"].machine.power()


def test_a_bmc_as_it_came_gets_what_is_declared(site: Site, tmp_path: Path) -> None:
    site.serve(work1={"certificate": None, "key": None, "password": "0penBmc"})
    with site.bmcs["work1"].machine.kept.change() as state:
        state.users["root"] = state.users["root"].model_copy(update={"must_change": True})
    done = site.play("bmc.yml", "-e", "bmc_nodes=work1")
    assert "its certificate is signed by nobody but itself; it shows sha256:" in said(done)
    pin = said(done).split("shows sha256:")[1][:64]
    site.policy(bmc_fingerprints={"work1": f"sha256:{pin}"}, bmc_certificate_days=365, bmc_ntp_servers=["10.99.0.11"])
    done = site.play("bmc.yml", "-e", "bmc_nodes=work1")
    assert "User or password is wrong" in said(done)
    assert "No former password is given: bmc_former_password" in said(done)
    (tmp_path / "former.yml").write_text("bmc_former_password: 0penBmc\n")
    checked = site.play("bmc.yml", "-e", "bmc_nodes=work1", "-e", f"@{tmp_path}/former.yml", "--check")
    assert "changed: [work1 -> localhost]" in said(checked)
    done = site.play("bmc.yml", "-e", "bmc_nodes=work1", "-e", f"@{tmp_path}/former.yml")
    text = said(done)
    assert done.returncode == 0, text
    assert "- 'firmware: BMC image ibm-v2.3-476-g2d622cb-r33-0-gcb6e3a8 (work1)'" in text
    assert "- 'one-time boot: network, disk, setup (work1)'" in text
    assert "- 'clock: asks 10.99.0.11 (work1)'" in text
    site.policy(bmc_fingerprints={})
    again = site.play("bmc.yml", "-e", "bmc_nodes=work[1-2]")
    assert again.returncode == 0, said(again)
    assert site.bmcs["work1"].machine.users()["root"].password == SECRET


def test_what_is_not_declared_is_not_touched(site: Site) -> None:
    site.serve()
    before = site.bmcs["work2"].machine.kept.read()
    certificate = (site.emulation.folder / "work2.crt").read_bytes()
    done = site.play("bmc.yml", "-e", "bmc_nodes=work2")
    assert done.returncode == 0, said(done)
    assert "changed=0" in said(done)
    assert site.bmcs["work2"].machine.kept.read() == before
    assert (site.emulation.folder / "work2.crt").read_bytes() == certificate


def test_a_rotated_password_reaches_the_bmcs(site: Site, tmp_path: Path) -> None:
    site.serve()
    site.policy(vault_bmc_password=NEW_SECRET)
    (tmp_path / "former.yml").write_text(f"bmc_former_password: {SECRET}\n")
    done = site.play("bmc.yml", "-e", "bmc_nodes=work[1-4]", "-e", f"@{tmp_path}/former.yml")
    assert done.returncode == 0, said(done)
    assert {site.bmcs[f"work{at}"].machine.users()["root"].password for at in range(1, 5)} == {NEW_SECRET}


def test_no_process_has_a_password_on_its_command_line(site: Site) -> None:
    site.serve()
    over, seen = threading.Event(), set[str]()

    def watch() -> None:
        while not over.is_set():
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    seen.add(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        done = site.play("power.yml", "-e", "power_nodes=work[1-4]")
    finally:
        over.set()
        watching.join()
    assert done.returncode == 0, said(done)
    assert any("ansible-playbook" in line for line in seen), "the watch saw nothing"
    assert not [line for line in seen if SECRET in line]


def test_a_site_without_its_authorities_is_refused(site: Site) -> None:
    (site.folder / "state" / "ca").unlink()
    (site.folder / "state" / "ca").mkdir()
    for name in ("host_ca", "tls_ca"):
        (site.folder / "state" / "ca" / name).touch(0o600)
    done = site.play("validate.yml")
    assert f"{site.folder}/state/ca/tls_ca.pem is missing. For a new site run playbooks/authorities.yml" in said(done)
    (site.folder / "state" / "ca" / "tls_ca.pem").touch()
    done = site.play("validate.yml")
    assert done.returncode == 0, said(done)

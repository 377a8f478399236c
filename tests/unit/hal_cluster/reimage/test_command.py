"""The command: what a first call shows, what a code is worth, and that nothing is changed where it is refused."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.images import make_key
from hal_cluster.reimage.command import Result
from hal_cluster.reimage.engine import Engine
from hal_cluster.reimage.errors import ReimageError
from hal_cluster.reimage.record import Image, Plan, Run, State, code_of, record_of
from hal_cluster.reimage.settings import settings_of
from tests.unit.hal_cluster.reimage.asking import Desk
from tests.unit.hal_cluster.reimage.conftest import Publish
from tests.unit.hal_cluster.reimage.slurmctld import Node, Slurmctld

SCRATCH = ('disks: {system: !placeholder "0x50248414c1[01-16]0001"}',
           'disks: {system: "0x50248414c1[01-16]0001", scratch: "0x50248414c1[01-16]0002"}')  # fmt: skip


def refused(desk: Desk, nodes: str, code: str = "", **settings: Any) -> str:
    """Return why a call is refused; nothing was written, drained, armed or switched."""
    before = desk.changed(), {name: dict(one) for name, one in desk.site.records.items()}
    with pytest.raises((ReimageError, ProvisionError)) as error:
        desk.ask(nodes, code, **settings)
    assert (desk.changed(), desk.site.records) == before
    return str(error.value)


def states(desk: Desk) -> dict[str, str]:
    return {name: str(one["state"]) for name, one in desk.site.records.items()}


# --- the first call


def test_a_first_call_shows_what_would_be_done_and_changes_nothing(desk: Desk) -> None:
    desk.model(SCRATCH)
    desk.site.machines["hal06"].jobs.append("4711")
    shown = desk.ask("hal[05-06]", wipe=["scratch"])
    assert (shown.changed, shown.well, desk.changed(), desk.site.records) == (False, True, [], {})
    image = re.compile(r"ac922-20261122-ppc64le\n +kernel 4\.18\.0-80\.7\.2\.el7, sha256 [0-9a-f]{12}\n")
    for word in (
        "serial PLACEHOLDER-HAL05", "IBM Power System AC922 8335-GTH", "10.64.0.105", "0x50248414c1050001",
        "0x50248414c1050002", "no jobs", "serial PLACEHOLDER-HAL06", "0x50248414c1060001", "1 job, ",
        "4711 of alice ends by 12:00",
        f"Code: {shown.code}", f"-e reimage_code={shown.code}", "Nothing was changed",
    ):  # fmt: skip
        assert word in shown.text
    assert len(image.findall(shown.text)) == 2


def test_the_plan_says_how_many_nodes_stay_for_jobs(desk: Desk) -> None:
    desk.site.floor = 3
    for shown in (desk.ask("hal05"), desk.ask("hal05", check=True)):
        assert "\n1 at a time, drained, then given back to Slurm. Nodes that stay for jobs: gpu 3 of 8.\n" in shown.text
    assert desk.ask("hal05", shown.code).well
    assert "Nodes that stay for jobs: gpu 3 of 8.\nConfirmed with" in desk.said[0], "what was confirmed says so, too"


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        ({"gpu": "5"}, "reimage_keep: gpu has 4 nodes, 5 cannot stay"),
        ({"gpux": 1}, "reimage_keep: Slurm has no node in a partition gpux; it has gpu"),
    ],
)
def test_floors_that_slurm_cannot_keep_are_refused_before_anything_else_is_asked(
    desk: Desk, keep: dict[str, Any], said: str
) -> None:
    slurmctld = Slurmctld(*(Node(f"hal0{at}", ["gpu"]) for at in range(1, 5)))
    asks = ["env", "LC_ALL=C", "timeout", "30", "scontrol", "--oneliner", "show", "node"]
    desk.server.says[tuple(asks)] = slurmctld(asks)
    desk.world = lambda: None
    assert refused(desk, "hal05", keep=keep) == said
    assert desk.server.asked == [tuple(asks)]


def test_every_bmc_is_asked_which_machine_it_is_before_a_code_is_shown(desk: Desk) -> None:
    desk.ask("hal[05-06]")
    assert sorted(one for one in desk.site.told if "identify" in one) == ["bmc.identify hal05", "bmc.identify hal06"]


def test_bmcs_of_other_machines_are_a_line_each(desk: Desk) -> None:
    code = desk.ask("hal[05-07]").code
    desk.site.faults["hal05"].add("swapped")
    desk.site.faults["hal07"].add("bmc")
    for given in ("", code):
        assert refused(desk, "hal[05-07]", given).splitlines() == [
            "hal05: it is another machine. Nothing was done to it",
            "hal07: bmc does not answer",
            "Nothing was changed",
        ]


@pytest.mark.parametrize("part", ["server", "slurmctld"])
def test_what_does_not_answer_is_a_refusal(desk: Desk, part: str) -> None:
    code = desk.ask("hal05").code
    desk.site.faults["*"].add(part)
    for given in ("", code):
        assert refused(desk, "hal05", given) == f"hal05: {part} does not answer\nNothing was changed"


def test_the_provisioning_server_that_does_not_know_the_program_is_said(desk: Desk) -> None:
    desk.server.settings.unlink()
    with pytest.raises(Exception, match=r"provision\.json"):
        desk.ask("hal05")
    assert desk.changed() == []


# --- the code


def test_with_its_code_a_node_is_reimaged_and_nothing_else_is_touched(desk: Desk) -> None:
    others = {name: replace(one) for name, one in desk.site.machines.items() if name != "hal05"}
    done = desk.ask("hal05", desk.ask("hal05").code)
    assert done.well, done.text
    assert done.changed
    machine = desk.site.machines["hal05"]
    assert machine.disk != "system 0"
    assert machine.serves
    assert {name: one for name, one in desk.site.machines.items() if name != "hal05"} == others
    assert states(desk) == {"hal05": "done"}
    assert re.match(r"hal05: done in ", done.text)
    assert any("Confirmed with" in one for one in desk.said)
    assert desk.said[-1].startswith("hal05  done in ")


def test_the_same_command_in_the_same_second_is_another_call(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hal_cluster.reimage.command.stamp", lambda now: "2026-11-22T18:00:00Z")
    desk.site.faults["hal05"] = {"gates"}
    code, runs = desk.ask("hal05").code, []
    for _call in range(2):
        desk.ask("hal05", code)
        runs.append(record_of(desk.site.records["hal05"]).run)
    assert runs[0].began == runs[1].began
    assert not runs[0].same(runs[1])


def test_each_record_names_all_nodes_of_the_call_that_drives_it(desk: Desk) -> None:
    code = desk.ask("hal[05-07]").code
    desk.site.faults["hal06"] = {"gates"}
    assert not desk.ask("hal[05-07]", code).well
    named = {name: record_of(one).run.nodes for name, one in desk.site.records.items()}
    assert named == dict.fromkeys(("hal05", "hal06"), ("hal05", "hal06", "hal07"))
    desk.site.faults.clear()
    assert desk.ask("hal[05-07]", code).well
    named = {name: record_of(one).run.nodes for name, one in desk.site.records.items()}
    # Who was done already is not this call's any more.
    assert named == {"hal05": ("hal05", "hal06", "hal07")} | dict.fromkeys(("hal06", "hal07"), ("hal06", "hal07"))


def test_several_nodes_are_reimaged_two_at_a_time(desk: Desk) -> None:
    code = desk.ask("hal[01-04]").code
    done = desk.ask("hal[01-04]", code, max_parallel="2")
    assert done.well, done.text
    assert states(desk) == dict.fromkeys(("hal01", "hal02", "hal03", "hal04"), "done")
    assert [desk.site.machines[name].disk == "system 0" for name in ("hal01", "hal04", "hal05")] == [False, False, True]


@pytest.mark.parametrize("code", ["K7QX-M2VD", "yes", "true", "hal05"])
def test_another_code_is_refused(desk: Desk, code: str) -> None:
    assert refused(desk, "hal05", code) == (
        f"{code} is not the code of what would be done now: other nodes, another image, disk or serial number, or it"
        " was used. Run the command without reimage_code, read the plan, and use the code that it shows. Nothing was"
        " changed"
    )


def test_a_code_is_for_exactly_the_nodes_that_were_shown(desk: Desk) -> None:
    codes = {nodes: desk.ask(nodes).code for nodes in ("hal05", "hal06", "hal[05-06]", "hal[05-07]")}
    assert len(set(codes.values())) == 4
    assert desk.ask("hal06,hal05").code == codes["hal[05-06]"], "in whatever order they are named"
    for nodes in codes:
        for others, code in codes.items():
            if others != nodes:
                assert "is not the code" in refused(desk, nodes, code)


def test_a_code_is_worth_nothing_once_an_image_serial_or_disk_changed(desk: Desk, publish: Publish) -> None:
    code = desk.ask("hal05").code
    desk.model(('"PLACEHOLDER-HAL[01-16]"', '"OTHER-HAL[01-16]"'))
    assert "is not the code" in refused(desk, "hal05", code)
    desk.model(("0x50248414c1[01-16]0001", "0x50248414c1[01-16]0009"))
    assert "is not the code" in refused(desk, "hal05", code)
    desk.model(SCRATCH)
    assert "is not the code" in refused(desk, "hal05", code, wipe=["scratch"])
    desk.model()
    assert desk.ask("hal05").code == code, "as it was before"
    publish("20261123")
    assert "is not the code" in refused(desk, "hal05", code)
    assert "ac922-20261123-ppc64le" in desk.ask("hal05").text
    assert desk.ask("hal05", image="ac922-20261122-ppc64le").code == code, "the one that was shown, by its name"


def test_a_code_that_was_used_is_worth_nothing(desk: Desk) -> None:
    code = desk.ask("hal05").code
    assert desk.ask("hal05", code).well
    assert "is not the code" in refused(desk, "hal05", code)
    again = desk.ask("hal05")
    assert again.code != code
    assert "last       done " in again.text


def test_an_aborted_reimage_used_its_code_up(desk: Desk) -> None:
    code = desk.ask("hal05").code
    desk.site.faults["hal05"].add("converge")
    assert not desk.ask("hal05", code).well
    assert desk.site.abort("hal05")
    assert "is not the code" in refused(desk, "hal05", code)


def test_check_mode_changes_nothing_with_the_code_and_without(desk: Desk) -> None:
    code = desk.ask("hal05").code
    without, right = desk.ask("hal05", check=True), desk.ask("hal05", code, check=True)
    assert f"Code: {code}" in without.text
    assert f"The code {code} is right for this. Nothing was changed: this is check mode" in right.text
    with pytest.raises(ReimageError, match="is not the code"):
        desk.ask("hal05", "K7QX-M2VD", check=True)
    assert (desk.changed(), desk.site.records) == ([], {})


# --- going on


def fail(desk: Desk, *names: str, fault: str = "converge") -> tuple[Result, str]:
    """Have a reimage fail at some nodes."""
    for name in names:
        desk.site.faults[name].add(fault)
    code = desk.ask(",".join(names)).code
    return desk.ask(",".join(names), code, go_on=True, max_parallel="8"), code


def test_a_failed_reimage_says_why_and_goes_on_with_the_same_command(desk: Desk) -> None:
    done, code = fail(desk, "hal05")
    assert not done.well
    assert "hal05: failed " in done.text
    assert "at converge: converge failed" in done.text
    assert done.text.endswith("Again: the same command\nGive up: ssh hal-mgmt1 hal-reimage abort hal05")
    assert desk.site.machines["hal05"].drained
    installed = desk.site.machines["hal05"].disk
    desk.site.faults["hal05"].clear()
    shown = desk.ask("hal05")
    assert shown.code == code, "the code of what was begun"
    assert "at converge: converge failed" in shown.text
    done = desk.ask("hal05", code)
    assert done.well, done.text
    assert desk.site.machines["hal05"].disk == installed, "what was installed was not installed again"


def test_a_node_that_was_begun_keeps_its_image(desk: Desk, publish: Publish) -> None:
    _done, code = fail(desk, "hal05")
    publish("20261123")
    assert "ac922-20261122-ppc64le" in desk.ask("hal05").text
    assert desk.ask("hal05").code == code
    said = refused(desk, "hal05", desk_code(desk, "hal05", "ac922-20261123-ppc64le"), image="ac922-20261123-ppc64le")
    assert said.startswith(f"hal05: another reimage of it failed at converge, confirmed by root@here with {code}; ")


def desk_code(desk: Desk, node: str, image: str) -> str:
    """Return the code of a plan that is refused before it is shown."""
    kept = record_of(desk.site.records[node]).plan
    folder = desk.folder / "images" / image
    said = json.loads((folder / "manifest.json").read_text())
    return code_of([replace(kept, image=Image(image, said["sha256"], said["arch"], said["kernel"]))])


def test_another_reimage_of_a_node_that_is_on_is_refused(desk: Desk) -> None:
    alone = desk.ask("hal05").code
    both = desk.ask("hal[05-06]").code
    plan = _plan(desk)
    Engine(desk.site.world()).confirm(plan, Run(alone, "ann@there", "2026-11-22T18:00:00Z"))
    desk.site.told.clear()
    said = refused(desk, "hal[05-06]", both)
    assert said.startswith(f"hal05: another reimage of it is at waiting, confirmed by ann@there with {alone}; ")
    assert "hal-reimage abort hal05" in said
    assert refused(desk, "hal[05-06]") == said, "without a code as well"


def _plan(desk: Desk) -> Plan:
    """Return the plan of hal05 as the command makes it."""
    code = desk.ask("hal05").code
    desk.site.faults["hal05"].add("job")
    desk.ask("hal05", code)
    found = record_of(desk.site.records.pop("hal05")).plan
    desk.site.faults["hal05"].clear()
    return found


def test_after_one_that_failed_no_other_is_begun(desk: Desk) -> None:
    for name in ("hal05", "hal06", "hal07"):
        desk.site.faults[name].add("gates")
    done = desk.ask("hal[05-07]", desk.ask("hal[05-07]").code)
    assert not done.well
    assert states(desk) == {"hal05": "failed"}
    assert "hal06: not begun, because hal05 failed; the same command goes on with it" in done.text
    assert desk.site.machines["hal06"].serves


# --- what is asked for


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("", "name the nodes: -e reimage_nodes=hal05"),
        ("  ", "name the nodes: -e reimage_nodes=hal05"),
        ("all", "reimage_nodes is all: name nodes, such as hal05 or hal[05-08]"),
        ("*", "reimage_nodes is *: name nodes, such as hal05 or hal[05-08]"),
        ("hal*", "reimage_nodes is hal*: name nodes, such as hal05 or hal[05-08]"),
        ("gpu and login", "reimage_nodes is gpu and login: this selects no node"),
        ("hal-mgmt2", "hal-mgmt2: is a management node; compute and test nodes are reimaged, and no others\n"
                      "hal-mgmt2: its profile x86 says reimage: refused"),
        ("hal05,hal-login", "hal-login: is a login node; compute and test nodes are reimaged, and no others\n"
                            "hal-login: its profile lc921 says reimage: refused\n"
                            "hal-login: the reimage itself stands on it"),
    ],
)  # fmt: skip
def test_nodes_that_nobody_can_have_meant_are_refused_before_anything_is_asked(
    desk: Desk, nodes: str, said: str
) -> None:
    assert refused(desk, nodes) == said
    assert (desk.site.told, desk.server.asked) == ([], [])


@pytest.mark.parametrize("nodes", ["hal17", "hal05,hal99", "hal05 hal06", "hal[05", "-e", "hal05; true"])
def test_an_expression_that_the_model_does_not_know_is_refused(desk: Desk, nodes: str) -> None:
    with pytest.raises(Exception, match=r"\S") as error:
        desk.ask(nodes)
    assert type(error.value).__module__.startswith(("hal_inventory", "hal_cluster.reimage"))
    assert (desk.site.told, desk.server.asked) == ([], [])


def test_a_real_site_with_placeholders_is_refused(desk: Desk) -> None:
    desk.model(virtual=False)
    said = refused(desk, "hal05")
    assert said.startswith("hal05: placeholders in cluster.yml: addresses.")
    assert "serial" in said
    assert desk.site.told == []


def test_settings_that_lack_are_named(desk: Desk) -> None:
    given = {name: value for name, value in desk.settings().items() if name not in ("next_state", "keep")}
    with pytest.raises(ReimageError) as refusal:
        settings_of(given)
    assert str(refusal.value) == "settings lack keep, next_state; give all that playbooks/reimage.yml gives"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"wipe": ["scratch"]}, "hal05: reimage_wipe names scratch; its other disks in cluster.yml: none"),
        ({"wipe": ["system"]}, "hal05: reimage_wipe names system; its other disks in cluster.yml: none"),
        ({"next_state": "IDLE"}, "reimage_next_state is IDLE: RESUME or DOWN"),
        ({"image": "ac922-1-ppc64le"},
         "reimage_image is ac922-1-ppc64le: not a signed image of the server; "
         "signed images there: ac922-20261122-ppc64le"),
        ({"authority_dir": "/nonexistent"},
         "/nonexistent/tls_ca.pem: No such file or directory; playbooks/authorities.yml makes it"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_are_refused(desk: Desk, settings: dict[str, Any], said: str) -> None:
    assert refused(desk, "hal05", **settings) == said


def test_a_disk_that_is_to_be_wiped_and_is_not_there_is_said_with_those_that_are(desk: Desk) -> None:
    desk.model(SCRATCH)
    assert refused(desk, "hal05", wipe=["scratch", "data"]) == (
        "hal05: reimage_wipe names data; its other disks in cluster.yml: scratch"
    )


def test_what_is_wiped_comes_into_the_plan_by_world_wide_name(desk: Desk) -> None:
    desk.model(SCRATCH)
    assert desk.ask("hal05", desk.ask("hal05", wipe=["scratch"]).code, wipe=["scratch"]).well
    assert record_of(desk.site.records["hal05"]).plan.wipe == ("0x50248414c1050002",)


# --- images


def test_without_an_image_it_says_what_makes_one(desk: Desk) -> None:
    shutil.rmtree(desk.folder / "images")
    (desk.folder / "images").mkdir()
    said = "hal05: no image for ppc64le with kernel 4.18.0-80.7.2.el7 is published: playbooks/image.yml makes one"
    assert refused(desk, "hal05").startswith(said)


def test_an_image_of_another_kernel_machine_or_key_is_none(desk: Desk, publish: Publish, tmp_path: Path) -> None:
    make_key(tmp_path / "other_key")
    publish("20261123", key=tmp_path / "other_key")
    publish("20261124", kernel="4.18.0-1.el7")
    publish("20261125", arch="x86_64")
    assert "ac922-20261122-ppc64le" in desk.ask("hal05").text
    assert refused(desk, "hal05", image="ac922-20261124-ppc64le") == (
        "hal05: ac922-20261124-ppc64le is for ppc64le with kernel 4.18.0-1.el7, "
        "and it is ppc64le with kernel 4.18.0-80.7.2.el7"
    )
    assert "not a signed image of the server" in refused(desk, "hal05", image="ac922-20261123-ppc64le")


# --- how it ends


def test_a_node_that_somebody_had_drained_stays_drained_and_the_plan_says_so(desk: Desk) -> None:
    machine = desk.site.machines["hal05"]
    machine.drained, machine.reason = True, "bad fan"
    shown = desk.ask("hal05")
    assert "drained by root: bad fan" in shown.text
    assert desk.ask("hal05", shown.code).well
    assert (machine.drained, machine.reason) == (True, "bad fan")


def test_who_has_ended_waits_for_no_rollout_any_more(desk: Desk) -> None:
    code = desk.ask("hal[05-06]", keep={}).code
    assert desk.ask("hal[05-06]", code, keep={}).well
    assert {"rollout.leave hal05", "rollout.leave hal06"} <= set(desk.site.told)


def test_next_state_down_leaves_it_drained(desk: Desk) -> None:
    assert desk.ask("hal05", desk.ask("hal05").code, next_state="DOWN").well
    machine = desk.site.machines["hal05"]
    assert machine.drained
    assert "installed and proven; drained, as asked by root@here" in machine.reason


def test_the_record_says_who_and_by_what(desk: Desk) -> None:
    code = desk.ask("hal05").code
    assert desk.ask("hal05", code).well
    kept = record_of(desk.site.records["hal05"])
    assert (kept.run.code, kept.run.by, kept.state) == (code, "root@here", State.DONE)
    assert kept.plan.serial == "PLACEHOLDER-HAL05"


# ---------------------------------------------------------------- a call for several nodes, interrupted


def test_a_call_of_which_one_node_is_done_goes_on_with_the_others(desk: Desk) -> None:
    """With the same code, and without one it shows that code; who is done is left alone."""
    code = desk.ask("hal[05-06]", keep={}).code
    desk.site.faults["hal06"] = {"gates"}
    first = desk.ask("hal[05-06]", code)
    assert (first.well, desk.site.records["hal05"]["state"], desk.site.records["hal06"]["state"]) == (
        False,
        "done",
        "failed",
    )
    desk.site.faults.clear()
    disk = desk.site.machines["hal05"].disk
    assert desk.ask("hal[05-06]").code == code
    again = desk.ask("hal[05-06]", code)
    assert (again.well, desk.site.records["hal06"]["state"]) == (True, "done")
    assert desk.site.machines["hal05"].disk == disk, "it was erased a second time"
    with pytest.raises(ReimageError, match="is not the code"):
        desk.ask("hal[05-06]", code)


def test_a_node_that_was_aborted_is_left_out_and_the_same_command_goes_on_with_the_others(desk: Desk) -> None:
    done, code = fail(desk, "hal05", "hal06", fault="gates")
    assert not done.well
    assert desk.site.abort("hal05")
    desk.site.faults.clear()
    disk = desk.site.machines["hal05"].disk
    desk.site.faults["hal05"] = {"bmc", "slurmctld"}  # that may be why
    shown = desk.ask("hal05,hal06")
    assert shown.code == code
    of_hal05 = shown.text.split("hal06  ")[0].split()
    assert "left out aborted" in " ".join(of_hal05)
    assert not {"erased", "installed"} & set(of_hal05)
    again = desk.ask("hal05,hal06", code)
    assert again.well, again.text
    assert states(desk) == {"hal05": "aborted", "hal06": "done"}
    assert (desk.site.machines["hal05"].disk, desk.site.machines["hal05"].drained) == (disk, True)
    assert "hal05: aborted" in again.text
    assert not re.search("Again|Give up", again.text), again.text
    desk.site.faults.clear()
    with pytest.raises(ReimageError, match="is not the code"):
        desk.ask("hal05,hal06", code)
    assert desk.ask("hal05").code != code


def test_a_code_goes_on_with_its_own_call_when_two_were_begun(desk: Desk) -> None:
    """hal05 was done by the first; hal07, whose turn did not come, is on by another."""
    first = desk.ask("hal[05-07]").code
    desk.site.faults["hal06"] = {"gates"}
    assert not desk.ask("hal[05-07]", first).well
    desk.site.faults["hal07"] = {"gates"}
    _done, other = fail(desk, "hal07", fault="gates")
    assert states(desk) == {"hal05": "done", "hal06": "failed", "hal07": "failed"}
    said = f"hal07: another reimage of it failed at gates, confirmed by root@here with {other}; "
    assert refused(desk, "hal[05-07]", first).startswith(said)
    assert "is not the code" in refused(desk, "hal[05-07]", other)


def test_nodes_whose_turn_did_not_come_are_as_if_nobody_had_asked(desk: Desk) -> None:
    code = desk.ask("hal[05-07]").code
    desk.site.faults["hal05"] = {"power-ignored"}
    desk.ask("hal[05-07]", code)
    assert set(desk.site.records) == {"hal05"}
    desk.site.faults.clear()
    assert desk.ask("hal[05-07]", code).well
    assert {one["state"] for one in desk.site.records.values()} == {"done"}


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("max_parallel", "four", "reimage_max_parallel is four: a number, 1 or more"),
        ("max_parallel", 0, "reimage_max_parallel is 0: a number, 1 or more"),
        ("poll_seconds", "soon", "reimage_poll_seconds is soon: a number, 0 to 60"),
        ("poll_seconds", 61, "reimage_poll_seconds is 61: a number, 0 to 60"),
        ("poll_seconds", "nan", "reimage_poll_seconds is nan: a number, 0 to 60"),
        ("wipe", "scratch", "reimage_wipe is scratch: a list of names"),
        ("controllers", "hal-login", "slurm.controllers is hal-login: a list of names"),
        ("root_principals", "admin", "ssh_authorized_principals.root is admin: a list of names"),
        ("limits", {"drain": "soon"}, "reimage_drain_seconds is soon: a number, 0 or more"),
        ("limits", {"job": -1}, "reimage_job_seconds is -1: a number, 0 or more"),
        ("job_run_seconds", "long", "reimage_job_run_seconds is long: a number, 0 or more"),
        ("keep", {"gpu": "many"}, "reimage_keep is {'gpu': 'many'}: numbers by partition"),
        ("keep", 12, "reimage_keep is 12: numbers by partition"),
    ],
)
def test_a_setting_that_is_none_is_refused_before_anything_is_asked(
    desk: Desk, setting: str, value: Any, words: str
) -> None:
    with pytest.raises(ReimageError, match=words):
        desk.ask("hal05", **{setting: value})
    assert desk.site.told == []

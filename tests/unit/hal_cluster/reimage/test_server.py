"""Records, images and orders by the server's real programs, and what the controller makes of their answers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.provision.images import make_key, public_key
from hal_cluster.provision.kickstart import Place
from hal_cluster.provision.kickstart import Server as Secrets
from hal_cluster.provision.tokens import MOST_SECONDS
from hal_cluster.reimage.errors import Conflict, ReimageError, Trouble
from hal_cluster.reimage.record import Record, State, Step, stamp
from hal_cluster.reimage.remote import Done
from hal_cluster.reimage.server import Ordering, Provisioning, Records, image_of, published
from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.hal_cluster.reimage.asking import Server
from tests.unit.hal_cluster.reimage.conftest import Publish
from tests.unit.hal_cluster.reimage.fakes import RUN, plan

NODE = node()


def record(**changes: Any) -> Record:
    return Record("hal05", plan("hal05"), RUN, since=stamp(1_795_370_400), **changes)


# --- records


def test_a_record_comes_back_as_it_was_written(server: Server) -> None:
    records = Records(server)
    assert records.read("hal05") is None
    first = records.write(record(step=Step.IDENTITY, seconds={"waiting": 1.5}))
    assert first == replace(record(step=Step.IDENTITY, seconds={"waiting": 1.5}), revision=1)
    assert records.read("hal05") == first
    assert records.write(replace(first, waiting="its jobs")).revision == 2
    assert records.read("hal06") is None


def test_who_drives_nodes_leaves_word_of_it_and_who_reads_a_record_does_not(server: Server) -> None:
    records = Records(server)
    written = records.write(record(step=Step.DRAIN))
    assert records.read("hal05") == written
    place = server.settings.parent / "records"
    assert sorted(one.name for one in place.iterdir()) == [".lock-hal05", "hal05.json"]
    for _again in range(2):
        before = time.time()
        records.driven(["hal05", "hal06"])
        mark = place / ".driven-hal05"
        assert before - 60 < mark.stat().st_mtime < time.time() + 60
        os.utime(mark, (0, 0))


def test_a_server_of_another_release_is_said_to_be_one(server: Server) -> None:
    def older(argv: Sequence[str], stdin: bytes = b"", /) -> Done:
        return server([argv[0], "nonsense", *argv[2:]], stdin)

    with pytest.raises(Trouble, match="of another release: roll out role provision_server"):
        Records(older).driven(["hal05"])


def test_a_mark_that_cannot_be_left_keeps_no_other_from_being_left(server: Server) -> None:
    records, place = Records(server), server.settings.parent / "records"
    for name in ("hal05", "hal06"):
        records.write(replace(record(step=Step.DRAIN), node=name, plan=plan(name)))
    (place / ".driven-hal05").symlink_to(place / "elsewhere")
    with pytest.raises(Trouble, match="driven-hal05: cannot be written"):
        records.driven(["hal05", "hal06"])
    assert (place / ".driven-hal06").exists()


def test_a_record_over_one_that_somebody_else_wrote_is_a_conflict(server: Server) -> None:
    records = Records(server)
    first = records.write(record())
    second = records.write(replace(first, step=Step.IDENTITY))
    for stale in (record(), first):
        with pytest.raises(Conflict):
            records.write(replace(stale, step=Step.OFF))
    assert records.read("hal05") == second


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: len(text) // 2], "hal05"),
        (lambda text: "", "hal05"),
        (lambda text: text.replace("0xhal05", "0xother"), "was changed after it was confirmed"),
        (lambda text: text.replace('"S-hal05"', '"S-hal06"'), "was changed after it was confirmed"),
    ],
    ids=["truncated", "empty", "another disk", "another serial"],
)
def test_a_damaged_record_is_no_record_and_no_plan(server: Server, change: Callable[[str], str], said: str) -> None:
    records = Records(server)
    records.write(record())
    (path,) = (server.settings.parent / "records").glob("hal05*")
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))
    with pytest.raises(ReimageError, match=said):
        records.read("hal05")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Done(127, "", "sh: hal-reimage: not found"), "hal-reimage is not on the provisioning server: roll out role"),
        (Done(2, "", "one\nhal05: no such node\n"), "^hal05: no such node$"),
        (Done(1, "", ""), "^hal-reimage: exit status 1$"),
        (Done(0, "", ""), "hal-reimage read on the provisioning server printed no answer that can be read"),
        (Done(0, "motd\n{}", ""), "printed no answer that can be read"),
        (Done(0, "[]", ""), "printed no answer that can be read"),
        (Done(0, "{}", ""), "printed no answer that can be read"),
        (Done(0, '{"nodes": 1, "problems": {}}', ""), "printed no answer that can be read"),
    ],
)
def test_what_a_server_says_that_is_no_answer_is_trouble(server: Server, answer: Done, said: str) -> None:
    server.says[("hal-reimage",)] = answer
    with pytest.raises(Trouble, match=said) as trouble:
        Records(server).read("hal05")
    assert not trouble.value.passes


@pytest.mark.parametrize("answer", ["", "{}", '{"nodes": []}', '{"images": {}}'])
def test_images_and_states_that_are_no_answer_are_trouble(server: Server, ordering: Ordering, answer: str) -> None:
    server.says[("hal-provision",)] = Done(0, answer)
    with pytest.raises(
        Trouble, match="hal-provision status on the provisioning server printed no answer that can be read"
    ):
        Provisioning(server, ordering).see("hal05")
    with pytest.raises(
        Trouble, match="hal-provision images on the provisioning server printed no answer that can be read"
    ):
        published(server, ordering.images_folder, ordering.key)


# --- images


def test_images_are_those_that_this_site_signed_oldest_first(
    server: Server, publish: Publish, image_key: Path, tmp_path: Path
) -> None:
    images, key = str(tmp_path / "images"), public_key(image_key)
    assert published(server, images, key) == []
    make_key(tmp_path / "other")
    publish("2")
    publish("1")
    publish("3", key=tmp_path / "other")
    (publish("4") / "manifest.json").write_text("{}")
    (publish("5") / "manifest.json.sig").unlink()
    assert [one.folder for one in published(server, images, key)] == ["ac922-2-ppc64le", "ac922-1-ppc64le"]


def test_the_newest_image_of_a_nodes_kernel_and_machine_is_its_own(
    server: Server, publish: Publish, image_key: Path, tmp_path: Path
) -> None:
    publish("1")
    publish("2")
    publish("3", kernel="4.18.0-1.el7")
    publish("4", arch="x86_64")
    found = published(server, str(tmp_path / "images"), public_key(image_key))
    assert image_of(NODE, found, "").folder == "ac922-2-ppc64le"
    assert image_of(NODE, found, "ac922-1-ppc64le").folder == "ac922-1-ppc64le"
    with pytest.raises(ReimageError, match=r"^hal05: ac922-3-ppc64le is for ppc64le with kernel 4\.18\.0-1\.el7"):
        image_of(NODE, found, "ac922-3-ppc64le")
    with pytest.raises(
        ReimageError, match=r"^reimage_image is ac922-5-ppc64le: not a signed image of the server; signed images there"
    ):
        image_of(NODE, found, "ac922-5-ppc64le")


# --- orders


@pytest.fixture
def ordering(tmp_path: Path, authority: Path, image_key: Path) -> Ordering:
    return Ordering(
        nodes={"hal05": NODE},
        place=Place("management", "255.255.255.0"),
        url="http://10.1.0.11:8480",
        images_url="http://10.1.0.11/images",
        images_folder=str(tmp_path / "images"),
        secrets=Secrets("https://10.1.0.11:8481", (authority / "tls_ca.pem").read_text()),
        authority=authority,
        key=public_key(image_key),
        installers={"ppc64le": "centos-7.7-power9"},
        append="inst.debug",
        seconds=5000,
    )


class Armed:
    """A record at the step ``arm`` on the server, and what was sent there."""

    def __init__(self, server: Server, ordering: Ordering, wipe: tuple[str, ...] = ()) -> None:
        self.server, self.sent = server, dict[str, bytes]()
        found = published(self, ordering.images_folder, ordering.key)
        image = image_of(NODE, found, "")
        self.provisioning = Provisioning(self, ordering)
        made = replace(record(step=Step.ARM), plan=replace(plan("hal05"), image=image, wipe=wipe))
        self.record = Records(server).write(made)

    def __call__(self, argv: Any, stdin: bytes = b"", /) -> Done:
        self.sent[" ".join(argv[:2])] = stdin
        return self.server(argv, stdin)


def test_a_node_is_armed_with_what_its_record_says(server: Server, ordering: Ordering, publish: Publish) -> None:
    publish("1")
    armed = Armed(server, ordering, wipe=("0x50248414c0550002",))
    before = time.time()
    assert armed.provisioning.see("hal05") == replace(armed.provisioning.see("hal05"), armed=False, began="", called="")
    fingerprint = armed.provisioning.arm(armed.record)
    assert fingerprint.startswith("SHA256:")
    order = json.loads(armed.sent["hal-provision arm"])
    assert order["reimage_revision"] == armed.record.revision
    assert order["what"] == "image ac922-1-ppc64le"
    assert before + 4900 < order["expires"] < time.time() + 5100
    kickstart = json.dumps(order)
    for word in (
        "http://10.1.0.11/images/ac922-1-ppc64le/", armed.record.plan.image.sha256, "wwn-0x50248414c0550001",
        "50248414c0550002", "centos-7.7-power9", "inst.debug", "https://10.1.0.11:8481",
    ):  # fmt: skip
        assert word in kickstart, word
    assert b"PRIVATE" not in armed.sent["hal-provision arm"]
    assert b"ssh_host_ed25519_key" in armed.sent["hal-provision spool"]
    seen = armed.provisioning.see("hal05")
    assert (seen.armed, seen.given, seen.began, seen.called) == (True, False, "", "")
    armed.provisioning.disarm("hal05")
    assert not armed.provisioning.see("hal05").armed


def test_only_disks_of_the_plan_are_wiped(server: Server, ordering: Ordering, publish: Publish) -> None:
    publish("1")
    armed = Armed(server, ordering)
    armed.provisioning.arm(armed.record)
    assert b"50248414c0550002" not in armed.sent["hal-provision arm"]


def test_an_order_is_good_for_a_day_at_the_longest(server: Server, ordering: Ordering, publish: Publish) -> None:
    publish("1")
    armed = Armed(server, replace(ordering, seconds=1e9))
    armed.provisioning.arm(armed.record)
    assert json.loads(armed.sent["hal-provision arm"])["expires"] <= time.time() + MOST_SECONDS


def test_each_order_has_a_key_and_a_token_of_its_own(server: Server, ordering: Ordering, publish: Publish) -> None:
    publish("1")
    armed = Armed(server, ordering)
    one, first = armed.provisioning.arm(armed.record), armed.sent["hal-provision arm"]
    other, second = armed.provisioning.arm(armed.record), armed.sent["hal-provision arm"]
    assert one != other
    assert json.loads(first)["token_sha256"] != json.loads(second)["token_sha256"]


def test_an_order_of_a_record_that_is_not_the_newest_arms_nothing(
    server: Server, ordering: Ordering, publish: Publish
) -> None:
    publish("1")
    armed = Armed(server, ordering)
    newer = Records(server).write(replace(armed.record, state=State.ABORTED, reason="aborted", ended=stamp(1.8e9)))
    with pytest.raises(Conflict):
        armed.provisioning.arm(armed.record)
    assert not armed.provisioning.see("hal05").armed
    assert "hal-provision spool" not in armed.sent
    assert newer.revision == 2


def test_an_image_that_is_another_one_than_was_confirmed_is_not_installed(
    server: Server, ordering: Ordering, publish: Publish
) -> None:
    publish("1")
    armed = Armed(server, ordering)
    image = replace(armed.record.plan.image, sha256="f" * 64)
    other = replace(armed.record, plan=replace(armed.record.plan, image=image))
    with pytest.raises(Trouble, match=r"^image ac922-1-ppc64le is not the one that was confirmed$"):
        armed.provisioning.arm(other)
    folder = Path(ordering.images_folder) / "ac922-1-ppc64le"
    (folder / "manifest.json").write_text((folder / "manifest.json").read_text().replace("el7", "el8"))
    with pytest.raises(Trouble, match=r"^image ac922-1-ppc64le is not on the server any more, or not signed"):
        armed.provisioning.arm(armed.record)
    assert not armed.provisioning.see("hal05").armed
    assert not {"hal-provision arm", "hal-provision spool"} & set(armed.sent)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"installers": {"x86_64": "x"}}, "^reimage_installers names no installer for ppc64le$"),
        ({"nodes": {"hal05": replace(NODE, disk=None)}}, "^hal05: no system disk is declared"),
        ({"nodes": {"hal05": replace(NODE, reimage="refused")}}, "^hal05: its profile ac922 says reimage: refused$"),
        ({"nodes": {"hal05": replace(NODE, placeholders=("serial",))}}, "^hal05: serial in cluster.yml is a place"),
        ({"authority": Path("/nonexistent")}, "nonexistent"),
    ],
)
def test_what_no_order_can_be_made_of_is_trouble_and_sends_none(
    server: Server, ordering: Ordering, publish: Publish, changes: dict[str, Any], said: str
) -> None:
    publish("1")
    armed = Armed(server, replace(ordering, **changes))
    with pytest.raises(Trouble, match=said):
        armed.provisioning.arm(armed.record)
    assert not {"hal-provision arm", "hal-provision spool"} & set(armed.sent)


def test_what_the_server_says_of_an_order_that_it_refuses_is_handed_on(
    server: Server, ordering: Ordering, publish: Publish
) -> None:
    publish("1")
    armed = Armed(server, ordering)
    for answer, said in (
        (Done(2, "", "Warning: x\nhal05: the folder is full\n"), "^hal05: the folder is full$"),
        (Done(1), "^not armed$"),
    ):
        server.says[("hal-provision", "arm")] = answer
        with pytest.raises(Trouble, match=said):
            armed.provisioning.arm(armed.record)


def test_calls_home_of_two_installations_are_told_apart(server: Server, ordering: Ordering) -> None:
    status = {"armed": None, "given": None, "began": "t1", "unfinished": True, "called": None}

    def see(**changes: Any) -> Any:
        server.says[("hal-provision", "status")] = Done(0, json.dumps({"nodes": {"hal05": status | changes}}))
        return Provisioning(server, ordering).see("hal05")

    assert (see().began, see().called) == ("t1", "")
    assert see(unfinished=False).began == ""
    first = see(unfinished=False, called={"began": "t1", "at": "t2"}).called
    second = see(unfinished=False, called={"began": "t3", "at": "t2"}).called
    assert len({"", first, second}) == 3


def test_why_an_installer_stopped_is_that_of_the_order_which_is_out(server: Server, ordering: Ordering) -> None:
    status = {"armed": True, "given": None, "began": "", "unfinished": "", "called": None}

    def stopped(**changes: Any) -> Any:
        server.says[("hal-provision", "status")] = Done(0, json.dumps({"nodes": {"hal05": status | changes}}))
        return Provisioning(server, ordering).see("hal05").stopped

    said = {"at": "t1", "why": "no disk"}
    assert stopped(what="image x", stopped=said) == "no disk"
    assert stopped(what="", stopped=said) == stopped(what="image x", stopped=None) == ""
    assert stopped(what="image x") == ""  # a server of another release does not know it

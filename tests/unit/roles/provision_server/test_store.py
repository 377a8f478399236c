"""What a node boots and gets, as files on the server: its own, for a while, once."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hal_cluster.provision.boot import Installer, known, order
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.nodes import BootNode
from hal_cluster.provision.tokens import Token
from tests.unit.hal_cluster.provision.conftest import PROJECT, node

common: Any = importlib.import_module("provision_common")
trails: Any = importlib.import_module("provision_trail")
store: Any = importlib.import_module("provision_store")
Place, Problem = common.Place, common.Problem
NOW = 1_800_000_000.0
INSTALLER = Installer("http://10.1.0.11/i/vmlinuz", "http://10.1.0.11/i/initrd.img", "console=hvc0 ip=dhcp")
WORDS = "the-token-of-hal05"


def settings_of(folder: Path, nodes: list[BootNode], **changes: Any) -> Path:
    """The server's folder as the role makes it."""
    for one in ("armed", "tokens", "spool", "calls"):
        (folder / "state" / one).mkdir(parents=True, mode=0o700)
    (folder / "nodes").mkdir()
    (folder / "records").mkdir(mode=0o750)
    (folder / "images").mkdir()
    for of in nodes:
        (folder / "nodes" / of.name).write_text(json.dumps(known(of, "management")))
    path = folder / "provision.json"
    given_: dict[str, Any] = {
        "state": str(folder / "state"), "nodes": str(folder / "nodes"), "images": str(folder / "images"),
        "records": str(folder / "records"),
        "image_key": str(folder / "image_key.pem"), "keep_images": 2, "listen": ["127.0.0.1"], "port": 0, "tls_port": 0,
        "connections": 8, "request_seconds": 600,
        "certificate": str(folder / "tls.pem"), "private_key": str(folder / "tls"),
    }  # fmt: skip
    path.write_text(json.dumps(given_ | changes))
    return path


def an_order(of: BootNode, words: str = WORDS, expires: float = NOW + 3600) -> dict[str, Any]:
    kickstart = f"token='{words}'\n"
    return order(
        of, "management", "image compute-1", INSTALLER, "http://10.1.0.11:8480", kickstart, Token(words, expires)
    )


@pytest.fixture
def place(tmp_path: Path) -> Any:
    return Place(str(settings_of(tmp_path, [node(f"hal{at:02}", at) for at in range(1, 9)])))


def trail(place: Any) -> list[dict[str, Any]]:
    path = Path(place.state, "audit.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# ---------------------------------------------------------------- arm, disarm


def test_a_node_boots_its_disk_until_somebody_arms_it_and_again_after(place: Any) -> None:
    standing = store.config(place, "hal05", NOW)
    assert standing == known(node(), "management")["standing"]
    store.arm(place, "hal05", an_order(node()), NOW)
    assert "inst.ks=http://10.1.0.11:8480/node/hal05/kickstart.cfg" in store.config(place, "hal05", NOW)
    assert store.status(place, [], NOW)["armed"] == ["hal05"]
    assert store.disarm(place, "hal05", NOW) == "disarmed"
    assert store.config(place, "hal05", NOW) == standing
    assert store.disarm(place, "hal05", NOW) == "was not armed"
    assert store.status(place, [], NOW)["armed"] == []


def test_an_order_that_ran_out_is_none(place: Any) -> None:
    store.arm(place, "hal05", an_order(node(), expires=NOW + 60), NOW)
    assert store.armed(place, "hal05", NOW + 59.9)
    assert store.armed(place, "hal05", NOW + 60) is None
    found = store.status(place, ["hal05"], NOW + 60)["nodes"]["hal05"]
    assert (found["armed"], found["ran_out"], found["tokens"]) == (False, True, [])
    store.spool(place, "hal05", b"key", NOW)
    assert store.config(place, "hal05", NOW + 60) == known(node(), "management")["standing"]
    assert not [path for path in contents(place) if path.startswith("state/")]  # a clock that goes back revives nothing


def test_an_order_that_ends_later_than_can_be_asked_for_is_not_in_force(place: Any) -> None:
    """The clock went back after it was given."""
    store.arm(place, "hal05", an_order(node()), NOW)
    store.spool(place, "hal05", b"key", NOW)
    before = NOW + 3600 - 86400
    assert store.armed(place, "hal05", before)
    assert store.armed(place, "hal05", before - 1) is None
    assert store.config(place, "hal05", before - 1) == known(node(), "management")["standing"]
    found = store.status(place, ["hal05"], before - 1)["nodes"]["hal05"]
    assert (found["armed"], found["ran_out"], found["tokens"]) == (False, False, [])
    for purpose in store.PURPOSES:
        said = refused(place, "hal05", WORDS, "10.1.0.105", before - 1, purpose=purpose)
        assert said.endswith("and no order lasts so long: this server's clock went back")
    assert store.armed(place, "hal05", NOW)  # the clock was set right


def test_secrets_are_taken_for_a_node_that_is_armed_only(place: Any) -> None:
    for now in (NOW, NOW + 3600):
        with pytest.raises(Problem, match=r"^hal05: is not armed; arm it, then bring its secrets$"):
            store.spool(place, "hal05", b"key", now)
        store.arm(place, "hal05", an_order(node()), NOW)
    assert not [path for path in contents(place) if path.startswith("state/spool")]
    store.spool(place, "hal05", b"of the first order", NOW)
    store.arm(place, "hal05", an_order(node()), NOW)
    assert refused(place, "hal05", WORDS, "10.1.0.105", NOW) == "nothing was put there for it"


def test_nothing_is_done_that_leaves_no_trail(place: Any) -> None:
    audit = Path(place.state, "audit.jsonl")
    audit.mkdir()
    before = contents(place)
    with pytest.raises(Problem, match=r"audit\.jsonl: cannot be written"):
        store.arm(place, "hal05", an_order(node()), NOW)
    assert contents(place) == before
    audit.rmdir()
    store.arm(place, "hal05", an_order(node()), NOW)
    store.spool(place, "hal05", b"key", NOW)
    audit.rename(audit.with_name("old"))
    audit.mkdir()
    before = contents(place)
    with pytest.raises(Problem, match=r"audit\.jsonl: cannot be written"):
        store.redeem_secrets(place, "hal05", WORDS, "10.1.0.105", NOW)
    assert contents(place) == before


@pytest.mark.parametrize("link", ["audit.jsonl", "tokens/.lock-hal05"])
def test_no_file_is_opened_through_a_link(place: Any, tmp_path: Path, link: str) -> None:
    """Root runs the program in a folder of the service's account."""
    other = tmp_path / "other"
    other.write_text("somebody else's")
    other.chmod(0o644)
    Path(place.state, link).symlink_to(other)
    with pytest.raises(Problem, match=f"{link.rpartition('/')[2]}:? cannot be "):
        store.arm(place, "hal05", an_order(node()), NOW)
    assert (other.read_text(), other.stat().st_mode & 0o777) == ("somebody else's", 0o644)


def test_whose_the_trail_is_stays(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    for name in ("alone", "as_account"):
        monkeypatch.setattr(trails, name, lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(common.os, "geteuid", lambda: 0)
    monkeypatch.setattr(common.os, "fchown", lambda handle, uid, gid: given.append(handle))
    for _ in range(2):
        trails.done(place, NOW, "hal05", None, "arm", "x")
    assert len(given) == 1, "it was given away once, when it was made"
    assert len(trail(place)) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"node": "hal06"}, "hal05: the order is for hal06"),
        ({"address": "10.1.0.199"}, "hal05: the order is for address 10.1.0.199, and this server knows 10.1.0.105"),
        ({"expires": NOW}, "hal05: the order runs out in 0 s; more than 0 s and at most 86400 s"),
        ({"expires": NOW + 86401}, "the order runs out in 86401 s"),
        ({"expires": "soon"}, "the order runs out in soon"),
        ({"expires": True}, "the order runs out in"),
        ({"token_sha256": "0" * 63}, "hal05: the order has no digest of a token"),
        ({"files": {"../tokens": "x"}}, "a name that is not served: ../tokens"),
        ({"files": {"secrets": "x"}}, "a name that is not served: secrets"),
        ({"files": {"reboot": "x"}}, "a name that is not served: reboot"),
        ({"files": {"one": "x" * 70000, "two": "x" * 70000}}, "letters; at most 131072 are taken"),
        ({"config": "x" * 131073, "files": {}}, "the order has 131073 letters; at most 131072 are taken"),
    ],
)
def test_an_order_that_cannot_be_meant_changes_nothing(place: Any, changes: dict[str, Any], said: str) -> None:
    before = contents(place)
    with pytest.raises(Problem) as refused:
        store.arm(place, "hal05", {**an_order(node()), **changes}, NOW)
    assert said in str(refused.value)
    assert contents(place) == before


def test_an_order_without_a_part_is_refused_by_its_name(place: Any) -> None:
    for part in an_order(node()):
        wanting = {key: value for key, value in an_order(node()).items() if key != part}
        with pytest.raises(Problem, match=f"hal05: the order has no {part}"):
            store.arm(place, "hal05", wanting, NOW)


def test_a_node_that_the_server_does_not_have_is_refused(place: Any) -> None:
    for name in ("hal99", "../hal05", "hal05/..", "", "HAL05", "hal05\n"):
        with pytest.raises(Problem):
            store.arm(place, name, an_order(node()), NOW)
        with pytest.raises(Problem):
            store.disarm(place, name, NOW)


def test_what_petitboot_would_not_boot_becomes_no_order() -> None:
    wrong = Installer("/vmlinuz", INSTALLER.initrd, INSTALLER.append)
    with pytest.raises(ProvisionError, match="hal05: kernel /vmlinuz: write a whole URL"):
        order(node(), "management", "x", wrong, "http://10.1.0.11:8480", "", Token("a", 1))
    with pytest.raises(ProvisionError, match="say in words what it is to install"):
        order(node(), "management", " ", INSTALLER, "http://10.1.0.11:8480", "", Token("a", 1))


def contents(place: Any) -> dict[str, bytes]:
    """Every file of the server's but the audit's and the locks."""
    root = Path(place.state).parent
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "audit.jsonl" and not path.name.startswith(".lock-")
    }


def of_others(place: Any, name: str) -> tuple[dict[str, bytes], dict[str, str]]:
    files = {path: text for path, text in contents(place).items() if Path(path).name.split(".")[0] != name}
    return files, {one: store.config(place, one, NOW) for one in place.names() if one != name}


OPERATIONS = st.sampled_from(
    ["arm", "disarm", "spool", "give", "begin", "secrets", "theft", "call-home", "stop", "wrong order", "status"]
)


@settings(max_examples=60)
@given(st.lists(st.tuples(OPERATIONS, st.integers(1, 8)), max_size=12))
def test_every_other_nodes_files_are_byte_for_byte_the_same_after_any_operation(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, int]]
) -> None:
    place = Place(str(settings_of(tmp_path_factory.mktemp("p"), [node(f"hal{at:02}", at) for at in range(1, 9)])))
    for what, at in operations:
        name, address = f"hal{at:02}", f"10.1.0.{100 + at}"
        before = of_others(place, name)
        try:
            if what == "arm":
                store.arm(place, name, an_order(node(name, at), f"token-{at}"), NOW)
            elif what == "disarm":
                store.disarm(place, name, NOW)
            elif what == "spool":
                store.spool(place, name, f"secrets of {name}".encode(), NOW)
            elif what == "give":
                store.give(place, name, "kickstart.cfg", address, NOW)
            elif what == "begin":
                store.begin(place, name, f"token-{at}", address, NOW)
            elif what == "secrets":
                assert store.redeem_secrets(place, name, f"token-{at}", address, NOW) == f"secrets of {name}".encode()
            elif what == "theft":
                store.redeem_secrets(place, name, f"token-{at}", "10.1.0.250", NOW)
                raise AssertionError("stolen")
            elif what == "call-home":
                store.call_home(place, name, f"token-{at}", address, "done", NOW)
            elif what == "stop":
                store.stop(place, name, f"token-{at}", address, "no disk", NOW)
            elif what == "wrong order":
                store.arm(place, name, an_order(node("hal09", 9)), NOW)
            else:
                store.status(place, [], NOW)
        except Problem:
            pass
        assert of_others(place, name) == before
        standing = {one: place.node(one)["standing"] for one in place.names()}
        assert all(standing[one] == known(node(one, int(one[3:])), "management")["standing"] for one in standing)


# ---------------------------------------------------------------- an installation that broke off

ONCE = [one for one in store.PURPOSES if one != "stop"]
BROKE_OFF = "installation began at 2027-01-15T08:00:00Z, did not call home: image compute-1"


@pytest.mark.parametrize("last", ["begin", "secrets"])
def test_what_began_is_not_tried_again_by_itself(armed: Any, last: str) -> None:
    """Not after the disk was erased (begin), and not after secrets were handed out without that word."""
    standing, address = known(node(), "management")["standing"], "10.1.0.105"
    come(armed, last, "hal05", WORDS, address, NOW)
    assert store.config(armed, "hal05", NOW) == standing
    assert store.give(armed, "hal05", "kickstart.cfg", address, NOW) is None
    found = store.status(armed, [], NOW)
    assert (found["armed"], found["unfinished"]) == ([], ["hal05"])
    assert found["nodes"]["hal05"]["unfinished"] == BROKE_OFF
    assert found["nodes"]["hal05"]["called"] is None
    assert store.armed(armed, "hal05", NOW)  # its image stays
    # Its order is over: it boots its disk, and what happened is still said.
    assert store.config(armed, "hal05", NOW + 3600) == standing
    assert store.status(armed, [], NOW + 3600)["nodes"]["hal05"]["unfinished"] == BROKE_OFF
    store.disarm(armed, "hal05", NOW)
    store.arm(armed, "hal05", an_order(node(), "another"), NOW)  # an act of the administrator
    assert "inst.ks=" in store.config(armed, "hal05", NOW)


def test_an_installation_that_began_ends_as_any_other(armed: Any) -> None:
    for purpose in ONCE:
        assert store.status(armed, [], NOW)["unfinished"] == ([] if purpose == "begin" else ["hal05"])
        come(armed, purpose, "hal05", WORDS, "10.1.0.105", NOW)
    found = store.status(armed, [], NOW)
    assert found["unfinished"] == []
    assert found["nodes"]["hal05"]["called"]["at"] == "2027-01-15T08:00:00Z"


@pytest.mark.parametrize("last", ["begin", "secrets"])
def test_what_installs_just_now_is_not_armed_anew(armed: Any, last: str) -> None:
    """Its tokens would be worthless: the call home of a node that is all but installed would be refused."""
    address = "10.1.0.105"
    come(armed, last, "hal05", WORDS, address, NOW)
    before, lines = contents(armed), len(trail(armed))
    with pytest.raises(Problem) as why:
        store.arm(armed, "hal05", an_order(node(), "another"), NOW)
    assert str(why.value) == (
        f"hal05: it installs just now: {BROKE_OFF}. If that broke off: hal-provision disarm hal05, then arm it again"
    )
    assert (contents(armed), len(trail(armed))) == (before, lines)
    store.call_home(armed, "hal05", WORDS, address, "done", NOW)
    store.arm(armed, "hal05", an_order(node(), "another"), NOW)


STOPPED = {"at": "2027-01-15T08:00:00Z", "why": "no disk"}


def test_why_an_installer_stopped_is_known_and_changes_nothing_else(armed: Any) -> None:
    """Before it began the next boot tries again, and says then what it finds."""
    address = "10.1.0.105"
    come(armed, "stop", "hal05", WORDS, address, NOW)
    found = store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]
    assert (found["armed"], found["unfinished"], found["stopped"]) == (True, "", STOPPED)
    assert "inst.ks=" in store.config(armed, "hal05", NOW)
    assert store.give(armed, "hal05", "kickstart.cfg", address, NOW)  # it was switched on again, or somebody looks
    assert store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]["stopped"] == STOPPED
    store.stop(armed, "hal05", WORDS, address, "other image", NOW + 60)
    assert store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]["stopped"]["why"] == "other image"
    come(armed, "begin", "hal05", WORDS, address, NOW + 120)
    assert store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]["stopped"] is None
    assert [line["result"] for line in trail(armed) if line["what"] == "stop"] == ["no disk"]  # then the tenth


def test_why_an_installer_stopped_after_it_began_is_known_until_somebody_saw_it(armed: Any) -> None:
    address = "10.1.0.105"
    come(armed, "begin", "hal05", WORDS, address, NOW)
    come(armed, "stop", "hal05", WORDS, address, NOW)
    said = f"{BROKE_OFF}; its installer stopped at 2027-01-15T08:00:00Z: no disk"
    assert store.config(armed, "hal05", NOW) == known(node(), "management")["standing"]
    for _ in range(2):
        found = store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]
        assert (found["armed"], found["unfinished"], found["stopped"]) == (False, said, STOPPED)
        store.disarm(armed, "hal05", NOW)
    assert store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]["stopped"] is None


def test_what_said_why_it_stopped_is_armed_anew(armed: Any) -> None:
    """It does not install any more, though its tokens are out."""
    come(armed, "begin", "hal05", WORDS, "10.1.0.105", NOW)
    come(armed, "stop", "hal05", WORDS, "10.1.0.105", NOW)
    store.arm(armed, "hal05", an_order(node(), "another"), NOW)
    found = store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]
    assert (found["armed"], found["stopped"]) == (True, None)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (f"a {WORDS} b", "a [token] b"),
        ("a\nb\t\x1b[31mc\x00\x9b2Jd\u202ee\x7f", r"a b \x1b[31mc\x00\u009b2Jd\u202ee\x7f"),
        ("x \ud800 y", r"x \xed\xa0\x80 y"),
        ("a\u200b\ufeff\u00ad\u061c\u3164\u2800\U000e0061", r"a\u200b\ufeff\u00ad\u061c\u3164\u2800\U000e0061"),
        ("", ""),
        ("x" * 900, "x" * 500),
        (b"M\xc3\xbcll".decode(), "M\xfcll"),
    ],
    ids=["token", "terminal", "half a letter", "hidden", "nothing", "long", "letters"],
)
def test_what_a_node_says_is_kept_as_one_short_line_without_the_token(armed: Any, said: str, why: str) -> None:
    store.stop(armed, "hal05", WORDS, "10.1.0.105", said, NOW)
    reason = why or "it gave no reason"
    assert store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]["stopped"]["why"] == reason
    assert [line["result"] for line in trail(armed) if line["what"] == "stop"] == [reason]
    store.call_home(armed, "hal05", WORDS, "10.1.0.105", said, NOW)
    assert store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]["called"]["said"] == why


def test_what_began_and_ran_out_is_armed_anew(armed: Any) -> None:
    come(armed, "begin", "hal05", WORDS, "10.1.0.105", NOW)
    store.arm(armed, "hal05", an_order(node(), "another", NOW + 7200), NOW + 3600)
    assert store.status(armed, [], NOW + 3600)["armed"] == ["hal05"]


def test_what_is_armed_and_did_not_begin_is_armed_anew(armed: Any) -> None:
    """Also when an earlier installation had broken off."""
    come(armed, "begin", "hal05", WORDS, "10.1.0.105", NOW)
    store.disarm(armed, "hal05", NOW)
    for words in ("second", "third"):
        store.arm(armed, "hal05", an_order(node(), words), NOW)
    assert store.status(armed, [], NOW)["unfinished"] == ["hal05"]


def test_the_status_says_when_the_installation_of_the_last_order_began(armed: Any) -> None:
    def seen() -> tuple[str, str]:
        found = store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]
        return found["began"], (found["called"] or {}).get("at", "")

    assert seen() == ("", "")
    come(armed, "begin", "hal05", WORDS, "10.1.0.105", NOW)
    assert seen() == ("2027-01-15T08:00:00Z", "")
    come(armed, "call-home", "hal05", WORDS, "10.1.0.105", NOW + 60)
    assert seen() == ("2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z")
    store.arm(armed, "hal05", an_order(node()), NOW)
    assert seen() == ("", "2027-01-15T08:01:00Z")  # the order is new, the call is the old one
    come(armed, "begin", "hal05", WORDS, "10.1.0.105", NOW + 120)
    assert seen() == ("2027-01-15T08:02:00Z", "")
    store.disarm(armed, "hal05", NOW)
    assert seen() == ("2027-01-15T08:02:00Z", "")


def test_what_was_stopped_before_a_disk_was_touched_is_tried_again(armed: Any) -> None:
    """%pre failed: the machine has fetched its kickstart, and said nothing."""
    for _ in range(2):
        assert "inst.ks=" in store.config(armed, "hal05", NOW)
        assert WORDS in store.give(armed, "hal05", "kickstart.cfg", "10.1.0.105", NOW)
    found = store.status(armed, [], NOW)
    assert (found["armed"], found["unfinished"]) == (["hal05"], [])
    assert found["nodes"]["hal05"]["given"] == {"kickstart.cfg": 2}


def test_an_installation_does_not_begin_twice_nor_after_it_was_disarmed(armed: Any) -> None:
    come(armed, "begin", "hal05", WORDS, "10.1.0.105", NOW)
    said = refused(armed, "hal05", WORDS, "10.1.0.105", NOW, purpose="begin")
    assert said == "no token is out for this, or it was used"
    store.disarm(armed, "hal05", NOW)
    store.arm(armed, "hal05", an_order(node()), NOW)
    store.disarm(armed, "hal05", NOW)
    assert refused(armed, "hal05", WORDS, "10.1.0.105", NOW, purpose="begin") == said


def test_disarming_keeps_what_broke_off_and_disarming_again_forgets_it(armed: Any) -> None:
    come(armed, "begin", "hal05", WORDS, "10.1.0.105", NOW)
    assert store.disarm(armed, "hal05", NOW) == "disarmed"
    assert store.status(armed, [], NOW)["unfinished"] == ["hal05"]
    assert store.disarm(armed, "hal05", NOW) == f"was not armed; forgotten: {BROKE_OFF}"
    assert store.status(armed, [], NOW)["unfinished"] == []
    assert trail(armed)[-1]["result"] == f"forgotten: {BROKE_OFF}"


def test_who_knows_otherwise_what_became_of_a_node_forgets_nothing(armed: Any) -> None:
    come(armed, "begin", "hal05", WORDS, "10.1.0.105", NOW)
    assert store.disarm(armed, "hal05", NOW, forget=False) == "disarmed"
    assert store.disarm(armed, "hal05", NOW, forget=False) == "was not armed"
    assert store.disarm(armed, "hal99", NOW, forget=False) == "was not armed"  # it left the model
    assert store.status(armed, [], NOW)["unfinished"] == ["hal05"]


def test_a_file_of_an_order_is_given_and_counted_within_bounds(armed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_COUNTED", 12)
    assert store.give(armed, "hal05", "other", "10.1.0.105", NOW) is None
    for _ in range(120):
        assert WORDS in store.give(armed, "hal05", "kickstart.cfg", "10.1.0.105", NOW)
    assert store.status(armed, [], NOW)["nodes"]["hal05"]["given"] == {"kickstart.cfg": 12}
    said = [line["result"] for line in trail(armed) if line["what"] == "GET kickstart.cfg"]
    assert said == ["given", *(f"given, {times} times since it was armed" for times in (2, 10))]


# ---------------------------------------------------------------- tokens


@pytest.fixture
def armed(place: Any) -> Any:
    store.arm(place, "hal05", an_order(node()), NOW)
    store.spool(place, "hal05", b"key and certificate", NOW)
    return place


def come(place: Any, purpose: str, name: str, token: str, address: str, now: float) -> Any:
    """What a node does with its token."""
    if purpose == "call-home":
        return store.call_home(place, name, token, address, "done", now)
    if purpose == "stop":
        return store.stop(place, name, token, address, "no disk", now)
    return (store.begin if purpose == "begin" else store.redeem_secrets)(place, name, token, address, now)


def refused(place: Any, *words: Any, purpose: str = "secrets") -> str:
    before = contents(place)
    with pytest.raises(Problem) as why:
        come(place, purpose, *words)
    assert contents(place) == before  # a refusal uses nothing up
    assert WORDS not in str(why.value)
    return str(why.value)


def test_secrets_are_handed_out_once(armed: Any) -> None:
    assert store.redeem_secrets(armed, "hal05", WORDS, "10.1.0.105", NOW) == b"key and certificate"
    assert not any(path.startswith(("state/spool", "state/tokens/hal05.secrets")) for path in contents(armed))
    assert refused(armed, "hal05", WORDS, "10.1.0.105", NOW) == "no token is out for this, or it was used"
    store.spool(armed, "hal05", b"again", NOW)
    assert refused(armed, "hal05", WORDS, "10.1.0.105", NOW) == "no token is out for this, or it was used"


def test_a_token_is_good_from_one_address_for_one_node_and_for_a_while(armed: Any) -> None:
    assert refused(armed, "hal05", WORDS, "10.1.0.106", NOW) == "the token is for another address"
    assert refused(armed, "hal06", WORDS, "10.1.0.106", NOW) == "no token is out for this, or it was used"
    assert refused(armed, "hal05", WORDS + "x", "10.1.0.105", NOW) == "not the token"
    assert refused(armed, "hal05", "", "10.1.0.105", NOW) == "not the token"
    assert store.redeem_secrets(armed, "hal05", WORDS, "10.1.0.105", NOW)  # none of that used it up


@pytest.mark.parametrize("purpose", store.PURPOSES)
def test_a_token_that_ran_out_goes_with_all_of_its_order(armed: Any, purpose: str) -> None:
    with pytest.raises(Problem, match=r"^the token ran out at 2027-"):
        come(armed, purpose, "hal05", WORDS, "10.1.0.105", NOW + 3600)
    assert not [path for path in contents(armed) if path.startswith(("state/armed", "state/tokens", "state/spool"))]
    assert refused(armed, "hal05", WORDS, "10.1.0.105", NOW) == "no token is out for this, or it was used"


def test_a_token_stays_good_while_nothing_was_put_there(place: Any) -> None:
    store.arm(place, "hal05", an_order(node()), NOW)
    assert refused(place, "hal05", WORDS, "10.1.0.105", NOW) == "nothing was put there for it"
    store.spool(place, "hal05", b"late", NOW)
    assert store.redeem_secrets(place, "hal05", WORDS, "10.1.0.105", NOW) == b"late"


def test_of_many_who_come_at_once_one_gets_the_secrets(armed: Any) -> None:
    got: list[bytes] = []
    why: list[str] = []
    start = threading.Barrier(16)

    def ask() -> None:
        start.wait()
        try:
            got.append(store.redeem_secrets(armed, "hal05", WORDS, "10.1.0.105", NOW))
        except Problem as problem:
            why.append(str(problem))

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [b"key and certificate"]
    assert why == ["no token is out for this, or it was used"] * 15


def test_a_new_order_makes_the_old_token_worthless(armed: Any) -> None:
    store.arm(armed, "hal05", an_order(node(), "another"), NOW)
    assert refused(armed, "hal05", WORDS, "10.1.0.105", NOW) == "not the token"


def test_disarming_takes_tokens_and_secrets_back(armed: Any) -> None:
    store.disarm(armed, "hal05", NOW)
    assert refused(armed, "hal05", WORDS, "10.1.0.105", NOW) == "no token is out for this, or it was used"
    assert not [path for path in contents(armed) if path.startswith("state/spool")]


def test_a_node_that_called_home_boots_its_disk(armed: Any) -> None:
    assert refused(armed, "hal05", "wrong", "10.1.0.105", NOW, purpose="call-home") == "not the token"
    assert refused(armed, "hal05", WORDS, "10.1.0.9", NOW, purpose="call-home") == "the token is for another address"
    store.call_home(armed, "hal05", WORDS, "10.1.0.105", "installed=kernel-4.18.0", NOW)
    assert store.config(armed, "hal05", NOW) == known(node(), "management")["standing"]
    found = store.status(armed, ["hal05"], NOW)["nodes"]["hal05"]
    assert found["called"]["said"] == "installed=kernel-4.18.0"
    assert (found["armed"], found["tokens"], found["secrets_wait"]) == (False, [], False)
    assert refused(armed, "hal05", WORDS, "10.1.0.105", NOW, purpose="call-home").startswith("no token is out")


def test_the_trail_says_who_got_what_and_when_without_the_token(armed: Any) -> None:
    address = "10.1.0.105"
    refused(armed, "hal05", WORDS, "10.1.0.106", NOW)
    for _ in range(3):
        store.give(armed, "hal05", "kickstart.cfg", address, NOW)
    for purpose in ONCE:
        come(armed, purpose, "hal05", WORDS, address, NOW)
    assert [(line["what"], line["node"], line["address"], line["result"]) for line in trail(armed)] == [
        ("arm", "hal05", None, "image compute-1"),
        ("GET kickstart.cfg", "hal05", address, "given"),
        ("GET kickstart.cfg", "hal05", address, "given, 2 times since it was armed"),
        ("begin", "hal05", address, "installation begins"),
        ("secrets", "hal05", address, "handed out"),
        ("call-home", "hal05", address, "installed"),
    ]
    text = Path(armed.state, "audit.jsonl").read_text()
    assert WORDS not in text
    assert "key and certificate" not in text


def test_no_token_is_stored_in_the_clear_but_in_the_file_that_the_node_fetches(armed: Any) -> None:
    holders = [path for path, content in contents(armed).items() if WORDS.encode() in content]
    assert holders == ["state/armed/hal05"]
    for path in contents(armed):
        if path.startswith("state/"):
            assert (Path(armed.state).parent / path).stat().st_mode & 0o777 == 0o600, path


def test_files_of_nodes_that_are_no_more_are_named(armed: Any) -> None:
    (Path(armed.nodes) / "hal05").unlink()
    assert store.status(armed, [], NOW)["unknown"] == ["armed/hal05", "spool/hal05"]
    assert store.disarm(armed, "hal05", NOW) == "disarmed"
    assert not [path for path in contents(armed) if path.startswith("state/")]
    assert store.status(armed, [], NOW)["unknown"] == []
    with pytest.raises(Problem, match="hal05: this server has no such node"):
        store.disarm(armed, "hal05", NOW)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"address": 1, "names": [], "standing": ""}', None])
def test_a_damaged_file_of_one_node_is_that_nodes_alone(
    armed: Any, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(armed.nodes, "hal06")
    path.unlink()
    path.mkdir() if content is None else path.write_text(content)
    assert armed.by_address("10.1.0.106") is None
    said = capsys.readouterr().err
    assert said.startswith(f"{path}: ")
    assert said.endswith("; hal06 gets nothing until role provision_server writes it anew\n")
    assert said.count("\n") == 1
    assert armed.by_address("10.1.0.105") == "hal05"
    assert capsys.readouterr().err == ""  # not with each request
    found = store.status(armed, [], NOW)
    assert found["armed"] == ["hal05"]
    assert found["nodes"]["hal06"]["problem"].startswith(f"{path}: ")
    with pytest.raises(Problem, match="/nodes/hal06: "):
        store.status(armed, ["hal06"], NOW)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("armed/hal05", "{", "is damaged; no JSON"),
        ("armed/hal05", '{"expires": 1e12}', "is damaged; no what, config, files"),
        ("tokens/hal05.secrets", '{"expires": "soon"}', "is damaged; no sha256, address, expires"),
    ],
)
def test_a_damaged_order_or_token_is_named_and_disarming_removes_it(
    armed: Any, file: str, content: str, said: str
) -> None:
    store.arm(armed, "hal06", an_order(node("hal06", 6)), NOW)
    Path(armed.state, file).write_text(content)
    with pytest.raises(Problem, match=f"{file}: {said}"):
        come(armed, "secrets", "hal05", WORDS, "10.1.0.105", NOW)
    assert [line["what"] for line in trail(armed)] == ["arm", "arm"]
    found = store.status(armed, [], NOW)
    assert found["armed"] == ["hal06"]  # the others are told
    assert found["nodes"]["hal05"]["problem"] == f"{armed.state}/{file}: {said}"
    assert store.disarm(armed, "hal05", NOW) == "disarmed"
    assert store.config(armed, "hal05", NOW) == known(node(), "management")["standing"]


def test_addresses_are_read_again_when_the_role_wrote_a_node(place: Any) -> None:
    assert place.by_address("10.1.0.105") == "hal05"
    assert place.by_address("10.1.0.205") is None
    moved = node(addresses={"management": "10.1.0.205"})
    new = Path(place.nodes, ".new")
    new.write_text(json.dumps(known(moved, "management")))
    new.replace(Path(place.nodes, "hal05"))
    assert (place.by_address("10.1.0.205"), place.by_address("10.1.0.105")) == ("hal05", None)


def test_the_program_of_the_node_is_not_imported_from_elsewhere() -> None:
    assert Path(sys.modules["provision_store"].__file__ or "").parent == PROJECT / "roles/provision_server/files"


def test_a_token_without_its_order_begins_nothing(armed: Any) -> None:
    """A disarming that broke off: this is the last question before a disk is erased."""
    Path(armed.path("armed", "hal05")).unlink()
    with pytest.raises(Problem, match="it is not armed"):
        store.begin(armed, "hal05", WORDS, "10.1.0.105", NOW)

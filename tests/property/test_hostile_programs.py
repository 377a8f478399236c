"""Whatever nodes, Slurm, archives and users say: no program that an administrator runs on a node drives a terminal."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import ansible.module_utils
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hal_cluster.reimage.record import State
from tests.property.hostile import PROJECT, TEXT, unseen
from tests.unit.roles.provision_server.reimages import NOW, record

SHIPPED = str(PROJECT / "plugins/module_utils")
for role in ("provision_server", "backup", "node_health", "singularity"):
    sys.path.insert(0, str(PROJECT / "roles" / role / "files"))
sys.path.insert(0, SHIPPED)  # a node has them beside the programs
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)
provision_cli, provision_common, reimage_cli, reimage_status = (
    importlib.import_module(name)
    for name in ("provision_cli", "provision_common", "reimage_cli", "reimage_status")
)  # fmt: skip
backup_common, restore_files = (importlib.import_module(name) for name in ("backup_common", "restore_files"))
node_health = importlib.import_module("node_health")
hal_container = importlib.import_module("hal_container")

FEW = st.lists(TEXT, min_size=1, max_size=3)


def printed(work: Callable[[], Any], **patches: Any) -> str:
    """Return what a program's function prints on both streams. ``patches``: of module__name, what stands for it."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2)]
    mask = os.umask(0o022)  # programs that keep secrets set it for themselves
    with contextlib.ExitStack() as after, pytest.MonkeyPatch.context() as patch:
        after.callback(os.umask, mask)
        for name, value in patches.items():
            module, _, attribute = name.partition("__")
            patch.setattr(globals()[module], attribute, value)
        out, err = contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1])
        with out, err, contextlib.suppress(SystemExit):
            work()
    for stream in streams:
        stream.flush()
    return "".join(stream.buffer.getvalue().decode() for stream in streams)


def failing(text: str) -> Callable[..., Any]:
    """What another program's words end."""

    def fail(*_: Any) -> Any:
        raise provision_common.Problem(text)

    return fail


# --- role provision_server


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A record of a reimage whose texts are whatever others say: a console, Slurm, another server."""
    made = record(state=draw(st.sampled_from(list(State))), ended="2026-11-22T18:05:10Z")
    made |= draw(st.fixed_dictionaries(dict.fromkeys(("reason", "waiting", "host_key", "job"), TEXT)))
    made["plan"] |= draw(st.fixed_dictionaries(dict.fromkeys(("serial", "disk"), TEXT))) | {"wipe": draw(FEW)}
    made["plan"]["image"] |= draw(st.fixed_dictionaries(dict.fromkeys(("folder", "kernel", "sha256"), TEXT)))
    made["run"] |= draw(st.fixed_dictionaries(dict.fromkeys(("by", "code"), TEXT)))
    made["drained_before"] = draw(st.none() | st.fixed_dictionaries({"by": TEXT, "reason": TEXT}))
    return made


@given(records(), TEXT, st.integers(20, 160), st.booleans())
def test_where_reimages_are_is_shown_in_lines_of_ours(
    one: dict[str, Any], text: str, width: int, is_silent: bool
) -> None:
    known, looked = {"hal05": one}, {"hal05": NOW - 10**6 * is_silent}
    rows = reimage_status.rows(known, {"hal06": text}, ["hal05"], looked, NOW)
    lines = [
        *reimage_status.table(rows, NOW, width),
        *reimage_status.changes(known, looked, NOW).values(),
        *reimage_status.sheet(one, True, text, NOW, looked["hal05"], NOW, width),
    ]
    assert [line for line in lines if unseen(line) or "\n" in line] == []
    for line in reimage_status.table(rows, NOW, width, colour=True):
        assert unseen(line, colour=True) == []


@pytest.mark.parametrize("command", ["status", "show", "abort"])
@settings(max_examples=50)
@given(records(), TEXT, FEW, st.booleans())
def test_hal_reimage_prints_lines_of_ours(
    command: str, one: dict[str, Any], text: str, wrong: list[str], is_refused: bool
) -> None:
    refused = failing("\n".join(wrong))
    said = printed(
        lambda: reimage_cli.main([command, "hal05"]),
        reimage_cli__Place=lambda path: SimpleNamespace(node=str, names=list),
        reimage_cli__store=SimpleNamespace(
            abort=refused if is_refused else lambda *_: one,
            **{"NothingOn": KeyError, "STEPS": ["x"], "looked": lambda *_: NOW, "path_of": lambda *_: __file__},
            read_all=lambda *_: ({}, {"hal05": text}) if is_refused else ({"hal05": one}, {}),
        ),
        reimage_cli__provision_store=SimpleNamespace(
            unfinished=lambda *_: text, disarm=lambda *_, forget: text, status=refused
        ),
        reimage_cli__reimage_slurm=SimpleNamespace(drain=refused if is_refused else lambda *_: text),
    )
    assert unseen(said) == []
    assert said


@pytest.mark.parametrize("command", ["arm", "disarm", "status", "images", "publish", "prune"])
@settings(max_examples=50)
@given(TEXT, FEW, st.booleans())
def test_hal_provision_prints_lines_of_ours(command: str, text: str, wrong: list[str], is_refused: bool) -> None:
    order = json.dumps({"expires": NOW, "what": text}).encode()
    words = [*([] if command in ("images", "prune") else ["hal05"]), *(["--only-wrong"] if command == "images" else [])]
    refused = failing("\n".join(wrong))

    def answer(found: Any) -> Any:
        return refused if is_refused else lambda *_: found

    said = printed(
        lambda: provision_cli.main([command, *words]),
        provision_cli__Place=lambda path: None,
        provision_cli__standard_input=lambda: io.BytesIO(order),
        provision_cli__store=SimpleNamespace(
            arm=answer(None), disarm=answer(text), status=answer({"why": text}), stamp=provision_common.stamp
        ),
        provision_cli__provision_images=SimpleNamespace(
            wrong=lambda place: {str(number): one for number, one in enumerate(wrong)} if is_refused else {},
            **{"published": answer([text]), "publish": answer(text), "prune": answer(wrong)},
        ),
    )
    assert unseen(said) == []
    assert said


# --- role backup


@st.composite
def sources(draw: st.DrawFn) -> dict[str, Any]:
    """A source of an archive: names, targets and owners are those that somebody put there."""
    entries = {}
    for name in draw(FEW):
        kind = draw(st.sampled_from(["file", "link", "folder"]))
        # An archive with another owner is refused as a whole: backup_archive.py.
        owner = st.just(0) | TEXT.map(lambda text: text.encode("utf-8", "replace").decode().replace("\0", ""))
        entry = {"type": kind, "mode": "0644", "user": draw(owner), "group": draw(owner), "sha256": "", "size": 0}
        entry["target"] = backup_common.native(draw(TEXT))
        entries["x" + backup_common.native(name).replace("/", "_").replace("\0", "_")] = entry
    return {"name": "home", "kind": "files", "paths": [], "entries": entries}


@given(sources())
def test_the_plan_of_a_restore_is_a_line_for_each_path(source: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source["paths"] = [folder]
        source["entries"] = {f"home{folder}/{name}": entry for name, entry in source["entries"].items()}
        try:
            lines = restore_files.look(source, 0)[2]
        except backup_common.Problem as problem:
            lines = [str(problem)]
    assert [line for line in lines if unseen(line) or "\n" in line] == []
    assert lines


@given(TEXT, st.booleans())
def test_what_ends_a_program_of_the_backup_is_a_line(text: str, is_disks: bool) -> None:
    def fail(_: Any) -> int:
        raise OSError(2, "No such file", text) if is_disks else backup_common.Problem(text)

    said = printed(lambda: backup_common.main(fail))
    assert (unseen(said), said.count("\n")) == ([], 1)
    last = backup_common.last_line(text.encode("utf-8", "replace"))
    assert (unseen(last), "\n" in last) == ([], False)


# --- role node_health

RESULT = st.fixed_dictionaries(
    {"status": st.sampled_from(["pass", "fail", "unknown"])}
    | dict.fromkeys(("role", "id", "words", "reason", "why"), TEXT)
)


@given(st.lists(RESULT, max_size=3), TEXT, st.booleans())
def test_a_health_check_prints_a_line_for_each_result(results: list[dict[str, str]], text: str, brief: bool) -> None:
    said = printed(lambda: node_health.show("hal05", results, 1.0, brief))
    wrong = [one for one in results if one["status"] != "pass"]
    assert unseen(said) == []
    assert said.count("\n") == len(wrong if brief else results) + bool(not brief or wrong)


@given(TEXT, st.booleans())
def test_what_a_health_check_did_is_a_line(text: str, is_refused: bool) -> None:
    def settle(*_: Any) -> str:
        if is_refused:
            raise node_health.SlurmError(text)
        return text

    passed = [{"status": "pass"}]
    said = printed(
        lambda: node_health.settle(SimpleNamespace(settle=settle, with_held=lambda found, *_: found), passed, True)
    )
    assert (unseen(said), said.count("\n")) == ([], int(bool(text or is_refused)))
    filling = SimpleNamespace(who_fills=lambda *_: text)
    assert (
        unseen(printed(lambda: node_health.main(["--who-fills", "/", "1"]), node_health__node_health_space=filling))
        == []
    )
    gpus = SimpleNamespace(foreign=lambda _: [], told=lambda _: [text, text])
    foreign = printed(
        lambda: node_health._foreign_processes(SimpleNamespace(gres_used=None), False),
        node_health__node_health_gpus=gpus,
    )
    assert (unseen(foreign), foreign.count("\n")) == ([], 2)


# --- role singularity


@contextlib.contextmanager
def free(*_: Any) -> Iterator[None]:
    """A lock that nobody has."""
    yield


@pytest.mark.parametrize("command", ["list", "show", "retire", "verify", "setup", "check-ids"])
@settings(max_examples=50)
@given(TEXT.filter(bool), TEXT)
def test_hal_container_prints_lines_of_ours(command: str, name: str, text: str) -> None:
    """Who may build images chooses definitions and names; users choose names of accounts."""
    version = dict.fromkeys(("definition", "built_by", "on", "singularity", "sha256"), text) | {"built_at": NOW}

    def retire(_: str) -> str:
        if len(text) % 2:
            raise hal_container.Problem(text)
        return text

    registry = SimpleNamespace(
        **{"root": text, "images": lambda: [name] if text else [], "versions": dict, "setup": lambda: [text]},
        **{"status_of": lambda _: SimpleNamespace(st_size=9), "version_of": lambda *_: version},
        **{"path": lambda one: f"/reg/{one}.sif", "check_there": str, "verify": lambda: {name: text}, "retire": retire},
    )
    words = [command, *([name] if command in ("show", "retire") else [])]
    said = printed(
        lambda: hal_container.main(words),
        hal_container__ROOTS=(),
        hal_container__Registry=lambda *_: registry,
        hal_container__read_json=lambda *_: {
            **{"registry": "/reg", "mount": "/", "build_dir": "/none", "verified": "/none", "users": []}
        },
        hal_container__write_json=lambda *_: None,
        hal_container__locked=free,
        hal_container__text_of=lambda path: "",
        hal_container__taken_ids=lambda *_: [text],
    )
    assert unseen(said.replace("\t", "") if command == "show" else said) == []  # a definition has tabs
    assert said

"""hal_files asks a file's own program before it replaces one. What programs say was seen of Debian 12's on copies with
these faults; of systemd 219, logrotate 3.8.6 and kmod 20 it is what their sources print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.modules import Answer, Ran, loaded

UNITS = "/etc/systemd/system"
ANALYZE, ROTATE, PROBE, WALL, LUA = "systemd-analyze", "logrotate", "modprobe", "firewall-offline-cmd", "luac"
# What proves that a program speaks; {} is the folder of the copies.
CANARY = {
    "219": "[{}/hal-canary.service:4] Unknown lvalue 'Canary' in section 'Service'\n",
    "252": "{}/hal-canary.service:4: Unknown key 'Canary' in section [Service], ignoring.\n",
    ROTATE: "error: {}/hal-canary:1 unknown option 'canary' -- ignoring line\n",
    PROBE: "libkmod: ERROR ../libkmod/libkmod-config.c:712 kmod_config_parse: {}/hal-canary.conf line 1: "
    "ignoring bad line starting with 'canary'\n",
}
# With nothing of the node to be found they always say something of this kind.
ELSEWHERE = (
    "hal-a.service: Failed to create hal-a.service/start: Unit sysinit.target not found.\n"
    "hal-a.service: Command /usr/sbin/hal-a is not executable: No such file or directory\n"
    "/usr/lib/systemd/system/other.service:7: Unknown key 'Nyce' in section [Service], ignoring.\n"
    "other.timer: Timer unit lacks value setting. Refusing.\n"
)
LOGS = (
    "warning: logrotate in debug mode does nothing except printing debug messages!\nreading config file {}/hal-slurm\n"
)
NO_XML = "Configuration error: INVALID_ZONE: not a valid zone file: no element found: line 1, column 52\n"


class Seen(NamedTuple):
    """What a program said of files that go there, and how it ended; words of the refusal, and of the warning."""

    program: str
    paths: list[str]
    said: str
    status: int = 0
    refused: str = ""
    warned: str = ""


SEEN = {
    "healthy units of 252": Seen(
        ANALYZE, [f"{UNITS}/hal-a.service", f"{UNITS}/hal-a.timer"], CANARY["252"] + ELSEWHERE, 1
    ),
    "healthy units of 219": Seen(
        ANALYZE,
        [f"{UNITS}/hal-a.service"],
        CANARY["219"] + "hal-a.service: command /usr/sbin/hal-a is not executable: No such file or directory\n",
    ),
    "a spelling of 219 at 252": Seen(
        ANALYZE,
        [f"{UNITS}/hal-a.service"],
        CANARY["252"] + "{}/hal-a.service:9: Unit uses MemoryLimit=; please use MemoryMax= instead. "
        "Support for MemoryLimit= will be removed soon.\n",
        1,
    ),
    "a line": Seen(
        ANALYZE,
        [f"{UNITS}/hal-a.service"],
        CANARY["252"] + "{}/hal-a.service:6: Failed to parse service type, ignoring: onsht\n",
        1,
        f"{ANALYZE}: {UNITS}/hal-a.service:6: Failed to parse service type, ignoring: onsht",
    ),
    "a line at 219, which ends with 0": Seen(
        ANALYZE,
        [f"{UNITS}/hal-a.service"],
        "[{}/hal-a.service:7] Unknown lvalue 'Nyce' in section 'Service'\n" + CANARY["219"],
        0,
        f"{ANALYZE}: [{UNITS}/hal-a.service:7] Unknown lvalue 'Nyce' in section 'Service'",
    ),
    "a unit": Seen(
        ANALYZE,
        [f"{UNITS}/hal-a.timer"],
        CANARY["252"] + "hal-a.timer: Timer unit lacks value setting. Refusing.\n",
        1,
        f"{ANALYZE}: {UNITS}/hal-a.timer: Timer unit lacks value setting. Refusing.",
    ),
    "a unit at 219": Seen(
        ANALYZE,
        [f"{UNITS}/hal-a.timer"],
        CANARY["219"] + "hal-a.timer lacks value setting. Refusing.\n",
        0,
        f"{ANALYZE}: {UNITS}/hal-a.timer lacks value setting. Refusing.",
    ),
    "a template": Seen(
        ANALYZE,
        [f"{UNITS}/hal-d@.service"],
        CANARY["252"] + "{}/hal-d@canary.service:6: Failed to parse IO scheduling class, ignoring: bestest\n",
        1,
        f"{ANALYZE}: {UNITS}/hal-d@.service:6: Failed to parse IO scheduling class, ignoring: bestest",
    ),
    "a drop-in, whose unit is empty": Seen(
        ANALYZE,
        [f"{UNITS}/slurmd.service.d/90-hal.conf"],
        CANARY["252"] + "slurmd.service: Service has no ExecStart=, ExecStop=, or SuccessAction=. Refusing.\n",
        1,
    ),
    "a line of a drop-in": Seen(
        ANALYZE,
        [f"{UNITS}/slurmd.service.d/90-hal.conf"],
        "{}/slurmd.service.d/90-hal.conf:2: Unknown key 'LimitMEMLOK' in section [Service], ignoring.\n"
        + CANARY["252"],
        1,
        f"{ANALYZE}: {UNITS}/slurmd.service.d/90-hal.conf:2: Unknown key 'LimitMEMLOK' in section [Service], ignoring.",
    ),
    "systemd-analyze that does not work": Seen(
        ANALYZE,
        [f"{UNITS}/hal-a.service"],
        "Failed to initialize manager: Permission denied\n",
        1,
        warned=f"{ANALYZE} did not judge {UNITS}/hal-a.service: it ended with 1 and said "
        "Failed to initialize manager: Permission denied",
    ),
    "252 that no longer says what is wrong with a line": Seen(
        ANALYZE,
        [f"{UNITS}/hal-a.service"],
        "hal-canary.service: Failed to create hal-canary.service/start: Unit sysinit.target not found.\n",
        1,
        warned=f"{ANALYZE} did not judge {UNITS}/hal-a.service: it ended with 1 and said hal-canary.service: Failed",
    ),
    "a value that reads as advice": Seen(
        ANALYZE,
        [f"{UNITS}/hal-a.timer"],
        CANARY["252"] + "{}/hal-a.timer:2: Failed to parse calendar specification, ignoring: Please now\n",
        1,
        f"{ANALYZE}: {UNITS}/hal-a.timer:2: Failed to parse calendar specification, ignoring: Please now",
    ),
    "luac that does not work": Seen(
        LUA, ["/etc/lmod/SitePackage.lua"], "error while loading shared libraries\n", 127, warned="it ended with 127"
    ),
    "no Lua": Seen(
        LUA,
        ["/etc/lmod/SitePackage.lua"],
        "luac: etc/lmod/SitePackage.lua:1: '=' expected near 'end'\n",
        1,
        f"{LUA}: luac: /etc/lmod/SitePackage.lua:1: '=' expected near 'end'",
    ),
    "healthy logs": Seen(ROTATE, ["/etc/logrotate.d/hal-slurm"], LOGS + CANARY[ROTATE]),
    "an option of logrotate": Seen(
        ROTATE,
        ["/etc/logrotate.d/hal-slurm"],
        LOGS + "error: {}/hal-slurm:2 unknown option 'weekyl' -- ignoring line\n" + CANARY[ROTATE],
        0,
        f"{ROTATE}: error: /etc/logrotate.d/hal-slurm:2 unknown option 'weekyl' -- ignoring line",
    ),
    "a script without an end": Seen(
        ROTATE,
        ["/etc/logrotate.d/hal-slurm"],
        LOGS + "error: {}/hal-slurm:prerotate, postrotate or preremove without endscript\n",
        1,
        f"{ROTATE}: error: /etc/logrotate.d/hal-slurm:prerotate, postrotate or preremove without endscript",
    ),
    "3.8.6 that does not look at files": Seen(
        ROTATE,
        ["/etc/logrotate.d/hal-slurm"],
        "Ignoring {}/hal-slurm because of bad file mode.\n",
        0,
        warned=f"{ROTATE} did not judge /etc/logrotate.d/hal-slurm: it ended with 0 and said Ignoring",
    ),
    "healthy options of modules": Seen(PROBE, ["/etc/modprobe.d/hal.conf"], "blacklist nouveau\n" + CANARY[PROBE]),
    "a line of modprobe": Seen(
        PROBE,
        ["/etc/modprobe.d/hal.conf"],
        CANARY[PROBE].replace("hal-canary.conf", "hal.conf").replace("canary", "blaklist") + CANARY[PROBE],
        0,
        "/etc/modprobe.d/hal.conf line 1: ignoring bad line starting with 'blaklist'",
    ),
    "modprobe that says nothing": Seen(
        PROBE, ["/etc/modprobe.d/hal.conf"], "", 0, warned="it ended with 0 and said nothing"
    ),
    "healthy zones": Seen(WALL, ["/etc/firewalld/zones/other.xml", "/etc/firewalld/direct.xml"], ""),
    "half a zone": Seen(
        WALL, ["/etc/firewalld/zones/other.xml"], NO_XML, 112, f"it ended with 112 and said {NO_XML.strip()}"
    ),
}  # fmt: skip


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """A function: hal_files whose programs, each of them there, answer with `say(folder)`."""

    def ran(say: Callable[[Path], Answer]) -> Ran:
        module = loaded("hal_files")
        monkeypatch.setattr(module, "replace_content", lambda _, path, _text: pytest.fail(f"{path} is written"))
        made = Ran(
            module,
            lambda _: say(Path(made.environments[-1]["SYSTEMD_UNIT_PATH"])),
            monkeypatch,
            capsys,
        )
        made.programs = {name: f"/bin/{name}" for name in (ANALYZE, ROTATE, PROBE, WALL, LUA)}
        return made

    return ran


@pytest.mark.parametrize("case", SEEN)
@pytest.mark.parametrize("check", [False, True])
def test_what_its_program_refuses_is_not_written_nor_is_anything_else_of_the_call(
    ran: Callable[..., Ran], tmp_path: Path, case: str, check: bool
) -> None:
    seen = SEEN[case]
    run = ran(lambda folder: (seen.status, "", seen.said.replace("{}", str(folder))))
    owner, place = {"owner": "root"}, tmp_path / "made"
    files = [{"path": path, "content": "new\n", **owner} for path in seen.paths]
    other = {"path": str(place / "other"), "content": "new\n", **owner}
    # What is taken is shown by a check: these paths are the system's own.
    answer = run(
        check=check or not seen.refused,
        directories=[{"path": str(place), "mode": "0755", **owner}],
        files=[other, *files],
    )
    assert [argv[0] for argv in run.told] == [f"/bin/{seen.program}"]
    assert answer.get("failed", False) is bool(seen.refused), answer
    warnings = answer.get("warnings", [])
    assert len(warnings) == bool(seen.warned), warnings
    assert all(seen.warned in line for line in warnings)
    if seen.refused:
        assert seen.refused in answer["msg"]
        assert answer["msg"].endswith("; nothing was written")
    else:
        assert answer["paths"] == [str(place), other["path"], *seen.paths]
    assert not place.exists()


def test_units_of_a_call_are_read_together_and_nothing_else_is(
    ran: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, str] = {}

    def say(folder: Path) -> Answer:
        for path in folder.rglob("*"):
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_text()
                assert path.stat().st_mode & 0o777 == 0o644
        return 1, "", CANARY["252"].replace("{}", str(folder))

    # systemd names drop-ins by their resolved path.
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    judges = sys.modules["ansible.module_utils.hal_node.judges"]
    monkeypatch.setattr(judges.tempfile, "mkdtemp", lambda **_: str(tmp_path / "link"))
    monkeypatch.setattr(judges.shutil, "rmtree", lambda _: None)
    run = ran(say)
    contents = {
        f"{UNITS}/hal-a.service": "a",
        f"{UNITS}/hal-a.service.d/90-hal.conf": "more of a",
        f"{UNITS}/hal-d@.service": "d",
        f"{UNITS}/internal.mount.d/90-hal.conf": "limit",
        "/etc/hal/other.json": "{}",
    }
    answer = run(check=True, files=[{"path": path, "content": text} for path, text in contents.items()])
    assert answer["paths"] == list(contents)
    assert found.pop("hal-canary.service")
    assert found == {
        "hal-a.service": "a",
        "hal-a.service.d/90-hal.conf": "more of a",
        "hal-d@canary.service": "d",
        "internal.mount": "[Unit]\n",
        "internal.mount.d/90-hal.conf": "limit",
    }
    (argv,) = run.told
    assert {os.path.dirname(path) for path in argv[2:]} == {str(tmp_path / "real")}
    asked = [os.path.basename(path) for path in argv[2:]]
    assert asked == ["hal-a.service", "hal-d@canary.service", "hal-canary.service", "internal.mount"]


def test_a_program_that_a_package_brings_later_judges_nothing(ran: Callable[..., Ran]) -> None:
    run = ran(lambda _: (1, "", "called"))
    run.programs = {}
    files = [{"path": path, "content": "new\n"} for seen in SEEN.values() for path in seen.paths]
    assert run(check=True, files=files)["changed"]
    assert run.told == []


def test_what_does_not_change_is_not_judged(ran: Callable[..., Ran], tmp_path: Path) -> None:
    run = ran(lambda _: (2, "", "called"))
    run.programs["sh"] = "/bin/sh"
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\necho "\n')
    entry = {"path": str(script), "content": script.read_text(), "owner": "root"}
    assert not run(check=True, files=[entry]).get("failed")
    assert run.told == []

"""hal-audit timer: the units that it writes, as systemd reads them, and what it tells systemd."""

from __future__ import annotations

import argparse
import configparser
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.audit.cli import playbook
from hal_cluster.audit.cli import timer as subject
from hal_cluster.audit.errors import AuditError


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What systemctl was told; the units are those of a user who is not root."""
    told: list[list[str]] = []

    def run(argv: list[str], **_words: Any) -> subprocess.CompletedProcess[str]:
        told.append(argv)
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr("hal_cluster.audit.cli.timer.subprocess.run", run)
    monkeypatch.setattr("hal_cluster.audit.cli.timer.os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(playbook, "program", lambda name: f"/bin with blank/{name}")
    return told


def timer(**more: Any) -> int:
    given = {"at": "03:30", "remove": False, "sources": [], "rest": [], **more}
    return subject.timer(argparse.Namespace(**given))


def unit(path: Path) -> configparser.ConfigParser:
    made = configparser.ConfigParser(interpolation=None, strict=False)
    made.optionxform = str  # type: ignore[method-assign,assignment]
    made.read(path)
    return made


def test_it_is_written_and_begun_and_taken_away_again(
    tmp_path: Path, said: list[list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "systemd" / "user"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSIBLE_INVENTORY", "/a site/hal.yml")
    assert timer() == 0
    assert said == [
        ["systemctl", "--user", "daemon-reload"],
        ["systemctl", "--user", "enable", "--now", "hal-audit.timer"],
    ]
    assert unit(folder / "hal-audit.timer")["Timer"]["OnCalendar"] == "*-*-* 03:30:00"
    service = unit(folder / "hal-audit.service")["Service"]
    assert service["ExecStart"] == '"/bin with blank/hal-audit" "run" "--deep"'
    assert service["WorkingDirectory"] == str(tmp_path), "its ansible.cfg counts, as now"
    text = (folder / "hal-audit.service").read_text()
    assert 'Environment="ANSIBLE_INVENTORY=/a site/hal.yml"\n' in text
    assert "loginctl enable-linger" in capsys.readouterr().out
    said.clear()
    assert timer(remove=True) == 0
    assert said[0] == ["systemctl", "--user", "disable", "--now", "hal-audit.timer"]
    assert list(folder.iterdir()) == []
    assert timer(remove=True) == 0


def test_the_units_of_root_are_the_system_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hal_cluster.audit.cli.timer.os.geteuid", lambda: 0)
    assert subject.units_folder() == Path("/etc/systemd/system")


def test_what_the_run_needs_goes_with_it(said: list[list[str]]) -> None:
    environment = {"ANSIBLE_VAULT_PASSWORD_FILE": '/home/a b/50%"\\$x', "HOME": "/root"}
    service, timer_ = subject.texts("Mon *-*-* 04:00", ["i/a.yml"], ["-e", "x=$1"], environment)
    assert 'Environment="ANSIBLE_VAULT_PASSWORD_FILE=/home/a b/50%%\\"\\\\$x"\n' in service
    assert "HOME" not in service
    source = os.path.abspath("i/a.yml")
    assert f'"run" "--deep" "-i" "{source}" "--" "-e" "x=$$1"\n' in service
    assert "\nOnCalendar=Mon *-*-* 04:00\n" in timer_


@pytest.mark.parametrize("at", ["", " ", "03:30\nOnCalendar=hourly"])
def test_a_time_that_is_none_is_refused(said: list[list[str]], at: str) -> None:
    with pytest.raises(AuditError, match=r"^--at: write a time of day, such as 03:30"):
        timer(at=at)
    assert said == []


def test_a_word_with_an_end_of_line_is_refused(said: list[list[str]]) -> None:
    with pytest.raises(AuditError, match="has a line break, which no unit can have"):
        timer(rest=["a\nb"])
    assert said == []


def test_what_systemd_refuses_is_one_line(said: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(argv: list[str], **_words: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(argv, 1, "", "first\nFailed to connect to bus\n")

    monkeypatch.setattr("hal_cluster.audit.cli.timer.subprocess.run", refused)
    with pytest.raises(AuditError, match=r"^systemctl --user daemon-reload: Failed to connect to bus$"):
        timer()

    def missing(argv: list[str], **_words: Any) -> subprocess.CompletedProcess[str]:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("hal_cluster.audit.cli.timer.subprocess.run", missing)
    with pytest.raises(AuditError, match=r"this controller has no systemd$"):
        timer()


def test_systemd_understands_the_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playbook, "program", lambda _name: "/bin/true")
    for name, text in zip(("service", "timer"), subject.texts("03:30", [], [], {"SSH_AUTH_SOCK": "/a b"}), strict=True):
        (tmp_path / f"hal-audit.{name}").write_text(text)
    argv = ["systemd-analyze", "verify", *(str(path) for path in sorted(tmp_path.iterdir()))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    mine = [line for line in done.stderr.splitlines() if "hal-audit" in line]
    assert (done.returncode, mine) == (0, []), done.stderr

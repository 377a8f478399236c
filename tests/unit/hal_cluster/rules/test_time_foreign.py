"""What a node took the time from before the role time is said before it is replaced."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from hal_cluster.rules.time import foreign

PROJECT = Path(__file__).resolve().parents[4]
# As CentOS 7.7's packages chrony 3.4 and ntp 4.2.6p5 write them, shortened; the site's lines are its own.
CHRONY = """# Use public servers from the pool.ntp.org project.
# Please consider joining the pool (http://www.pool.ntp.org/join.html).
server 0.centos.pool.ntp.org iburst
server 1.centos.pool.ntp.org iburst

# Record the rate at which the system clock gains/losses time.
driftfile /var/lib/chrony/drift
makestep 1.0 3
rtcsync
#allow 192.168.0.0/16
#local stratum 10
logdir /var/log/chrony
"""
NTP = """driftfile /var/lib/ntp/drift
restrict default nomodify notrap nopeer noquery
restrict 127.0.0.1
  server ntp.ncsa.example.edu iburst
#broadcast 192.168.1.255 autokey
peer  192.0.2.9
includefile /etc/ntp/crypto/pw
"""
TIMESYNCD = """[Time]
NTP=192.0.2.1
#FallbackNTP=0.pool.ntp.org
"""


def found(tmp_path: Path, **contents: str | bytes) -> str:
    """What the filter says of what the role's own grep finds in these files."""
    pattern = yaml.safe_load((PROJECT / "roles/time/vars/main.yml").read_text())["__time_lines"]
    places = {"chrony": "/etc/chrony.conf", "ntp": "/etc/ntp.conf", "timesyncd": "/etc/systemd/timesyncd.conf"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    argv = ["grep", "-HE", pattern, *(str(tmp_path / name) for name in places)]
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False, env=environment)
    out, err = done.stdout, done.stderr
    for name, place in places.items():
        out, err = (text.replace(str(tmp_path / name), place) for text in (out, err))
    seen: dict[str, Any] = {"stdout_lines": out.splitlines(), "stderr_lines": err.splitlines()}
    return foreign(seen)


def test_the_servers_that_a_node_had_are_named(tmp_path: Path) -> None:
    assert found(tmp_path, chrony=CHRONY, ntp=NTP, timesyncd=TIMESYNCD) == (
        "/etc/chrony.conf has server 0.centos.pool.ntp.org iburst; server 1.centos.pool.ntp.org iburst. "
        "/etc/ntp.conf has server ntp.ncsa.example.edu iburst; peer 192.0.2.9. "
        "/etc/systemd/timesyncd.conf has NTP=192.0.2.1"
    )


def test_who_is_served_is_named_too(tmp_path: Path) -> None:
    said = found(tmp_path, chrony="allow 10.0.0.0/8\nlocal stratum 8\ninclude /etc/chrony.d/*.conf\n")
    assert said == "/etc/chrony.conf has allow 10.0.0.0/8; local stratum 8; include /etc/chrony.d/*.conf"


def test_nothing_is_said_of_a_new_node_or_of_our_own_files(tmp_path: Path) -> None:
    assert found(tmp_path) == ""
    ours = '# Written by the role "time"; changes made here are lost.\nserver 10.64.0.11 iburst\n'
    assert found(tmp_path, chrony=ours, ntp=NTP) == ""


def test_what_cannot_be_read_is_said_and_words_of_others_drive_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "ntp").symlink_to("ntp")
    said = found(tmp_path, chrony=b"server \x1b[2Ja.example.org" + b"b" * 500 + b"\n")
    assert "\x1b" not in said
    assert r"\x1b[2J" in said
    assert "... " not in said.split("/etc/ntp.conf")[1]
    assert "/etc/ntp.conf: Too many levels of symbolic links" in said
    assert len(said) < 300

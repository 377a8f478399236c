"""The parser of the role time's chrony.conf: what chronyd starts with, and what it does not."""

from __future__ import annotations

import pytest

from hal_cluster.rules.time import chrony_problems

SOUND = """# Written by the role "time"; changes made here are lost.
server ntp1.example.org iburst
server 2001:db8::7 iburst
server 192.0.2.1 iburst
driftfile /var/lib/chrony/drift
makestep 1.0 3
rtcsync
logdir /var/log/chrony

allow 10.64.0.0/24
allow 2001:db8::/32
local stratum 10 orphan
"""


def test_a_sound_file_has_no_problem() -> None:
    assert chrony_problems(SOUND) == []
    for options in ("prefer", "minpoll 6 maxpoll 10", "key 3 xleave"):
        assert chrony_problems(SOUND.replace("192.0.2.1 iburst", f"ntp1.site. {options} iburst")) == []


@pytest.mark.parametrize(
    ("was", "wrong"),
    [
        ("server 192.0.2.1 iburst", "server  iburst"),
        ("server 192.0.2.1 iburst", "server a, b iburst"),
        ("server 192.0.2.1 iburst", "server a b iburst"),
        ("server 192.0.2.1 iburst", "server -a iburst"),
        ("makestep 1.0 3", "makestep 1.0"),
        ("makestep 1.0 3", "makestep 1.0 3.5"),
        ("makestep 1.0 3", "makestep None 3"),
        ("rtcsync", "rtcsync yes"),
        ("allow 10.64.0.0/24", "allow management"),
        ("local stratum 10 orphan", "local stratum 0 orphan"),
        ("local stratum 10 orphan", "local stratum 16 orphan"),
        ("rtcsync", "rtcsink"),
        ("driftfile /var/lib/chrony/drift", "driftfile drift"),
    ],
)
def test_a_line_that_chronyd_would_not_start_with_is_named(was: str, wrong: str) -> None:
    text = SOUND.replace(was, wrong, 1)
    (said,) = chrony_problems(text)
    assert said.startswith(f"chrony.conf, line {text.splitlines().index(wrong) + 1}: ")

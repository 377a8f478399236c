"""The program that takes interfaces down and brings them up, with programs that note how they are called."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[4] / "roles" / "network" / "files" / "change.sh"


def test_each_interface_alone_is_taken_down_and_up_and_what_was_said_is_kept(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("nmcli", "ifdown", "ifup", "ip", "sleep"):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >&2\n[ {name} != ifdown ]\n')
        program.chmod(0o755)
    text = SCRIPT.read_text().replace("PATH=/usr/sbin", f"PATH={tmp_path}/bin:/usr/sbin")
    text = text.replace("run=/run/hal/network\n", f"run={tmp_path}\n")
    text = text.replace("scripts=/etc/sysconfig/network-scripts\n", f"scripts={tmp_path}\n")
    for name, content in (("ib0", ""), ("ib1", "MASTER=bond00\n"), ("eno2", "SLAVE=yes\nMASTER=bond0\n")):
        (tmp_path / f"ifcfg-{name}").write_text(content)
    done = subprocess.run(["sh", "-c", text, "change", "ib0", "bond0"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "sleep 2\n")
    assert (tmp_path / "done").read_text().splitlines() == [
        f"nmcli connection load {tmp_path}/ifcfg-ib0",
        "ifdown ib0",
        "ifup ib0",
        f"nmcli connection load {tmp_path}/ifcfg-bond0",
        f"nmcli connection load {tmp_path}/ifcfg-eno2",
        "ifdown bond0",
        "ip -4 addr flush dev eno2",  # a port that becomes a member would keep its address
        "ifup bond0",
    ]
    assert not (tmp_path / "said").exists()

"""The same recipe makes an emulated POWER node: it says ppc64le, systemd gets all the way up, packages install."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from testbed import image, repository
from testbed.run import PODMAN

pytestmark = pytest.mark.slow  # emulated: minutes to build, a minute to start

NAME = f"ppc64le-check-{os.getpid()}"  # another checkout may run this, too


def on_node(script: str) -> str:
    """Return what a shell script prints on the node; it must succeed."""
    done = subprocess.run([PODMAN, "exec", NAME, "bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}: {done.stderr or done.stdout}"
    return done.stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def node() -> Iterator[None]:
    """A running ppc64le node with the repository mounted."""
    made, packages = image.build("ppc64le"), repository.build("ppc64le")
    options = [f"--name={NAME}", f"--label=hal.virtual={NAME}", "--network=none", "--systemd=always"]
    start = [str(PODMAN), "run", "--detach", *options, f"--volume={packages}:/srv/hal-packages:ro", made]
    subprocess.run(start, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run([PODMAN, "rm", "--force", "--time=0", "--volumes", NAME], capture_output=True, check=True)


def test_systemd_comes_up_with_no_failed_unit() -> None:
    script = "until [ -S /run/dbus/system_bus_socket ]; do sleep 1; done; /usr/bin/systemctl is-system-running --wait"
    assert on_node(f"timeout 300 bash -c '{script}'") == "running"


def test_programs_see_power() -> None:
    assert on_node("uname -m; python3 -c 'import platform; print(platform.machine())'") == "ppc64le\nppc64le"
    assert on_node("cat /etc/redhat-release") == "CentOS Linux release 7.7.1908 (AltArch)"


def test_a_package_installs_and_its_daemon_runs() -> None:
    on_node(
        "printf '[hal]\\nname=hal\\nbaseurl=file:///srv/hal-packages\\ngpgcheck=1\\n"
        "gpgkey=file:///srv/hal-packages/RPM-GPG-KEY-hal\\n' >/etc/yum.repos.d/hal.repo"
    )
    on_node("dnf --quiet --assumeyes install munge")
    assert on_node("rpm -q --qf '%{ARCH}' munge") == "ppc64le"
    assert (
        on_node("create-munge-key && systemctl start munge && munge -n | unmunge | grep -c 'STATUS:.*Success'") == "1"
    )

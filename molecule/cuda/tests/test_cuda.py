"""Toolkits side by side: what a user who types nvcc gets, and what the role says when it is not the declared one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host
from testing.promises import Rollout

COMPILES = "hal-login"  # no GPU
COMPUTES = "hal01"
STRAY = "no toolkit that nobody declared"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


def compiler(host: Host, path: str = "/usr/local/cuda") -> str:
    """The last words of nvcc --version: release 10.2, V10.2.89."""
    lines: list[str] = host.check_output(f"{path}/bin/nvcc --version").splitlines()
    return next(line.partition(", ")[2] for line in lines if line.startswith("Cuda compilation tools"))


def toolkits(host: Host) -> list[str]:
    """Releases in /usr/local, from packages or not."""
    return sorted(host.check_output("ls -d /usr/local/cuda-*/bin/nvcc | cut -d- -f2 | cut -d/ -f1").split())


def said(result: dict[str, Any]) -> tuple[str, Any]:
    return result["status"], result["observed"]


@pytest.mark.parametrize("name", [COMPILES, COMPUTES])
def test_a_user_gets_the_default_toolkit(node: Node, name: str) -> None:
    host = node(name)
    assert compiler(host) == "release 10.2, V10.2.89"
    assert host.check_output("readlink -f /usr/local/cuda") == "/usr/local/cuda-10.2"
    assert host.file("/usr/local/cuda/version.txt").content_string == "CUDA Version 10.2.89\n"


def test_a_package_that_comes_later_does_not_choose_itself(node: Node) -> None:
    host = node(COMPILES)
    # As it is where a package has chosen what the site declares.
    host.check_output("update-alternatives --quiet --auto cuda && dnf --quiet --assumeyes install cuda-toolkit-11-3")
    assert compiler(host) == "release 10.2, V10.2.89"
    host.check_output("dnf --quiet --assumeyes remove cuda-toolkit-11-3 cuda-nvcc-11-3 cuda-cudart-11-3")


def test_a_node_without_gpus_has_no_driver_and_needs_none(node: Node, rollout: Rollout) -> None:
    assert node(COMPILES).run("rpm -qa '*nvidia*' 'cuda-drivers*'").stdout == ""
    results = rollout.promises("cuda", COMPILES)
    assert results["loaded driver is new enough for the toolkits"]["status"] == "skipped"
    assert {result["status"] for result in results.values()} == {"pass", "skipped"}


def test_a_toolkit_that_nobody_declared_is_named_and_left(node: Node, rollout: Rollout) -> None:
    assert toolkits(node(COMPUTES)) == ["10.2", "11.3"]
    result = rollout.promises("cuda", COMPUTES)[STRAY]
    assert (*said(result), result["severity"]) == ("fail", "11.3", "warning")
    assert rollout.broken_promises("cuda", COMPUTES) == [STRAY]


def test_two_toolkits_are_side_by_side_and_a_withdrawn_one_goes(node: Node, rollout: Rollout) -> None:
    host = node(COMPUTES)
    done = rollout.converge("--limit", COMPUTES, cuda_toolkits=["10.1.243", "10.2"], cuda_default="10.1")
    assert done.status == 0, done.explain()
    assert toolkits(host) == ["10.1", "10.2", "11.3"]
    assert [compiler(host, f"/usr/local/cuda-{release}") for release in ("10.1", "10.2")] == [
        "release 10.1, V10.1.243",
        "release 10.2, V10.2.89",
    ]
    assert compiler(host) == "release 10.1, V10.1.243"

    done = rollout.converge("--limit", COMPUTES, cuda_remove_undeclared=True)
    assert done.status == 0, done.explain()
    assert toolkits(host) == ["10.2"]
    assert host.run("rpm -qa 'cuda*10-1' 'cuda*11-3'").stdout == ""
    assert compiler(host) == "release 10.2, V10.2.89"
    shown = host.check_output("update-alternatives --display cuda")
    assert [line for line in shown.splitlines() if line.startswith("/")] == ["/usr/local/cuda-10.2 - priority 1000"]
    assert rollout.broken_promises("cuda", COMPUTES) == []


def test_a_rollout_mends_what_it_installs_and_names_the_rest(node: Node, rollout: Rollout) -> None:
    host = node(COMPUTES)
    host.check_output(
        "sed -i 's/10\\.2/10.1/g' /usr/local/cuda-10.2/bin/nvcc"
        " && ln -sfn /usr/local/cuda-10.2/bin /usr/local/cuda"
        " && install -D -m 0755 /usr/local/cuda-10.2/bin/nvcc /usr/local/cuda-9.0/bin/nvcc"
        " && rpm --erase --nodeps cuda-toolkit-10-2 && dnf --quiet --assumeyes install cuda-runtime-10-2"
    )
    # A rollout mends what it installs, and stops at what is not its own.
    host.check_output("dnf --quiet --assumeyes reinstall cuda-nvcc-10-2")
    done = rollout.converge("--limit", COMPUTES)
    assert done.status != 0
    assert "no package brings a driver of its own: expected absent true" in done.words
    assert rollout.broken_promises("cuda", COMPUTES) == ["no package brings a driver of its own", STRAY]

    host.check_output("dnf --quiet --assumeyes remove cuda-drivers && rm -r /usr/local/cuda-9.0")
    assert rollout.broken_promises("cuda", COMPUTES) == []


# Each refusal: tests/unit/roles/cuda/test_role.py.
def test_what_does_not_go_together_is_refused_before_anything_changes(node: Node, rollout: Rollout) -> None:
    packages = "rpm -qa | sort | cksum"
    before = node(COMPUTES).check_output(packages)
    done = rollout.converge("--limit", COMPUTES, cuda_toolkits=["11.3"])
    assert done.status != 0
    assert "NVIDIA has no packages of CUDA 11.3 for rhel7 on ppc64le" in " ".join(done.words.split())
    assert node(COMPUTES).check_output(packages) == before

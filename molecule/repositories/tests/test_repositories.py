"""The package manager of a node uses the declared repositories, believes the declared keys, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from promises import Rollout
from testinfra.host import Host

NODES = ["hal-mgmt2", "hal01"]
PACKAGE = "tree"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


@pytest.fixture
def mended(rollout: Rollout) -> Iterator[None]:
    """After the test, the role puts hal01 right again."""
    yield
    done = rollout.converge("--limit", "hal01", molecule_nodes=1)
    assert done.returncode == 0, done.stdout


def repositories(host: Host) -> list[str]:
    lines: list[str] = host.check_output("dnf --quiet repolist enabled").splitlines()
    return [line.split()[0] for line in lines if not line.startswith("repo id")]


def keys(host: Host) -> list[str]:
    versions: list[str] = host.run("rpm -q --queryformat '%{version}\\n' gpg-pubkey").stdout.split()
    return versions


@pytest.mark.parametrize("name", NODES)
def test_the_package_manager_sees_the_declared_repository_and_no_other(node: Node, name: str) -> None:
    assert repositories(node(name)) == ["hal-packages"]


@pytest.mark.parametrize("name", NODES)
def test_an_undeclared_file_is_set_aside_and_a_kept_one_stays(node: Node, name: str) -> None:
    files = node(name).check_output("ls /etc/yum.repos.d").split()
    assert files == ["CentOS-Base.repo.disabled", "hal.repo", "vendor.repo"]


def test_a_package_installs_from_the_repository_and_its_signature_holds(node: Node, mended: None) -> None:
    host = node("hal01")
    host.check_output(f"dnf --quiet --assumeyes install {PACKAGE}")
    assert host.package(PACKAGE).is_installed
    signature = host.check_output(f"rpm -q --queryformat '%{{SIGPGP:pgpsig}}%{{RSAHEADER:pgpsig}}' {PACKAGE}")
    assert signature.lower().endswith(keys(host)[0]), signature
    host.check_output(f"dnf --quiet --assumeyes remove {PACKAGE}")


def test_the_withdrawn_key_is_gone_and_the_declared_one_is_there(node: Node) -> None:
    for name in NODES:
        versions = keys(node(name))
        assert len(versions) == 1, versions


def test_without_its_key_nothing_installs_and_the_promise_says_so(node: Node, rollout: Rollout, mended: None) -> None:
    host = node("hal01")
    host.check_output("rpm -e --allmatches gpg-pubkey")
    refused = host.run(f"dnf --assumeyes install {PACKAGE}")
    assert refused.rc != 0
    assert not host.package(PACKAGE).is_installed
    assert rollout.broken_promises("repositories", "hal01") == ["declared signing keys are trusted"]


def test_a_variable_is_set_and_the_withdrawn_one_is_gone(node: Node) -> None:
    host = node("hal01")
    shown = host.check_output("python3 -c 'import dnf; b = dnf.Base(); b.conf.substitutions.update_from_etc(\"/\");"
                              " print(b.conf.substitutions.get(\"site\"), b.conf.substitutions.get(\"leftover\"))'")
    assert shown == "hal None"


def test_a_repository_dropped_in_by_hand_is_reported_and_set_aside(node: Node, rollout: Rollout, mended: None) -> None:
    host = node("hal01")
    host.check_output("printf '[mine]\\nname=mine\\nbaseurl=file:///srv/hal-packages\\ngpgcheck=0\\n' >/etc/yum.repos.d/mine.repo")
    host.check_output("sed -i s/gpgcheck=1/gpgcheck=0/ /etc/yum.repos.d/hal.repo")
    assert rollout.broken_promises("repositories", "hal01") == [
        "exactly the declared repositories are in use",
        "no repository file that nobody declared",
        "unsigned packages are refused",
    ]


def test_a_withdrawn_key_that_comes_back_is_reported(node: Node, rollout: Rollout, mended: None) -> None:
    host = node("hal01")
    host.check_output("rpm --import /root/RPM-GPG-KEY-withdrawn")
    assert rollout.broken_promises("repositories", "hal01") == ["withdrawn signing keys are not trusted"]


def test_a_key_with_another_fingerprint_is_refused(node: Node, rollout: Rollout, mended: None) -> None:
    host = node("hal01")
    host.check_output("rpm -e --allmatches gpg-pubkey")
    wrong = {"hal_packages": {"source": "/root/RPM-GPG-KEY-withdrawn", "fingerprint": "0" * 40}}
    done = rollout.converge("--limit", "hal01", molecule_nodes=1, repositories_keys=wrong)
    assert done.returncode != 0
    assert "does not match" in done.stdout
    assert keys(host) == []


def test_a_node_without_repositories_is_refused_before_anything_is_touched(rollout: Rollout) -> None:
    done = rollout.converge(repositories_enabled={})
    assert done.returncode != 0
    assert "repositories_enabled names no repository for hal01" in " ".join(done.stdout.split())

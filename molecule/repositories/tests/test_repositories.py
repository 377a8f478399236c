"""The package manager of a node uses the declared repositories, believes the declared keys, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from testinfra.host import Host
from testing.promises import Rollout

NODES = ["hal-mgmt2", "hal01"]
PACKAGE = "tree"
WITHDRAWN = "61c6e649"  # end of its fingerprint
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


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


def test_a_package_installs_from_the_repository_and_its_signature_holds(node: Node) -> None:
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


def test_a_variable_is_set_and_the_withdrawn_one_is_gone(node: Node) -> None:
    host = node("hal01")
    shown = host.check_output(
        'python3 -c \'import dnf; b = dnf.Base(); b.conf.substitutions.update_from_etc("/");'
        ' print(b.conf.substitutions.get("site"), b.conf.substitutions.get("leftover"))\''
    )
    assert shown == "hal None"


def test_a_wrong_key_is_refused_and_the_role_mends_what_is_wrong(node: Node, rollout: Rollout) -> None:
    host = node("hal01")
    host.check_output("rpm -e --allmatches gpg-pubkey && rpm --import /root/RPM-GPG-KEY-withdrawn")
    refused = host.run(f"dnf --assumeyes install {PACKAGE}")
    assert refused.rc != 0, "a package installs without the key that signed it"
    assert not host.package(PACKAGE).is_installed
    host.check_output(
        "cd /etc/yum.repos.d && sed -i s/gpgcheck=1/gpgcheck=0/ hal.repo"
        " && printf '[mine]\\nname=mine\\nbaseurl=file:///srv/hal-packages\\n' >mine.repo"
    )

    wrong = {"hal_packages": {"source": "/srv/hal-packages/RPM-GPG-KEY-hal", "fingerprint": "0" * 40}}
    done = rollout.converge("--limit", "hal01", repositories_keys=wrong)
    assert done.status != 0
    assert "does not match any key fingerprints" in done.words
    assert WITHDRAWN in keys(host)
    assert len(keys(host)) == 1

    done = rollout.converge("--limit", "hal01")
    assert done.status == 0, done.explain()
    assert repositories(host) == ["hal-packages"]
    assert WITHDRAWN not in keys(host)
    assert rollout.broken_promises("repositories", "hal01") == []


def test_a_node_without_repositories_is_refused_before_anything_is_touched(rollout: Rollout) -> None:
    done = rollout.converge(repositories_enabled={})
    assert done.status != 0
    assert "repositories_enabled names no repository for hal01" in done.words

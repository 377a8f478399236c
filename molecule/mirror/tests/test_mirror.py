"""The mirror publishes exactly what is locked, and a node installs from it; asked of the server and of the node."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from testinfra.host import Host
from testing.promises import Rollout

MIRROR, CLIENT = "hal-mgmt1", "hal01"
FOLDER = "/srv/mirror/www"
ALL_WELL: list[str] = []
MADE = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "made"
Node = Callable[[str], Host]
Site = Callable[..., Any]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


def lock() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((MADE / "packages.lock.yml").read_text())
    return content


def package(name: str, arch: str = "x86_64") -> dict[str, Any]:
    entry: dict[str, Any] = lock()["repositories"]["vendor"][arch]["packages"][name]
    return entry


def pooled(name: str) -> str:
    entry = package(name)
    return f"{FOLDER}/pool/{entry['sha256']}/{entry['file']}"


def locked_paths() -> list[str]:
    return sorted(
        f"{repository}/{arch}/Packages/{Path(entry['file']).name}"
        for repository, arches in lock()["repositories"].items()
        for arch, tree in arches.items()
        for entry in tree.get("packages", {}).values()
    )


def published(host: Host) -> list[str]:
    return sorted(host.check_output(f"cd {FOLDER}/current/ && find . -name '*.rpm' -printf '%P\\n'").split())


def current(host: Host) -> str:
    target: str = host.check_output(f"readlink {FOLDER}/current")
    return target.removeprefix("snapshots/")


def address(site: Site, network: str = "management") -> str:
    entry = next(one for one in site("hosts") if one["name"] == MIRROR)
    return str(entry["addresses"][network])


def change_lock(name: str, change: Callable[[dict[str, Any]], None]) -> str:
    content = lock()
    change(content)
    path = MADE / name
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_exactly_the_locked_packages_are_published_for_both_architectures(node: Node) -> None:
    paths = published(node(MIRROR))
    assert paths == locked_paths()
    for arch in ("x86_64", "ppc64le"):
        assert f"vendor/{arch}/Packages/vendor-tool-1.0-1.el7.{arch}.rpm" in paths
    assert "hal-packages/x86_64/Packages/tmux" in "\n".join(paths)


def test_the_snapshot_that_was_published_by_hand_is_not_and_old_ones_are_kept_by_count(node: Node) -> None:
    host = node(MIRROR)
    assert re.fullmatch(r"[0-9a-f]{16}", current(host))
    assert sorted(set(host.check_output(f"ls {FOLDER}/snapshots").split()) - {current(host)}) == ["old3", "old4"]


def test_a_node_knows_no_repository_but_the_mirror(node: Node, site: Site) -> None:
    addresses = node(CLIENT).check_output("sed -n s/^baseurl=//p /etc/yum.repos.d/*.repo").split()
    base = f"http://{address(site)}/mirror"
    assert addresses == [f"{base}/hal-packages/x86_64", f"{base}/vendor/x86_64"]


def test_packages_with_what_they_need_install_over_http_and_their_signatures_hold(node: Node) -> None:
    host = node(CLIENT)
    host.check_output("dnf --quiet --assumeyes install tmux vendor-tool")
    assert host.package("tmux").is_installed
    assert host.package("vendor-libs").is_installed, "what vendor-tool needs comes with it"
    fetched = node(MIRROR).check_output("cat /var/log/httpd/access_log")
    for name in ("tmux", "vendor-tool", "vendor-libs"):
        assert re.search(rf'"GET /mirror/\S+/{name}-\S+\.rpm HTTP/1\.1" 200', fetched), name
    host.check_output("dnf --quiet --assumeyes remove tmux vendor-tool vendor-libs")


def test_the_tree_of_the_other_architecture_is_served(node: Node, site: Site) -> None:
    base = f"http://{address(site)}/mirror/vendor/ppc64le"
    listed = node(CLIENT).check_output(
        f"dnf --quiet --repofrompath=power,{base} --repo=power --forcearch=ppc64le repoquery"
    )
    assert sorted(listed.split()) == ["vendor-libs-0:1.0-1.el7.ppc64le", "vendor-tool-0:1.0-1.el7.ppc64le"]


def test_only_the_management_network_is_served(node: Node, site: Site) -> None:
    ask = "curl --silent --output /dev/null --write-out '%{{http_code}}' http://{}/mirror/vendor/x86_64/repodata/repomd.xml"
    assert node(CLIENT).check_output(ask.format(address(site))) == "200"
    assert node(CLIENT).check_output(ask.format(address(site, "ipoib"))) == "403"


def test_what_is_not_the_locked_package_is_refused_and_the_old_snapshot_stays(node: Node, rollout: Rollout) -> None:
    """Tampered at its source, unsigned, signed by a stranger: each refused by name, in one run."""
    host = node(MIRROR)
    before = current(host)

    def more(content: dict[str, Any]) -> None:
        tree = content["repositories"]["vendor"]["x86_64"]
        for name in ("unsigned", "strange"):
            file = f"vendor-{name}-1.0-1.el7.x86_64.rpm"
            path = MADE / "vendor" / "refused" / file
            sums = host.check_output(f"sha256sum /srv/vendor/refused/{file}").split()
            tree["packages"][f"vendor-{name}"] = {
                **tree["packages"]["vendor-tool"],
                "file": f"refused/{file}",
                "size": path.stat().st_size,
                "sha256": sums[0],
            }

    other = change_lock("more.lock.yml", more)
    host.check_output(
        f"rm {pooled('vendor-tool')} && cp -r /srv/vendor/refused /srv/vendor/x86_64/"
        " && cd /srv/vendor/x86_64 && cp vendor-tool-1.0-1.el7.x86_64.rpm /root/"
        " && printf x | dd of=vendor-tool-1.0-1.el7.x86_64.rpm bs=1 seek=5000 conv=notrunc 2>/dev/null"
    )
    done = rollout.converge(mirror_lock_file=other)
    assert done.status != 0
    assert "3 packages cannot be published" in done.words
    assert "vendor-tool-1.0-1.el7.x86_64.rpm: has sha256" in done.words
    assert "vendor-unsigned-1.0-1.el7.x86_64.rpm: is not signed: not published" in done.words
    assert re.search(r"vendor-strange-1\.0-1\.el7\.x86_64\.rpm: .*NOKEY: not published", done.words)
    assert current(host) == before
    assert published(host) == locked_paths()
    host.check_output("mv /root/vendor-tool-1.0-1.el7.x86_64.rpm /srv/vendor/x86_64/")


def test_an_interrupted_sync_goes_on_where_it_ended(node: Node, rollout: Rollout) -> None:
    host = node(MIRROR)
    entry, path = package("vendor-libs"), pooled("vendor-libs")
    half = entry["size"] // 2
    host.check_output(f"head -c {half} {path} >{path}.new.part && rm {path}")
    done = rollout.converge("--limit", MIRROR, "-v")
    assert done.status == 0, done.explain()
    tool = package("vendor-tool")["size"]  # its copy in the pool was taken away above
    assert f"fetched_bytes: {entry['size'] - half + tool}" in done.words
    assert published(host) == locked_paths()
    assert host.check_output(f"sha256sum {path}").split()[0] == entry["sha256"]


def test_faults_are_mended(node: Node, rollout: Rollout) -> None:
    host = node(MIRROR)
    assert rollout.broken_promises("mirror", MIRROR) == ALL_WELL

    # One byte of a published file; httpd would serve another folder, and is down.
    host.check_output(
        f"printf x | dd of={pooled('vendor-libs')} bs=1 seek=9000 conv=notrunc 2>/dev/null"
        " && sed -i 's|^Alias .*|Alias /mirror /var/empty|' /etc/httpd/conf.d/hal-mirror.conf"
        " && systemctl disable --quiet --now httpd"
    )

    # A node that was pointed elsewhere.
    node(CLIENT).check_output("sed -i 's|^baseurl=.*/vendor/.*|baseurl=file:///srv/vendor|' /etc/yum.repos.d/hal.repo")
    assert rollout.broken_promises("repositories", CLIENT) == ["packages come from the site's mirror"]

    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert rollout.broken_promises("mirror", MIRROR) == ALL_WELL
    assert rollout.broken_promises("repositories", CLIENT) == ALL_WELL
    assert host.check_output(f"sha256sum {pooled('vendor-libs')}").split()[0] == package("vendor-libs")["sha256"]


def test_a_lock_that_nobody_filled_in_or_with_other_keys_is_refused(rollout: Rollout) -> None:
    def unknown(content: dict[str, Any]) -> None:
        content["repositories"]["vendor"]["x86_64"]["unverified"] = ["vendor-driver"]

    done = rollout.converge("--limit", MIRROR, mirror_lock_file=change_lock("unverified.lock.yml", unknown))
    assert done.status != 0
    assert "has 1 unverified names, the first is vendor/x86_64/vendor-driver" in done.words
    assert "run hal-packages lock" in done.words

    strange = {"source": "/srv/vendor/RPM-GPG-KEY-vendor", "fingerprint": "0" * 40}
    keys = {"vendor": strange, "hal_packages": strange}
    done = rollout.converge("--limit", MIRROR, mirror_keys=keys)
    assert done.status != 0
    assert "repositories_keys has 0000000000" in done.words

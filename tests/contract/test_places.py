"""Debian's places, accounts and units, which no node with CentOS has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import project
from tests.contract.planting import Planted
from tests.contract.rules import places

sys.path.insert(0, str(project.PROJECT / "molecule" / "virtual_hal"))
from testbed import repository

TASKS = "roles/planted/tasks/main.yml"
RECIPES = places.RECIPES
TABLE = places.TABLE

PLANTED = (
    Planted(
        places.roles_write_into_folders_that_are_there,
        {
            TASKS: """
                - name: A package's folder
                  ansible.builtin.copy: {dest: /etc/my.cnf.d/x.cnf, content: x}
                - name: One of its own
                  ansible.builtin.file: {path: /etc/slurm, state: directory}
                - name: In it
                  ansible.builtin.copy: {dest: /etc/slurm/slurm.conf, content: x}
                - name: Debian's
                  ansible.builtin.copy: {dest: /etc/chrony/chrony.conf, content: x}
                """
        },
        [
            f"{TASKS}:7: /etc/chrony/chrony.conf: no package of CentOS 7.7 and no role makes /etc/chrony;"
            f" {TABLE} has those that do"
        ],
    ),
    Planted(
        places.roles_run_units_that_are_there,
        {
            TASKS: """
                - name: CentOS's
                  ansible.builtin.systemd_service: {name: sshd, state: started}
                - name: Debian's
                  ansible.builtin.systemd_service: {name: ssh, state: started}
                - name: Its own
                  ansible.builtin.copy: {dest: /etc/systemd/system/own.timer, content: x}
                - name: And so
                  ansible.builtin.systemd_service: {name: own.timer, state: started}
                - name: Not there, and so it shall be
                  ansible.builtin.systemd_service: {name: ntp, state: stopped}
                """
        },
        [f"{TASKS}:3: ssh.service: no package of CentOS 7.7 brings this unit and no role writes it; see {TABLE}"],
    ),
    Planted(
        places.owners_are_there,
        {
            TASKS: """
                - name: Make a user
                  ansible.builtin.user: {name: own}
                - name: Known
                  ansible.builtin.copy: {dest: /a, content: x, owner: own, group: chrony}
                - name: Debian's
                  ansible.builtin.copy: {dest: /b, content: x, owner: www-data, group: ssl-cert}
                """
        },
        [
            f"{TASKS}:5: /b: group ssl-cert: no package of CentOS 7.7 and no role makes it; see {TABLE}",
            f"{TASKS}:5: /b: owner www-data: no package of CentOS 7.7 and no role makes it; see {TABLE}",
        ],
    ),
    Planted(
        places.stand_ins_are_as_the_packages_they_stand_for,
        {
            RECIPES: """
                tree: {summary: has nothing of its own}
                dovecot: {users: [{name: dovecot}]}
                chrony:
                  users: [{name: _chrony, home: /var/lib/chrony, shell: /sbin/nologin}]
                  units: [chronyd.service, chrony.service]
                  folders:
                    /var/lib/chrony: {mode: "0750", owner: chrony, group: chrony}
                    /etc/chrony: {}
                mariadb-server:
                  users: [{name: mysql, home: /nonexistent, shell: /sbin/nologin}]
                  links: {/etc/my.cnf.d/server.cnf: ../x}
                """,
            "molecule/virtual_hal/packages/files/chrony/etc/chrony.conf": "",
            "molecule/virtual_hal/packages/files/chrony/etc/default/chrony": "",
        },
        [
            f"{RECIPES}:2: dovecot has users or units; say in {TABLE} which the real package has",
            f"{RECIPES}:3: chrony: mode of /var/lib/chrony/ is 0750, in the real package 0755",
            f"{RECIPES}:3: chrony: the real package has no /etc/chrony/",
            f"{RECIPES}:3: chrony: the real package has no /etc/default/chrony",
            f"{RECIPES}:3: chrony: the real package has no chrony.service",
            f"{RECIPES}:3: chrony: the real package makes no user _chrony",
            f"{RECIPES}:3: chrony: the real package makes the user chrony",
            f"{RECIPES}:9: mariadb-server: /etc/my.cnf.d/server.cnf is a file in the real package",
            f"{RECIPES}:9: mariadb-server: home of mysql is /nonexistent, the real package has /var/lib/mysql",
            f"{RECIPES}:9: mariadb-server: uid of mysql is None, the real package has 27",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


def contents(package: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """What rpm says that a package brings: path, and type, mode, owner and group."""
    kinds = {"d": "directory", "l": "link", "-": "file"}
    query = r"[%{FILENAMES}\t%{FILEMODES:perms}\t%{FILEMODES:octal}\t%{FILEUSERNAME}\t%{FILEGROUPNAME}\n]"
    listed = subprocess.run(
        ["rpm", "--query", "--queryformat", query, "--package", str(package)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for line in listed.splitlines():
        path, permissions, octal, owner, group = line.split("\t")
        kind = kinds[permissions[0]]
        attributes = {"type": kind, "mode": octal[-4:], "owner": owner, "group": group}
        yield path + ("/" if kind == "directory" else ""), attributes


STAND_INS = sorted(set(places.table()) & set(project.load_map(project.PROJECT / RECIPES)))


@pytest.mark.parametrize("name", STAND_INS)
def test_a_built_stand_in_is_as_the_package_it_stands_for(name: str) -> None:
    """Its files as rpm lists them, after everything that a recipe does."""
    built = sorted(repository.location().glob(f"{name}-[0-9]*.rpm"))
    if not built:
        pytest.skip(f"not checked: no package {name} is built for the virtual nodes as they are now")
    entry = places.table()[name]
    found = dict(contents(built[-1]))
    wrong = [
        text
        for path, attributes in found.items()
        if path in entry["files"] or (path.startswith(places.WATCHED) and not path.startswith(places.UNIT_FOLDERS))
        for text in places.differences(entry, path, attributes)
    ]
    there = {*found, *(f"{folder}/" for path in found for folder in Path(path).parents)}
    wrong += [f"{path} is missing" for path in entry["files"] if path not in {*there, *entry.get("differs", {})}]
    assert not wrong, f"{name}:\n" + "\n".join(wrong)


def test_what_rpm_lists_is_compared() -> None:
    """One fault of each kind, as `contents` would give them."""
    entry = places.table()["chrony"]
    right = {"type": "file", "mode": "0640", "owner": "root", "group": "chrony"}
    assert list(places.differences(entry, "/etc/chrony.keys", right)) == []
    assert list(places.differences(entry, "/etc/chrony.keys", {**right, "mode": "0644", "group": "_chrony"})) == [
        "mode of /etc/chrony.keys is 0644, in the real package 0640",
        "group of /etc/chrony.keys is _chrony, in the real package chrony",
    ]
    assert list(places.differences(entry, "/etc/chrony/x", {})) == ["the real package has no /etc/chrony/x"]
    assert list(places.differences(entry, "/etc/chrony/chrony.conf", {"type": "link"})) == [], "with its reason"

"""Every module for packages, services, accounts and the like, in each of its states: what it declares."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.audit.resources import content_id, identities, units_of
from hal_cluster.audit.resources.model import Units

PRESENT = {"state": "present"}
ABSENT = {"state": "absent"}
FILE = {"state": "present", "type": "file"}
BOOLEAN = f"line:/sys/fs/selinux/booleans/a#{content_id('a')}"
CONTEXT = f"line:/etc/selinux/targeted/active/file_contexts.local#{content_id('/srv(/.*)?')}"
REPOSITORY = "repository:/etc/yum.repos.d/a.repo#a"


def found(module: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {one.resource: dict(one.declared) for one in identities(module, arguments, {})}


@pytest.mark.parametrize(
    ("word", "name", "version"),
    [
        ("a > 1 , b", "a", None),
        ("a<=1=2", "a", None),
        ("/tmp/a-1.0-2.x86_64.rpm", "a", ["1.0-2.x86_64"]),
        ("a.rpm", "a.rpm", None),
        ("a-2:1.0-3.el7.noarch", "a", ["2:1.0-3.el7.noarch"]),
        ("a-2:1.0", "a", None),
        ("a-1.0.i386", "a", None),
        ("a-10", "a-10", None),
    ],
)
def test_a_package_is_called_by_its_name_alone(word: str, name: str, version: Any) -> None:
    declared = {**PRESENT, **({"version": version} if version else {})}
    assert found("package", {"name": [word]}) == {f"package:{name}": declared}


def test_what_is_no_package_does_not_hide_the_next() -> None:
    words = ["@Development Tools", "lib*", "", "a"]
    assert found("yum", {"pkg": words, "state": "absent"}) == {"package:a": ABSENT}
    assert found("dnf", {"name": ["a-1.0-2.noarch"], "state": "removed"}) == {"package:a": ABSENT}
    assert found("dnf", {"name": "a", "state": "latest"}) == {"package:a": PRESENT}


@pytest.mark.parametrize(
    ("arguments", "declared"),
    [
        ({"service": "a", "state": "reloaded"}, {"service:a.service": {"state": "started"}}),
        ({"unit": "a.socket", "state": "stopped"}, {"service:a.socket": {"state": "stopped"}}),
        ({"name": "a", "masked": "no"}, {"service:a.service": {"masked": False}}),
        ({"name": "a", "state": "started", "scope": "system"}, {"service:a.service": {"state": "started"}}),
        ({"name": "a", "state": "started", "scope": "user"}, {}),
        ({"name": "a", "state": "started", "scope": "global"}, {}),
        ({"name": "a", "daemon_reload": True}, {}),
        ({"state": "started", "enabled": True}, {}),
    ],
)
def test_a_service_of_the_system(arguments: dict[str, Any], declared: dict[str, Any]) -> None:
    assert found("systemd_service", arguments) == declared


def test_a_restart_of_nothing_makes_no_unit_read_its_files() -> None:
    assert units_of("service", {"state": "restarted"}, {}) == Units()
    assert units_of("systemd", {"unit": "a.timer", "state": "reloaded"}, {}) == Units(("a.timer",))
    assert units_of("copy", {"name": "a", "state": "restarted"}, {}) == Units()


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        ({}, {"value": "1 2"}),
        ({"reload": True}, {"value": "1 2"}),
        ({"reload": "no"}, {}),
        ({"reload": False, "sysctl_set": "yes"}, {"value": "1 2"}),
        ({"reload": False, "sysctl_set": False}, {}),
    ],
)
def test_a_kernel_setting_is_in_force_unless_its_task_leaves_it(
    arguments: dict[str, Any], more: dict[str, str]
) -> None:
    declared = {"file": "/etc/sysctl.conf", "saved": "1 2", **more}
    assert found("ansible.posix.sysctl", {"key": "vm.a", "val": " 1\t2", **arguments}) == {"sysctl:vm.a": declared}


HOME = {"name": "/home", "src": "a:/home", "fstype": "nfs"}
SAVED = {"source": "a:/home", "fstype": "nfs", "saved": "defaults a:/home nfs"}


@pytest.mark.parametrize(
    ("arguments", "declared"),
    [
        ({**HOME, "state": "mounted"}, {**SAVED, "state": "mounted"}),
        ({**HOME, "state": "present"}, SAVED),
        ({**HOME, "state": "present", "boot": True}, SAVED),
        ({**HOME, "state": "present", "boot": "no"}, {**SAVED, "saved": "defaults,noauto a:/home nfs"}),
        ({**HOME, "state": "ephemeral"}, {"source": "a:/home", "fstype": "nfs", "state": "mounted"}),
        ({**HOME, "state": "absent"}, ABSENT),
        ({**HOME, "state": "absent_from_fstab"}, SAVED),
        ({**HOME, "state": "unmounted"}, None),
        ({**HOME, "state": "remounted"}, None),
        ({"path": "/home", "state": "mounted"}, None),
    ],
)
def test_a_mount_in_each_of_its_states(arguments: dict[str, Any], declared: Any) -> None:
    assert found("ansible.posix.mount", arguments) == ({} if declared is None else {"mount:/home": declared})


@pytest.mark.parametrize(
    ("module", "arguments", "declared"),
    [
        ("user", {"name": "u", "state": "absent", "uid": 5}, {"user:u": ABSENT}),
        ("user", {"user": "u", "uid": 0}, {"user:u": {**PRESENT, "uid": 0}}),
        ("user", {"name": "u", "uid": "x", "group": "g"}, {"user:u": {**PRESENT, "group": "g"}}),
        ("user", {"name": "u", "home": "/h", "password": "p"}, {"user:u": {**PRESENT, "home": "/h"}}),
        ("user", {"name": "u", "groups": ""}, {"user:u": {**PRESENT, "groups": []}}),
        ("user", {"name": "u", "groups": "b, a", "append": "no"}, {"user:u": {**PRESENT, "groups": ["a", "b"]}}),
        ("user", {"name": "u", "groups": ["a"], "append": "yes"}, {"user:u": PRESENT}),
        ("group", {"name": "g"}, {"group:g": PRESENT}),
        ("group", {"name": "g", "gid": "0"}, {"group:g": {**PRESENT, "gid": 0}}),
        ("group", {"name": "g", "gid": 5, "state": "absent"}, {"group:g": ABSENT}),
        ("cron", {"name": "n", "state": "absent"}, {"cron:root#n": ABSENT}),
        ("cron", {"name": "n", "cron_file": "a"}, {"file:/etc/cron.d/a": FILE}),
        ("cron", {"name": "n", "cron_file": "/a/b"}, {"file:/a/b": FILE}),
        ("cron", {"name": "n", "cron_file": "a", "state": "absent"}, {"file:/etc/cron.d/a": {}}),
        (
            *("cron", {"name": "n", "value": "x", "minute": 0, "hour": 1, "day": 2, "month": 3, "weekday": 4}),
            {"cron:root#n": {**PRESENT, "job": "x", "schedule": "0 1 2 3 4"}},
        ),
        ("community.general.modprobe", {"name": "a-b"}, {"kernel-module:a_b": {"loaded": True}}),
        ("community.general.modprobe", {"name": "a", "state": "absent"}, {"kernel-module:a": {"loaded": False}}),
        (
            *("community.general.modprobe", {"name": "a-b", "persistent": "present"}),
            {"kernel-module:a_b": {"loaded": True}, "file:/etc/modules-load.d/a-b.conf": FILE},
        ),
        (
            *("community.general.modprobe", {"name": "a", "persistent": "absent"}),
            {"kernel-module:a": {"loaded": True}, "file:/etc/modules-load.d/a.conf": ABSENT},
        ),
        ("community.general.modprobe", {"name": "a", "persistent": "disabled"}, {"kernel-module:a": {"loaded": True}}),
        ("rpm_key", {"key": "0xF4A80EB5", "state": "absent"}, {"rpm-key:f4a80eb5": ABSENT}),
        ("rpm_key", {"key": "https://a/KEY"}, {}),
        ("rpm_key", {"key": "4a80eb5"}, {}),
        ("hostname", {"name": "hal05"}, {"hostname:static": {"name": "hal05"}}),
        ("ansible.posix.selinux", {"state": "permissive"}, {"selinux:mode": {"mode": "permissive"}}),
        ("ansible.posix.seboolean", {"name": "a", "state": "yes"}, {BOOLEAN: {**PRESENT, "lines": ["1 1"]}}),
        ("ansible.posix.seboolean", {"name": "a", "state": False}, {BOOLEAN: {**PRESENT, "lines": ["0 0"]}}),
        ("ansible.posix.seboolean", {"name": "a", "state": "{{ x }}"}, {BOOLEAN: {**PRESENT, "lines": ["0 0"]}}),
        (
            *("community.general.sefcontext", {"target": "/srv(/.*)?", "setype": "nfs_t"}),
            {CONTEXT: {**PRESENT, "lines": ["/srv(/.*)?    system_u:object_r:nfs_t:s0"]}},
        ),
        (
            *("community.general.sefcontext", {"path": "/srv(/.*)?", "setype": "n", "ftype": "d", "seuser": "u"}),
            {CONTEXT: {**PRESENT, "lines": ["/srv(/.*)? -d u:object_r:n:s0"]}},
        ),
        (
            *("community.general.sefcontext", {"target": "/srv(/.*)?", "state": "absent"}),
            {CONTEXT: {**ABSENT, "regexp": r"^/srv\(/\.\*\)\?    "}},
        ),
        ("community.general.timezone", {"name": "UTC"}, {"file:/etc/localtime": {**PRESENT, "type": "link"}}),
        ("community.general.timezone", {"hwclock": "UTC"}, {}),
        ("community.mysql.mysql_db", {"name": ["a", "b"]}, {"database:a": PRESENT, "database:b": PRESENT}),
        ("community.mysql.mysql_db", {"db": "a", "state": "absent"}, {"database:a": ABSENT}),
        ("community.mysql.mysql_db", {"name": "a", "state": "dump"}, {}),
        ("community.mysql.mysql_db", {"name": "a", "state": "import"}, {}),
        ("community.mysql.mysql_user", {"name": "u", "password": "p"}, {"database-user:u@localhost": PRESENT}),
        ("community.mysql.mysql_user", {"user": "u", "host": "h", "state": "absent"}, {"database-user:u@h": ABSENT}),
    ],
)
def test_what_each_module_declares(module: str, arguments: dict[str, Any], declared: dict[str, Any]) -> None:
    assert found(module, arguments) == declared


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({"enabled": True, "gpgcheck": "no", "cost": 1}, {"enabled": "1", "gpgcheck": "0", "cost": "1"}),
        ({"baseurl": ["https://a/", "https://b/"]}, {"baseurl": "https://a/\nhttps://b/"}),
        ({"exclude": ("a", True)}, {"exclude": "a\ntrue"}),
        ({"gpgkey": None, "password": "p", "proxy_password": "p", "sslclientkey": "k"}, {}),
        ({"mode": "0600", "owner": "u", "group": "g", "state": "present", "file": "a"}, {}),
        ({"baseurl": "https://u:p@a/", "proxy": "_none_"}, {"proxy": "_none_"}),
        ({"baseurl": "https://a/x@y"}, {"baseurl": "https://a/x@y"}),
    ],
)
def test_lines_of_a_repository_without_its_secrets(more: dict[str, Any], lines: dict[str, str]) -> None:
    repository = {"name": "a", "description": "A", "metadata_expire": "1d", **more}
    declared = {**PRESENT, "name": "A", "metadata_expire": "1d", **lines}
    assert found("yum_repository", repository) == {REPOSITORY: declared}
    assert found("yum_repository", {**repository, "state": "absent"}) == {REPOSITORY: ABSENT}


def test_a_repository_may_be_in_another_file() -> None:
    repository = {"name": "a", "reposdir": "/r", "file": "b"}
    assert found("yum_repository", repository) == {"repository:/r/b.repo#a": {**PRESENT, "name": ""}}

"""What each module's arguments say about a node: names that stay, values as the node will be asked for them.

Through the table hal_cluster.audit.resources.table those of hal_cluster.audit.resources.files,
hal_cluster.audit.resources.lines,
hal_cluster.audit.resources.own and hal_cluster.audit.resources.system.
"""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.audit.resources import MANAGING, READ_ONLY, Resource, identities, module_name, units_of

FILE = {"state": "present", "type": "file"}


def found(module: str, result: dict[str, Any] | None = None, **arguments: Any) -> dict[str, dict[str, Any]]:
    """Resources of a call with what is declared of them."""
    return {one.resource: dict(one.declared) for one in identities(module, arguments, result or {})}


@pytest.mark.parametrize("name", ["copy", "ansible.builtin.copy", "ansible.legacy.copy"])
def test_a_builtin_module_has_one_name(name: str) -> None:
    assert module_name(name) == "ansible.builtin.copy"


def test_other_names_are_kept() -> None:
    assert module_name("ansible.posix.mount") == "ansible.posix.mount"
    assert module_name("ansible.legacy.hal_files") == "hal_files"


def test_no_module_both_manages_and_only_looks() -> None:
    assert not READ_ONLY & set(MANAGING)


@pytest.mark.parametrize(
    ("mode", "declared"),
    [("0644", "0644"), ("644", "0644"), (420, "0644"), (0o1777, "1777"), ("u=rw,go=r", None), ("preserve", None)],
)
def test_a_mode_is_four_digits_or_nothing(mode: Any, declared: str | None) -> None:
    assert found("copy", dest="/x", mode=mode)["file:/x"].get("mode") == declared


def test_a_symbolic_mode_is_what_the_module_made_of_it() -> None:
    assert found("copy", {"mode": "0644"}, dest="/x", mode="u=rw,go=r")["file:/x"]["mode"] == "0644"


def test_only_what_the_task_says_is_declared() -> None:
    result = {"dest": "/x", "mode": "0640", "owner": "root", "group": "root"}
    assert found("template", result, src="x.j2", dest="/x") == {"file:/x": FILE}


def test_an_owner_given_as_a_number_is_named_by_the_node() -> None:
    assert found("copy", {"owner": "root"}, dest="/x", owner=0)["file:/x"]["owner"] == "root"
    assert "owner" not in found("copy", dest="/x", owner="0")["file:/x"]


@pytest.mark.parametrize(("mode", "kept"), [("0644", True), ("0640", False), ("0600", False)])
def test_a_checksum_is_kept_only_of_what_others_may_read(mode: str, kept: bool) -> None:
    assert ("sha1" in found("copy", {"checksum": "a" * 40}, dest="/x", mode=mode)["file:/x"]) is kept
    assert ("sha1" in found("copy", {"checksum": "a" * 40, "mode": mode}, dest="/x")["file:/x"]) is kept


def test_a_copy_into_a_folder_is_the_file_in_it() -> None:
    assert list(found("copy", {"dest": "/etc/x.d/one"}, src="one", dest="/etc/x.d/")) == ["file:/etc/x.d/one"]
    assert list(found("copy", src="files/one", dest="/etc/x.d/")) == ["file:/etc/x.d/one"]


@pytest.mark.parametrize(
    ("arguments", "declared"),
    [
        ({"state": "directory"}, {"state": "present", "type": "directory"}),
        ({"state": "link", "src": "../t"}, {"state": "present", "type": "link", "target": "../t"}),
        ({"state": "absent"}, {"state": "absent"}),
        ({"state": "touch"}, {**FILE, "content": False}),
        ({"mode": "0700"}, {"state": "present", "mode": "0700", "content": False}),
    ],
)
def test_file_in_all_its_states(arguments: dict[str, Any], declared: dict[str, Any]) -> None:
    assert found("file", path="/x/", **arguments) == {"file:/x": declared}


def test_an_alternative_is_the_link_to_what_is_selected() -> None:
    name = "community.general.alternatives"
    choice: dict[str, Any] = {"name": "cuda", "link": "/usr/local/cuda", "path": "/usr/local/cuda-10.2"}
    link = {"state": "present", "type": "link", "target": "/usr/local/cuda-10.2"}
    assert found(name, **choice) == {"file:/etc/alternatives/cuda": link}
    assert found(name, **choice, state="selected") == {"file:/etc/alternatives/cuda": link}
    assert found(name, **choice, state="present") == {}
    assert found(name, **choice, state="absent") == {}


def test_the_root_folder_keeps_its_name() -> None:
    assert list(found("file", path="/", mode="0755")) == ["file:/"]


@pytest.mark.parametrize(
    ("word", "name", "version"),
    [
        ("chrony", "chrony", None),
        ("chrony-3.4-1.el7", "chrony", None),
        ("chrony-3.4-1.el7.ppc64le", "chrony", ["3.4-1.el7.ppc64le"]),
        ("slurm-20.02.7", "slurm", None),
        ("slurm >= 20.02", "slurm", None),
        ("java-1.8.0-openjdk", "java-1.8.0-openjdk", None),
        ("cuda-toolkit-10-2", "cuda-toolkit-10-2", None),
        ("python3", "python3", None),
        ("glibc.i686", "glibc", None),
        ("https://example.org/p/tool-1.2-3.noarch.rpm", "tool", ["1.2-3.noarch"]),
    ],
)
def test_a_package_by_its_name_whatever_pins_it(word: str, name: str, version: Any) -> None:
    declared = {"state": "present"} | ({"version": version} if version else {})
    assert found("package", name=word) == {f"package:{name}": declared}


def test_lists_of_packages_groups_and_removal() -> None:
    assert found("yum", name=["a", "@Development", "b*", "c"]) == {
        "package:a": {"state": "present"},
        "package:c": {"state": "present"},
    }
    assert found("dnf", name="a,b", state="removed") == {
        "package:a": {"state": "absent"},
        "package:b": {"state": "absent"},
    }


@pytest.mark.parametrize(
    ("arguments", "declared"),
    [
        ({"state": "started", "enabled": "yes"}, {"state": "started", "enabled": True}),
        ({"state": "restarted"}, {"state": "started"}),
        (
            {"state": "stopped", "enabled": False, "masked": True},
            {"state": "stopped", "enabled": False, "masked": True},
        ),
        ({"enabled": True}, {"enabled": True}),
    ],
)
def test_a_service_as_far_as_the_task_says(arguments: dict[str, Any], declared: dict[str, Any]) -> None:
    assert found("systemd_service", name="munge", **arguments) == {"service:munge.service": declared}


def test_units_have_their_suffix_and_a_reload_of_systemd_is_no_service() -> None:
    assert list(found("systemd", name="x.timer", enabled=True)) == ["service:x.timer"]
    assert found("systemd_service", daemon_reload=True) == {}


@pytest.mark.parametrize(
    ("state", "units"), [("restarted", ("a.service",)), ("reloaded", ("a.service",)), ("started", ())]
)
def test_a_restart_makes_a_unit_read_its_files(state: str, units: tuple[str, ...]) -> None:
    assert units_of("service", {"name": "a", "state": state}, {}).effective == units


def test_sysctl_saved_and_live() -> None:
    call: dict[str, Any] = {
        "name": "net.ipv4.tcp_rmem",
        "value": "4096\t87380  16777216",
        "sysctl_file": "/etc/sysctl.d/x.conf",
    }
    declared = {"file": "/etc/sysctl.d/x.conf", "saved": "4096 87380 16777216"}
    assert found("ansible.posix.sysctl", **call, reload=False)["sysctl:net.ipv4.tcp_rmem"] == declared
    live = {**declared, "value": "4096 87380 16777216"}
    assert found("ansible.posix.sysctl", **call, sysctl_set=True, reload=False)["sysctl:net.ipv4.tcp_rmem"] == live
    gone = {"state": "absent", "file": "/etc/sysctl.conf"}
    assert found("ansible.posix.sysctl", name="vm.x", state="absent") == {"sysctl:vm.x": gone}


def test_mounts() -> None:
    call: dict[str, Any] = {"path": "/home", "src": "nfs:/home", "fstype": "nfs", "opts": "rw,hard"}
    declared = {"source": "nfs:/home", "fstype": "nfs", "saved": "rw,hard nfs:/home nfs"}
    assert found("ansible.posix.mount", **call, state="present")["mount:/home"] == declared
    assert found("ansible.posix.mount", **call, state="mounted")["mount:/home"] == {**declared, "state": "mounted"}
    later = found("ansible.posix.mount", **call, state="present", boot=False)["mount:/home"]
    assert later["saved"] == "rw,hard,noauto nfs:/home nfs"
    assert found("ansible.posix.mount", path="/home", state="absent") == {"mount:/home": {"state": "absent"}}
    assert found("ansible.posix.mount", path="/home", state="unmounted") == {}


def test_a_user_without_the_password() -> None:
    declared = found("user", name="u", uid="64030", groups="b,a", password="$6$x", shell="/bin/sh")["user:u"]
    assert declared == {"state": "present", "uid": 64030, "groups": ["a", "b"], "shell": "/bin/sh"}
    assert "groups" not in found("user", name="u", groups="a", append=True)["user:u"]


def test_cron_jobs() -> None:
    job = {"state": "present", "job": "/bin/x", "schedule": "5 * * * *"}
    assert found("cron", name="n", minute=5, job="/bin/x") == {"cron:root#n": job}
    assert found("cron", name="n", special_time="daily", job="x", user="u")["cron:u#n"]["schedule"] == "@daily"
    assert list(found("cron", name="n", job="x", user="u", cron_file="mine")) == ["file:/etc/cron.d/mine"]


def test_a_repository_has_the_lines_of_its_section() -> None:
    call: dict[str, Any] = {
        "name": "epel",
        "description": "EPEL",
        "baseurl": "https://e/",
        "gpgcheck": True,
        "enabled": "no",
    }
    declared = {"state": "present", "name": "EPEL", "baseurl": "https://e/", "gpgcheck": "1", "enabled": "0"}
    assert found("yum_repository", **call, file="x", mode="0644") == {
        "repository:/etc/yum.repos.d/x.repo#epel": declared
    }


@pytest.mark.parametrize(
    "words", [{"fingerprint": "6341 AB27 53D7 8A78 A7C2 7BB1 24C6 A8A7 F4A8 0EB5"}, {"key": "F4A80EB5"}]
)
def test_a_key_by_its_last_digits(words: dict[str, Any]) -> None:
    assert list(found("rpm_key", None, **{"key": "/k", **words})) == ["rpm-key:f4a80eb5"]


def test_lines_and_blocks() -> None:
    ((name, declared),) = found("lineinfile", path="/x", regexp="^A=", line="A=1").items()
    assert name.startswith("line:/x#")
    assert declared == {"state": "present", "lines": ["A=1"]}
    # The name stays when the value changes.
    assert list(found("lineinfile", path="/x", regexp="^A=", line="A=2")) == [name]
    assert list(found("lineinfile", path="/x", regexp="^A=", state="absent").values()) == [
        {"state": "absent", "regexp": "^A="}
    ]
    ((_, block),) = found("blockinfile", path="/x", block="a\nb\n").items()
    lines = ["# BEGIN ANSIBLE MANAGED BLOCK", "a", "b", "# END ANSIBLE MANAGED BLOCK"]
    assert block == {"state": "present", "block": "\n".join(lines)}
    ((_, gone),) = found("blockinfile", path="/x", block="").items()
    assert gone["state"] == "absent"


def test_a_replacement_that_matches_again_promises_nothing() -> None:
    assert list(found("replace", path="/x", regexp="a+", replace="b").values()) == [{"state": "absent", "regexp": "a+"}]
    assert list(found("replace", path="/x", regexp="a+", replace="aa").values()) == [{"state": "present"}]


def test_of_a_secret_call_only_the_name_is_taken() -> None:
    (one,) = identities(
        "copy", {"dest": "/x", "content": "hunter2", "mode": "0644", "owner": "u"}, {"checksum": "a" * 40}, secret=True
    )
    assert one.secret
    assert dict(one.declared) == {"state": "present", "type": "file", "mode": "0644", "owner": "u"}


def test_a_secret_line_is_named_by_its_task() -> None:
    first, second = (
        identities("lineinfile", {"path": "/x", "line": line}, {}, secret=True, task="role|file|task")[0]
        for line in ("password=hunter2", "password=hunter3")
    )
    assert first == second
    assert dict(first.declared) == {"state": "present"}


def test_a_mirror_is_the_link_to_its_published_snapshot() -> None:
    (one,) = identities("hal_package_mirror", {"folder": "/srv/mirror/www"}, {"snapshot": "0123456789abcdef"})
    assert one.resource == "file:/srv/mirror/www/current"
    assert one.declared == {"state": "present", "type": "link", "target": "snapshots/0123456789abcdef"}


def test_the_munge_key_is_secret_whatever_the_task_says() -> None:
    (one,) = identities("hal_munge_key", {"key": "00ff"}, {})
    assert one.secret
    assert dict(one.declared) == {"mode": "0400", "owner": "munge", "group": "munge", **FILE}


def test_files_of_interfaces_are_recorded_where_they_are_written() -> None:
    devices = [{"name": "eth0", "path": "/etc/sysconfig/network-scripts/ifcfg-eth0", "text": "x\n"}]
    declared = {"mode": "0644", "owner": "root", "group": "root", "sha1": "6fcf9dfbd479ed82697fee719b9f8c610a11ff2a"}
    written = found("hal_network", phase="write", devices=devices)
    assert written == {"file:/etc/sysconfig/network-scripts/ifcfg-eth0": {**FILE, **declared}}
    assert found("hal_network", phase="apply", devices=devices) == {}
    (_own, other) = identities("hal_network", {"phase": "write", "devices": devices}, {"withdrawn": ["ifcfg-eno1"]})
    assert other == Resource("file:/etc/sysconfig/network-scripts/ifcfg-eno1", {"state": "absent"})


def test_modulefiles_are_files_in_folders_with_a_stamp() -> None:
    one = {"path": "/opt/m/cuda/10.2.lua", "content": "x\n"}
    modules = found("hal_modulefiles", {"removed": ["/opt/m/cuda/9.0.lua"]}, tree="/opt/m", role="cuda", files=[one])
    assert sorted(modules) == [
        "file:/opt/m",
        "file:/opt/m/.changed",
        "file:/opt/m/cuda",
        "file:/opt/m/cuda/10.2.lua",
    ], "what is withdrawn is declared no more; a file that comes back is an extra one"
    assert modules["file:/opt/m/cuda"] == {
        **{"state": "present", "type": "directory", "mode": "0755"},
        **{"owner": "root", "group": "root"},
    }
    assert modules["file:/opt/m/cuda/10.2.lua"]["sha1"] == "6fcf9dfbd479ed82697fee719b9f8c610a11ff2a"
    assert "sha1" not in modules["file:/opt/m/.changed"]


def test_files_and_slurms_daemon_and_accounts() -> None:
    files = found(
        "hal_files",
        directories=[{"path": "/etc/slurm", "mode": "0755"}],
        files=[{"path": "/etc/slurm/a", "content": "x\n"}, {"path": "/etc/slurm/b", "content": "x", "mode": "0600"}],
    )
    assert files["file:/etc/slurm"]["type"] == "directory"
    assert files["file:/etc/slurm/a"]["sha1"] == "6fcf9dfbd479ed82697fee719b9f8c610a11ff2a"
    assert "sha1" not in files["file:/etc/slurm/b"]
    daemon: dict[str, Any] = {"name": "slurmd", "files": ["/etc/slurm/a"], "unit_files": ["/u"]}
    assert list(found("hal_slurm_daemon", **daemon)) == ["service:slurmd.service"]
    placed = found("hal_slurm_place", files=["/etc/slurm/a"])
    assert placed["file:/etc/slurm/a"]["mode"] == "0644"
    assert found("hal_slurm_daemon", **daemon, staged_dir="/n") == {**found("hal_slurm_daemon", **daemon), **placed}
    units = units_of("hal_slurm_daemon", daemon, {"pending": "restart"})
    assert units.effective == ()
    assert units.readers == {"file:/etc/slurm/a": ("slurmd.service",), "file:/u": ("slurmd.service",)}
    assert units_of("hal_slurm_daemon", daemon, {"pending": "nothing"}).effective == ("slurmd.service",)
    assert found("hal_slurm_daemon", **daemon, phase="stop_first") == {}
    accounts = found(
        "hal_slurm_account",
        qos=[{"name": "q", "max_wall": "1-0"}],
        users=[{"name": "u", "state": "absent"}],
        accounts=[{"name": "a", "qos": ["q"], "fairshare": 2}],
    )
    assert accounts == {
        "slurm-qos:q": {"state": "present", "max_wall": "1-0"},
        "slurm-account:a": {"state": "present", "qos": ["q"], "fairshare": 2},
        "slurm-user:u": {"state": "absent"},
    }


@pytest.mark.parametrize("module", sorted(MANAGING))
def test_arguments_that_make_no_sense_are_no_reason_to_stop(module: str) -> None:
    values: list[Any] = ["", [], {}, 0, "x\0y", "\udcff"]
    for value in values:
        names = ("name", "path", "dest", "key", "line", "regexp", "value", "block", "files", "mode", "state")
        identities(module, dict.fromkeys(names, value), {})
    identities(module, {}, {})


def test_passwords_of_a_repository_are_not_kept() -> None:
    arguments: dict[str, Any] = {
        "name": "site",
        "description": "Site",
        "baseurl": ["https://me:pw@example.org/a", "https://example.org/b"],
        "gpgkey": "https://example.org/key@1",
        "password": "pw",
        "proxy": "http://me:pw@proxy:3128",
        "proxy_password": "pw",
        "sslclientkey": "pw",
    }
    (one,) = found("yum_repository", **arguments).values()
    assert one == {"state": "present", "name": "Site", "gpgkey": "https://example.org/key@1"}


def test_a_boolean_of_selinux_is_its_value_in_effect() -> None:
    boolean = found("ansible.posix.seboolean", name="httpd_can_network_connect", state="yes", persistent=True)
    assert [(name.partition("#")[0], one["lines"]) for name, one in boolean.items()] == [
        ("line:/sys/fs/selinux/booleans/httpd_can_network_connect", ["1 1"])
    ]


def test_a_file_context_of_selinux_is_a_line_that_semanage_keeps() -> None:
    """Its format is that of libsemanage 2.5 (fcontexts_file.c)."""
    label: dict[str, Any] = {"target": "/srv/data(/.*)?", "setype": "httpd_sys_content_t"}
    written = found("community.general.sefcontext", **label, ftype="d")
    assert [(name.partition("#")[0], one["lines"]) for name, one in written.items()] == [
        (
            "line:/etc/selinux/targeted/active/file_contexts.local",
            ["/srv/data(/.*)? -d system_u:object_r:httpd_sys_content_t:s0"],
        )
    ]
    assert found("community.general.sefcontext", **label)
    gone = found("community.general.sefcontext", **label, state="absent")
    assert [one["state"] for one in gone.values()] == ["absent"]


def test_of_subids_both_files_and_the_lines_of_those_with_a_slot() -> None:
    users = [
        {"name": "alice", "uid": 5001, "slot": 0, "start": 4294836224, "count": 65536, "enabled": True},
        {"name": "bob", "uid": 5002, "slot": 1, "start": 4294770688, "count": 65536, "enabled": False},
        {"name": "carol", "uid": 5003, "slot": None, "enabled": False},
    ]
    found = identities("hal_subids", {"users": users}, {})
    assert [one.resource.partition("#")[0] for one in found] == [
        f"{kind}:/etc/{name}" for name in ("subuid", "subgid") for kind in ("file", "line")
    ]
    assert found[0].declared["mode"] == "0644"
    assert found[1].declared["lines"] == ["5001:4294836224:65536", "!5002:4294770688:65536"]
    assert [one.resource for one in identities("hal_subids", {"users": users[2:]}, {})] == [
        "file:/etc/subuid",
        "file:/etc/subgid",
    ]

"""Modules as ansible-playbook calls them: arguments and results reach the record, also in loops, and no secret does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hal_cluster.audit.conftest import Ran, Site

SECRET = "hunter2hunter2"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBQxuZdOAbQ1xgGnJf7lHAv2BtbKNnBDRVfpcIaUcvXQ somebody"
# A module under the name that package and service use here: nothing is installed or started.
STAND_IN = """#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={"name": {"type": "raw"}, "state": {}, "enabled": {"type": "bool"}})
module.exit_json(changed=module.params["state"] in ("latest", "restarted"))
"""


def task(module: str, **arguments: Any) -> dict[str, Any]:
    return {"name": f"Call {module} {len(arguments)}", module: arguments}


TASKS = [
    task("ansible.builtin.copy", content="a\n", dest="{{ node }}/copied", mode="0644"),
    task("copy", src="own", dest="{{ node }}/", mode="0600"),
    task("ansible.builtin.template", src="t.j2", dest="{{ node }}/templated", mode="u=rw,go=r"),
    task("ansible.builtin.file", path="{{ node }}/made/", state="directory", mode="0755"),
    task("ansible.builtin.file", src="copied", dest="{{ node }}/linked", state="link"),
    task("ansible.builtin.file", path="{{ node }}/gone", state="absent"),
    task("ansible.builtin.assemble", src="parts", dest="{{ node }}/assembled", remote_src=False, mode="0644"),
    task("ansible.builtin.get_url", url="file://{{ node }}/copied", dest="{{ node }}/fetched", mode="0644"),
    task("ansible.builtin.unarchive", src="a.tar", dest="{{ node }}/made"),
    task("ansible.builtin.git", repo="{{ origin }}", dest="{{ node }}/cloned"),
    task("ansible.builtin.lineinfile", path="{{ node }}/copied", line="b"),
    task("ansible.builtin.blockinfile", path="{{ node }}/copied", block="c"),
    task("ansible.builtin.replace", path="{{ node }}/copied", regexp="^zz", replace="y"),
    task("ansible.builtin.known_hosts", path="{{ node }}/known", name="h", key=f"h {KEY}"),
    task("ansible.posix.authorized_key", path="{{ node }}/keys", user="root", key=KEY, manage_dir=False),
    task("community.general.pam_limits", domain="*", limit_type="soft", limit_item="nofile", value="9",
         dest="{{ node }}/limits"),
    task("ansible.builtin.yum_repository", name="r", description="R", baseurl="http://r/", reposdir="{{ node }}"),
    task("ansible.posix.sysctl", name="vm.swappiness", value=1, sysctl_file="{{ node }}/sysctl", reload=False),
    task("ansible.posix.mount", path="{{ node }}/m", src="tmpfs", fstype="tmpfs", state="present",
         fstab="{{ node }}/fstab"),
    task("community.crypto.openssh_keypair", path="{{ node }}/key", type="ed25519"),
    task("community.crypto.openssh_cert", path="{{ node }}/key-cert.pub", public_key="{{ node }}/key.pub",
         signing_key="{{ node }}/key", type="host", identifier="x", valid_from="always", valid_to="forever"),
    task("community.crypto.openssl_privatekey", path="{{ node }}/tls", type="ECC", curve="secp256r1", mode="0600"),
    task("community.crypto.x509_certificate", path="{{ node }}/tls.pem", privatekey_path="{{ node }}/tls",
         provider="selfsigned", mode="0644"),
    task("ansible.builtin.package", name=["one", "two"], state="latest", use="stand_in"),
    task("ansible.builtin.service", name="ours", state="restarted", enabled=True, use="stand_in"),
    task("hal_files", directories=[{"path": "{{ node }}/slurm", "mode": "0755", "owner": "{{ me }}"}],
         files=[{"path": "{{ node }}/slurm/x", "content": "{{ 'x' }}", "owner": "{{ me }}"}]),
]  # fmt: skip
LOOPED = {
    "name": "Loop",
    "ansible.builtin.copy": {"content": "{{ item }}", "dest": "{{ node }}/loop-{{ item }}", "mode": "0644"},
    "loop": ["a", "b"],
}
WITH = {
    "name": "Loop the old way",
    "ansible.builtin.file": {"path": "{{ node }}/with-{{ item }}", "state": "directory"},
    "with_items": ["a", ["b"]],
}
HIDDEN: list[dict[str, Any]] = [
    {
        "name": "Hide a loop",
        "ansible.builtin.copy": {
            "content": "{{ open }}{{ item }}",
            "dest": "{{ node }}/hidden-{{ item }}",
            "mode": "0644",
        },
        "loop": ["a", "b"],
        "no_log": True,
    },
    {
        "name": "Hide a line",
        "ansible.builtin.lineinfile": {"path": "{{ node }}/copied", "line": "{{ open }}"},
        "no_log": True,
    },
    {
        "name": "Forget to hide a line",
        "ansible.builtin.lineinfile": {"path": "{{ node }}/copied", "line": "pw={{ alias }}"},
    },
    {
        "name": "Forget to hide what is encrypted",
        "ansible.builtin.blockinfile": {
            "path": "{{ node }}/copied",
            "block": "{{ encrypted }}",
            "marker": "# {mark} x",
        },
    },
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Ran]:
    """One rollout with all of them."""
    site = Site(tmp_path_factory.mktemp("modules"))
    (site.folder / "library/stand_in.py").write_text(STAND_IN)
    programs = site.folder.parent / "bin"
    programs.mkdir()
    (programs / "sysctl").write_text("#!/bin/sh\necho 60\n")  # not on every machine, and nothing is to be set
    (programs / "sysctl").chmod(0o755)
    role = site.role(
        tasks=[*TASKS, LOOPED, WITH, *HIDDEN],
        files__own="x\n",
        files__parts__one="1\n",
        templates__t_j2="{{ 'x' }}\n",
    )
    (role / "files/own.yml").rename(role / "files/own")
    subprocess.run(["tar", "cf", str(role / "files/a.tar"), "-C", str(role / "files"), "own"], check=True)
    origin = site.folder.parent / "origin"  # the module takes no blank
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "-q", str(origin)], check=True)
    subprocess.run([*git, "-C", str(origin), "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    (site.folder / "password").write_text("vault password\n")
    encrypted = site.vault("encrypt_string", SECRET, "--vault-password-file", "password")
    group = site.folder / "group_vars/all.yml"
    group.parent.mkdir()
    me = Path(site.folder).owner()
    group.write_text(
        f"origin: {origin}\nme: {me}\nopen: {SECRET}\nvault_word: {SECRET}\nalias: '{{{{ vault_word }}}}'\n"
        f"encrypted: {encrypted}\n"
    )
    done = site.run("--vault-password-file", "password", PATH=f"{programs}:{os.environ['PATH']}")
    assert done.status == 0, done.text
    return site, done


def entry(ran: tuple[Site, Ran], name: str) -> dict[str, Any]:
    site, done = ran
    return done.entries[name.replace("NODE", str(site.node))]


FILE = {"state": "present", "type": "file"}


@pytest.mark.parametrize(
    ("resource", "declared"),
    [
        ("file:NODE/copied", {**FILE, "mode": "0644", "sha1": "3f786850e387550fdab836ed7e6dc881de23001b"}),
        ("file:NODE/own", {**FILE, "mode": "0600"}),
        ("file:NODE/templated", {**FILE, "mode": "0644", "sha1": "6fcf9dfbd479ed82697fee719b9f8c610a11ff2a"}),
        ("file:NODE/made", {"state": "present", "type": "directory", "mode": "0755"}),
        ("file:NODE/linked", {"state": "present", "type": "link", "target": "copied"}),
        ("file:NODE/gone", {"state": "absent"}),
        ("file:NODE/assembled", {**FILE, "mode": "0644", "sha1": "e5fa44f2b31c1fb553b6021e7360d07d5d91ff5e"}),
        ("file:NODE/fetched", {**FILE, "mode": "0644", "sha1": "3f786850e387550fdab836ed7e6dc881de23001b"}),
        ("file:NODE/cloned", {"state": "present", "type": "directory"}),
        ("repository:NODE/r.repo#r", {"state": "present", "name": "R", "baseurl": "http://r/"}),
        ("sysctl:vm.swappiness", {"file": "NODE/sysctl", "saved": "1"}),
        ("mount:NODE/m", {"source": "tmpfs", "fstype": "tmpfs", "saved": "defaults tmpfs tmpfs"}),
        ("file:NODE/key", {**FILE, "mode": "0600"}),
        ("file:NODE/key.pub", FILE),
        ("file:NODE/key-cert.pub", FILE),
        ("package:one", {"state": "present"}),
        ("package:two", {"state": "present"}),
        ("service:ours.service", {"state": "started", "enabled": True}),
        ("file:NODE/loop-a", {**FILE, "mode": "0644", "sha1": "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"}),
        ("file:NODE/loop-b", {**FILE, "mode": "0644", "sha1": "e9d71f5ee7c92d6dc9e92ffdad17b8bd49418f98"}),
        ("file:NODE/with-a", {"state": "present", "type": "directory"}),
        ("file:NODE/with-b", {"state": "present", "type": "directory"}),
        ("file:NODE/hidden-a", {**FILE, "mode": "0644"}),
        ("file:NODE/hidden-b", {**FILE, "mode": "0644"}),
    ],
)
def test_a_call_is_recorded_as_declared(ran: tuple[Site, Ran], resource: str, declared: dict[str, Any]) -> None:
    node = str(ran[0].node)
    wanted = {key: value.replace("NODE", node) if isinstance(value, str) else value for key, value in declared.items()}
    assert entry(ran, resource)["declared"] == wanted


def test_lines_are_recorded_as_the_modules_wrote_them(ran: tuple[Site, Ran]) -> None:
    _, done = ran
    seen = 0
    for resource, one in done.entries.items():
        if resource.startswith("line:") and not one["secret"] and one["declared"]["state"] == "present":
            lines = Path(resource.removeprefix("line:").rpartition("#")[0]).read_text().splitlines()
            wanted = one["declared"].get("lines") or one["declared"]["block"].splitlines()
            assert set(wanted) <= set(lines), resource
            seen += 1
    assert seen == 5


def test_owners_are_role_task_file_and_line(ran: tuple[Site, Ran]) -> None:
    one = entry(ran, "file:NODE/copied")
    assert (one["role"], one["source"]) == ("sample", "roles/sample/tasks/main.yml:1")
    assert one["task"] == "sample|roles/sample/tasks/main.yml|Call ansible.builtin.copy 3"


def test_every_task_was_reached(ran: tuple[Site, Ran]) -> None:
    request = ran[1].request
    assert request["roles"]["sample"]["tasks"] == request["reached"]


def test_packages_have_a_window(ran: tuple[Site, Ran]) -> None:
    ((begin, end),) = ran[1].request["windows"]
    assert ran[1].request["run"]["started"] < begin < end < ran[1].request["run"]["now"]


def test_a_restarted_unit_is_effective(ran: tuple[Site, Ran]) -> None:
    assert ran[1].request["handled"] == ["ours.service"]


def test_what_comes_from_secrets_is_marked(ran: tuple[Site, Ran]) -> None:
    secret = {one["task"].rpartition("|")[2] for one in ran[1].request["entries"] if one["secret"]}
    keys = {"Call community.crypto.openssh_keypair 2", "Call community.crypto.openssl_privatekey 4"}
    assert secret == {str(one["name"]) for one in HIDDEN} | keys


def test_no_secret_is_in_anything_that_was_written(ran: tuple[Site, Ran]) -> None:
    site, _ = ran
    for folder in (site.state, site.requests):
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert files
        for path in files:
            assert SECRET.encode() not in path.read_bytes(), path

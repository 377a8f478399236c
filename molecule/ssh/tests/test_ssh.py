"""Who gets in, who does not, and whom a node is known by: real logins, allowed and refused."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from running.ansible_run import PROJECT, of_scenario
from running.ssh_config import STATE, Cluster
from testinfra.host import Host
from testing.promises import Rollout
from testing.waiting import wait_for

NODES = ["hal-mgmt2", "hal01"]
AUTHORITY = STATE / "scenario-ssh" / "ca"
SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
CONFIGURATION = "find /etc/ssh -name 'sshd_config*' -type f -exec sha256sum {} +"
WRITTEN = "/etc/ssh/ssh_known_hosts"  # by the role, and by nobody needed to come in
Node = Callable[[str], Host]
Site = Callable[..., Any]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


def keygen(*arguments: str | Path) -> None:
    subprocess.run(["ssh-keygen", "-q", *map(str, arguments)], check=True)


class Login:
    """Logs in as somebody else than the administrator, with a key of its own."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self.key = folder / "key"
        keygen("-t", "ed25519", "-N", "", "-f", self.key)

    def certify(self, authority: Path, principal: str, *arguments: str) -> None:
        """Have the key signed."""
        keygen("-s", authority, "-I", "test", "-n", principal, *arguments, f"{self.key}.pub")

    def attempt(self, node: str, user: str = "root", **options: str) -> subprocess.CompletedProcess[str]:
        """Log in and print the account's name there."""
        settings = {
            "IdentityFile": f'"{self.key}"',
            "CertificateFile": f'"{self.key}-cert.pub"',
            "ControlMaster": "no",
            "ControlPath": "none",
            "BatchMode": "yes",
            "User": user,
            "LogLevel": "ERROR",
            **options,
        }
        words = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        # The first value that ssh meets is the one it takes, so these come before the file.
        return subprocess.run(
            ["ssh", *words, "-F", str(self._cluster.ssh_config), node, "id -un"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def login(cluster: Cluster, tmp_path: Path) -> Login:
    return Login(cluster, tmp_path)


@contextmanager
def altered(host: Host, unit: str, *lines: str) -> Iterator[None]:
    """A unit with further lines, for as long as this is."""
    folder = f"/run/systemd/system/{unit}.d"
    written = " ".join(f"'{line}'" for line in lines)
    host.check_output(f"mkdir -p {folder} && printf '%s\\n' {written} >{folder}/fault.conf && systemctl daemon-reload")
    try:
        yield
    finally:
        host.check_output(f"rm -r {folder} && systemctl daemon-reload")


@pytest.mark.parametrize("name", NODES)
def test_a_certificate_of_the_sites_authority_lets_root_in(login: Login, name: str) -> None:
    login.certify(AUTHORITY / "user_ca", "root")
    done = login.attempt(name)
    assert (done.returncode, done.stdout.strip()) == (0, "root"), done.stderr


def test_the_same_key_without_a_certificate_is_refused(login: Login) -> None:
    assert "Permission denied (publickey" in login.attempt("hal01").stderr


def test_a_certificate_of_another_authority_is_refused(login: Login, tmp_path: Path) -> None:
    keygen("-t", "ed25519", "-N", "", "-f", tmp_path / "other_ca")
    login.certify(tmp_path / "other_ca", "root")
    assert "Permission denied (publickey" in login.attempt("hal01").stderr


def test_a_users_certificate_opens_the_users_account_and_not_root(login: Login) -> None:
    login.certify(AUTHORITY / "user_ca", "alice")
    assert login.attempt("hal01", "alice").stdout.strip() == "alice"
    assert "Permission denied (publickey" in login.attempt("hal01", "root").stderr
    assert "Permission denied (publickey" in login.attempt("hal01", "bob").stderr


def test_an_account_without_principals_is_closed_even_to_its_own_name(login: Login) -> None:
    login.certify(AUTHORITY / "user_ca", "bob")
    assert "Permission denied (publickey" in login.attempt("hal01", "bob").stderr


def test_a_certificate_that_ran_out_is_refused(login: Login) -> None:
    login.certify(AUTHORITY / "user_ca", "root", "-V", "-2d:-1d")
    assert "Permission denied (publickey" in login.attempt("hal01").stderr


@pytest.mark.parametrize("user", ["root", "alice"])
def test_nobody_is_asked_for_a_password(node: Node, login: Login, user: str) -> None:
    node("hal01").check_output("echo 'root:secret\nalice:secret' | chpasswd")
    ways = {"PreferredAuthentications": "password,keyboard-interactive", "PubkeyAuthentication": "no"}
    done = login.attempt("hal01", user, **ways)
    assert done.stderr.strip().endswith("Permission denied (publickey).")


def test_a_node_is_known_by_each_of_its_names_and_by_no_other(site: Site, login: Login) -> None:
    login.certify(AUTHORITY / "user_ca", "root")
    hal01 = next(entry for entry in site("hosts") if entry["name"] == "hal01")
    for name in ("hal01", hal01["fqdn"], hal01["addresses"]["management"], "hal01-ib", hal01["addresses"]["ipoib"]):
        done = login.attempt("hal01", HostKeyAlias=name)
        assert done.returncode == 0, f"{name}: {done.stderr}"
    assert "Host key verification failed" in login.attempt("hal01", HostKeyAlias="hal02").stderr


def test_another_node_knows_it_too_but_is_not_let_in(node: Node, site: Site) -> None:
    address = next(entry for entry in site("hosts") if entry["name"] == "hal01")["address"]
    # testinfra takes ssh's status 255 for its own connection's.
    done = node("hal-mgmt2").run(f"ssh -o BatchMode=yes -o HostKeyAlias=hal01 {address} true || exit 1")
    assert "Permission denied (publickey)" in done.stderr, done.stderr  # not: Host key verification failed


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("permitrootlogin", "without-password"),
        ("passwordauthentication", "no"),
        ("permitemptypasswords", "no"),
        ("maxstartups", "100:30:300"),
        ("usedns", "no"),
        ("subsystem", "sftp internal-sftp"),
    ],
)
def test_sshd_has_the_setting(node: Node, name: str, setting: str, value: str) -> None:
    lines = node(name).check_output("/usr/sbin/sshd -T -C user=root,host=x,addr=127.0.0.1").splitlines()
    assert [line.split(" ", 1)[1] for line in lines if line.split(" ", 1)[0] == setting] == [value]


def test_files_can_be_copied_through_the_built_in_sftp(cluster: Cluster, tmp_path: Path) -> None:
    subprocess.run(
        ["sftp", "-q", "-F", str(cluster.ssh_config), "hal01:/etc/centos-release", str(tmp_path / "copy")],
        check=True,
        capture_output=True,
    )
    assert "CentOS Linux release 7.7" in (tmp_path / "copy").read_text()


def test_no_private_key_of_an_authority_is_on_a_node(node: Node) -> None:
    secret = (AUTHORITY / "host_ca").read_text().splitlines()[3]  # a line of its middle
    for name in NODES:
        assert node(name).run(f"grep -rlF {secret} /etc /root /var/lib /tmp").stdout == ""


def test_faults_are_mended_and_a_certificate_that_runs_out_soon_is_renewed(
    node: Node, rollout: Rollout, site: Site
) -> None:
    host = node("hal01")
    address = next(entry for entry in site("hosts") if entry["name"] == "hal01")["address"]
    key = AUTHORITY / "hosts" / f"hal01_{address}.pub"
    keygen("-s", AUTHORITY / "host_ca", "-I", "hal01", "-h", "-n", "hal01", "-V", "-1d:+10d", key)
    certificate = key.with_name(f"hal01_{address}-cert.pub")
    before = certificate.read_text()
    host.check_output(f"echo '{before.strip()}' >/etc/ssh/ssh_host_ed25519_key-cert.pub")
    host.check_output(
        "cd /etc/ssh && sed -i 's/^PermitRootLogin .*/PermitRootLogin yes/' sshd_config"
        " && sed -i 's/^MaxStartups .*/MaxStartups 10:30:100/' sshd_config"
        " && echo on-call >>principals.root"
        " && sed -i 's|AuthorizedPrincipalsFile .*bob|AuthorizedPrincipalsFile none|' sshd_config"
        " && cat ssh_host_ed25519_key.pub >>user_ca.pub"
        " && rm revoked_keys && ssh-keygen -q -k -f revoked_keys ssh_host_ed25519_key.pub"
    )
    host.check_output("echo 'hal02 ssh-ed25519 AAAA' >>/etc/ssh/ssh_known_hosts; chmod 666 /etc/ssh/ssh_known_hosts")
    host.check_output("systemctl disable --quiet sshd")
    done = rollout.converge("--limit", "hal01", ssh_replace_ok=True)
    assert done.status == 0, done.explain()
    assert rollout.broken_promises("ssh", "hal01") == []
    shown = node("hal-mgmt2").check_output(f"ssh-keyscan -c -t ed25519 {address}")
    assert before.split()[1] not in shown
    assert certificate.read_text().split()[1] in shown


def test_a_key_that_opens_root_is_reported_unless_it_was_declared(
    node: Node, rollout: Rollout, login: Login, tmp_path: Path
) -> None:
    promise = "no key that nobody declared opens an account [root]"
    line = login.key.with_suffix(".pub").read_text().strip()
    keygen("-t", "ed25519", "-N", "", "-f", tmp_path / "other_ca")
    authority = (tmp_path / "other_ca.pub").read_text().strip()
    host = node("hal01")
    try:
        host.check_output(f"mkdir -p -m 700 /root/.ssh && echo '# by hand\n{line}' >>/root/.ssh/authorized_keys")
        assert login.attempt("hal01", CertificateFile="none").stdout.strip() == "root"
        assert rollout.broken_promises("ssh", "hal01") == [promise]
        allowed = {"root": [line]}
        assert rollout.broken_promises("ssh", "hal01", ssh_authorized_keys_allowed=allowed) == []
        # Where sshd looks, whatever the file is called; and an authority of keys is a key as well.
        host.check_output(f"echo 'cert-authority,principals=\"x\" {authority}' >>/etc/ssh/keys.root")
        host.check_output("sed -i 's|^AuthorizedKeysFile.*|& /etc/ssh/keys.%u|' /etc/ssh/sshd_config")
        result = rollout.promises("ssh", "hal01", ssh_authorized_keys_allowed=allowed)[promise]
        assert (result["status"], result["observed"]) == ("fail", f'cert-authority,principals="x" {authority}')
    finally:
        host.check_output("rm -f /root/.ssh/authorized_keys /etc/ssh/keys.root")
        host.check_output(
            "sed -i 's|^AuthorizedKeysFile.*|AuthorizedKeysFile .ssh/authorized_keys|' /etc/ssh/sshd_config"
        )


def test_keys_that_nobody_declared_are_shown_before_anything_is_written(
    node: Node, rollout: Rollout, login: Login
) -> None:
    """As those by which commands of Spectrum Scale go from node to node."""
    host, line = node("hal01"), login.key.with_suffix(".pub").read_text().strip()
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", login.key], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    try:
        host.check_output(f"mkdir -p -m 700 /root/.ssh && echo '{line}' >/root/.ssh/authorized_keys && rm {WRITTEN}")
        refused = rollout.converge("--limit", "hal01")
        assert refused.status != 0
        assert f"root: ssh-ed25519 {fingerprint}" in refused.words, refused.explain()
        assert not host.file(WRITTEN).exists
        for permitted in ({"ssh_authorized_keys_ok": True}, {"ssh_authorized_keys_allowed": {"root": [line]}}):
            done = rollout.converge("--limit", "hal01", **permitted)
            assert done.status == 0, done.explain()
            assert login.attempt("hal01", CertificateFile="none").stdout.strip() == "root"
    finally:
        host.check_output("rm -f /root/.ssh/authorized_keys")


def test_what_sshd_would_lose_is_shown_and_stays_until_it_is_declared(node: Node, rollout: Rollout) -> None:
    """sshd as another administrator had it, on a node that this role never was on."""
    host = node("hal01")
    host.check_output(
        "cd /etc/ssh && sed -i -e '1i AllowGroups root wheel' -e '1i HostbasedAuthentication yes' sshd_config"
        " && sed -i -e '/^HostbasedAuthentication no/d' -e '/^PasswordAuthentication/s/no/yes/' sshd_config"
        " && printf 'Match Group wheel\n  Banner /etc/issue\n' >>sshd_config"
        f" && rm -r /var/lib/hal/ssh {WRITTEN} && systemctl reload sshd"
        " && echo 'hal01 sshd[47]: Accepted password for alice from 192.0.2.7 port 51514 ssh2' >>/var/log/secure"
    )
    before = host.check_output(CONFIGURATION)
    try:
        refused = rollout.converge("--limit", "hal01")
        assert refused.status != 0
        for part in (
            "allowgroups is root wheel, would be not set",
            "hostbasedauthentication is yes, would be no",
            "passwordauthentication is yes, would be no: alice came in",
            "Match Group wheel: Banner /etc/issue",
            "-e ssh_replace_ok=true",
        ):
            assert part in refused.words, refused.explain()
        assert host.check_output(CONFIGURATION) == before
        assert not host.file(WRITTEN).exists

        declared = {
            "ssh_settings_extra": {"AllowGroups": ["root", "wheel"], "HostbasedAuthentication": True},
            "ssh_match_extra": {"Group wheel": {"Banner": "/etc/issue"}},
            "ssh_password_authentication": True,
        }
        done = rollout.converge("--limit", "hal01", **declared)
        assert done.status == 0, done.explain()
        shown = host.check_output("/usr/sbin/sshd -T -C user=alice,host=x,addr=127.0.0.1").splitlines()
        wanted = {"allowgroups root", "allowgroups wheel", "hostbasedauthentication yes", "passwordauthentication yes"}
        assert wanted <= set(shown)
    finally:
        host.check_output("rm /var/log/secure")
    # What the role wrote goes without a word.
    done = rollout.converge("--limit", "hal01")
    assert done.status == 0, done.explain()
    assert "allowgroups" not in host.check_output("/usr/sbin/sshd -T")


def test_a_configuration_with_a_wrong_word_is_refused_and_the_old_one_stays(node: Node, rollout: Rollout) -> None:
    before = node("hal01").check_output(CONFIGURATION)
    done = rollout.converge("--limit", "hal01", ssh_settings_extra={"Nonsense": "yes"})
    assert done.status != 0
    assert "Bad configuration option: Nonsense" in done.output
    assert node("hal01").check_output(CONFIGURATION) == before


def test_without_a_way_back_nothing_is_replaced_or_reloaded(node: Node, rollout: Rollout) -> None:
    host = node("hal01")
    before = host.check_output(CONFIGURATION)
    with altered(host, "hal-sshd-rollback.timer", "[Unit]", "AssertPathExists=/nowhere"):
        done = rollout.converge("--limit", "hal01", ssh_settings_extra={"AllowUsers": "root"})
    assert done.status != 0
    assert "sshd_config stays as it is: hal-sshd-rollback.timer" in done.words, done.explain()
    assert "Reload sshd" not in done.output
    assert host.check_output(CONFIGURATION) == before


def test_a_configuration_that_locks_root_out_is_taken_back(node: Node, rollout: Rollout, login: Login) -> None:
    """sshd -t has nothing against it: only a login shows it."""
    login.certify(AUTHORITY / "user_ca", "root")
    before = node("hal01").check_output(CONFIGURATION)
    done = rollout.converge("--limit", "hal01", ssh_settings_extra={"AllowUsers": "nobody"})
    assert done.status != 0
    assert "hal01 lets nobody in with the new configuration of sshd" in done.words
    assert "the former one is back" in done.words, done.explain()
    assert login.attempt("hal01").stdout.strip() == "root"
    assert node("hal01").check_output(CONFIGURATION) == before


def test_a_node_undoes_a_lock_out_that_nobody_can_undo(node: Node, login: Login) -> None:
    """Without an open connection: as when it was closed meanwhile, or the run was ended."""
    login.certify(AUTHORITY / "user_ca", "root")
    before = node("hal01").check_output(CONFIGURATION)
    done = of_scenario(SCENARIO).playbook(
        SCENARIO / "converge.yml",
        "--limit",
        "hal01",
        environment={"ANSIBLE_SSH_ARGS": "-o ControlMaster=no -o ControlPath=none"},
        ssh_settings_extra={"AllowUsers": "nobody"},
        ssh_rollback_seconds=300,  # the least
    )
    assert done.status != 0
    assert "the node puts the former one back, 300 seconds after the change" in done.words, done.explain()
    assert "Permission denied" in login.attempt("hal01").stderr
    wait_for("a login", lambda: login.attempt("hal01").stdout.strip(), "root".__eq__, 600)
    assert node("hal01").check_output(CONFIGURATION) == before


def test_an_sshd_that_died_of_its_configuration_comes_back_with_the_former_one(node: Node, login: Login) -> None:
    """sshd -t has nothing against an address of another node, and a reload is nothing to what does not run."""
    login.certify(AUTHORITY / "user_ca", "root")
    before = node("hal01").check_output(CONFIGURATION)
    node("hal01").check_output(
        "cd /etc/ssh && ln sshd_config sshd_config.former"
        " && { echo ListenAddress 192.0.2.1 && cat sshd_config.former; } >/run/sshd_config && mv /run/sshd_config ."
        " && sshd -t && systemctl reload sshd"
        " && timeout 600 sh -c 'while systemctl is-active --quiet sshd; do sleep 0.2; done'"
        "; systemctl start hal-sshd-rollback"
    )
    assert login.attempt("hal01").stdout.strip() == "root"
    assert node("hal01").check_output(CONFIGURATION) == before


def test_a_login_that_came_too_late_is_no_success(node: Node, rollout: Rollout) -> None:
    """The node has put the former file back, by which the administrator gets in as well."""
    host = node("hal01")
    before = host.check_output(CONFIGURATION)
    back = "ExecReload=/bin/mv /etc/ssh/sshd_config.former /etc/ssh/sshd_config"
    with altered(host, "sshd.service", "[Service]", back):
        done = rollout.converge("--limit", "hal01", ssh_settings_extra={"AllowUsers": "root"})
    host.check_output("systemctl reload sshd")
    assert done.status != 0
    assert "stderr: hal01 has its former sshd_config back, because the login came later" in done.words, done.explain()
    assert host.check_output(CONFIGURATION) == before


def test_a_second_word_for_a_setting_of_the_role_is_refused(rollout: Rollout) -> None:
    done = rollout.converge(ssh_settings_extra={"permitrootlogin": "yes"})
    assert done.status != 0
    assert "may not repeat what the role writes (permitrootlogin)" in done.words


def test_what_a_run_left_that_was_ended_is_found_and_a_boot_undoes_it(
    node: Node, rollout: Rollout, login: Login
) -> None:
    """The last test, because the journal does not come back from the boot."""
    login.certify(AUTHORITY / "user_ca", "root")
    host = node("hal01")
    before = host.check_output(CONFIGURATION)
    locked_out = {"ssh_settings_extra": {"AllowUsers": "nobody"}, "ssh_rollback_seconds": 86400}
    with altered(host, "sshd.service", "[Service]", "ExecReload=", "ExecReload=/bin/false"):
        ended = rollout.converge("--limit", "hal01", **locked_out)
    assert "Unable to reload service sshd.service" in ended.words, ended.explain()
    again = rollout.converge("--limit", "hal01", **locked_out)
    assert again.status != 0
    assert "no change of sshd_config waits for a login" in again.words, again.explain()
    assert len(host.check_output(CONFIGURATION).splitlines()) == 2

    podman = [str(PROJECT / "molecule/virtual_hal/podman"), "stop", f"{SCENARIO.name}-hal01"]
    subprocess.run(podman, check=True, capture_output=True)
    started = of_scenario(SCENARIO).playbook("molecule/virtual_hal/create.yml")  # starts what is stopped, and waits
    assert started.status == 0, started.explain()
    wait_for("a login", lambda: login.attempt("hal01").stdout.strip(), "root".__eq__, 600)
    assert node("hal01").check_output(CONFIGURATION) == before

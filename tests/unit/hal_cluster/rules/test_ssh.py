"""What a new sshd_config would take away, from what look.sh prints of sshd -T, logs and keys."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from hal_cluster.rules import ssh
from hal_cluster.rules.errors import RuleError

ROOT = Path(__file__).resolve().parents[4]
LOOK = ROOT / "roles/ssh/files/look.sh"
CAME = ROOT / "roles/ssh/files/came.sh"

# Words and values as `sshd -T` of openssh-7.4p1-21.el7 has them, those that the role or this test is about.
SHIPPED = {
    "port": "22",
    "usepam": "yes",
    "permitrootlogin": "yes",
    "hostbasedauthentication": "no",
    "pubkeyauthentication": "yes",
    "kerberosauthentication": "no",
    "gssapiauthentication": "yes",
    "passwordauthentication": "yes",
    "challengeresponseauthentication": "no",
    "usedns": "yes",
    "maxstartups": "10:30:100",
    "authorizedkeyscommand": "none",
    "authorizedkeysfile": ".ssh/authorized_keys",
    "trustedusercakeys": "none",
    "subsystem": "sftp /usr/libexec/openssh/sftp-server",
}
# sshd without a file: what sshd_config(5) says is the default.
BARE = {
    **SHIPPED,
    "usepam": "no",
    "gssapiauthentication": "no",
    "challengeresponseauthentication": "yes",
    "authorizedkeysfile": ".ssh/authorized_keys .ssh/authorized_keys2",
}
del BARE["subsystem"]
OURS = {
    **SHIPPED,
    "permitrootlogin": "without-password",
    "gssapiauthentication": "no",
    "passwordauthentication": "no",
    "usedns": "no",
    "maxstartups": "100:30:300",
    "trustedusercakeys": "/etc/ssh/user_ca.pub",
    "subsystem": "sftp internal-sftp",
}
KEYS = [f"/etc/ssh/ssh_host_{kind}_key" for kind in ("rsa", "ecdsa", "ed25519")]
MATCH = "Match User root\n    AuthorizedPrincipalsFile /etc/ssh/principals.root\n"


def seen(
    now: Mapping[str, str] = SHIPPED,
    base: Mapping[str, str] = SHIPPED,
    then: Mapping[str, str] = OURS,
    *,
    match: str = "",
    keys: str = "",
    hostkeys: list[str] = KEYS,
    recorded: str | None = None,
) -> str:
    """What look.sh prints; of several values each has its line."""
    parts = ["== hostkeys", *hostkeys]
    parts += [] if recorded is None else ["== recorded", recorded]
    for which, settings, blocks in (("now", now, match), ("bare", BARE, ""), ("base", base, ""), ("then", then, MATCH)):
        for user in ("root", "nobody"):
            parts.append(f"== {which} {user}")
            parts += [f"{name} {one}" for name, value in settings.items() for one in value.split("\n")]
        parts += [f"== {which} match", blocks]
    return "\n".join([*parts, "== keys root", keys])


def losses(text: str, kept: tuple[str, ...] = (), account: str = "root", came: str = "") -> list[str]:
    return list(ssh.losses(text, kept, account, f"== came\n{came}"))


@pytest.mark.parametrize("came", ["", "password installer\nsession installer", "publickey root\npassword root"])
def test_a_new_installation_loses_nothing(came: str) -> None:
    assert losses(seen(), account="installer", came=came) == []


def test_what_a_new_installation_has_open_is_lost_to_those_who_came_in() -> None:
    people = "password alice\npassword bob\npublickey carol\nsession carol\nsession dave\npassword root"
    assert losses(seen(), came=people) == [
        "gssapiauthentication is yes, would be no: dave came in",
        "passwordauthentication is yes, would be no: alice; bob; dave came in",
        *[f"host key {key}, by which clients know this node" for key in KEYS[:2]],
    ]
    assert losses(seen(then={**OURS, "passwordauthentication": "yes", "gssapiauthentication": "yes"}), came=people) == [
        f"host key {key}, by which clients know this node" for key in KEYS[:2]
    ]
    assert not any("host key" in one for one in losses(seen(), kept=tuple(KEYS), came=people))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allowusers", "root\nalice"),
        ("allowgroups", "hal-users"),
        ("denyusers", "mallory"),
        ("denygroups", "locked"),
        ("authorizedkeyscommand", "/usr/bin/sss_ssh_authorizedkeys"),
        ("hostbasedauthentication", "yes"),
        ("port", "22\n2222"),
        ("authorizedkeysfile", "/etc/ssh/keys/%u"),
        ("trustedusercakeys", "/etc/ssh/other_ca.pub"),
        ("authenticationmethods", "publickey,keyboard-interactive"),
        ("banner", "/etc/issue.net"),
    ],
)
def test_what_somebody_set_is_lost_unless_it_is_declared_or_was_ours(name: str, value: str) -> None:
    chosen = {**SHIPPED, name: value}
    shown = " ".join(sorted(value.split("\n")))
    after = OURS.get(name, "not set")
    assert losses(seen(chosen)) == [f"{name} is {shown}, would be {after}"]
    assert losses(seen(chosen, then={**OURS, name: value})) == []
    assert losses(seen(chosen, base=chosen, recorded=KEYS[2], hostkeys=KEYS[2:])) == []


def test_what_no_file_says_nobody_chose() -> None:
    assert losses(seen(BARE)) == []
    assert losses(seen(BARE), came="keyboard-interactive/pam alice") == [
        "challengeresponseauthentication is yes, would be no: alice came in",
        *[f"host key {key}, by which clients know this node" for key in KEYS[:2]],
    ]


def test_a_match_block_of_somebody_is_lost_and_ours_is_not() -> None:
    block = "Match Group sftponly  # students\n\tChrootDirectory   /srv\n"
    assert losses(seen(match=f"{MATCH}{block}")) == ["Match Group sftponly: ChrootDirectory /srv"]


def test_a_host_key_of_another_place_is_lost_whoever_came() -> None:
    assert losses(seen(hostkeys=["/etc/ssh/keys/rsa"])) == [
        "host key /etc/ssh/keys/rsa, by which clients know this node"
    ]
    assert losses(seen(OURS, OURS, hostkeys=["/etc/ssh/keys/rsa"], recorded="/etc/ssh/keys/rsa")) == []


@pytest.mark.parametrize("missing", ["== now root", "== then match", "== hostkeys"])
def test_an_answer_that_is_not_whole_is_not_fine(missing: str) -> None:
    with pytest.raises(RuleError, match="could not be read"):
        losses(seen().replace(missing, "== other"))
    with pytest.raises(RuleError, match="could not be read: no came"):
        ssh.losses(seen(), (), "root", "")


def test_who_came_in_is_asked_only_where_it_decides() -> None:
    assert ssh.undecided(seen(), ())
    same = {name: OURS[name] for name in ("passwordauthentication", "gssapiauthentication")}
    assert not ssh.undecided(seen({**SHIPPED, **same}, hostkeys=KEYS[2:]), ())
    assert not ssh.undecided(seen({**SHIPPED, **same}), KEYS)
    assert ssh.undecided(seen({**SHIPPED, **same}), ())
    # What a file of this role has open somebody declared: it may be withdrawn, and a host key beside it is somebody's.
    ours = seen(
        {**OURS, "passwordauthentication": "yes"}, base={**OURS, "passwordauthentication": "yes"}, recorded=KEYS[2]
    )
    assert not ssh.undecided(ours, ())
    assert ssh.losses(ours, (), "root") == [f"host key {key}, by which clients know this node" for key in KEYS[:2]]


def test_what_is_said_drives_no_terminal_and_ends() -> None:
    chosen = {**SHIPPED, "banner": "\x1b[2J" + "x" * 9000, **{f"setting{number}": "1" for number in range(100)}}
    said = ssh.said(losses(seen(chosen)))
    assert "\x1b" not in said
    assert said.endswith("and 81 more")
    assert len(said) < 5000


# A key made for this test, and what ssh-keygen -l says of it.
BLOB = "AAAAC3NzaC1lZDI1NTE5AAAAIJ0Yd5vI0mBsJ3m4vPzqTR0cA4cR6oKk0g6oJr1mC0Qx"


def test_keys_that_nobody_declared_are_shown_by_their_fingerprints(tmp_path: Path) -> None:
    (tmp_path / "key.pub").write_text(f"ssh-ed25519 {BLOB} root@flash1\n")
    print_ = subprocess.run(
        ["ssh-keygen", "-lf", tmp_path / "key.pub"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    line = f'from="10.64.2.*" ssh-ed25519 {BLOB} root@flash1'
    text = seen(keys=f"{line}\nAuthorizedKeysCommand /usr/bin/keys\nssh-rsa no-base64! x")
    assert ssh.foreign_keys(text, {"root": []}) == [
        f'root: from="10.64.2.*" ssh-ed25519 {print_} root@flash1',
        "root: AuthorizedKeysCommand /usr/bin/keys",
        "root: ssh-rsa no-base64! x",
    ]
    assert len(ssh.foreign_keys(text, {"root": [line]})) == 2
    assert ssh.foreign_keys(text, {"backup": []}) == []


# sshd of a node that is a folder: it prints the configuration that it is given, or has.
SSHD = """#!/bin/sh
file={folder}/sshd_config
while [ $# -gt 0 ]; do case $1 in -f) file=$2 ;; esac; shift; done
echo "hostkey /etc/ssh/ssh_host_ed25519_key"
sed -n '/^Match/q; s/^\\([A-Za-z0-9]*\\) /\\L\\1 /p' "$file"
"""


def looked(folder: Path, config: str, then: str) -> subprocess.CompletedProcess[str]:
    (folder / "sshd_config").write_text(config)
    for name, text in {"sshd": SSHD.format(folder=folder), "journalctl": "#!/bin/sh\n", "last": "#!/bin/sh\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    script = LOOK.read_text().replace("/etc/ssh/sshd_config", f"{folder}/sshd_config").replace("/var/log", str(folder))
    words = [f"{folder}/record", "X11Forwarding yes", "echo $1 $2", "root"]
    argv = ["sh", "-c", script.replace("PATH=$PATH:", f"PATH={folder}:$PATH:"), "look", *words]
    return subprocess.run(argv, input=then, capture_output=True, text=True, check=False)


def test_the_script_shows_what_is_and_what_would_be(tmp_path: Path) -> None:
    config = "AllowGroups hal-users\nMatch Group sftp\n  ChrootDirectory /srv\n"
    done = looked(tmp_path, config, "HostKey /none\nAllowGroups root\n")
    assert done.returncode == 0, done.stderr
    assert "== now root\nhostkey /etc/ssh/ssh_host_ed25519_key\nallowgroups hal-users\n" in done.stdout
    assert "== base nobody\nhostkey /etc/ssh/ssh_host_ed25519_key\nx11forwarding yes\n" in done.stdout
    assert "== then root\nhostkey /etc/ssh/ssh_host_ed25519_key\nallowgroups root\n" in done.stdout
    assert "== now match\nMatch Group sftp\n  ChrootDirectory /srv\n" in done.stdout
    assert "== keys root\nkeys root\n" in done.stdout
    assert losses(done.stdout, account="root") == [
        "allowgroups is hal-users, would be root",
        "Match Group sftp: ChrootDirectory /srv",
    ]


def test_an_sshd_that_cannot_say_what_it_has_ends_it(tmp_path: Path) -> None:
    looked(tmp_path, "", "")
    broken = LOOK.read_text().replace("PATH=$PATH:", f"PATH={tmp_path}:$PATH:")
    (tmp_path / "sshd").write_text("#!/bin/sh\necho 'sshd: no hostkeys available -- exiting.' >&2\nexit 1\n")
    done = subprocess.run(
        ["sh", "-c", broken, "look", "/none", "", ":"], input="", capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "no hostkeys available" in done.stderr


# As `last -w -i` of util-linux shows it: over ssh, at the console, of KVM's, at the display, in tmux.
LAST = """\
alice    pts/0        192.0.2.7        Mon Nov  2 10:11   still logged in
erin     pts/3        2001:db8::7      Mon Nov  2 10:12 - 10:14  (00:02)
bob      tty1         0.0.0.0          Mon Nov  2 09:11 - 09:14  (00:03)
frank    hvc0         0.0.0.0          Mon Nov  2 09:11 - 09:14  (00:03)
carol    :0           0.0.0.0          Mon Nov  2 09:01 - 09:04  (00:03)
carol    pts/1        0.0.0.0          Mon Nov  2 09:02 - 09:03  (00:01)
reboot   system boot  0.0.0.0          Mon Nov  2 09:00   still running

wtmp begins Mon Nov  2 09:00:00 2026
"""


def came(folder: Path) -> list[str]:
    for name, text in {
        "journalctl": f'echo "$*" >>{folder}/called; cat {folder}/journal',
        "last": f'echo "$*" >>{folder}/called; cat {folder}/last.txt',
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    script = CAME.read_text().replace("/var/log", str(folder)).replace("PATH=$PATH:", f"PATH={folder}:$PATH:")
    argv = ["sh", "-c", script, "came", "90"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_who_came_in_over_ssh_is_read_of_the_end_of_logs(tmp_path: Path) -> None:
    begin = "Nov  2 10:11:12 hal-login sshd[4711]:"
    (tmp_path / "journal").write_text(
        "2020-11-02T10:11:12+0000 hal-login sshd[4711]: Accepted password for ivan from 192.0.2.7 port 51514 ssh2\n"
        "2099-11-02T10:11:12+0000 hal-login sshd[4711]: Accepted gssapi-with-mic for dave from 192.0.2.7 port 1 ssh2\n"
        "2099-11-02T10:11:12+0000 hal-login sshd[4711]: Connection closed\n"
    )
    (tmp_path / "last.txt").write_text(LAST)
    (tmp_path / "wtmp").write_text("x")
    (tmp_path / "wtmp-20261001").write_text("")
    (tmp_path / "secure").write_text(
        f"{begin} Accepted password for alice from 192.0.2.7 port 51514 ssh2\n"
        f"{begin} Failed password for mallory from 192.0.2.7 port 51514 ssh2\n"
        "Nov  2 10:11:14 hal-login login: LOGIN ON tty1 BY bob\n"
    )
    with gzip.open(tmp_path / "secure-20261025.gz", "wt") as file:
        file.write(f"{begin} Accepted keyboard-interactive/pam for carol from 192.0.2.7 port 51515 ssh2\n")
    old = tmp_path / "secure-20250101"
    old.write_text(f"{begin} Accepted password for heidi from 192.0.2.7 port 51514 ssh2\n")
    os.utime(old, (1, 1))
    assert came(tmp_path) == [
        "== came", "gssapi-with-mic dave", "keyboard-interactive/pam carol", "password alice", "session alice",
        "session erin",
    ]  # fmt: skip
    called = (tmp_path / "called").read_text()
    assert "--lines=200000" in called
    assert called.count("wtmp") == 1


def test_a_session_at_a_console_is_no_login_by_password(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("")
    (tmp_path / "wtmp").write_text("x")
    (tmp_path / "last.txt").write_text("".join(line for line in LAST.splitlines(keepends=True) if "0.0.0.0" in line))
    assert losses(seen(), came="\n".join(came(tmp_path))) == []

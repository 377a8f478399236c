"""What else reaches the nodes or starts the playbooks: docs/clients.md, each program for real.

Versions are those of tests/rollout/clients.lock, of reframe.lock there, and of requirements.lock.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from demo.mini import PROJECT, SOURCES, Mini

from tests.rollout import reframe_site, slurm_suite
from tests.rollout.clients import ENVIRONMENT, Clients
from tests.rollout.login_user import User

pytestmark = pytest.mark.slow
NODE, LOGIN = "hal02", "hal-login"
RECORDED = re.compile(rf"Recorded [1-9]\d* resources of 1 node \({NODE}\)")
CLEAN = "Clean: 1 node"
DRIFT = re.compile(rf"Drift: [1-9]\d* differences? on {NODE}")
ONE_ROLE = ("--limit", NODE, "--tags", "hosts")
ITS_AUDIT = ("--limit", NODE, "-e", "audit_roles=hosts")


@pytest.fixture(scope="module")
def clients(mini: Mini, tmp_path_factory: pytest.TempPathFactory) -> Clients:
    """On nodes that are rolled out."""
    assert (ENVIRONMENT / "bin" / "ansible-runner").is_file(), "tools/prepare-controller --full installs them"
    if not mini.rolled_out:
        play = mini.site()
        assert play.status == 0, play.explain()
    return Clients(mini, tmp_path_factory.mktemp("clients"))


@contextmanager
def drift(mini: Mini) -> Iterator[None]:
    """Somebody changes a file on the node."""
    mini.cluster.run(NODE, "chmod 0600 /etc/hosts")
    try:
        yield
    finally:
        mini.cluster.run(NODE, "chmod 0644 /etc/hosts")


# ---------------------------------------------------------------- what reaches nodes


def test_ssh_reaches_a_node_by_its_short_and_its_full_name(clients: Clients) -> None:
    full = clients.mini.cluster.node(NODE)["fqdn"]
    for name in (NODE, full):
        done = clients.call("ssh", "-F", str(clients.ssh), name, "hostname", "-s")
        assert (done.status, done.output) == (0, f"{NODE}\n")


def test_rsync_copies_to_a_node(clients: Clients) -> None:
    file = clients.folder / "copied"
    file.write_text("from the controller\n")
    done = clients.call("rsync", "-e", f"ssh -F '{clients.ssh}'", str(file), f"{NODE}:/root/copied")
    assert done.status == 0, done.output
    assert clients.mini.cluster.run(NODE, "cat /root/copied; rm /root/copied") == file.read_text()


def test_clush_knows_the_groups_of_the_model(clients: Clients) -> None:
    folder = clients.folder / "clustershell"
    folder.mkdir()
    (folder / "groups.conf").write_text(
        "[Main]\ndefault: hal\n[hal]\n"
        f'map: hal-inventory {" ".join(clients.sources)} nodes "$GROUP"\n'
        f"all: hal-inventory {' '.join(clients.sources)} nodes all\n"
    )
    own = {"CLUSTERSHELL_CFGDIR": str(folder)}
    clush = ["clush", "-o", f"-F {clients.ssh}"]
    done = clients.call(*clush, "-w", "@gpu", "-b", "uname", "-s", environment=own)
    assert done.status == 0, done.output
    assert re.search(r"^hal\[01-02\] \(2\)$", done.output, re.MULTILINE), done.output
    worst = clients.call(*clush, "-w", "hal01,hal-login", "-S", "test $(hostname -s) = hal01", environment=own)
    assert worst.status == 1, worst.output


CHECK = """
def test_slurmd_runs(host):
    assert host.service("slurmd").is_running
"""


@pytest.mark.parametrize("way", ["ansible", "ssh"])
def test_testinfra_connects_as_ansible_does(clients: Clients, way: str) -> None:
    folder = clients.folder / f"testinfra-{way}"
    folder.mkdir()
    (folder / "test_it.py").write_text(CHECK)
    (folder / "pytest.ini").write_text("[pytest]\n")
    words = {
        "ansible": ["--hosts=ansible://gpu", f"--ansible-inventory={SOURCES[-1]}", "--force-ansible"],
        "ssh": ["--hosts=ssh://hal01,ssh://hal02", f"--ssh-config={clients.ssh}"],
    }[way]
    done = clients.call(
        "py.test", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini"), *words, str(folder),
        environment={"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg")},
    )  # fmt: skip
    assert done.status == 0, done.output
    assert "2 passed" in done.output


def test_ansible_console_takes_the_inventory(clients: Clients) -> None:
    done = clients.call("ansible-console", *clients.sources, "hal01,hal02", said="command hostname -s\nexit\n")
    assert done.status == 0, done.output
    assert {"hal01", "hal02"} <= set(done.output.split()), done.output


# ---------------------------------------------------------------- what starts playbooks


def test_a_rollout_by_runner_is_recorded(clients: Clients) -> None:
    done, status = clients.runner("rollout", "site.yml", ONE_ROLE)
    assert (done.status, status) == (0, "successful"), done.output[-4000:]
    assert RECORDED.search(done.words), done.output[-4000:]


def test_an_audit_by_runner_ends_as_it_finds(clients: Clients) -> None:
    done, status = clients.runner("clean", "audit.yml", ITS_AUDIT)
    assert (done.status, status) == (0, "successful"), done.output[-4000:]
    assert CLEAN in done.words
    with drift(clients.mini):
        done, status = clients.runner("drift", "audit.yml", ITS_AUDIT)
    assert (done.status, status) == (2, "failed"), done.output[-4000:]
    assert DRIFT.search(done.words), done.output[-4000:]


def test_navigator_without_a_container_ends_as_it_finds(clients: Clients) -> None:
    words = ["ansible-navigator", "run", "playbooks/audit.yml", "--execution-environment", "false", "--mode", "stdout"]
    words += ["--playbook-artifact-enable", "false", "--log-file", str(clients.folder / "navigator.log")]
    words += [*clients.sources, *ITS_AUDIT]
    done = clients.call(*words)
    assert done.status == 0, done.output[-4000:]
    assert CLEAN in done.words
    with drift(clients.mini):
        done = clients.call(*words)
    assert done.status != 0, done.output[-4000:]
    assert DRIFT.search(done.words), done.output[-4000:]


def test_pull_rolls_out_what_is_committed_and_records_the_commit(clients: Clients) -> None:
    clone, source = clients.folder / "clone", clients.folder / "hal.yml"
    (base,) = SOURCES
    state = PROJECT / ".state" / "virtual"
    source.write_text(f"plugin: hal\nbase: {clone / base.relative_to(PROJECT)}\nstate: {state}\n")
    # ansible-pull clones on localhost, which our sources do not have: it has to find this one from the clone only.
    words = ["-U", f"file://{PROJECT}", "-d", str(clone), "-i", "../hal.yml", *ONE_ROLE, "playbooks/site.yml"]
    done = clients.call("ansible-pull", *words, cwd=clients.folder)
    assert done.status == 0, done.output[-4000:]
    assert RECORDED.search(done.words), done.output[-4000:]
    commit = clients.call("git", "-C", str(clone), "rev-parse", "HEAD").output.strip()
    shown = clients.call("hal-audit", "show", NODE, *clients.sources)
    assert commit[:12] in shown.output, shown.output[:2000]


def test_another_working_directory_is_as_good(clients: Clients, tmp_path: Path) -> None:
    own = {"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg")}
    playbook = str(PROJECT / "playbooks" / "site.yml")
    done = clients.call("ansible-playbook", *clients.sources, playbook, *ONE_ROLE, cwd=tmp_path, environment=own)
    assert done.status == 0, done.output[-4000:]
    assert RECORDED.search(done.words), done.output[-4000:]


# ---------------------------------------------------------------- what users run, on the login node

ALL_PASSED = (
    "[  PASSED  ] Ran 15/15 test case(s) from 8 check(s) (0 failure(s), 0 expected failure(s), 0 skipped, 0 aborted)"
)
IDLE_SECONDS = 600  # for what hangs


@pytest.fixture(scope="module")
def alice(clients: Clients) -> User:
    """A user of the cluster."""
    return User(clients.mini.cluster, "alice", clients.folder)


@pytest.fixture(scope="module")
def reframe(clients: Clients, alice: User) -> str:
    """The command, for a login shell of alice's."""
    own = clients.folder / "checks"
    own.mkdir()
    reframe_site.write(clients.mini.cluster, own)
    clients.give(reframe_site.packages(), LOGIN, "reframe", alice)
    clients.give(own, LOGIN, "checks", alice)
    return "cd checks && PYTHONPATH=~/reframe python3 ~/reframe/bin/reframe -C site.py -c checks.py --nocolor"


def login(command: str) -> str:
    """What makes a command run as in a login shell."""
    return shlex.join(["bash", "-lc", f"{command} 2>&1"])


def test_reframe_checks_all_partitions(alice: User, reframe: str) -> None:
    done = alice.ssh(LOGIN, login(f"{reframe} -r"))
    assert done.returncode == 0, done.stdout[-6000:]
    assert ALL_PASSED in done.stdout, done.stdout[-6000:]


def test_reframe_says_what_is_not_as_expected(alice: User, reframe: str) -> None:
    """One GPU is asked for, and two are expected."""
    done = alice.ssh(LOGIN, login(f"{reframe} -r --system=hal:gpu -n 'Gpus%count=1' -S Gpus.wanted=2"))
    assert done.returncode == 1, done.stdout[-6000:]
    assert "[  FAILED  ] Ran 1/1 test case(s) from 1 check(s) (1 failure(s), " in done.stdout
    assert "[1] != [2]" in done.stdout


@pytest.fixture(scope="module")
def suite(clients: Clients, alice: User) -> str:
    """The folder of Slurm's tests, in alice's home; Expect is an administrator's to install."""
    made = slurm_suite.fetch()
    clients.give(made / "root" / "usr", LOGIN, "/usr")
    clients.give(made / "suite", LOGIN, "slurm-tests", alice)
    return "/home/alice/slurm-tests/expect"


@pytest.fixture(scope="module")
def never_idle() -> list[str]:
    """Why no more of Slurm's tests are begun: each would wait as long."""
    return []


@pytest.mark.parametrize("test", slurm_suite.listed(), ids=lambda one: one.name)
def test_slurms_own_suite(
    clients: Clients, alice: User, suite: str, never_idle: list[str], test: slurm_suite.Listed
) -> None:
    assert not never_idle, f"not begun: {never_idle[0]}"
    idle = alice.ssh(
        LOGIN, f"timeout {IDLE_SECONDS} sh -c {shlex.quote(slurm_suite.IDLE)} || {{ sinfo; squeue; exit 1; }}"
    )
    if idle.returncode:
        never_idle.append(f"before test{test.name} no node of partition gpu became idle:\n{idle.stdout}")
        pytest.fail(never_idle[0])
    command = f"cd {suite} && ./test{test.name} 2>&1"
    if test.root:
        said = clients.call("ssh", "-F", str(clients.ssh), LOGIN, command).output
    else:
        said = alice.ssh(LOGIN, command).stdout
    assert slurm_suite.verdict(said, test.name) == test.verdict, said[-6000:]
    assert [words for words in test.fails if words not in said] == [], said[-6000:]

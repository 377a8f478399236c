"""hal_slurm_found: what a rollout would lose of what it finds is known before anything is written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm.found import associates, other_log_size, other_number, other_release, shut_out

from tests.unit.modules import Answer, Ran, loaded

# What programs print. 5.5: CentOS 7.7's mariadb-server 5.5.68; 10.11: Debian 12's; Slurm: SchedMD's and Debian's build.
OLD_MARIADB = "/usr/libexec/mysqld  Ver 5.5.68-MariaDB for Linux on x86_64 (MariaDB Server)\n"
NEW_MARIADB = "mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n"
MB = 1024 * 1024


# ---------------------------------------------------------------- decisions
@pytest.mark.parametrize("said", ["slurm 20.02.7\n", "slurm-wlm 20.02.7\n"])
def test_the_declared_release_is_fine(said: str) -> None:
    assert other_release("slurmctld", said, "20.02.7") == ""


def test_another_release_is_refused_with_the_way_on() -> None:
    assert other_release("slurmdbd", "slurm 19.05.8\n", "20.02.7") == (
        "slurmdbd 19.05.8 is installed, and slurm_version is 20.02.7: a rollout does not upgrade Slurm. Upgrade by"
        " hand, slurmdbd first (docs/slurm.md, Upgrade), or set slurm_version: 19.05.8"
    )
    assert other_release("slurmd", "Segmentation fault\n", "20.02.7").startswith("slurmd -V does not say its release")


def test_a_number_that_something_has_is_not_changed() -> None:
    assert other_number("user", "slurm", 64030, 450, None, ["process 77 (slurmctld) runs as it"]) == (
        "user slurm has number 64030 here and slurm_uid is 450; process 77 (slurmctld) runs as it. It is not changed"
        " under them: set slurm_uid: 64030, for all nodes"
    )
    assert other_number("group", "slurm", 64030, 450, None, ["/x is its own"]).endswith(
        "set slurm_gid: 64030, for all nodes"
    )


@pytest.mark.parametrize(
    ("found", "owner", "used"), [(None, None, []), (450, "slurm", ["process 7"]), (990, None, []), (990, "slurm", [])]
)
def test_a_number_that_nothing_has_is(found: int | None, owner: str | None, used: list[str]) -> None:
    assert other_number("user", "slurm", found, 450, owner, used) == ""


@pytest.mark.parametrize("found", [None, 990])
def test_a_number_of_somebody_else_is_refused(found: int | None) -> None:
    said = "number 450 (slurm_uid) belongs to user ganglia here: set another, for all nodes"
    assert other_number("user", "slurm", found, 450, "ganglia", []) == said


@pytest.mark.parametrize(
    ("size", "said"), [(None, OLD_MARIADB), (64 * MB, OLD_MARIADB), (5 * MB, NEW_MARIADB), (5 * MB, "Ver 5.6.51 for")]
)
def test_mariadb_starts_again(size: int | None, said: str) -> None:
    assert other_log_size("/x/ib_logfile0", size, 64, said) == ""


@pytest.mark.parametrize(
    ("said", "name"),
    [(OLD_MARIADB, "5.5.68-MariaDB"), ("", "of an unknown release"), ("mysqld: x", "of an unknown release")],
)
def test_mariadb_that_would_not_start_again_is_refused(said: str, name: str) -> None:
    assert other_log_size("/var/lib/mysql/ib_logfile0", 5 * MB, 64, said) == (
        f"MariaDB {name} has a log of 5 MB (/var/lib/mysql/ib_logfile0), and slurm_database_log_file_mb is 64: it would"
        " not start again. Set slurm_database_log_file_mb: 5; or make room for new logs first (docs/slurm.md, MariaDB)"
    )


@pytest.mark.parametrize(
    ("enforce", "does"),
    [("", False), ("none", False), ("(null)", False), ("nosteps", False), ("safe", True), ("Associations, qos", True)],
)
def test_what_needs_an_account(enforce: str, does: bool) -> None:
    assert associates(enforce) == does


def test_who_would_be_shut_out_is_counted_and_named() -> None:
    said = shut_out(["alice", "bob", "alice"], ["bob"], "associations")
    assert said.startswith(
        "AccountingStorageEnforce=associations is new here, and 1 user with jobs now or in the last 30"
    )
    assert "no account (alice). Declare them in slurm_users, or let slurm_enforce_ok=true" in said
    assert "and 12 users with" in shut_out([f"u{n:02}" for n in range(12)], [], "qos")
    assert "(u00, u01, u02, u03, u04, u05, u06, u07 and 4 more)" in shut_out([f"u{n:02}" for n in range(12)], [], "qos")
    assert shut_out(["alice"], ["alice", "bob"], "qos") == ""


# ---------------------------------------------------------------- the module
CONFIG = """\
AccountingStorageEnforce = none
AccountingStorageType   = accounting_storage/slurmdbd
ClusterName             = hal
"""


class Node:
    """A node: who is in passwd and group, what programs there are, and what they say."""

    def __init__(self, folder: Path, *patched: Any) -> None:
        self.proc, self.conf, self.data = folder / "proc", folder / "slurm.conf", folder / "mysql"
        self.record = folder / "recorded" / "slurm.conf"
        for place in (self.proc, self.data):
            place.mkdir()
        self.users, self.groups = {"slurm": 450, "munge": 998}, {"slurm": 450}
        self.home, self.foreign = "/var/spool/slurmctld", False
        self.programs = set[str]()
        self.said: dict[str, Answer] = {}
        module = loaded("hal_slurm_found")
        module.__dict__.update(
            PROC=str(self.proc),
            CONF=str(self.conf),
            RECORD=str(self.record),
            DATA=str(self.data),
            MYSQLD=str(folder / "none"),
        )
        module.__dict__["pwd"] = SimpleNamespace(
            getpwnam=lambda name: SimpleNamespace(
                pw_uid=self.users[name], pw_gid=self.groups[name], pw_dir=self.home, pw_gecos="Slurm"
            ),
            getpwuid=lambda uid: SimpleNamespace(pw_name={number: name for name, number in self.users.items()}[uid]),
        )
        module.__dict__["grp"] = SimpleNamespace(
            getgrnam=lambda name: SimpleNamespace(gr_gid=self.groups[name]),
            getgrgid=lambda gid: SimpleNamespace(gr_name={number: name for name, number in self.groups.items()}[gid]),
        )
        self.ran = Ran(module, self.answer, *patched)

    def answer(self, argv: list[str]) -> Answer:
        line = " ".join(argv)
        return next((answer for words, answer in self.said.items() if words in line), (0, "slurm 20.02.7\n", ""))

    def process(self, number: int, name: str, uid: int) -> None:
        place = self.proc / str(number)
        place.mkdir()
        (place / "status").write_text(f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        (place / "comm").write_text(f"{name}\n")

    def __call__(self, **given: Any) -> str:
        """What would be lost, "" for nothing."""
        self.ran.programs = {name: f"/usr/sbin/{name}" for name in self.programs}
        answer = self.ran(True, version="20.02.7", uid=450, gid=450, **given)
        assert not answer["changed"]
        self.foreign = answer["foreign_user"]
        return "\n".join(answer["lost"])


@pytest.fixture
def node(tmp_path: Path, patched: tuple[Any, Any]) -> Node:
    return Node(tmp_path, *patched)


def test_a_user_that_the_role_made_is_told_from_somebody_s(node: Node) -> None:
    """Of its own the role puts the shell back; that of another stays."""
    node()
    assert not node.foreign
    node.home = "/srv/slurm"
    node()
    assert node.foreign


def test_on_a_new_node_nothing_is_refused(node: Node) -> None:
    del node.users["slurm"], node.groups["slurm"]
    assert node(log_file_mb=64, enforce="associations") == ""
    assert node.ran.told == []


def test_every_program_of_another_release_is_named(node: Node) -> None:
    node.programs = {"slurmdbd", "slurmctld", "sinfo"}
    node.conf.write_text("ClusterName=hal\n")
    assert node() == ""
    node.said = {"slurmctld -V": (0, "slurm 20.11.9\n", ""), "sinfo -V": (139, "", "")}
    said = node()
    assert said.startswith("slurmctld 20.11.9 is installed, and slurm_version is 20.02.7")
    assert said.splitlines()[1].startswith("sinfo -V does not say its release")


def test_packages_alone_are_no_slurm_that_could_be_upgraded(node: Node) -> None:
    """As an image has them, which may be older than slurm_version."""
    node.programs = {"slurmd", "sinfo"}
    node.said = {"slurmd -V": (0, "slurm 19.05.8\n", ""), "sinfo -V": (1, "", "fatal: no slurm.conf")}
    assert node() == ""


def test_commands_without_a_slurm_conf_are_asked_by_one_of_our_own(node: Node) -> None:
    """sinfo 22.05.8 of a node whose files wait: "fatal: Could not establish a configuration source"."""
    node.programs = {"sinfo"}
    node.record.parent.mkdir(parents=True)
    assert node() == ""
    own = node.ran.environments[0]["SLURM_CONF"]
    assert own != str(node.conf)
    node.conf.write_text("ClusterName=hal\n")
    assert node() == ""
    assert "SLURM_CONF" not in node.ran.environments[0]


def test_a_user_slurm_of_another_number_is_refused_where_it_has_something(node: Node, tmp_path: Path) -> None:
    node.users["slurm"] = node.groups["slurm"] = 64030
    node.process(9, "sshd", 0)
    assert node(places=[str(tmp_path)]) == "", "nothing has that number, so it may be changed"
    node.process(77, "slurmctld", 64030)
    said = node()
    assert "user slurm has number 64030 here and slurm_uid is 450; process 77 (slurmctld) runs as it." in said
    assert "set slurm_gid: 64030" in said
    node.users["slurm"] = 450
    assert "user slurm" not in node()


def test_the_state_that_slurm_conf_names_is_looked_at(node: Node, tmp_path: Path) -> None:
    node.users["slurm"] = tmp_path.stat().st_uid + 0
    node.conf.write_text(f"StateSaveLocation={tmp_path}\n")
    assert f"{tmp_path} is its own" in node()
    node.conf.write_text("nonsense here\n")
    assert node() == ""


def test_the_log_of_mariadb_is_where_its_options_say(node: Node, tmp_path: Path) -> None:
    node.programs = {"mysqld", "my_print_defaults"}
    node.said = {"mysqld --version": (0, OLD_MARIADB, ""), "my_print_defaults": (0, "", "")}
    (node.data / "ib_logfile0").write_bytes(bytes(MB))
    assert f"has a log of 1 MB ({node.data}/ib_logfile0)" in node(log_file_mb=64)
    assert node(log_file_mb=1) == ""
    assert node() == "", "no database here"
    own = tmp_path / "own"
    own.mkdir()
    node.said["my_print_defaults"] = (0, f"--datadir={node.data}\n--innodb_log_group_home_dir={own}\n", "")
    assert node(log_file_mb=64) == ""
    (own / "ib_logfile0").write_bytes(bytes(2 * MB))
    assert f"has a log of 2 MB ({own}/ib_logfile0)" in node(log_file_mb=64)


def test_who_has_jobs_and_no_account_would_be_shut_out(node: Node) -> None:
    node.programs = {"slurmctld"}
    node.said = {
        "systemctl": (0, "ActiveState=active\n", ""),
        "show config": (0, CONFIG, ""),
        "squeue": (0, "alice\ncarol\n", ""),
        "sacct ": (0, "dave\nalice\n\n", ""),
        "associations": (0, "root\nalice\n", ""),
    }
    wanted = {"enforce": "associations,limits", "users": ["dave"]}
    assert "and 1 user with jobs now or in the last 30 days would be refused: no account (carol)" in node(**wanted)
    assert node(**wanted, enforce_ok=True) == ""
    assert node(enforce="") == ""
    for words in ("show config", "squeue", "sacct ", "associations"):
        answers = dict(node.said)
        node.said[words] = (1, "", "Unable to contact slurm controller\n")
        said = node(**wanted)
        assert "Unable to contact slurm controller; what is not known is not safe: repeat when it answers" in said, (
            words
        )
        node.said = answers
    # It refuses them today.
    node.said["show config"] = (0, CONFIG.replace("= none", "= associations"), "")
    assert node(**wanted) == ""
    # Without a database nobody has an account.
    node.said["show config"] = (0, CONFIG.replace("/slurmdbd", "/none"), "")
    assert "2 users" in node(**wanted)
    # What an earlier rollout has set is no news, whether slurmctld answers or not.
    node.record.parent.mkdir()
    node.record.write_text("AccountingStorageEnforce=associations\n")
    assert node(**wanted) == ""
    node.record.unlink()
    for state in ("inactive", "activating"):
        node.said["systemctl"] = (0, f"ActiveState={state}\n", "")
        assert node(**wanted) == ""


def test_what_others_named_drives_no_terminal(node: Node) -> None:
    node.users["slurm"] = 990
    node.process(7, "x\x1b[2J", 990)
    assert "x\\x1b[2J" in node()

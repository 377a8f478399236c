"""docs/users.md is true: a new user types it, line by line, and reads what the page says.

The files of the page are written, its lines typed into one login shell over SSH, in a home as a site makes one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from demo.mini import IMAGE_VARIABLES, IMAGES, PROJECT, Mini

from tests.rollout.login_user import User
from tests.rollout.typed_page import JOB, PROMPT, File, Line, expected, plain, steps
from tests.terminal import Terminal, TerminalError

pytestmark = pytest.mark.slow

PAGE = PROJECT / "docs/users.md"
LOGIN = "hal-login"
NAME = "bob"  # who has done nothing yet; alice is the other tests' user
STATUS = re.compile(r"status=(\d+)\n")
JOB_SECONDS = 300  # for what hangs


class Reader:
    """A new user in a login shell, and what the page has taught so far."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal, self.job = terminal, ""
        self.prompt = self.read()[1]
        self.type("export LMOD_PAGER=none")  # nobody is here who presses q

    def read(self) -> tuple[str, re.Match[str]]:
        return self.terminal.read(re.compile(PROMPT.pattern + r"\Z"))

    def type(self, text: str) -> str:
        """What a line says. An inner shell's terminal also shows what is typed, and bash says exit as it ends."""
        self.terminal.type(text)
        said, self.prompt = self.read()
        return re.sub(rf"\A(?:{re.escape(text)}\n)+", "", said)

    def status(self) -> int:
        found = STATUS.search(self.type('echo "status=$?"'))
        assert found
        return int(found[1])

    def follow(self, line: Line) -> None:
        """Type a line of the page, and compare; the message of a failure is for who keeps the page."""
        where = f"{PAGE.name}:{line.number}: {line.text}"
        wanted = (line.prompt["venv"], NAME, re.sub(r"\d\d$", "", line.prompt["node"]))
        actual = (self.prompt["venv"], self.prompt["user"], re.sub(r"\d\d$", "", self.prompt["node"]))
        assert actual == wanted, f"{where}: at another prompt, {self.prompt[0]}"
        text = line.text
        if f"slurm-{JOB}.out" in text:
            self.await_job(where)
            text = text.replace(f"slurm-{JOB}.out", f"slurm-{self.job}.out")
        if line.until_interrupted:
            said, status = self.interrupted(text, line), 0
        else:
            said = plain(self.type(text))
            status = self.status()
        assert status == 0, f"{where}: ended with {status}:\n{said}"
        assert expected(line.says, NAME).fullmatch(said), f"{where}: said\n{said}\nThe page has\n" + "\n".join(
            line.says
        )
        if found := re.fullmatch(r"Submitted batch job (\d+)\n", said):
            self.job = found[1]

    def interrupted(self, text: str, line: Line) -> str:
        """What a line says that goes on, once it has said what the page has; it is ended then."""
        self.terminal.type(text)
        last = re.escape(line.says[-1].split("...")[0].strip()).replace("20345", r"2\d{4}")
        before, found = self.terminal.read(re.compile(rf"^[ ]*{last}[^\n]*\n", re.MULTILINE))
        for _ in range(2):  # the first one asks whether that is meant
            self.terminal.interrupt()
            time.sleep(1)
        self.prompt = self.read()[1]
        return plain((before + found[0]).removeprefix(f"{text}\n"))

    def await_job(self, where: str) -> None:
        end = time.monotonic() + JOB_SECONDS
        while plain(self.type("squeue --noheader --me")):
            assert time.monotonic() < end, f"{where}: the job goes on:\n{self.type('squeue; sinfo -R')}"
            time.sleep(1)
        if self.job:
            ended = plain(self.type(f"sacct --noheader --parsable2 --allocations --format=State --jobs={self.job}"))
            assert ended.strip() in ("COMPLETED", ""), f"{where}: job {self.job} ended {ended}"


@pytest.fixture(scope="module")
def bob(mini: Mini, tmp_path_factory: pytest.TempPathFactory) -> User:
    """A new user: his home has what /etc/skel has, as pam_mkhomedir makes it, and nothing else."""
    if not mini.rolled_out:
        play = mini.site()
        assert play.status == 0, play.explain()
    home = f"/home/{NAME}"
    mini.cluster.run(LOGIN, f"rm -rf {home} && cp -r /etc/skel {home} && chown -R {NAME}: {home} && chmod 700 {home}")
    built = mini.ansible.playbook(*IMAGES, **IMAGE_VARIABLES)
    assert built.status == 0, built.explain()
    return User(mini.cluster, NAME, tmp_path_factory.mktemp(NAME))


@pytest.fixture(scope="module")
def reader(bob: User) -> Iterator[Reader]:
    options = (f"User={NAME}", f"IdentityFile={bob.key}", "ControlPath=none")
    argv = ["ssh", "-tt", "-e", "none", *(word for option in options for word in ("-o", option))]
    argv += bob.cluster.ssh_argv(LOGIN, "exec bash -l")[1:]
    with Terminal(argv) as terminal:
        yield Reader(terminal)


def write(bob: User, file: File) -> None:
    bob.says(LOGIN, f"cat >{file.name} <<'THE END OF IT'\n{file.content}THE END OF IT\n")


@pytest.mark.parametrize("at", range(len(list(steps(PAGE)))))
def test_the_page_is_followed(bob: User, reader: Reader, at: int) -> None:
    """A step is a file or a block of lines; each goes on from the one before, as reading does."""
    step = list(steps(PAGE))[at]
    if isinstance(step, File):
        write(bob, step)
        return
    try:
        for line in step:
            reader.follow(line)
    except TerminalError as error:
        pytest.fail(f"{PAGE.name}:{line.number}: {line.text}: {error}")
    finally:
        while reader.prompt["node"] != LOGIN:
            reader.type("exit")


def test_the_login_node_says_where_a_notebook_belongs(bob: User) -> None:
    """Before a module is loaded, and typed as it is said."""
    refused = bob.ssh(LOGIN, "hal-notebook")
    assert refused.returncode == 1
    assert "not on the login node" in refused.stderr
    line = next(one for one in refused.stderr.splitlines() if one.strip().startswith("srun "))
    helped = bob.ssh(LOGIN, "hal-notebook --help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert line.strip() in helped.stdout
    shown = bob.says(LOGIN, line.replace("--pty ", "").replace("hal-notebook'", "hal-notebook --show'"))
    assert f"-J {NAME}@{LOGIN}" in shown
    assert "jupyter-notebook" in shown

"""What judges a rendered file before it replaces the one that is there, as the roles run it. The programs are stand-ins
that say what the real ones were seen to say; scenarios ask the real ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shlex import quote, split

import pytest

PROJECT = Path(__file__).resolve().parents[3]
HTTPD = PROJECT / "roles/mirror/files/judge_httpd.sh"
MARIADB = PROJECT / "roles/slurm/files/judge_mariadb.sh"
# Reads what is included, in order, and refuses a word that it does not know, as httpd -t does.
READER = """#!/bin/sh
[ "$1 $2" = "-t -f" ] || exit 9
sed -n 's/^Include "\\(.*\\)"$/\\1/p' "$3" | while IFS= read -r one; do cat "$one"; done >"$SEEN"
cat "$3" >>"$SEEN"
! grep Invalid "$SEEN" >&2
"""


def called(validate: str, path: Path) -> list[str]:
    """Return the words that Ansible makes of `validate`: it is a format, so a program in it has no other % sign."""
    return split(validate % path)


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


class Site:
    """A configuration of httpd in a folder, and what the judge says of a new file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seen = folder, folder / "seen"
        (folder / "conf.d").mkdir()
        self.conf = folder / "httpd.conf"
        self.conf.write_text('ServerRoot "x"\n  IncludeOptional conf.d/*.conf\nInclude conf.modules.d/*.conf\n')
        self.ours = folder / "conf.d" / "hal.conf"
        program(folder / "httpd", READER)

    def judge(self, script: Path, text: str) -> subprocess.CompletedProcess[str]:
        new = self.folder / "new"
        new.write_text(text)
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            called(f"/bin/sh -c {quote(script.read_text())} judge {self.ours} %s", new),
            env={**os.environ, "PATH": path, "HTTPD_CONF": str(self.conf), "SEEN": str(self.seen)},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_httpd_reads_the_new_file_among_the_others_and_without_the_old_one(site: Site) -> None:
    site.ours.write_text("Invalid old\n")
    (site.folder / "conf.d" / "ssl.conf").write_text("other\n")
    done = site.judge(HTTPD, "new\n")
    assert done.returncode == 0, done.stderr
    assert site.seen.read_text().splitlines() == [
        *("other", "new", 'ServerRoot "x"', "Include conf.modules.d/*.conf"),
        f'Include "{site.folder}/conf.d/ssl.conf"',
        f'Include "{site.folder}/new"',
    ]


def test_what_httpd_cannot_read_is_refused_with_its_words(site: Site) -> None:
    done = site.judge(HTTPD, "Invalid command 'Requir'\n")
    assert done.returncode != 0
    assert "Invalid command 'Requir'" in done.stderr


def test_without_the_servers_own_configuration_nothing_is_taken_for_fine(site: Site) -> None:
    site.conf.unlink()
    assert site.judge(HTTPD, "new\n").returncode != 0


# Seen of MariaDB 10.11: exit status and words for an option in the file.
SAID = {
    "an option that it has": (0, "[Warning] Could not open mysql.plugin table", True),
    "innodb_bufer_pool_size": (7, "[ERROR] mysqld: unknown variable 'innodb_bufer_pool_size=64M'", False),
    "a line without a value": (2, "[ERROR] mysqld: unknown option '--garbage line'", False),
    "12Q": (0, "[ERROR] Unknown suffix 'Q' used for variable 'innodb-log-file-size' (value '12Q').", False),
    "-5M": (13, "[ERROR] mysqld: Error while setting value '-5M' to 'max_allowed_packet'", False),
    "[broken": (1, "error: Wrong group definition in config file: x at line 2", False),
}


@pytest.mark.parametrize("given", SAID)
def test_mariadb_is_judged_by_its_words(tmp_path: Path, given: str) -> None:
    status, words, fine = SAID[given]
    (tmp_path / "words").write_text(words + "\n")
    asked = f'[ "$*" = "--defaults-file={tmp_path}/new --help --verbose" ] || exit 99'
    stub = program(tmp_path / "mysqld", f"#!/bin/sh\n{asked}\ncat '{tmp_path}/words' >&2\nexit {status}\n")
    done = subprocess.run(
        called(f"/bin/sh -c {quote(MARIADB.read_text())} judge %s", tmp_path / "new"),
        env={**os.environ, "MYSQLD": str(stub)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is fine
    assert fine or words in done.stderr

"""Files beside the role's own that would open notebooks are found, and others are not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

EXPECT = Path(__file__).resolve().parents[4] / "roles/notebooks/expect.yml"


def found(folder: Path) -> list[str]:
    """What the promise's command prints where `folder` is the root."""
    entries = {one["id"]: one for one in yaml.safe_load(EXPECT.read_text())}
    argv = entries["no other settings of the node open notebooks"]["command"]["argv"]
    argv = [str(folder) + word if word.startswith(("/etc", "/usr")) else word for word in argv]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return [line.removeprefix(str(folder)) for line in done.stdout.splitlines()]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node as the role leaves it, below a folder."""
    for name in ("etc/jupyter/jupyter_notebook_config.d", "usr/local/etc/jupyter"):
        (tmp_path / name).mkdir(parents=True)
    for kind in ("notebook", "server"):
        (tmp_path / f"etc/jupyter/jupyter_{kind}_config.py").write_text('c.NotebookApp.ip = "127.0.0.1"\n')
    (tmp_path / "usr/local/etc/other.json").write_text('{"ip": "10.0.0.1"}')
    return tmp_path


def test_the_role_s_own_files_are_none(node: Path) -> None:
    assert found(node) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/jupyter/jupyter_notebook_config.json", '{"NotebookApp": {"ip": "*"}}'),
        ("/etc/jupyter/jupyter_notebook_config.json", '{"NotebookApp": {"token" : ""}}'),
        ("/etc/jupyter/jupyter_config.py", "c.NotebookApp.token=''"),
        ("/etc/jupyter/jupyter_lab_config.py", "c['ServerApp']['ip'] = '0.0.0.0'"),
        ("/etc/jupyter/jupyter_notebook_config.d/x.json", '{"NotebookApp": {"password": ""}}'),
        ("/usr/local/etc/jupyter/jupyter_server_config.py", "c.IdentityProvider.token = ''"),
        ("/usr/local/etc/jupyter/jupyter_server_config.json", '{"ServerApp": {"allow_remote_access": true}}'),
    ],
)
def test_a_file_that_opens_notebooks_is_found(node: Path, path: str, text: str) -> None:
    (node / path.lstrip("/")).write_text(text)
    assert found(node) == [path]


def test_what_is_there_by_a_link_is_found(node: Path) -> None:
    (node / "elsewhere").write_text("c.NotebookApp.ip = '*'")
    (node / "etc/jupyter/jupyter_config.py").symlink_to(node / "elsewhere")
    assert found(node) == ["/etc/jupyter/jupyter_config.py"]


@pytest.mark.parametrize(
    "text", ['{"NotebookApp": {"nbserver_extensions": {"ip_tool": true}}}', '{"load_extensions": {"tokens": true}}']
)
def test_settings_of_extensions_are_left(node: Path, text: str) -> None:
    (node / "etc/jupyter/jupyter_notebook_config.d/extension.json").write_text(text)
    assert found(node) == []


def test_a_file_of_comments_alone_opens_nothing(node: Path) -> None:
    text = "## The IP address\n# c.NotebookApp.ip = 'localhost'\n#c.NotebookApp.token = '<generated>'\n"
    (node / "etc/jupyter/jupyter_config.py").write_text(text)
    assert found(node) == []

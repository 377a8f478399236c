"""What users have at the path of the registry is met, and not replaced."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.rules.singularity.registry import taken

PROJECT = Path(__file__).resolve().parents[4]


class Place:
    """A path that users know, the registry, and what an earlier rollout has written."""

    def __init__(self, folder: Path) -> None:
        self.path, self.registry, self.settings = (
            folder / "singularity",
            folder / "containers",
            folder / "containers.json",
        )

    def seen(self) -> dict[str, Any]:
        """What the role's own command says."""
        task = yaml.safe_load((PROJECT / "roles/singularity/tasks/look.yml").read_text())[0]
        argv = [*task["hal_command"]["argv"][:-2], str(self.path), str(self.settings)]
        environment = {**os.environ, **task["environment"]}
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
        return {"stdout": done.stdout.rstrip("\n"), "stderr_lines": done.stderr.splitlines()}

    def taken(self) -> str:
        """What the filter says of it."""
        return taken(self.seen(), str(self.registry), str(self.path))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_nothing_and_our_own_links_are_nobody_s(place: Place, tmp_path: Path) -> None:
    assert place.taken() == ""
    place.path.symlink_to(place.registry)  # not mounted yet
    assert place.taken() == ""
    place.registry.mkdir()
    assert place.taken() == ""
    # The registry has moved, or somebody has led our link elsewhere.
    place.path.unlink()
    (tmp_path / "before").mkdir()
    place.path.symlink_to(tmp_path / "before")
    place.settings.write_text(json.dumps({"link": str(place.path)}, indent=4) + "\n")
    assert place.taken() == ""
    place.path.unlink()
    assert place.taken() == ""


def test_a_folder_a_file_and_a_link_of_somebody_s_are_named(place: Place, tmp_path: Path) -> None:
    place.path.mkdir()
    assert place.taken() == "is there and is a folder"
    place.settings.write_text(json.dumps({"link": str(place.path)}))
    assert place.taken() == "is there and is a folder"
    place.path.rmdir()
    place.path.write_text("")
    assert place.taken() == "is there and is a file"
    place.path.unlink()
    place.settings.write_text(json.dumps({"link": "/another/path"}))
    (tmp_path / "images of\x1ball").mkdir()
    place.path.symlink_to(tmp_path / "images of\x1ball")
    assert place.taken() == f"leads to {tmp_path}/images of\\x1ball, which is not the registry"


@pytest.mark.parametrize("settings", ["{", "[]", '{"link'])
def test_settings_that_cannot_be_read_are_not_taken_for_ours(place: Place, settings: str) -> None:
    place.path.mkdir()
    place.settings.write_text(settings)
    assert place.taken() == "cannot be looked at: the settings of an earlier rollout cannot be read"


def test_what_cannot_be_looked_at_is_not_called_free() -> None:
    said = {"stdout": "", "stderr_lines": ["find: '/opt/container/singularity': Stale file handle"]}
    assert taken(said, "/c/r", "/c/s") == f"cannot be looked at: {said['stderr_lines'][0]}"

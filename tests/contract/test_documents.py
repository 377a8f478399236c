"""Pages that name what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import documents

PLANTED = (
    Planted(
        documents.links_lead_somewhere,
        {
            "README.md": """
                # HAL toolkit
                [good](docs/a.md#first-steps), [self](#hal-toolkit), [outside](https://example.org), `[code](x.md)`
                [file](docs/b.md), [heading](docs/a.md#second)
                ```
                [in a fence](c.md)
                ```
                """,
            "docs/a.md": "# First *steps*\n",
        },
        [
            "README.md:3: link to docs/a.md#second: no such heading; there are first-steps",
            "README.md:3: link to docs/b.md: no such file; correct the link or write the file",
        ],
    ),
    Planted(
        documents.make_targets_exist,
        {
            "Makefile": "demo: setup\nsetup:\nX := 1\n",
            "README.md": "To make sure, `make demo`, or `make tset`:\n\n```\n$ make setup\nmake bnech\n```\n",
        },
        [
            "README.md:1: make tset is no target; there are demo, setup",
            "README.md:5: make bnech is no target; there are demo, setup",
        ],
    ),
    Planted(
        documents.named_files_exist,
        {
            "README.md": "`roles/time/tasks/main.yml`, `roles/`, `roles/<role>/README.md`, `/etc/x`, `roles/tiem`\n",
            "roles/time/tasks/main.yml": "",
            "roles/time/README.md": "`tasks/main.yml`\n",
        },
        ["README.md:1: roles/tiem does not exist; correct the name or write the file"],
    ),
    Planted(
        documents.the_lab_s_page_is_whole,
        {
            "molecule/virtual_hal/README.md": "| `bmc/`, `setup` | x |\n| `time` | `ssh` |\n`gpus/` in prose\n",
            **dict.fromkeys(("molecule/time/molecule.yml", "molecule/ssh/molecule.yml"), "---\n"),
            **dict.fromkeys(
                (f"molecule/virtual_hal/{name}" for name in ("bmc/a.py", "gpus/a.py", "setup", "x.py")), ""
            ),
        },
        [
            "molecule/virtual_hal/README.md:1: gpus has no row in the table of parts; write what it is",
            "molecule/virtual_hal/README.md:1: ssh has no row in the table of scenarios; write what it proves",
            "molecule/virtual_hal/README.md:1: x.py has no row in the table of parts; write what it is",
        ],
    ),
    Planted(
        documents.comments_mark_what_is_there,
        {
            "README.md": """
                <!-- output -->
                ```text
                <!-- part of a page -->
                ```
                Times: <!-- times of make demo -->

                <!-- contract: a reason --> `<!--` begins a comment
                """,
            "docs/a.md": "Text\n<!-- to do -->\n",
            "roles/time/README.md": "<!-- example -->\n\n```yaml\n```\n",
        },
        [
            "README.md:5: this comment marks no code block below it; fill it in or take it away",
            "docs/a.md:2: this comment marks no code block below it; fill it in or take it away",
            "roles/time/README.md:1: this comment marks no code block below it; fill it in or take it away",
        ],
    ),
    Planted(
        documents.role_pages_name_their_variables,
        {
            "roles/time/defaults/main.yml": "time_zone: UTC\ntime_servers: []\n",
            "roles/time/README.md": "Set `time_servers` (not time_zones).\n",
            "roles/ssh/defaults/main.yml": "ssh_port: 22\n",
            "roles/ssh/README.md": "Variables: [meta/argument_specs.yml](meta/argument_specs.yml)\n",
        },
        ["roles/time/README.md:1: names no time_zone; name all, or point to meta/argument_specs.yml"],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)

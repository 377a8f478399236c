"""What failed and then passed: kept with both logs in .state/flaky, and told in tests/flaky.md by `make flaky`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

from running.stages import Outcome, excerpt  # noqa: E402  found through the line above

KEPT = ".state/flaky"
SAID_LINES, LONGEST_LINE = 12, 300
TELLING = ("E ", "FAILED", "ERROR", "fatal:", "failed:")
"""How pytest and Ansible begin what failed, and why."""
HEAD = """# Flaky

A stage of these failed, and passed when it was run once more on fresh nodes. Mend the first one before anything else:
find the cause, and take its section out. `make flaky` adds what runs on this machine have left.
"""


def keep(root: Path, outcome: Outcome) -> str:
    """Keep what is known of a flaky stage below `root`; return both logs' paths, as one line."""
    assert outcome.first is not None
    when = datetime.now(timezone.utc)
    folder = root / KEPT / f"{when:%Y%m%d-%H%M%S}-{outcome.log.stem}"
    folder.mkdir(parents=True)
    logs = [folder / "first.log", folder / "second.log"]
    for one, path in zip((outcome.first, outcome), logs, strict=True):
        shutil.copyfile(one.log, path)
    asked = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    said = excerpt(outcome.first.log.read_text(errors="replace"))
    said = [line[:LONGEST_LINE] for line in ([line for line in said if line.startswith(TELLING)] or said)[-SAID_LINES:]]
    told = {
        "stage": outcome.stage.name,
        "when": f"{when:%Y-%m-%d %H:%M} UTC",
        "commit": commit,
        "said": said,
    }
    (folder / "told.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    return ", ".join(str(path.relative_to(root)) for path in logs)


def known(root: Path) -> list[dict[str, Any]]:
    """What runs below `root` have left and nobody was told yet, the oldest first."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((root / KEPT).glob("*/told.json"))]


def section(one: dict[str, Any]) -> str:
    """What the page says of one flaky stage."""
    said = "\n".join(f"    {line}".rstrip() for line in one["said"])
    return f"## {one['stage']}\n\n{one['when']}, commit {one['commit']}:\n\n{said}\n"


def page(before: str, told: Sequence[dict[str, Any]]) -> str:
    """The page with the sections that it had and those of stages that were not told before, in this order."""
    old = [f"## {part.strip()}\n" for part in before.split("\n## ")[1:]]
    return "\n".join([HEAD, *(old + [section(one) for one in told] or ["None is known.\n"])])


def main() -> int:
    """Add to tests/flaky.md what was not told yet."""
    path, folder = PROJECT / "tests/flaky.md", PROJECT / KEPT
    told = known(PROJECT)
    path.write_text(page(path.read_text(encoding="utf-8") if path.exists() else "", told), encoding="utf-8")
    for one in folder.glob("*/told.json"):
        one.rename(one.with_name("in-flaky-md.json"))  # what is taken out of the page stays out
    print(f"tests/flaky.md: {len(told)} more; read it before you commit it: it has lines of logs")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Draws what an audit found as a picture: the report that hal-audit prints on a terminal, as SVG.
README's is drawn from docs/pictures/audit.json, which the mini rollout leaves as .state/reports/audit.json:
python -m tests.picture docs/pictures/audit.json >docs/pictures/audit.svg
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hal_cluster.audit import report

WIDTH = 96
# Rich's own frame without its web font: a picture asks nobody for anything.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img"
 aria-label="An audit that found drift">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def draw(document: Mapping[str, Any]) -> str:
    """Return the SVG of an audit's report (`hal_cluster/audit/findings.schema.json`)."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text.from_ansi("$ hal-audit run\n\n" + report.text(document, width=WIDTH, colour=True)), end="")
    drawn = console.export_svg(title="hal-audit", code_format=FRAME, unique_id="audit", font_aspect_ratio=0.61)
    return re.sub(r"[ \t]+\n", "\n", drawn)


def main(words: Sequence[str]) -> int:
    """Print the picture of a document (`hal-audit run --json`)."""
    if len(words) != 1:
        print("python -m tests.picture FILE", file=sys.stderr)
        return 2
    sys.stdout.write(draw(json.loads(Path(words[0]).read_text(encoding="utf-8"))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

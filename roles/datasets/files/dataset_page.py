# -*- coding: utf-8 -*-
"""What users read: one page for a browser, the same in plain text, and a table for a terminal. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function, unicode_literals

import os
import time

from dataset_common import replace
from dataset_stage import state_of
from hal_node.text import in_words, text

# Everything is in the page: it is opened from the file system, on a phone or without a network as well.
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{
  color-scheme: light dark;
  --line: #c9ced6; --soft: #f3f5f8; --quiet: #4d5664; --link: #0b57a4; --good: #12693a; --wait: #8a4b00;
}}
@media (prefers-color-scheme: dark) {{
  :root {{ --line: #444c58; --soft: #1e242c; --quiet: #b3bcc9; --link: #8cc2ff; --good: #7bd8a2; --wait: #ffc27a; }}
}}
body {{ font: 1rem/1.55 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }}
h1 {{ font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }}
h2 {{ font-size: 1.25rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }}
h2 + p {{ margin: 0; }}
h3 {{ font-size: 1rem; margin: 0; overflow-wrap: anywhere; }}
a {{ color: var(--link); }}
a:focus-visible, pre:focus-visible {{ outline: 3px solid var(--link); outline-offset: 2px; }}
.skip {{ position: absolute; left: -100vw; }}
.skip:focus {{ position: static; }}
nav ul {{ display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; padding: 0; }}
nav a {{ display: block; padding: .45rem .8rem; border: 1px solid var(--line); border-radius: .4rem; }}
nav a {{ text-decoration: none; }}
section {{ border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 1rem 0; }}
article {{ border-top: 1px solid var(--line); padding-top: .75rem; margin-top: .75rem; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0 0; }}
dt {{ color: var(--quiet); }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
pre {{ background: var(--soft); border-radius: .4rem; padding: .75rem; overflow-x: auto; }}
code {{ font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere; }}
.state {{ font-size: .85rem; font-weight: 600; margin-left: .4rem; }}
.good {{ color: var(--good); }}
.wait {{ color: var(--wait); }}
.quiet {{ color: var(--quiet); }}
</style>
</head>
<body>
<a class="skip" href="#sets">To the data sets</a>
<header>
<h1>{title}</h1>
<p>Data sets that everybody uses are in <code>{root}</code>, once for all, and nobody can write them. Use them where
they are: a copy in your home takes room and is not faster.</p>
</header>
<nav aria-label="Data sets"><ul>
{contents}
</ul></nav>
<main id="sets">
{sets}
<section aria-labelledby="use">
<h2 id="use">In a job</h2>
<p><code>default</code> leads to the version that is recommended now, and may lead to another one next year. Name the
version where results have to be repeated.</p>
<pre tabindex="0" aria-label="Example"><code>{example}</code></pre>
<p class="quiet">Something is wrong, or missing? Ask the owner of the data set, named above, or the administrators.</p>
</section>
</main>
</body>
</html>
"""

EXAMPLE = """#!/bin/bash
#SBATCH --job-name=train
DATA={path}
python train.py --data "$DATA"

# in a container: its own homes hide the folder
singularity exec --nv --bind {root}:{root}:ro image.sif python train.py --data "$DATA\""""

STATES = {
    "published": ("ready", "good"),
    "retired": ("retired", "wait"),
    "half staged": ("on its way", "wait"),
    "staged": ("on its way", "wait"),
    "not staged": ("not here yet", "wait"),
}


def write(table):
    """Write both pages below the root where they differ; return the paths of those that did."""
    written = []
    for name, content in (("index.html", html(table)), ("README.txt", plain(table))):
        path = os.path.join(table.root, name)
        if replace(path, content):
            written.append(path)
    return written


def _known(table):
    """Return (what is declared, with text; what is true) of each version."""
    return [({key: value if isinstance(value, (bool, float, int)) else text(value) for key, value in dataset.items()},
             state_of(table, dataset)) for dataset in table.sets]


def _size(dataset, state):
    return in_words(state["bytes"]) if state["bytes"] else "about %g GB" % float(dataset["size_gb"])


def _files(state):
    if not state["files"]:
        return ""
    return ", {:,} file{}".format(state["files"], "" if state["files"] == 1 else "s")


def _word(dataset, state):
    return "retired" if dataset["retired"] else STATES[state["state"]][0]


def _checked(state):
    if not state["verified_days"] and state["verified_days"] != 0:
        return ""
    then = time.time() - state["verified_days"] * 86400
    return time.strftime("%Y-%m-%d", time.localtime(then))


def _escape(value):
    for character, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        value = value.replace(character, name)
    return value


def _example(table, known):
    ready = [(dataset, state) for dataset, state in known if state["state"] == "published" and not dataset["retired"]]
    dataset = (ready or known or [({"name": "NAME"}, None)])[0][0]
    return EXAMPLE.format(root=text(table.root), path=os.path.join(text(table.root), dataset["name"], "default"))


def html(table):
    """Return the page for browsers."""
    known = _known(table)
    names = []
    for dataset, _ in known:
        if dataset["name"] not in names:
            names.append(dataset["name"])
    contents = ['<li><a href="#{0}">{0}</a></li>'.format(_escape(name)) for name in names]
    sets = [_section(name, [pair for pair in known if pair[0]["name"] == name]) for name in names]
    return PAGE.format(
        title=_escape(text(table.page["title"])),
        root=_escape(text(table.root)),
        contents="\n".join(contents + ['<li><a href="#use">In a job</a></li>']),
        sets="\n".join(sets) or "<p>None is declared yet.</p>",
        example=_escape(_example(table, known)),
    )


def _section(name, versions):
    first = versions[0][0]
    return '<section aria-labelledby="{0}">\n<h2 id="{0}">{0}</h2>\n<p>{1}</p>\n{2}\n</section>'.format(
        _escape(name), _escape(first["title"]), "\n".join(_article(dataset, state) for dataset, state in versions))


def _article(dataset, state):
    kind = "wait" if dataset["retired"] else STATES[state["state"]][1]
    mark = ' <span class="quiet">default</span>' if state["is_default"] else ""
    rows = [
        ("Path", "<code>%s</code>" % _escape(text(state["path"])) if state["state"] == "published" else ""),
        ("Retired", _escape(dataset["retired"])),
        ("Size", _size(dataset, state) + _files(state)),
        ("Owner", _escape(dataset["owner"])),
        ("For", _escape("members of group %s" % dataset["owner"]) if dataset["access"] == "group" else ""),
        ("Licence", _escape(dataset["licence"])),
        ("Note", _escape(dataset["note"])),
        ("Checked", _checked(state)),
    ]
    listed = "\n".join("<dt>%s</dt><dd>%s</dd>" % row for row in rows if row[1])
    heading = '<h3>Version {0}{1} <span class="state {2}">{3}</span></h3>'.format(
        _escape(dataset["version"]), mark, kind, _word(dataset, state))
    return "<article>\n%s\n<dl>\n%s\n</dl>\n</article>" % (heading, listed)


def plain(table):
    """Return the page as text."""
    known = _known(table)
    lines = [text(table.page["title"]), "=" * len(text(table.page["title"])), ""]
    lines += ["Read-only, for all. Use them where they are: a copy in your home takes room and is not faster.", ""]
    lines += listing(table).splitlines() + [""]
    for dataset, state in known:
        lines.append("%s %s: %s" % (dataset["name"], dataset["version"], dataset["title"]))
        path = text(state["path"]) if state["state"] == "published" else ""
        rows = (("Path", path), ("Retired", dataset["retired"]), ("Licence", dataset["licence"]),
                ("Note", dataset["note"]))
        for name, value in rows:
            if value:
                lines.append("  %-8s %s" % (name, value))
        lines.append("")
    lines += ["In a job (name the version instead of \"default\" where results have to be repeated):", ""]
    lines += ["    " + line if line else "" for line in _example(table, known).splitlines()]
    return "\n".join(lines) + "\n"


def listing(table):
    """Return what there is as a table for a terminal."""
    rows = [("NAME", "VERSION", "STATE", "SIZE", "OWNER", "PATH")]
    for dataset, state in _known(table):
        mark = "*" if state["is_default"] else ""
        path = text(state["path"]) if state["state"] == "published" else "-"
        rows.append((dataset["name"], dataset["version"] + mark, _word(dataset, state), _size(dataset, state),
                     dataset["owner"], path))
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join(lines + ["(* default)"]) + "\n"

"""``hal-audit run``: the playbook, a line of progress, the report."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from hal_cluster.audit import roles
from hal_cluster.audit.cli import playbook
from hal_cluster.audit.errors import AuditError
from hal_inventory.output import is_terminal
from hal_inventory.printable import json_text
from hal_inventory.suggest import did_you_mean


def run(options: argparse.Namespace) -> int:
    """Audit and print; return the exit status."""
    check_roles(options.roles)
    if options.deep and options.roles:
        raise AuditError("--deep looks at what no role manages; leave out --role")
    command = [
        playbook.program("ansible-playbook"),
        *playbook.arguments(options.sources, options.limit, options.rest),
        *(["-e", json.dumps({"audit_roles": options.roles})] if options.roles else []),
        *(["-e", json.dumps({"audit_deep": True})] if options.deep else []),
        *(["--forks", str(options.forks)] if options.forks > 0 else []),
        str(playbook.PROJECT / "playbooks" / "audit.yml"),
    ]
    return _told(audit(command, sys.stderr), as_json=options.as_json)


def takeover(options: argparse.Namespace) -> int:
    """Look at nodes before a takeover and print; return the exit status."""
    check_roles(options.roles)
    command = [
        playbook.program("ansible-playbook"),
        *playbook.arguments(options.sources, options.limit, options.rest),
        *(["-e", json.dumps({"takeover_roles": options.roles})] if options.roles else []),
        *(["--diff"] if options.diff else []),
        str(playbook.PROJECT / "playbooks" / "takeover.yml"),
    ]
    return _told(audit(command, sys.stderr), as_json=options.as_json)


def _told(document: dict[str, Any], *, as_json: bool) -> int:
    """Print a result and return its exit status."""
    if as_json:
        sys.stdout.write(json_text(document) + "\n")
    else:
        from hal_cluster.audit import report, takeover_report

        seen = is_terminal(sys.stdout)
        width = shutil.get_terminal_size((report.WIDTH, 24)).columns if seen else report.WIDTH
        words = takeover_report.text if "takeover" in document else report.text
        sys.stdout.write(words(document, width=width, colour=seen))
    return int(document["status"])


def check_roles(names: Sequence[str]) -> None:
    """Refuse a role that promises nothing: an audit of it would look at nothing."""
    for name in names:
        if name not in roles.names():
            raise AuditError(f'no role "{name}"{did_you_mean(name, roles.names(), kind="roles")}')


def audit(command: Sequence[str], err: TextIO) -> dict[str, Any]:
    """Run the playbook and return the document that its callback wrote."""
    with tempfile.TemporaryDirectory(prefix="hal-audit-") as folder:
        path = Path(folder) / "document.json"
        reader, writer = os.pipe()
        extra = {
            "HAL_AUDIT_DOCUMENT": str(path),
            "HAL_AUDIT_PROGRESS": str(writer),
            "ANSIBLE_CALLBACK_PLUGINS": str(playbook.PROJECT / "plugins" / "callback"),
            "ANSIBLE_CALLBACKS_ENABLED": "hal_printable,hal_audit_report",
        }
        child = subprocess.Popen(
            command,
            env=playbook.environment(extra),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            pass_fds=[writer],
        )
        os.close(writer)
        watcher = threading.Thread(target=_watch, args=(reader, err), daemon=True)
        watcher.start()
        try:
            out, said = child.communicate()
        except KeyboardInterrupt:
            child.terminate()
            child.communicate()
            raise
        watcher.join(timeout=1)
        if not path.is_file():
            raise AuditError(playbook.reason(child.returncode, out, said))
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document


def _watch(reader: int, err: TextIO) -> None:
    """Say how far the audit is, on a terminal only, and leave no trace."""
    shown, expected, done = is_terminal(err), 0, 0
    with os.fdopen(reader, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            try:
                words = json.loads(line)
            except ValueError:
                continue
            expected = words.get("expected", expected)
            done += "done" in words
            if shown:
                err.write(f"\r{done} of {expected} nodes")
                err.flush()
    if shown:
        err.write("\r\033[K")
        err.flush()

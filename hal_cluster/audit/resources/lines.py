"""Modules that manage lines of a file which others may write as well."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hal_cluster.audit.resources.model import ABSENT, PRESENT, Call, Resource, content_id

MARKER = "# {mark} ANSIBLE MANAGED BLOCK"


def line(call: Call) -> list[Resource]:
    """lineinfile: a line that is there, or a pattern that no line matches."""
    pattern, wanted = call.text("regexp"), call.text("line")
    if call.absent():
        declared = {**ABSENT, "regexp": pattern} if pattern else {**ABSENT, "lines": [wanted]}
        if call.get("search_string") is not None:
            declared = {**ABSENT, "regexp": re.escape(call.text("search_string"))}
    elif call.flag("backrefs"):  # the line is a template for what was matched
        declared = dict(PRESENT)
    else:
        declared = {**PRESENT, "lines": wanted.split("\n")}
    return [_lines(call, pattern or call.text("search_string") or wanted, declared)]


def block(call: Call) -> list[Resource]:
    """blockinfile: the block between its markers, markers included."""
    marker = call.text("marker", default=MARKER)
    begin = marker.replace("{mark}", call.text("marker_begin", default="BEGIN"))
    end = marker.replace("{mark}", call.text("marker_end", default="END"))
    content = call.text("block", "content").strip("\r\n")
    if call.absent() or not content:
        return [_lines(call, begin, {**ABSENT, "regexp": f"^{re.escape(begin)}$"}, open_name=True)]
    return [_lines(call, begin, {**PRESENT, "block": "\n".join([begin, content, end])}, open_name=True)]


def replacement(call: Call) -> list[Resource]:
    """replace: no line matches, if the new text does not match again."""
    pattern, new = call.text("regexp"), call.text("replace")
    try:
        again = re.search(pattern, new, re.MULTILINE) is not None
    except re.error:
        again = True
    return [_lines(call, pattern, dict(PRESENT) if again else {**ABSENT, "regexp": pattern})]


def authorized_key(call: Call) -> list[Resource]:
    """authorized_key: lines of the file that the module names in its result."""
    path = call.result.get("keyfile") or call.text("path")
    keys = [key.strip() for key in call.text("key").splitlines() if key.strip() and not key.startswith("#")]
    if not path or not keys or keys[0].startswith(("http://", "https://", "file://")):
        return []
    if call.absent():
        # The comment may have changed; the key itself names it.
        return [_at(str(path), key, {**ABSENT, "regexp": re.escape(_key_body(key))}) for key in keys]
    options = call.text("key_options")
    return [_at(str(path), _key_body(key), {**PRESENT, "lines": [f"{options} {key}".strip()]}) for key in keys]


def known_host(call: Call) -> list[Resource]:
    """known_hosts: one line a host; hashed ones cannot be recognised."""
    path, name = call.text("path"), call.text("name", "host")
    if not path:
        return []
    if call.absent():
        return [_at(path, name, {**ABSENT, "regexp": rf"^{re.escape(name)}[ ,]"})]
    hashed = call.flag("hash_host")
    return [_at(path, name, dict(PRESENT) if hashed else {**PRESENT, "lines": [call.text("key").strip()]})]


def limit(call: Call) -> list[Resource]:
    """pam_limits: one line of limits.conf, as the module writes it."""
    path = call.text("dest", default="/etc/security/limits.conf")
    words = [call.text(name) for name in ("domain", "limit_type", "limit_item")]
    comment = call.text("comment")
    wanted = "\t".join([*words, call.text("value")]) + (f"\t#{comment}" if comment else "")
    return [_at(path, " ".join(words), {**PRESENT, "lines": [wanted]})]


def _key_body(key: str) -> str:
    words = [word for word in key.split() if len(word) > 60]
    return words[0] if words else key


def _lines(call: Call, name: str, declared: Mapping[str, Any], *, open_name: bool = False) -> Resource:
    """A resource of a task. If its name would show its secret, the task's name stands for it."""
    named = f"task {call.task}" if call.secret and not open_name else name
    return _at(call.text("path", "dest", "destfile", "name"), named, declared)


def _at(path: str, name: str, declared: Mapping[str, Any]) -> Resource:
    return Resource(f"line:{path}#{content_id(name)}", declared)

"""Modules for packages, services, kernel settings, mounts, accounts and what else a system has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hal_cluster.audit.resources.model import ABSENT, PRESENT, Call, Resource, Units, content_id, number, text, truth

ARCH = re.compile(r"\.(x86_64|ppc64le|ppc64|aarch64|i[3-6]86|noarch)$")
# name-version-release or name-version; java-1.8.0-openjdk is a name: its last part has no digit first. So is
# cuda-toolkit-10-2: versions and releases have a dot.
PINNED = re.compile(r"^(?P<name>.+?)-(?P<evr>(?=[^-]*-?[^-]*\.)(?:\d+:)?\d[^-]*-\d[^-]*)$")
VERSIONED = re.compile(r"^(?P<name>.+?)-(?:\d+:)?\d+(?:\.\d+)+$")
COMPARED = re.compile(r"\s*(?:[<>]=?|=)\s*")
UNIT_TYPES = (".service", ".socket", ".timer", ".mount", ".target", ".path", ".slice", ".swap", ".automount")
RUNS = {"started": "started", "restarted": "started", "reloaded": "started", "stopped": "stopped"}
CRON_TIMES = ("minute", "hour", "day", "month", "weekday")
# Arguments of yum_repository that are not lines of the repository's file.
NOT_IN_REPOSITORY = {
    *("name", "description", "file", "reposdir", "state"),
    *("owner", "group", "mode", "attributes", "unsafe_writes", "selevel", "serole", "setype", "seuser"),
}
# These are never told to anybody; the node compares them with their former values.
REPOSITORY_SECRETS = {"password", "proxy_password", "sslclientkey"}
# What sefcontext calls a kind of file -> how file_contexts writes it.
FILE_KINDS = {"a": "  ", "f": "--", "d": "-d", "c": "-c", "b": "-b", "s": "-s", "l": "-l", "p": "-p"}
PASSWORD_IN_URL = re.compile(r"://[^/\s@]+@")


def packages(call: Call) -> list[Resource]:
    """package, yum, dnf: one resource a package; groups and wildcards name no package."""
    resources = []
    for word in call.items("name", "pkg"):
        name, version = package_name(word)
        if not name or name.startswith("@") or "*" in name:
            continue
        if call.absent("removed"):
            resources.append(Resource(f"package:{name}", ABSENT))
        else:
            resources.append(Resource(f"package:{name}", {**PRESENT, **({"version": [version]} if version else {})}))
    return resources


def package_name(word: str) -> tuple[str, str]:
    """Return (name, "evr.arch" if that is pinned exactly) of a package as a package manager takes it."""
    if word.startswith("@"):
        return word, ""
    name = word.rpartition("/")[2].removesuffix(".rpm") if "/" in word else word
    name = COMPARED.split(name, maxsplit=1)[0]
    arch = ARCH.search(name)
    bare = name[: arch.start()] if arch else name
    pinned = PINNED.match(bare)
    if pinned:
        return pinned["name"], f"{pinned['evr']}{arch.group()}" if arch else ""
    versioned = VERSIONED.match(bare)
    return (versioned["name"] if versioned else bare), ""


def service(call: Call) -> list[Resource]:
    """systemd_service, service: state, enablement and mask, each only if the task says so."""
    unit = unit_name(call.text("name", "service", "unit"))
    if not unit or call.text("scope") in ("user", "global"):
        return []
    declared: dict[str, Any] = {}
    state = RUNS.get(call.text("state"))
    if state:
        declared["state"] = state
    for name in ("enabled", "masked"):
        value = call.flag(name)
        if value is not None:
            declared[name] = value
    return [Resource(f"service:{unit}", declared)] if declared else []


def service_units(call: Call) -> Units:
    """A unit that was restarted or reloaded has read its files."""
    if call.text("state") not in ("restarted", "reloaded"):
        return Units()
    unit = unit_name(call.text("name", "service", "unit"))
    return Units((unit,)) if unit else Units()


def unit_name(name: str) -> str:
    """A unit's name with its suffix."""
    return name if not name or name.endswith(UNIT_TYPES) else f"{name}.service"


def sysctl(call: Call) -> list[Resource]:
    """sysctl: the saved line, and the live value if the task sets it."""
    file = call.text("sysctl_file", default="/etc/sysctl.conf")
    name = call.text("name", "key")
    if call.absent():
        return [Resource(f"sysctl:{name}", {**ABSENT, "file": file})]
    value = " ".join(call.text("value", "val").split())
    declared = {"file": file, "saved": value}
    if call.flag("sysctl_set") or call.flag("reload") is not False:
        declared["value"] = value
    return [Resource(f"sysctl:{name}", declared)]


def mount(call: Call) -> list[Resource]:
    """mount: the line of fstab, and whether it is mounted."""
    path, state = call.text("path", "name"), call.text("state")
    if state == "absent":
        return [Resource(f"mount:{path}", ABSENT)]
    if state in ("unmounted", "remounted") or not call.text("src"):
        return []
    options = call.text("opts", default="defaults")
    if call.flag("boot") is False:
        options += ",noauto"  # as the module writes it
    declared: dict[str, Any] = {"source": call.text("src"), "fstype": call.text("fstype")}
    if state == "ephemeral":
        return [Resource(f"mount:{path}", {**declared, "state": "mounted"})]
    declared["saved"] = f"{options} {declared['source']} {declared['fstype']}"
    return [Resource(f"mount:{path}", {**declared, "state": "mounted"} if state == "mounted" else declared)]


def user(call: Call) -> list[Resource]:
    """user: what the task says of the account, never its password."""
    name = call.text("name", "user")
    if call.absent():
        return [Resource(f"user:{name}", ABSENT)]
    declared: dict[str, Any] = dict(PRESENT)
    uid = number(call.get("uid"))
    if uid is not None:
        declared["uid"] = uid
    for key in ("group", "home", "shell"):
        if call.get(key) is not None:
            declared[key] = call.text(key)
    if call.get("groups") is not None and not call.flag("append"):
        declared["groups"] = sorted(call.items("groups"))
    return [Resource(f"user:{name}", declared)]


def group(call: Call) -> list[Resource]:
    """group."""
    if call.absent():
        return [Resource(f"group:{call.text('name')}", ABSENT)]
    gid = number(call.get("gid"))
    return [Resource(f"group:{call.text('name')}", {**PRESENT, **({"gid": gid} if gid is not None else {})})]


def cron(call: Call) -> list[Resource]:
    """cron: a job of a user's table; one in a file of its own is that file."""
    file = call.text("cron_file")
    if file:
        path = file if file.startswith("/") else f"/etc/cron.d/{file}"
        return [Resource(f"file:{path}", {} if call.absent() else {**PRESENT, "type": "file"})]
    resource = f"cron:{call.text('user', default='root')}#{call.text('name')}"
    if call.absent():
        return [Resource(resource, ABSENT)]
    special = call.text("special_time")
    schedule = f"@{special}" if special else " ".join(call.text(part, default="*") for part in CRON_TIMES)
    return [Resource(resource, {**PRESENT, "job": call.text("job", "value"), "schedule": schedule})]


def kernel_module(call: Call) -> list[Resource]:
    """modprobe: loaded or not, and the file that loads it at boot."""
    name = call.text("name")
    resources = [Resource(f"kernel-module:{name.replace('-', '_')}", {"loaded": not call.absent()})]
    persistent = call.text("persistent")
    if persistent in ("present", "absent"):
        declared = {**PRESENT, "type": "file"} if persistent == "present" else ABSENT
        resources.append(Resource(f"file:/etc/modules-load.d/{name}.conf", declared))
    return resources


def repository(call: Call) -> list[Resource]:
    """yum_repository: a section of a file, each key a line of it."""
    name = call.text("name")
    file = f"{call.text('reposdir', default='/etc/yum.repos.d')}/{call.text('file', default=name)}.repo"
    if call.absent():
        return [Resource(f"repository:{file}#{name}", ABSENT)]
    declared: dict[str, Any] = {**PRESENT, "name": call.text("description")}
    for key, value in call.arguments.items():
        if value is None or key in NOT_IN_REPOSITORY or key in REPOSITORY_SECRETS:
            continue
        words = _in_repository(value)
        if not PASSWORD_IN_URL.search(words):
            declared[key] = words
    return [Resource(f"repository:{file}#{name}", declared)]


def _in_repository(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "\n".join(text(part) for part in value)
    flag = truth(value) if not isinstance(value, int) or isinstance(value, bool) else None
    return text(value) if flag is None else str(int(flag))


def rpm_key(call: Call) -> list[Resource]:
    """rpm_key: by the last 8 digits of its fingerprint; a key without one has no name here."""
    for word in (call.text("fingerprint"), call.text("key")):
        digits = word.replace(" ", "").removeprefix("0x").lower()
        if re.fullmatch(r"[0-9a-f]{8,40}", digits):
            return [Resource(f"rpm-key:{digits[-8:]}", ABSENT if call.absent() else PRESENT)]
    return []


def host_name(call: Call) -> list[Resource]:
    """hostname."""
    return [Resource("hostname:static", {"name": call.text("name")})]


def selinux(call: Call) -> list[Resource]:
    """selinux: the mode that is configured."""
    return [Resource("selinux:mode", {"mode": call.text("state")})]


def selinux_boolean(call: Call) -> list[Resource]:
    """seboolean: the value in effect, as the kernel shows it (now, and as of the next commit)."""
    name, value = call.text("name"), int(call.flag("state") or False)
    return [
        Resource(f"line:/sys/fs/selinux/booleans/{name}#{content_id(name)}", {**PRESENT, "lines": [f"{value} {value}"]})
    ]


def file_context(call: Call) -> list[Resource]:
    """sefcontext: the line that semanage writes, as libsemanage formats it."""
    target, kind = call.text("target", "path"), FILE_KINDS[call.text("ftype", default="a")]
    resource = f"line:/etc/selinux/targeted/active/file_contexts.local#{content_id(target)}"
    if call.absent():
        return [Resource(resource, {**ABSENT, "regexp": f"^{re.escape(target)} {kind} "})]
    label = ":".join([call.text("seuser", default="system_u"), "object_r", call.text("setype"), "s0"])
    return [Resource(resource, {**PRESENT, "lines": [f"{target} {kind} {label}"]})]


def time_zone(call: Call) -> list[Resource]:
    """timezone: where the link leads differs between systems, so the link is declared and its target observed."""
    return [Resource("file:/etc/localtime", {**PRESENT, "type": "link"})] if call.get("name") is not None else []


def databases(call: Call) -> list[Resource]:
    """mysql_db."""
    if call.text("state") in ("dump", "import"):
        return []
    state: Mapping[str, Any] = ABSENT if call.absent() else PRESENT
    return [Resource(f"database:{name}", state) for name in call.items("name", "db")]


def database_user(call: Call) -> list[Resource]:
    """mysql_user: that the account is there; what it may do stays in the database."""
    name = f"{call.text('name', 'user')}@{call.text('host', default='localhost')}"
    return [Resource(f"database-user:{name}", ABSENT if call.absent() else PRESENT)]

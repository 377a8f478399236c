"""Whether Slurm's release knows what a site sets, judged by its own tables before a node is contacted."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from hal_cluster.rules.slurm.settings import CGROUP_SINCE, SINCE
from hal_inventory.slurm_parameters import RELEASES, SECTIONS
from hal_inventory.suggest import did_you_mean

LARGEST = {"uint16": 0xFFFF, "uint32": 0xFFFFFFFF, "uint64": 0xFFFFFFFFFFFFFFFF}
BOOLEANS = frozenset({"yes", "up", "true", "1", "no", "down", "false", "0"})
ENDLESS = frozenset({"unlimited", "infinite"})
# The values of which Slurm's source takes no other (read_config.c: _parse_partitionname, _validate_and_set_defaults;
# proc_args.c: parse_part_enforce_type). It compares the beginning of a partition's State.
WORDS: Mapping[tuple[str, str], tuple[re.Pattern[str], str]] = {
    ("PartitionName", "State"): (re.compile(r"(?i)UP|DOWN|DRAIN|INACTIVE"), "UP, DOWN, DRAIN or INACTIVE"),
    ("PartitionName", "OverSubscribe"): (
        re.compile(r"(?i)(NO|EXCLUSIVE|(YES|FORCE)(:\d+)?)\Z"),
        "NO, EXCLUSIVE, YES, FORCE, YES:number or FORCE:number",
    ),
    ("slurm.conf", "EnforcePartLimits"): (re.compile(r"(?i)(ALL|ANY|YES|NO)\Z"), "ALL, ANY or NO"),
}
# parse_time.c: minutes, minutes:seconds, hours:minutes:seconds; days-hours, days-hours:minutes, and so on.
TIME = re.compile(r"(?i)\d+(:\d+){0,2}\Z|\d+-\d+(:\d+){0,2}\Z|(unlimited|infinite|-1)\Z")
NUMBER = re.compile(r"(?i)(0x[0-9a-f]+|0[0-7]*|[1-9][0-9]*)\Z")
FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z")
# Where a line of slurm.conf gives a node or a partition its place, in words.
KINDS = {
    "PartitionName": "parameters of a partition",
    "NodeName": "parameters of a node",
    "slurm.conf": "parameters of slurm.conf",
    "cgroup.conf": "parameters of cgroup.conf",
}
# What slurm.conf.j2 makes of the model's rows.
PARTITION_KEYS = {
    "priority": "PriorityTier",
    "max_cpus_per_node": "MaxCPUsPerNode",
    "max_time": "MaxTime",
    "default_time": "DefaultTime",
}
# What a line of a partition has from the model, by slurm.conf's name without case: where it is in cluster.yml.
OF_THE_MODEL = {
    **{parameter.lower(): key for key, parameter in PARTITION_KEYS.items()},
    **{"nodes": "nodes", "default": "default", "hidden": "hidden"},
}
NODE_KEYS = {"cpus": "CPUs", "sockets": "Sockets", "memory_mb": "RealMemory"}


# Names for which older releases get another one, or nothing.
TRANSLATED: Mapping[str, Collection[str]] = {"slurm.conf": SINCE, "cgroup.conf": CGROUP_SINCE}


def release_of(version: str) -> str | None:
    """Return the release of ``20.02.7`` as RELEASES has it, or None where the tables say nothing of it."""
    release = ".".join(str(version).split(".")[:2])
    return release if release in RELEASES else None


def variable_problems(
    variables: Mapping[str, Mapping[str, Any]], version: str, section: str = "slurm.conf"
) -> list[str]:
    """Return a line for each setting of {variable: {parameter: value}} that the release does not take.

    Names and values are judged by the tables with which Slurm's releases read `section`, slurm.conf or cgroup.conf;
    names compare without case. `version`: as 20.02.7; of a release without a table nothing is said. A value of None
    withdraws, and only its name is judged.
    """
    return [
        problem
        for variable, settings in variables.items()
        for problem in settings_problems(variable, settings, version, section=section, translated=TRANSLATED[section])
    ]


def settings_problems(
    variable: str,
    settings: Mapping[str, Any],
    version: str,
    *,
    section: str = "slurm.conf",
    translated: Iterable[str] = (),
) -> list[str]:
    """Return a line for each setting that this release does not know, or does not take with its value.

    ``variable`` is what a site wrote, as ``slurm_settings_site``. A null withdraws, so its name may be any release's.
    ``translated`` are names for which older releases get another one, or nothing. Of a release without a table
    nothing is said.
    """
    release = release_of(version)
    if release is None:
        return []
    return list(_problems(variable, settings, release, section, {name.lower() for name in translated}))


def partition_problems(
    declared: Mapping[str, Any],
    partitions: Iterable[Mapping[str, Any]],
    version: str,
    variable: str = "slurm_partition_settings",
) -> list[str]:
    """Return a line for each fault of ``{partition: {parameter: value}}``; ``partitions`` are the model's.

    They are judged by the table with which Slurm's releases read a line of PartitionName. ``version``: as
    `variable_problems` has it. What the model gives a partition is a fault here: its line would have it twice.
    """
    names = [partition["name"] for partition in partitions]
    problems: list[str] = []
    for partition, settings in declared.items():
        where = f"{variable}.{partition}"
        if str(partition) not in names:
            hint = did_you_mean(str(partition), names, kind="partitions")
            problems.append(f"{where}: the model has no such partition{hint}")
        elif not isinstance(settings, Mapping):
            problems.append(f"{where}: has to be a mapping of slurm.conf's parameters, such as {{MaxNodes: 2}}")
        else:
            for written in settings:
                if key := OF_THE_MODEL.get(str(written).lower()):
                    problems.append(f"{where}.{written}: say it in cluster.yml, as partitions.{partition}.{key}")
            more = {name: value for name, value in settings.items() if str(name).lower() not in OF_THE_MODEL}
            problems += settings_problems(where, more, version, section="PartitionName")
    return problems


def model_problems(
    nodes: Iterable[Mapping[str, Any]], partitions: Iterable[Mapping[str, Any]], version: str
) -> list[str]:
    """Return a line for each number or time of the site model that slurm.conf cannot hold.

    `nodes`, `partitions`: lookup('hal', 'slurm.nodes') and lookup('hal', 'slurm.partitions'). They are judged by the
    types of the parameters that they become. `version`: as `variable_problems` has it.
    """
    problems: list[str] = []
    for kind, rows, names, keys in (
        ("partition", partitions, "name", PARTITION_KEYS),
        ("nodes", nodes, "names", NODE_KEYS),
    ):
        section = "PartitionName" if kind == "partition" else "NodeName"
        for row in rows:
            values = {parameter: row.get(key) for key, parameter in keys.items()}
            problems += settings_problems(f"cluster.yml: {kind} {row.get(names)}", values, version, section=section)
    return problems


def _problems(
    variable: str, settings: Mapping[str, Any], release: str, section: str, translated: set[str]
) -> Iterator[str]:
    known = {name.lower(): name for name in SECTIONS[section]}
    for written, value in settings.items():
        where = f"{variable}.{written}"
        name = known.get(str(written).lower())
        if name is None:
            here = [field for field in SECTIONS[section] if _takes(section, field, release)]
            hint = did_you_mean(str(written), here, kind=KINDS.get(section, "parameters"))
            yield f"{where}: Slurm {release} has no such parameter{_elsewhere(str(written), section) or hint}"
        elif value is None:
            continue
        elif not _takes(section, name, release):
            if str(written).lower() not in translated:
                yield f"{where}: Slurm {release} has no {name}; {_span(section, name)}"
        else:
            problem = _value_problem(section, name, value)
            if problem:
                yield f"{where} is {_shown(value)}: {problem}"


def _spec(section: str, name: str) -> tuple[str, str, str]:
    """Return (type, first release, last release) of a parameter."""
    kind, *words = SECTIONS[section][name].split()
    span = dict(zip(words[::2], words[1::2], strict=True))
    return kind, span.get("from", RELEASES[0]), span.get("to", RELEASES[-1])


def _takes(section: str, name: str, release: str) -> bool:
    kind, first, last = _spec(section, name)
    return kind != "defunct" and RELEASES.index(first) <= RELEASES.index(release) <= RELEASES.index(last)


def _span(section: str, name: str) -> str:
    kind, first, last = _spec(section, name)
    if kind == "defunct":
        return "every release ignores it"
    if first != RELEASES[0]:
        return f"it came with {first}" if last == RELEASES[-1] else f"releases {first} to {last} have it"
    return f"{last} was the last release that had it"


def _elsewhere(written: str, section: str) -> str:
    """Return where a parameter belongs that another section has under exactly this name."""
    for other, what in KINDS.items():
        if other != section and written.lower() in {name.lower() for name in SECTIONS[other]}:
            return f" here; it is one of the {what}"
    return ""


def _value_problem(section: str, name: str, value: Any) -> str:
    """Return what is wrong with a value as slurm.conf would hold it, or an empty text."""
    kind, _, _ = _spec(section, name)
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, (list, Mapping)) for part in parts):
        return f"{name} takes a text, a number or a list of these"
    text = _text(value)
    problem = _text_problem(name, text)
    if problem or not parts:
        return problem if parts else ""
    bare = text[1:-1] if _quoted(text) else text
    words = WORDS.get((section, name))
    if words and not words[0].match(bare):
        return f"{name} is {words[1]}"
    if kind == "boolean" and bare.lower() not in BOOLEANS:
        return f"{name} is YES or NO"
    if kind == "time" and not TIME.match(bare):
        return f"{name} is a time, such as 30 (minutes), 4:00:00, 1-00:00:00 or UNLIMITED"
    if kind == "float" and bare.lower() not in ENDLESS and not FLOAT.match(bare):
        return f"{name} is a number"
    return _number_problem(name, bare, kind) if kind in LARGEST else ""


def _number_problem(name: str, text: str, kind: str) -> str:
    largest = LARGEST[kind]
    digits, factor = (text[:-1], 1024) if kind != "uint16" and text[-1:] in "kK" and text[:-1] else (text, 1)
    wanted = f"{name} is a whole number from 0 to {largest}, or UNLIMITED"
    if text.lower() in ENDLESS:
        return ""
    if not NUMBER.match(digits):
        return wanted
    base = 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" else 10
    return wanted if int(digits, base) * factor > largest else ""


def _text_problem(name: str, text: str) -> str:
    """Return why a text would not be one value of one line of slurm.conf."""
    if not text.strip():
        return f"{name} would have no value; null withdraws it"
    if re.search(r"[\r\n\0]", text):
        return f"{name} would be more than one line"
    if _quoted(text):
        return ""
    if '"' in text and text[0] == '"':
        return f'{name} has a double quote that does not end it, or more than two; write "..."'
    if re.search(r"\s", text):
        return f"{name} has a blank, where Slurm would look for the next parameter; put double quotes around it"
    if re.search(r"(?<!\\)#", text) or text.endswith("\\"):
        return f"{name} has a # that begins a comment, or ends with a backslash that joins the next line"
    return ""


def _quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1]


def _text(value: Any) -> str:
    """Return a value as the templates write it."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return str(value)


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else _text(value)

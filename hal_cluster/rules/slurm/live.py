"""What slurmctld and slurmdbd have to show when nobody changed them while they run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hal_cluster.rules.errors import RuleError
from hal_node.slurm.accounting import AccountingError, seconds
from hal_node.slurm.conf import SlurmConfError, expand

# What `scontrol show partition` prints of a limit that slurm.conf does not name: slurm.conf(5), section PARTITION
# CONFIGURATION, and slurm_sprint_partition_info() in src/api/partition_info.c, from 19.05 to 22.05. Not here: State,
# which an administrator sets; Nodes, which may be spelled in several ways (their number is here, and each node says in
# which partitions it is); MinNodes, of which releases differ.
UNSET = {
    "AllowGroups": "ALL",
    "AllowAccounts": "ALL",
    "AllowQos": "ALL",
    "AllocNodes": "ALL",
    "Default": "NO",
    "QoS": "N/A",
    "DefaultTime": "NONE",
    "DisableRootJobs": "NO",
    "ExclusiveUser": "NO",
    "GraceTime": "0",
    "Hidden": "NO",
    "MaxNodes": "UNLIMITED",
    "MaxTime": "UNLIMITED",
    "LLN": "NO",
    "MaxCPUsPerNode": "UNLIMITED",
    "PriorityJobFactor": "1",
    "PriorityTier": "1",
    "RootOnly": "NO",
    "ReqResv": "NO",
    "OverSubscribe": "NO",
    "OverTimeLimit": "NONE",
    "DefMemPerNode": "UNLIMITED",
    "MaxMemPerNode": "UNLIMITED",
}
# What it prints as it was written, and which has no value of its own when it was not.
AS_WRITTEN = ("DenyAccounts", "DenyQos", "MinNodes", "PreemptMode", "DefMemPerCPU", "MaxMemPerCPU",
              "TRESBillingWeights")  # fmt: skip
TIMES = ("MaxTime", "DefaultTime")
KNOWN = {name.lower(): name for name in (*UNSET, *AS_WRITTEN)}
# What it prints in place of another one.
OTHER = {
    "DenyAccounts": "AllowAccounts",
    "DenyQos": "AllowQos",
    "DefMemPerCPU": "DefMemPerNode",
    "MaxMemPerCPU": "MaxMemPerNode",
}
# What a GPU brings to a job that says nothing.
JOB_DEFAULTS = ("DefCpuPerGPU", "DefMemPerGPU")
SHARED = {"YES": "YES:4", "FORCE": "FORCE:4"}
LEVELS = ("operator", "administrator")


def partition_limits(
    partitions: Sequence[Mapping[str, Any]],
    more: Mapping[str, Mapping[str, Any]],
    settings: Sequence[Mapping[str, str]] = (),
) -> list[dict[str, str]]:
    """Return [{id, partition, key, value}]: each limit of each partition, as scontrol prints it.

    `more` are further settings by partition (slurm_partition_settings), `settings` those of the whole cluster.
    `partitions`: the model's slice slurm.partitions. A limit that slurm.conf does not name is there, too, as UNSET has
    it. RuleError for a time or a list of nodes that Slurm does not read.
    """
    wide = {setting["key"].lower() for setting in settings}
    lines = []
    for partition in partitions:
        limits = {name: value for name, value in UNSET.items() if name.lower() not in wide}
        declared = {
            "Default": partition["default"],
            "MaxTime": partition["max_time"],
            "DefaultTime": partition["default_time"],
            "MaxCPUsPerNode": partition["max_cpus_per_node"] or None,
            "PriorityTier": partition["priority"],
            "Hidden": partition["hidden"],
            **(more.get(str(partition["name"])) or {}),
        }
        for name, value in declared.items():
            key = KNOWN.get(name.lower())
            if key and value is not None:
                limits.pop(OTHER.get(key, ""), None)
                limits[key] = shown(key, value, str(partition["name"]))
        # src/common/read_config.c and slurm_sprint_partition_info(): in this order, from 19.05 to 22.05.
        given = {name.lower(): value for name, value in declared.items() if value is not None}
        shares = [f"{name}={given[name.lower()]}" for name in JOB_DEFAULTS if name.lower() in given]
        limits["JobDefaults"] = ",".join(shares) or "(null)"
        limits["TotalNodes"] = str(len(_expanded(partition["nodes"])))
        lines += [
            {"id": f"{partition['name']} {key}", "partition": str(partition["name"]), "key": key, "value": limits[key]}
            for key in sorted(limits, key=str.lower)
        ]
    return lines


def shown(key: str, value: Any, partition: str) -> str:
    """Return a value of slurm.conf as scontrol prints it. Raises RuleError for what is not a time."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    if text.upper() in ("YES", "NO", "UNLIMITED", "INFINITE", "NONE", "EXCLUSIVE", "ALL", "FORCE"):
        text = "UNLIMITED" if text.upper() == "INFINITE" else text.upper()
    if key in TIMES and text not in ("UNLIMITED", "NONE"):
        try:
            return _time(seconds(text))
        except AccountingError as error:
            raise RuleError(f"partition {partition}: {key}: {error}") from None
    if key == "OverSubscribe":
        return SHARED.get(text, text.upper())
    return text.upper() if key == "PreemptMode" else text


def _time(number: int) -> str:
    """Return seconds as Slurm's secs2time_str() has them."""
    days, rest = divmod(number, 86400)
    return (f"{days}-" if days else "") + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def node_live(
    nodes: Iterable[Mapping[str, Any]], partitions: Iterable[Mapping[str, Any]], name: str
) -> list[dict[str, str]]:
    """Return [{id, value}] of what scontrol shows of a node, beside its GPUs, for which there is a promise already.

    That is features, weight, partitions, and no Gres for a node without GPUs. `nodes`, `partitions`: the model's slices
    slurm.nodes and slurm.partitions. RuleError for a list of nodes that Slurm does not read.
    """
    line = _line(nodes, name)
    mine = [str(partition["name"]) for partition in partitions if name in _expanded(partition["nodes"])]
    features = ",".join(line.get("features") or []) or "(null)"
    limits = {
        **{"AvailableFeatures": features, "ActiveFeatures": features, "Weight": "1"},
        **({} if line.get("gres") else {"Gres": "(null)"}),
        **({"Partitions": ",".join(mine)} if mine else {}),
    }
    return [{"id": key, "value": value} for key, value in limits.items()]


def node_gres(nodes: Iterable[Mapping[str, Any]], name: str) -> str:
    """Return the GPUs of a node as slurm.conf has them, "" for a node without.

    `nodes`: the model's slice slurm.nodes. RuleError for a list of nodes that Slurm does not read.
    """
    return str(_line(nodes, name).get("gres", ""))


def _line(nodes: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((group for group in nodes if name in _expanded(group["names"])), {})


def administrators(users: Iterable[Mapping[str, Any]]) -> str:
    """Return a regular expression of the lines "user|level" of declared operators and administrators, and of root.

    `sacctmgr show user format=User,Admin` prints these lines. `users`: as module hal_slurm_account takes them.
    """
    lines = {"root|Administrator"}
    for user in users:
        level = str(user.get("admin_level") or "").capitalize()
        if level.lower() in LEVELS and user.get("state", "present") == "present":
            lines.add(f"{user['name']}|{level}")
    return "|".join(re.escape(line) for line in sorted(lines))


def coordinators(accounts: Iterable[Mapping[str, Any]]) -> str:
    """Return a regular expression of the lines "account|names" that may be there, "" for none.

    Of an account whose coordinators are declared the audit compares them one by one. Slurm shows them for the accounts
    below it as well, whoever declared those.
    `accounts`: as module hal_slurm_account takes them. One whose coordinators are declared may have anybody here; all
    others may have those who are declared somewhere.
    """
    declared = [
        account for account in accounts if "coordinators" in account and account.get("state", "present") == "present"
    ]
    lines = [rf"{re.escape(str(account['name']))}\|.*" for account in declared]
    names = sorted({str(name) for account in declared for name in account["coordinators"] or []})
    if names:
        anybody = f"(?:{'|'.join(map(re.escape, names))})"
        lines.append(rf"[^|]+\|{anybody}(?:,{anybody})*")
    return "|".join(lines)


def _expanded(names: Any) -> list[str]:
    try:
        return list(expand(str(names)))
    except SlurmConfError as error:
        raise RuleError(str(error)) from None

"""The audit of the small virtual HAL that test_site.py rolled out: clean, with faults of every kind, repaired."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Set
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from demo.mini import INSTANCE, PROJECT, Audit, Mini
from testing.small_packages import Workshop

FAULTS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("faults.yml").read_text())
NODES = {"hal-login", "hal-mgmt1", "hal-mgmt2", "hal-data", "hal01", "hal02"}
BUSY, AUDITS = {"hal-login", "hal01", "hal02"}, 10
# A module, or a handler, that says "changed" in check mode; with the task above it.
CHANGED = re.compile(r"^(?:TASK|RUNNING HANDLER) \[(?P<task>[^]]*)\]|^changed: \[(?P<host>[^]]*)\]", re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def rolled_out(mini: Mini) -> None:
    """The tests of site.yml start one node again and leave a setting of role base there, and may have been left out."""
    play = mini.site("--limit", "hal02", "--tags", "base") if mini.rolled_out else mini.site()
    assert play.status == 0, play.explain()
    mini.cluster.run("hal-login", wait_for_node("hal02"))
    mini.cluster.run("hal02", "chronyc waitsync 300 0 0 1")


def expected() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each finding of faults.yml with its node; promises that a fault breaks are among them."""
    for fault in FAULTS:
        for finding in fault["finds"]:
            yield finding.get("node", fault["node"]), finding
        for promise in fault.get("also", []):
            yield fault["node"], {"kind": "expectation", "resource": f"expectation:{promise}"}


def matches(node: str, wanted: Mapping[str, str], found: Mapping[str, Any]) -> bool:
    """Whether a finding is the one that a fault has to make: node, kind, resource, and owner if it is said."""
    pattern = wanted["resource"].replace("[", "[[]") if "*" not in wanted["resource"] else wanted["resource"]
    if "[*]" in pattern:
        pattern = pattern.replace("[*]", "[[]*]")
    return (
        found["host"] == node
        and found["kind"] == wanted["kind"]
        and fnmatchcase(found["resource"], pattern)
        and all(found[name] == wanted[name] for name in ("role", "task") if name in wanted)
    )


def told(found: Mapping[str, Any]) -> str:
    """A finding in a line, for messages."""
    return f"{found['host']} {found['kind']} {found['resource']} ({found['role']}: {found['task']}) {found['summary']}"


def clean(audit: Audit, nodes: Set[str] = NODES) -> None:
    """Fail with what was found, and when not all was looked at."""
    assert [told(one) for one in audit.findings] == [], audit.stderr
    assert audit.status == 0, audit.stderr
    looked_at(audit, nodes)


def looked_at(audit: Audit, nodes: Set[str] = NODES) -> None:
    """Fail when not all of these nodes were looked at, each with all that it has."""
    assert set(audit.nodes) == nodes
    for name, node in audit.nodes.items():
        assert node["resources"] >= 25, f"{name}: an audit of nothing is not clean"
        assert node["expectations"] >= 25, f"{name}: an audit of nothing is not clean"


@pytest.mark.slow
def test_a_lost_gpu_drains_exactly_its_node_and_the_audit_names_it_and_an_edited_file_and_nothing_else(
    mini: Mini,
) -> None:
    """Nobody runs the check: slurmd does. The job in the queue goes to the other node.

    All else was just rolled out, and is clean. README's picture is drawn from this audit (tests/picture.py).
    """
    drained = "sinfo --noheader --list-reasons --format '%N %E'"
    assert mini.cluster.run("hal-login", drained) == ""
    mini.cluster.run("hal02", "virtual-gpu lose 1")
    mini.cluster.run("hal01", "cp --preserve /etc/chrony.conf /run/chrony.conf")
    mini.cluster.run("hal01", "sed -i 's/^server .*/server 192.0.2.1 iburst/' /etc/chrony.conf")
    try:
        seen = mini.cluster.run("hal-login", f"for i in $(seq 60); do {drained} | grep . && exit; sleep 1; done")
        assert len(seen.splitlines()) == 1, seen
        assert seen.startswith("hal02 health: GPU lost (every declared GPU answers: ")
        audit = mini.audit()
        looked_at(audit)
        found = {(one["host"], one["role"], one["kind"]) for one in audit.findings if not one["follows"]}
        edited = ("hal01", "time", "changed")
        assert found == {edited, ("hal02", "nvidia_driver", "hardware"), ("hal02", "node_health", "hardware")}
        assert len([one for one in audit.findings if not one["follows"]]) == len(found), list(map(told, audit.findings))
        (PROJECT / ".state" / "reports" / "audit.json").write_text(audit.stdout)
        srun = "srun --partition=gpu --gres=gpu:v100:4 --time=2 printenv SLURMD_NODENAME"
        assert mini.cluster.run("hal-login", f"runuser -l alice -c '{srun}'") == "hal01\n"
    finally:
        mini.cluster.run("hal02", "virtual-gpu repair")
        mini.cluster.run("hal01", "cp --preserve /run/chrony.conf /etc/chrony.conf")
    given = mini.ansible.playbook("playbooks/resume.yml", resume_nodes="hal02")
    assert given.status == 0, given.explain()
    mini.cluster.run("hal02", "/usr/libexec/hal-node-health/check")
    clean(mini.audit("--limit", "hal02"), {"hal02"})


@pytest.fixture(scope="module")
def planted(mini: Mini, tmp_path_factory: pytest.TempPathFactory) -> None:
    """All faults at once; none may hide another."""
    folder = tmp_path_factory.mktemp("packages")
    workshop = Workshop(folder / "workshop")
    for fault in FAULTS:
        for name, version in fault.get("packages", {}).items():
            made = workshop.package(name, folder, None, version=version)
            mini.podman("cp", str(made), f"{INSTANCE}-{fault['node']}:/root/{name}.rpm")
        mini.cluster.run(fault["node"], fault["plant"])


@pytest.fixture(scope="module")
def audit(mini: Mini, planted: None) -> Audit:
    """What is found then, with all files of all packages."""
    return mini.audit("--deep")


@pytest.fixture(scope="module")
def report(mini: Mini, planted: None) -> str:
    """The same for people."""
    return mini.audit(text=True).stdout


def test_every_fault_is_found_on_its_node_with_its_owner_and_nothing_else_is(audit: Audit) -> None:
    assert len(FAULTS) >= 25
    assert audit.status == 2, audit.stderr
    # What only follows from another finding names it.
    findings = [one for one in audit.findings if not one["follows"]]
    followed = {(one["host"], one["follows"]) for one in audit.findings if one["follows"]}
    assert followed <= {(one["host"], one["resource"]) for one in findings}
    wanted = list(expected())
    missed = [f"{node} {one}" for node, one in wanted if not any(matches(node, one, found) for found in findings)]
    assert missed == []
    more = [told(found) for found in findings if not any(matches(node, one, found) for node, one in wanted)]
    assert more == []
    # What two nodes do not have in common is no one node's.
    assert {one["cause"] for one in findings if one["status"] == "drift" and one["host"]} == {"node"}


def test_a_rollout_takes_over_nothing_that_nobody_declared_and_a_site_may_accept_it(mini: Mini, audit: Audit) -> None:
    path = "/etc/ld.so.preload"
    play = mini.site("--limit", "hal-data", "--tags", "hosts")
    assert play.status == 0, play.explain()

    def found(**variables: Any) -> bool:
        seen = mini.audit("--limit", "hal-data", **variables)
        return any(one["resource"] == f"file:{path}" for one in seen.findings)

    assert found()
    accepted = {"path": path, "reason": "a library of the site", "until": "2999-12-31"}
    assert not found(audit_accepted=[accepted])
    assert found(audit_accepted=[{**accepted, "until": "2026-01-01"}])
    assert found(audit_accepted=[{**accepted, "as_of": "2026-01-01T00:00:00Z"}]), "it was changed since"


def test_a_report_says_what_is_what_should_be_whose_it_is_and_how_to_repair_it(report: str) -> None:
    words = " ".join(report.split())
    assert "file /etc/chrony.conf" in words
    assert "+# by hand" in words
    assert "Write the configuration of chronyd, roles/time/tasks/configure.yml" in words
    assert re.search(r"playbooks/site\.yml --limit \S+ --tags time", words.replace("\\ ", ""))
    assert "\033[" not in report, "colour in a pipe"


def test_no_secret_is_in_what_was_found_or_stored(mini: Mini, audit: Audit, report: str) -> None:
    key = mini.cluster.run("hal-login", "od -An -tx1 /etc/munge/munge.key | tr -d ' \\n'").strip()
    password = mini.cluster.run("hal-mgmt1", "sed -n 's/^StoragePass=//p' /etc/slurm/slurmdbd.conf").strip()
    assert len(key) > 60
    assert len(password) > 10
    stored = audit.stdout + report
    kept = list((PROJECT / ".state/virtual/audit" / INSTANCE).rglob("*.json"))
    assert kept, "the controller keeps nothing"
    stored += "".join(path.read_text() for path in kept)
    for node in NODES:
        stored += mini.cluster.run(node, "cat /var/lib/hal/record.json; cat /var/lib/hal/content/* 2>/dev/null || true")
    raw = bytes.fromhex(key)
    spelled = (key, raw.decode("latin-1"), raw.decode(errors="replace"), b64encode(raw).decode())
    for secret in (password, *spelled, *(json.dumps(one)[1:-1] for one in spelled)):
        assert secret not in stored
    modes = mini.cluster.run("hal01", "stat -c '%a %U' /var/lib/hal /var/lib/hal/record.json /var/lib/hal/record.key")
    assert modes.splitlines() == ["700 root", "600 root", "600 root"]


def undo(mini: Mini, *, blocking: bool) -> None:
    """Undo what a rollout does not mend: faults that it would wait for, or the others."""
    for fault in FAULTS:
        if "undo" in fault and (fault["check"] == "never") is blocking:
            mini.cluster.run(fault["node"], fault["undo"])


@pytest.fixture(scope="module")
def unblocked(mini: Mini, planted: None) -> None:
    """What a rollout would wait for is undone, once."""
    undo(mini, blocking=True)


@pytest.mark.slow
def test_check_mode_agrees_wherever_it_can_see_a_fault(mini: Mini, unblocked: None) -> None:
    play = mini.ansible.playbook("playbooks/site.yml", "--check", "--diff", mitogen=True)
    task, seen = "", set[tuple[str, str]]()
    for hit in CHANGED.finditer(play.stdout):
        task = hit["task"] or task
        if hit["host"]:
            seen.add((hit["host"].split(" ")[0], task.rpartition(" : ")[2]))
    comparable = [fault for fault in FAULTS if fault["check"] != "never"]
    told_by_check = {
        fault["fault"]: any(
            (fault["node"], task) in seen
            for task in (fault["check"], *(finding.get("task") for finding in fault["finds"]))
        )
        for fault in comparable
    }
    assert told_by_check == {fault["fault"]: fault["check"] is not False for fault in comparable}, play.explain()


@pytest.fixture(scope="module")
def repaired(mini: Mini, unblocked: None) -> None:
    """By what the audit proposes: the roles that own what was found."""
    undo(mini, blocking=False)
    owners = {str(one["role"]) for _, one in expected() if "role" in one}
    owners |= {promise.partition(":")[0] for fault in FAULTS for promise in fault.get("also", [])}
    # Of Spectrum Scale's attributes nothing is overwritten but what the code is of: the page pool of faults.yml.
    play = mini.site("--tags", ",".join(sorted(owners)), spectrum_scale_attributes_confirm="4829-1f62")
    assert play.status == 0, play.explain()


def test_repaired_is_clean(mini: Mini, repaired: None) -> None:
    clean(mini.audit("--deep"))


def record(mini: Mini, node: str) -> Mapping[str, Mapping[str, Any]]:
    """The entries of a node's record, by resource."""
    stored = json.loads(mini.cluster.run(node, "cat /var/lib/hal/record.json"))
    return {entry["resource"]: entry for entry in stored["entries"]}


def test_another_declaration_is_told_from_a_change_on_the_node(mini: Mini, repaired: None) -> None:
    mini.cluster.run("hal01", "echo '# by hand' >>/etc/hosts")
    audit = mini.audit("--limit", "hal01,hal02", base_journal_max_mb=9)
    mini.cluster.run("hal01", "sed -i '/by hand/d' /etc/hosts")
    assert audit.status == 2, audit.stderr
    found = sorted((one["host"], one["cause"], one["kind"], one["resource"]) for one in audit.findings)
    journal = "file:/etc/systemd/journald.conf.d/90-hal.conf"
    assert [one for one in found if one[2] not in ("inputs-changed", "expectation")] == [
        ("hal01", "declaration", "declared-differently", journal),
        ("hal01", "node", "changed", "file:/etc/hosts"),
        ("hal02", "declaration", "declared-differently", journal),
    ]


def test_a_rollout_that_fails_half_way_keeps_the_older_truth_of_what_it_did_not_reach(
    mini: Mini, repaired: None
) -> None:
    before = record(mini, "hal01")
    play = mini.ansible.playbook(
        "playbooks/site.yml", "--limit", "hal01", mitogen=True, time_chronyd_options="--broken"
    )
    assert play.status != 0, "chronyd started with an option that it does not have"
    after = record(mini, "hal01")
    options = "file:/etc/sysconfig/chronyd"
    assert after[options]["observed"]["sha256"] != before[options]["observed"]["sha256"]
    assert after["file:/etc/slurm/slurm.conf"] == before["file:/etc/slurm/slurm.conf"]
    assert set(after) == set(before)
    audit = mini.audit("--limit", "hal01")
    told_of = {(one["kind"], one["resource"], one["cause"]) for one in audit.findings}
    assert ("declared-differently", options, "declaration") in told_of
    assert ("state", "service:chronyd.service", "node") in told_of
    assert {one["role"] for one in audit.findings} == {"time"}
    assert mini.site("--limit", "hal01", "--tags", "time").status == 0
    assert mini.audit("--limit", "hal01").status == 0


@pytest.mark.slow
def test_audits_of_a_cluster_at_work_find_nothing(mini: Mini, repaired: None) -> None:
    """Jobs run, logs are rotated, people log in, a node reboots; meanwhile the nodes are audited where it happens."""
    mini.cluster.run(
        "hal-login",
        "/usr/bin/systemd-run --quiet --collect --unit=work runuser -l alice -c"
        " 'while srun --partition=gpu --gres=gpu:v100:1 --nodes=2 sleep 2; do :; done'",
    )
    try:
        for number in range(AUDITS):
            if number == 0:
                mini.podman("stop", "--time", "0", f"{INSTANCE}-hal02")
                assert mini.create().status == 0
                mini.cluster.run("hal-login", wait_for_node("hal02"))
                # Until it follows a server after a boot, the audit says that it does not.
                mini.cluster.run("hal02", "chronyc waitsync 300 0 0 1")
            mini.cluster.run(
                "hal01", "logrotate --force /etc/logrotate.d/hal-slurm; touch /etc/hosts; su - bob -c true"
            )
            if number in (0, AUDITS - 1):
                clean(mini.audit())
            else:
                clean(mini.audit("--limit", ",".join(sorted(BUSY))), BUSY)
    finally:
        mini.cluster.run("hal-login", "systemctl stop work; scancel --user alice")


def wait_for_node(name: str) -> str:
    """A command that returns when Slurm can use a node again."""
    state = f"sinfo --noheader --nodes {name} --format %T | head -1"
    return (
        f"for i in $(seq 300); do case $({state}) in idle|mixed|allocated) exit 0;; esac; sleep 1; done;"
        f" scontrol show node {name}; exit 1"
    )


# Last: what it leaves has a record of one role alone.
@pytest.mark.slow
def test_a_record_that_is_damaged_foreign_or_gone_and_a_node_that_is_off_are_named(
    mini: Mini, repaired: None, tmp_path: Path
) -> None:
    folder = "/var/lib/hal"
    other = tmp_path / "record.json"
    other.touch(mode=0o600)  # as it is on a node: podman keeps that
    other.write_text(mini.cluster.run("hal01", f"cat {folder}/record.json"))
    mini.cluster.run("hal01", f"truncate -s 1000 {folder}/record.json")
    mini.podman("cp", str(other), f"{INSTANCE}-hal02:{folder}/record.json")
    mini.cluster.run("hal-data", f"rm {folder}/record.json")
    mini.podman("stop", "--time", "0", f"{INSTANCE}-hal-mgmt2")
    audit = mini.audit()
    found = {one["host"]: (one["kind"], one["summary"]) for one in audit.findings}
    assert set(found) == {"hal01", "hal02", "hal-data", "hal-mgmt2"}, [told(one) for one in audit.findings]
    assert len(audit.findings) == 4, [told(one) for one in audit.findings]
    for node, words in (("hal01", "damaged"), ("hal02", "another node"), ("hal-data", "gone")):
        assert found[node][0] == "record"
        assert words in found[node][1]
        assert "compared with the controller's copy" in found[node][1]
    assert found["hal-mgmt2"][0] == "unreachable"
    assert audit.status == 2, "a record that somebody changed is drift"
    assert mini.create().status == 0
    play = mini.site("--limit", "hal01,hal02,hal-data", "--tags", "time")
    assert play.status == 0, play.explain()
    assert "record" not in {one["kind"] for one in mini.audit("--limit", "hal01,hal02,hal-data").findings}

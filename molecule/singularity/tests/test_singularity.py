"""Users build as root and are nobody's root; ranges are theirs alone; what is changed by hand is named.

apptainer, the kernel's user namespaces, newuidmap and squashfuse are real; so are the files of the ranges. Nothing here
reads expect.yml.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from running.ansible_run import PROJECT, Ansible, Run, of_scenario
from testinfra.backend.base import CommandResult
from testinfra.host import Host
from testing.promises import Rollout

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
REGISTRY = "/home/apps/containers"
ALICE, GONE, BUILDER = 4294836224, 4294770688, 4294705152
DECLARED = [f"5001:{ALICE}:65536", f"!5003:{GONE}:65536", f"4990:{BUILDER}:65536"]
OTHERS = ["somebody:100000:65536", "alice:165536:65536"]
DEFINITION = """\
Bootstrap: localimage
From: /srv/base
%post
    id -u
    touch /etc/made
    chown 33:34 /etc/made
    echo 1 >/etc/version
%runscript
    echo "version $(cat /etc/version), uid $(id -u)"
"""
Node = Callable[[str], Host]
NODES = ["hal-login", "hal01"]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


@pytest.fixture
def login(node: Node) -> Host:
    return node("hal-login")


def broken(rollout: Rollout, name: str = "hal-login", **variables: Any) -> list[str]:
    return rollout.broken_promises("singularity", name, **variables)


def run_as(host: Host, user: str, script: str) -> CommandResult:
    """Run a script as a user in their home, as after a login. ssh keeps 255 for itself, so it becomes 254."""
    return host.run(
        "runuser -u %s -- env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/home/%s sh -c %s",
        user,
        user,
        f"cd; {script}; status=$?; exit $((status - (status == 255)))",
    )


@pytest.fixture(scope="module")
def image(node: Node) -> str:
    """alice has built an image on the login node; the first test looks at how."""
    host = node("hal-login")
    host.check_output("printf %%s %s >/home/alice/tool.def", DEFINITION)
    built = run_as(host, "alice", "singularity build --fakeroot tool.sif tool.def")
    assert built.rc == 0, built.stdout + built.stderr
    assert re.search(r"^0$", built.stdout, re.MULTILINE), "uid in %post"
    return "/home/alice/tool.sif"


def restore(login: Host) -> None:
    """Singularity's own command writes the lines in another order; a rollout would put them back."""
    for path in ("/etc/subuid", "/etc/subgid"):
        login.check_output("printf '%%s\\n' %s >%s", "\n".join([*DECLARED, *OTHERS]), path)


# ---------------------------------------------------------------- what users may, and what they may not
def test_a_user_builds_an_image_and_runs_it(login: Host, image: str) -> None:
    assert login.file(image).user == "alice"
    ran = run_as(login, "alice", f"singularity run {image}")
    assert ran.stdout.strip() == "version 1, uid 5001", ran.stderr
    as_root = run_as(login, "alice", f"singularity exec --fakeroot {image} sh -c 'id -u; ls -ln /etc/made'")
    assert as_root.stdout.split()[0] == "0", as_root.stderr
    assert as_root.stdout.split()[3:5] == ["33", "34"]


def test_root_of_a_container_is_the_user_outside(login: Host, image: str) -> None:
    """Both ways: what root makes inside is the user's; what root gives to another id belongs to the user's range."""
    inside = "cd; touch a b; chown 33:34 b; cat /proc/self/uid_map /proc/self/gid_map"
    script = f"singularity exec --fakeroot {image} sh -c '{inside}'"
    done = run_as(login, "alice", script)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["0", "5001", "1"], ["1", str(ALICE), "65536"], ["0", "5000", "1"], ["1", str(ALICE), "65536"],
    ], done.stdout + done.stderr  # fmt: skip
    assert login.check_output("stat -c '%u %g' /home/alice/a /home/alice/b").splitlines() == [
        "5001 5000",
        f"{ALICE + 32} {ALICE + 33}",
    ]


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        ("cat /srv/secret", "Permission denied"),
        ("cat /srv/bobs", "Permission denied"),
        ("touch /srv/given", "Permission denied"),
        ("chown 0:0 /srv/bobs", "Operation not permitted"),
        ("chmod 666 /srv/secret", "Operation not permitted"),
        ("mv /srv/given /srv/taken", "Permission denied|Read-only|cannot move"),
        ("cat /etc/shadow", "Permission denied"),
        ("mknod /tmp/sda b 8 0", "Operation not permitted"),
        ("kill -0 1", "ermission denied|not permitted"),
    ],
)
def test_root_of_a_container_may_no_more_than_the_user(login: Host, image: str, attempt: str, said: str) -> None:
    outside = run_as(login, "alice", attempt)
    assert outside.rc != 0, "else the test says nothing"
    bound = "--bind /srv:/srv --bind /etc/shadow:/etc/shadow"
    inside = run_as(login, "alice", f"singularity exec --fakeroot {bound} {image} {attempt}")
    assert inside.rc != 0, inside.stdout
    assert re.search(said, inside.stderr), inside.stderr
    assert login.check_output("stat -c '%U %a' /srv/secret /srv/bobs /srv/given").split() == [
        "root",
        "600",
        "bob",
        "600",
        "root",
        "644",
    ]


def test_a_user_without_a_slot_is_told_so(login: Host, image: str) -> None:
    login.check_output(f"cp {image} /srv/tool.sif && cp /home/alice/tool.def /home/bob/ && chmod 755 /srv/tool.sif")
    for command in (
        "build --fakeroot mine.sif tool.def",
        "exec --fakeroot /srv/tool.sif id",
        "build -f mine.sif tool.def",
    ):
        refused = run_as(login, "bob", f"singularity {command}")
        assert refused.rc == 254
        assert "could not use fakeroot: no mapping entry found in /etc/subuid for bob" in refused.stderr
    assert run_as(login, "bob", "singularity run /srv/tool.sif").stdout.strip() == "version 1, uid 5002"


def test_who_is_disabled_is_told_so(login: Host, image: str) -> None:
    """By Singularity's own command; a rollout leaves it so, says it, and enables again when it is allowed."""
    login.check_output("singularity config fakeroot --disable alice")
    try:
        refused = run_as(login, "alice", f"singularity exec --fakeroot {image} id")
        assert refused.rc != 0
        assert "disabled by the administrator" in refused.stderr
    finally:
        login.check_output("singularity config fakeroot --enable alice")
    assert sorted(login.check_output("cat /etc/subuid").splitlines()) == sorted([*DECLARED, *OTHERS])
    restore(login)


# ---------------------------------------------------------------- ranges
@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("path", ["/etc/subuid", "/etc/subgid"])
def test_ranges_are_the_same_on_every_node_before_those_of_others(node: Node, name: str, path: str) -> None:
    file = node(name).file(path)
    assert file.content_string.splitlines() == [*DECLARED, *OTHERS]
    assert (file.user, file.group, file.mode) == ("root", "root", 0o644)


def test_no_two_ranges_overlap(login: Host, image: str) -> None:
    """As the kernel has them, not as files say."""
    ranges = []
    login.check_output(
        "mkdir -p /home/build && chown hal-build /home/build && cp /home/alice/tool.sif /home/build/"
        " && chmod 755 /home/build/tool.sif"
    )
    for user, home in (("alice", "/home/alice"), ("hal-build", "/home/build")):
        done = login.run(
            "cd %s && runuser -u %s -- env HOME=%s singularity exec --fakeroot tool.sif cat /proc/self/uid_map",
            home,
            user,
            home,
        )
        _, start, count = map(int, done.stdout.splitlines()[1].split())
        ranges.append((start, start + count))
    (low, high), (other_low, other_high) = sorted(ranges)
    assert high <= other_low
    assert high - low == other_high - other_low == 65536


def test_singularitys_own_command_gives_no_slot_away(login: Host) -> None:
    """Slot 1 is of a user who has left: `--add` looks for the first free range, and the disabled line holds it."""
    before = login.check_output("cat /etc/subuid")
    login.check_output(
        "useradd --uid 5017 newcomer && sed -i /newcomer/d /etc/subuid /etc/subgid"
        " && singularity config fakeroot --add newcomer"
    )
    try:
        assert login.check_output("grep ^5017: /etc/subuid") == f"5017:{BUILDER - 65536}:65536"
    finally:
        login.check_output("singularity config fakeroot --remove newcomer; userdel --remove newcomer 2>/dev/null; true")
    assert sorted(login.check_output("cat /etc/subuid").splitlines()) == sorted(before.splitlines())
    restore(login)


# ---------------------------------------------------------------- images of administrators
def build(tmp_path: Path, text: str, name: str = "tool") -> Run:
    (tmp_path / "x.def").write_text(text)
    return of_scenario(SCENARIO).playbook(
        PROJECT / "playbooks/containers.yml", container_image=name, container_definition=str(tmp_path / "x.def")
    )


def scratch(login: Host) -> str:
    left: str = login.check_output("ls -A /var/lib/hal-containers; ls -d /tmp/*hal-container* 2>/dev/null; true")
    return left


def test_an_administrator_builds_an_image_for_all(login: Host, tmp_path: Path) -> None:
    done = build(tmp_path, DEFINITION)
    assert done.status == 0, done.explain()
    assert f"published {REGISTRY}/tool.sif" in done.words
    file = login.file(f"{REGISTRY}/tool.sif")
    assert (file.user, file.group, file.mode) == ("root", "root", 0o555)
    ran = run_as(login, "bob", "singularity run /opt/container/singularity/tool.sif")
    assert ran.stdout.strip() == "version 1, uid 5002", ran.stderr
    assert "tool" in run_as(login, "bob", "hal-container list").stdout
    shown = run_as(login, "bob", "hal-container show tool").stdout
    assert DEFINITION.strip() in shown
    assert "by hal-build on hal-login" in shown
    assert login.check_output(f"sha256sum {REGISTRY}/tool.sif").split()[0] in shown
    assert scratch(login) == ""


def test_a_build_that_fails_leaves_the_image_as_it_was(login: Host, tmp_path: Path) -> None:
    before = login.check_output(f"sha256sum {REGISTRY}/*.sif")
    failed = build(tmp_path, DEFINITION.replace("id -u", "exit 7"))
    assert failed.status != 0
    assert "the build failed" in failed.words
    assert login.check_output(f"sha256sum {REGISTRY}/*.sif") == before
    assert scratch(login) == ""


def test_what_a_definition_does_is_done_by_nobody_of_importance(login: Host, tmp_path: Path) -> None:
    """%setup runs outside of the container, as the build user."""
    text = DEFINITION.replace("%post", "%setup\n    id -un\n    echo x >/etc/owned\n%post")
    failed = build(tmp_path, text)
    assert failed.status != 0
    assert not login.file("/etc/owned").exists
    assert scratch(login) == ""


def test_an_older_version_stays_under_its_date(login: Host, tmp_path: Path) -> None:
    old = login.check_output(f"sha256sum {REGISTRY}/tool.sif").split()[0]
    done = build(tmp_path, DEFINITION.replace("echo 1", "echo 2"))
    assert done.status == 0, done.explain()
    assert run_as(login, "alice", f"singularity run {REGISTRY}/tool.sif").stdout.strip() == "version 2, uid 5001"
    (dated,) = login.check_output(f"ls {REGISTRY}/tool--*.sif").split()
    assert login.check_output(f"sha256sum {dated}").split()[0] == old
    assert run_as(login, "alice", f"singularity run {dated}").stdout.strip() == "version 1, uid 5001"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("../tool", DEFINITION, "is not a name of an image: small letters"),
        ("tool.sif", DEFINITION, "is not a name of an image"),
        ("other", "Bootstrap: nothing\n", "the build failed"),
    ],
)
def test_what_cannot_be_built_is_refused(login: Host, tmp_path: Path, name: str, text: str, said: str) -> None:
    before = login.check_output(f"ls -A {REGISTRY}")
    done = build(tmp_path, text, name)
    assert done.status != 0
    assert said in done.words
    assert login.check_output(f"ls -A {REGISTRY}") == before


# ---------------------------------------------------------------- what is found, and by whom it is put right
def test_all_promises_hold(rollout: Rollout) -> None:
    for name in NODES:
        assert broken(rollout, name) == []


FAULTS = [
    "echo mallory:4294836300:10 >>/etc/subuid",
    "sed -i '/^5001:/d' /etc/subgid",
    "chmod 0666 /etc/subgid",
    "sed -i 's/^mount home = yes/mount home = no/' /etc/singularity/singularity.conf",
    "chmod 0777 /etc/singularity",
    "ln -sfn /home/bob /opt/container/singularity",
    f"cp {REGISTRY}/tool.sif {REGISTRY}/strange.sif",
    f"chmod 0777 {REGISTRY}",
    "systemctl disable --quiet --now hal-container-verify.timer",
]
UNDO = f"sed -i /mallory/d /etc/subuid; rm -f {REGISTRY}/strange.sif"


WRITES = "Write singularity.conf, and the program of the registry"


def owners_of_findings() -> dict[str, tuple[str, str]]:
    """Role and task of each finding of the audit on the login node, by resource."""
    of_scenario(SCENARIO).playbook(PROJECT / "playbooks/audit.yml")
    document = json.loads((PROJECT / f".state/virtual/audit/{SCENARIO.name}/last.json").read_text())
    return {one["resource"]: (one["role"], one["task"]) for one in document["findings"] if one["host"] == "hal-login"}


def test_the_audit_names_who_owns_each_fault_and_a_rollout_mends_what_is_the_project_s(
    login: Host, rollout: Rollout
) -> None:
    """What the role does not own is taken away by hand."""
    for plant in FAULTS:
        login.check_output(plant)
    try:
        audited = owners_of_findings()
    finally:
        login.check_output(UNDO)
    assert [one for one in audited if ".hal-container" in one] == [], "what builds needed is nothing to look for"
    assert audited["file:/etc/singularity/singularity.conf"] == ("singularity", WRITES)
    assert audited["file:/etc/singularity"] == ("singularity", WRITES)
    assert audited["file:/etc/subgid"] == ("singularity", "Write the ranges of users")
    assert [owner for resource, owner in audited.items() if resource.startswith("line:/etc/subgid#")] == [
        ("singularity", "Write the ranges of users")
    ]
    for promise in ("ranges are theirs alone and the first that count", "images are what was published"):
        assert audited[f"expectation:singularity: {promise}"][0] == "singularity"
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert broken(rollout) == []


def test_an_overlap_is_refused_in_words_and_nothing_is_written(login: Host, rollout: Rollout) -> None:
    login.check_output("echo mallory:4294836300:10 >>/etc/subuid && sed -i '/^4990:/d' /etc/subuid")
    try:
        done = rollout.converge("--limit", "hal-login,localhost")
        assert done.status != 0
        assert "mallory has ids 4294836300 to 4294836309, and slot 0 of alice is" in done.words
        assert "4990" not in login.check_output("cat /etc/subuid")
    finally:
        login.check_output("sed -i /mallory/d /etc/subuid")


def test_who_was_disabled_by_hand_stays_so_and_it_is_said(login: Host, rollout: Rollout) -> None:
    login.check_output("sed -i 's/^5001:/!5001:/' /etc/subuid /etc/subgid")
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert "alice: disabled on this node by hand" in done.words
    assert login.check_output("head -n 1 /etc/subuid") == f"!5001:{ALICE}:65536"
    assert "nobody was disabled by hand [alice]" in broken(rollout)
    done = rollout.converge(singularity_fakeroot_enable_ok=True)
    assert done.status == 0, done.explain()
    assert login.check_output("head -n 1 /etc/subuid") == DECLARED[0]
    assert rollout.converge().changes == {}, "a second rollout changes nothing"


def with_users(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> Ansible:
    """The scenario with another users.yml."""
    users = yaml.safe_load((SCENARIO / "users.yml").read_text())
    change(users["users"])
    (tmp_path / "users.yml").write_text(yaml.safe_dump(users))
    source = (SCENARIO / "hal.yml").read_text().replace("../../", f"{PROJECT}/")
    (tmp_path / "hal.yml").write_text(source)
    variables = yaml.safe_load((SCENARIO / "group_vars/all/singularity.yml").read_text())
    return Ansible([tmp_path / "hal.yml"], virtual_name=SCENARIO.name, **variables)


def test_a_slot_that_was_given_is_never_given_again(login: Host, tmp_path: Path) -> None:
    def reuse(users: dict[str, Any]) -> None:
        del users["alice"]
        users["eve"] = {"uid": 5009, "slot": 0}

    before = login.check_output("cat /etc/subuid /etc/subgid /etc/hal/containers.json")
    done = with_users(tmp_path, reuse).playbook(SCENARIO / "converge.yml")
    assert done.status != 0
    assert "slot 0 was given to alice (uid 5001) and is never given again; eve needs another" in done.words
    assert login.check_output("cat /etc/subuid /etc/subgid /etc/hal/containers.json") == before


def test_a_fault_of_users_yml_stops_everything_by_line(tmp_path: Path) -> None:
    done = with_users(tmp_path, lambda users: users["bob"].update(slot=0)).playbook(SCENARIO / "converge.yml")
    assert done.status != 0
    assert "users.bob.slot: slot 0 is alice's" in done.words


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"singularity_conf": {"mount_hostfs": True}}, 'mount_hostfs: no such directive; did you mean "mount hostfs"?'),
        ({"singularity_registry": "/home"}, "singularity_registry (/home;"),
        ({"singularity_build_user": "root"}, "singularity_build_user is root: the name of an account of its own"),
    ],
)
def test_what_makes_no_sense_is_refused(login: Host, rollout: Rollout, wrong: dict[str, Any], said: str) -> None:
    before = login.check_output("cat /etc/singularity/singularity.conf")
    done = rollout.converge(**wrong)
    assert done.status != 0
    assert said in done.words
    assert login.check_output("cat /etc/singularity/singularity.conf") == before


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        ("mkdir singularity && echo x >singularity/mine.sif", "is there and is a folder"),
        (
            "mkdir -p /srv/swsuite && echo x >/srv/swsuite/mine.sif && ln -s /srv/swsuite singularity",
            "leads to /srv/sw",
        ),
    ],
)
def test_what_swsuite_has_at_the_known_path_is_met_and_nothing_was_written(
    login: Host, rollout: Rollout, plant: str, said: str
) -> None:
    """A folder with users' images, or a link of before to one, on a node that this role has not been to."""
    login.check_output("mv /etc/hal/containers.json /root/")
    login.check_output(f"cd /opt/container && rm singularity && {plant}")
    login.check_output("echo 'mount hostfs = yes' >>/etc/singularity/singularity.conf")
    looked = "cat /etc/singularity/singularity.conf; ls -lR /opt/container/ /srv"
    before = login.check_output(looked)
    try:
        done = rollout.converge("--limit", "hal-login,localhost")
        assert done.status != 0
        assert f"/opt/container/singularity {said}" in done.words
        assert login.check_output(looked) == before
    finally:
        login.check_output(f"rm -r /opt/container/singularity && ln -s {REGISTRY} /opt/container/singularity")
        login.check_output(
            "mv /root/containers.json /etc/hal/; rm -rf /srv/swsuite; sed -i '$d' /etc/singularity/singularity.conf"
        )


def test_the_ledger_is_the_administrator_s_alone() -> None:
    (path,) = (PROJECT / ".state/virtual/singularity" / SCENARIO.name).glob("slots.json")
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["slots"]["1"] == {"name": "gone", "uid": 5003}

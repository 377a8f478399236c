"""group_vars and host_vars: a name that nobody reads is refused, and so is what does not count or counts in silence.

Each case of ``data/variables_refusals.yml`` is some files beside the source of ``data/small.yml``.
"""

from __future__ import annotations

import os
import re
import zoneinfo
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.inventory.cli import main
from hal_inventory.variable_names import OF_PROGRAMS, known_names
from hal_inventory.variables import MADE_IN_A_RUN, Variables, check, check_source
from tests.unit.hal_inventory.conftest import ROOT, Folder

CASES = yaml.safe_load((Path(__file__).parent / "data" / "variables_refusals.yml").read_text())
SOURCES = sorted(
    [*ROOT.glob("inventory/*/hal.yml"), *ROOT.glob("inventory/*/mini.yml"), *ROOT.glob("molecule/*/hal.yml")]
)
KNOWN = known_names(ROOT)


@pytest.fixture
def beside(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """The folder of a small site, which is the current one."""
    folder.site()
    monkeypatch.chdir(folder.path)
    return folder


def lines(read: Variables) -> list[str]:
    return [str(finding) for finding in read.findings]


@pytest.mark.parametrize(
    ("files", "expected"), [pytest.param(case["files"], case["findings"], id=case["fault"]) for case in CASES]
)
def test_a_fault_is_one_line_that_says_where_and_what_is_right(
    beside: Folder, files: dict[str, str], expected: list[str]
) -> None:
    for name, text in files.items():
        beside.write(name if "_vars/" in name else f"group_vars/all/{name}", text)
    read = check_source("hal.yml", KNOWN)
    assert lines(read) == expected
    assert read.remarks == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_sites_of_the_project_set_what_somebody_reads(source: Path) -> None:
    read = check_source(source, KNOWN)
    assert (lines(read), read.remarks) == ([], [])


def test_every_variable_of_the_documentation_is_known() -> None:
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("roles/*/README.md")]
    model = {"raid_sets", "nfs_server", "nfs_client"}  # sections and groups
    shown = {
        name
        for page in pages
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        for name in re.findall(r"^([a-z]\w*_\w+):", block, re.MULTILINE)
    }
    assert len(shown) > 50
    assert {name for name in shown - KNOWN - model if not name.startswith("ansible_")} == set()


def test_what_programs_read_is_in_programs() -> None:
    text = "".join(path.read_text() for path in ROOT.glob("hal_cluster/audit/**/*.py"))
    assert {name for name in OF_PROGRAMS if f'"{name}"' not in text} == set()


def test_no_word_of_a_role_or_playbook_is_taken_for_a_variable() -> None:
    assert not KNOWN & {"hal_node", "become_user", "run_once", "gather_facts", "slurm_controller"}


def test_names_are_those_of_options_and_expressions(folder: Folder) -> None:
    folder.write(
        "roles/web/meta/argument_specs.yml", "argument_specs: {main: {options: {web_port: {type: int}}}, b: {}}\n"
    )
    folder.write("roles/web/defaults/main.yml", "web_port: 80\nweb_wrong: '{{ web_other }}'\nsoft_key: 1\n")
    folder.write("roles/web/templates/x.j2", "{% if soft_in_template %}{{ 'soft_text' }}{% endif %} soft_outside\n")
    folder.write(
        "playbooks/part/x.yml",
        "- when: soft_bare is defined\n  set_fact: {soft_name: '{{ a.soft_field | soft_filter }}'}\n",
    )
    folder.write(
        "playbooks/y.yml",
        "- assert:\n    that:\n      - soft_in_list\n      - soft_call(soft_word=2)\n  name: soft_prose\n",
    )
    folder.write("molecule/virtual_hal/create.yml", "x: '{{ soft_lab | default(soft_else) }}'\n")
    known = known_names(folder.path) - OF_PROGRAMS - {"site_variables"}
    read = {"soft_in_template", "soft_bare", "soft_in_list", "soft_lab", "soft_else"}
    assert known == {"web_port", *read}


def test_bases_are_read_together(beside: Folder) -> None:
    beside.write("group_vars/all/x.yml", "mirror_here: x\nslurm_verson: 1\n")
    beside.write("part/hal.yml", "plugin: hal\nbase: ../hal.yml\n")
    beside.write("part/group_vars/compute.yml", "base_packages: ['{{ mirror_here }}']\n")
    beside.write("part/group_vars/login.yml", "slurm_verson: 1\n")
    assert [line.partition(": ")[0] for line in lines(check_source("part/hal.yml", KNOWN))] == [
        "group_vars/all/x.yml:2",
        "part/group_vars/login.yml:1",
    ]


def test_nodes_of_the_whole_site_and_of_that_of_a_base_may_have_variables(beside: Folder, small: str) -> None:
    beside.site(source="plugin: hal\ncluster: cluster.yml\nonly: worker1\n")
    for name in ("worker4", "front", "other4"):
        beside.write(f"host_vars/{name}.yml", "slurm_version: 22.05.8\n")
    fault = 'host_vars/other4.yml: is not read: there is no node "other4"; did you mean "worker4"?'
    assert lines(check_source("hal.yml", KNOWN)) == [fault]
    beside.write("part/hal.yml", "plugin: hal\nbase: ../hal.yml\ncluster: cluster.yml\nonly: other1\n")
    beside.write("part/cluster.yml", small.replace("worker", "other"))
    assert lines(check_source("part/hal.yml", KNOWN)) == []
    beside.write("cluster.yml", "format: 1\n")  # the model's fault is said elsewhere, and no node is known
    assert lines(check_source("hal.yml", KNOWN)) == []


def test_a_variable_in_two_files_of_one_group_is_a_remark(beside: Folder) -> None:
    beside.write("group_vars/all/b.yml", "site_variables: [a_x]\nslurm_version: 22.05.8\n")
    beside.write("group_vars/all/a.yml", "slurm_version: 21.08.8\nsite_variables: [a_y]\n")
    beside.write("group_vars/compute.yml", "slurm_version: 20.11.9\n")
    read = check_source("hal.yml", KNOWN)
    assert lines(read) == []
    assert read.remarks == ["group_vars/all/b.yml:2: slurm_version: counts instead of group_vars/all/a.yml:1"]


def test_vaulted_files_are_counted_and_not_opened(beside: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("group_vars/all/vault.yml", "host_vars/front.yml"):
        beside.write(name, "$ANSIBLE_VAULT;1.1;AES256\n3132\n")
        read = check_source("hal.yml", KNOWN)
    assert lines(read) == []
    assert read.remarks == ["2 vaulted files were not read: group_vars/all/vault.yml, host_vars/front.yml"]
    (beside.path / "host_vars" / "front.yml").unlink()
    assert main(["-i", "hal.yml", "validate", "--model"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "1 vaulted file was not read: group_vars/all/vault.yml",
        "hal.yml: file system home (nfs): no role mounts it on worker[1-4];"
        " role nfs_client would, in a group of that name",
    ]


def test_without_time_zones_on_the_controller_one_is_not_refused(
    beside: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(name: str) -> None:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", nothing)
    beside.write("group_vars/all/x.yml", "base_time_zone: Europe/Berlin\n")
    beside.write("host_vars/front.yml", "base_time_zone: Europe/Berlin\n")
    read = check_source("hal.yml", KNOWN)
    assert lines(read) == []
    assert read.remarks == ["base_time_zone was not checked: this machine has no time zones (package tzdata)"]


@pytest.mark.parametrize("name", sorted(MADE_IN_A_RUN))
def test_a_group_that_a_playbook_makes_may_have_variables(beside: Folder, name: str) -> None:
    beside.write(f"group_vars/{name}.yml", "slurm_version: 1\n")
    assert lines(check_source("hal.yml", KNOWN)) == []


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pipe": (os.mkfifo, "x.yml: is neither a file nor a folder; take it away"),
    "endless device": (
        lambda path: path.symlink_to("/dev/zero"),
        "x.yml: is neither a file nor a folder; take it away",
    ),
    "link to nothing": (lambda path: path.symlink_to("nowhere"), "x.yml: cannot be read: No such file or directory"),
    "link to itself": (
        lambda path: path.symlink_to(path.name),
        "x.yml: cannot be read: Too many levels of symbolic links",
    ),
    "not UTF-8": (lambda path: path.write_bytes(b"a: 1\nb: \xff\n"), "x.yml:2: is not UTF-8 text: byte 0xff"),
    "control": (
        lambda path: path.write_bytes(b"a: \x00\n"),
        "x.yml:1: is not YAML: control characters are not allowed",
    ),
    "deep": (lambda path: path.write_text(f"a: {'[' * 100_000}"), "x.yml:1: is nested more than 24 levels deep"),
    "wide": (lambda path: path.write_bytes(b"#" * (16 * 1024 * 1024 + 1)), "x.yml: is larger than 16777216 bytes"),
    "key that is a list": (
        lambda path: path.write_text("? [a]\n: 1\n"),
        "x.yml:1: a field name must be text, not a list or a mapping",
    ),
}


@pytest.mark.parametrize(("make", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_one_line(beside: Folder, make: Callable[[Path], Any], expected: str) -> None:
    folder = beside.path / "group_vars" / "all"
    folder.mkdir(parents=True)
    make(folder / "x.yml")
    (found,) = lines(check_source("hal.yml", KNOWN))
    assert found.startswith(f"group_vars/all/{expected}")


def test_a_folder_that_leads_back_to_itself_is_one_line(beside: Folder) -> None:
    beside.write("group_vars/all/x.yml", "slurm_verson: 1\n")
    (beside.path / "group_vars" / "all" / "again").symlink_to(".")
    assert [line.partition(": ")[0] for line in lines(check_source("hal.yml", KNOWN))] == [
        "group_vars/all/again",
        "group_vars/all/x.yml:1",
    ]


def test_a_file_in_the_place_of_the_folder_is_one_line(beside: Folder) -> None:
    beside.write("group_vars", "slurm_version: 1\n")
    assert lines(check_source("hal.yml", KNOWN)) == ["group_vars: cannot be read: Not a directory"]


@pytest.mark.parametrize("refused", ["group_vars", "group_vars/all", "group_vars/all/x.yml"])
def test_what_may_not_be_read_is_one_line(beside: Folder, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    beside.write("group_vars/all/x.yml", "slurm_verson: 1\n")

    def without_permission(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(path: Any, *more: Any, **options: Any) -> Any:
            if str(path) == refused:
                raise PermissionError(13, "Permission denied")
            return call(path, *more, **options)

        return called

    monkeypatch.setattr(os, "listdir", without_permission(os.listdir))
    monkeypatch.setattr(os, "open", without_permission(os.open))
    assert lines(check([Path()], KNOWN)) == [f"{refused}: cannot be read: Permission denied"]


def test_validate_prints_findings_of_variables_and_of_the_model_together(
    beside: Folder, small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    beside.write("group_vars/all/x.yml", "slurm_verson: 1\n")
    line = 'group_vars/all/x.yml:1: slurm_verson: no role and no playbook reads it; did you mean "slurm_version"?'
    assert main(["-i", "hal.yml", "validate"]) == 2
    assert capsys.readouterr().out == f"{line}\n\n1 finding\n"
    beside.site(small.replace("drives: 12", "drives: 0"))
    assert main(["-i", "hal.yml", "validate"]) == 2
    model = "cluster.yml:46: arrays.flash[1-2].drives: must be at least 1, not 0"
    assert capsys.readouterr().out == f"{model}\n{line}\n\n2 findings\n"
    assert main(["validate", "cluster.yml"]) == 2  # a model alone has no variables
    assert capsys.readouterr().out == f"{model}\n\n1 finding\n"


def test_a_rollout_begins_with_a_look_at_the_variables(folder: Folder) -> None:
    source = folder.site(source="plugin: hal\ncluster: cluster.yml\nstate: state\n")
    playbook = ROOT / "playbooks" / "validate.yml"
    wrong = folder.write("group_vars/all/x.yml", "slurm_verson: 1\n")
    refused = folder.ansible("ansible-playbook", "-i", source, playbook)
    assert refused.returncode == 2
    assert re.findall(r"TASK \[(.*)\]", refused.stdout)[-1] == "Refuse a site that is not ready"
    said = " ".join(refused.stdout.split())
    assert 'x.yml:1: slurm_verson: no role and no playbook reads it; did you mean "slurm_version"?' in said
    assert "state/ca/host_ca is missing. For a new site" in said, "all faults at once"
    wrong.write_text("slurm_version: 22.05.8\n")
    passed = folder.ansible("ansible-playbook", "-i", source, playbook)
    assert "slurm_verson" not in passed.stdout
    assert "state/ca/host_ca is missing" in " ".join(passed.stdout.split())

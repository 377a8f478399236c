"""What the role refuses before it contacts a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import LOCAL
from tests.unit.playing import ROOT, play_text

PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - ansible.builtin.import_role: {name: spectrum_scale, tasks_from: validate}
"""
CLIENTS = {"pagepool": "4G", "maxFilesToCache": "128K", "maxStatCache": "128K"}


def messages(folder: Path, **variables: Any) -> tuple[int, list[str]]:
    """The status of the validation for hal05, and what its tasks said."""
    named = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": LOCAL}
    done = play_text(folder, PLAY, "hal05", sites=("hal",), **named, **variables)
    assert done.stdout.lstrip().startswith("{"), done.stdout + done.stderr
    tasks = json.loads(done.stdout)["plays"][0]["tasks"]
    results = [task["hosts"]["hal05"] for task in tasks if task["hosts"]]
    each = [one for result in results for one in result.get("results", [result])]
    return done.returncode, [str(one["msg"]) for one in each if "msg" in one and not one.get("skipped")]


def test_nothing_is_installed_without_the_licence(tmp_path: Path) -> None:
    status, said = messages(tmp_path)
    assert status != 0
    assert said[-1].startswith("spectrum_scale_license_accept is false: Spectrum Scale is not installed on hal05")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"spectrum_scale_client_attributes": {"maxFileToCache": 1}},
            "spectrum_scale_classes for hal05: maxFileToCache is not a known attribute; did you mean max",
        ),
        (
            {"spectrum_scale_server_attributes": {"nsdBufSpace": 90}},
            "spectrum_scale_server_attributes: nsdBufSpace is 90; write 10 to 70",
        ),
        ({"spectrum_scale_attributes": {"autoload": 2}}, "spectrum_scale_attributes: autoload is 2; write yes or no"),
        (
            {"spectrum_scale_client_attributes": {**CLIENTS, "pagepool": "100G"}},
            "Spectrum Scale on hal05 needs 103730 MB (pagepool 102400 MB + maxFilesToCache x 10 KB 1280 MB"
            " + maxStatCache x 400 B 50 MB); 25 % of its 262144 MB are 65536 MB: lower pagepool",
        ),
        ({"spectrum_scale_memory_percent": 90}, "spectrum_scale_memory_percent (90; 1 to 75)"),
        ({"spectrum_scale_version": "5.0"}, "spectrum_scale_version (5.0; version-release, as 5.0.4-1)"),
        ({"spectrum_scale_log_sizes": {"hom": "64M"}}, "sizes as 64M, for home"),
        ({"spectrum_scale_admins": []}, "write at least one node of the group spectrum_scale"),
        ({"spectrum_scale_admins": ["hal-mgmt2"]}, "spectrum_scale_admins is ['hal-mgmt2']"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, variables: dict[str, Any], words: str) -> None:
    status, said = messages(tmp_path, spectrum_scale_license_accept=True, **variables)
    assert status != 0
    assert any(words in one for one in said), said


def test_the_defaults_are_accepted_and_a_cache_without_effect_is_remarked_on(tmp_path: Path) -> None:
    status, said = messages(tmp_path, spectrum_scale_license_accept=True)
    assert (status, [one for one in said if "maxStatCache" in one]) == (0, [])
    status, said = messages(tmp_path, spectrum_scale_license_accept=True, spectrum_scale_version="5.0.1-2")
    assert status == 0
    words = "hal05: maxStatCache 128K has no effect on Linux without LROC before 5.0.2, and this is 5.0.1-2"
    assert words in said


def test_a_node_is_not_known_by_the_address_of_its_bmc(tmp_path: Path) -> None:
    play = f"""
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - ansible.builtin.include_vars: {{file: {ROOT}/roles/spectrum_scale/vars/main.yml}}
    - ansible.builtin.debug: {{var: __spectrum_scale_this_node.addresses}}
    - ansible.builtin.debug: {{var: hal_node.addresses}}
"""
    defaults = {"spectrum_scale_attributes": {}, "spectrum_scale_classes": [], "spectrum_scale_verbs": False}
    done = play_text(tmp_path, play, "hal05", sites=("hal",), ansible_connection="local", **defaults)
    assert done.returncode == 0, done.stdout + done.stderr
    tasks = json.loads(done.stdout)["plays"][0]["tasks"]
    shown, model = (next(iter(task["hosts"].values())) for task in tasks[1:])
    every = model["hal_node.addresses"]
    assert "bmc" in every
    of_networks = {address for network, address in every.items() if network != "bmc"}
    assert set(shown["__spectrum_scale_this_node.addresses"]) == of_networks


def test_an_attribute_that_is_listed_is_accepted(tmp_path: Path) -> None:
    declared = {"spectrum_scale_client_attributes": {"afmDIO": 2}, "spectrum_scale_license_accept": True}
    assert messages(tmp_path, **declared)[0] != 0
    assert messages(tmp_path, spectrum_scale_attributes_unchecked=["afmDIO"], **declared)[0] == 0

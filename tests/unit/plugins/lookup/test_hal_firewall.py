"""plugins/lookup/hal_firewall.py: which roles' openings a host has, and what is said of a file that is wrong."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader

ROOT = Path(__file__).resolve().parents[4]
ASKED: dict[str, Any] = {"networks": ["management", "bmc"], "interfaces": {"management": {"name": "eth0"}}}


@pytest.fixture
def roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of roles of its own."""
    monkeypatch.setattr("ansible.constants.DEFAULT_ROLES_PATH", [str(tmp_path)])
    return tmp_path


@pytest.fixture
def plugin() -> ModuleType:
    """The lookup, loaded as Ansible does: by its path."""
    spec = importlib.util.spec_from_file_location("hal_firewall_lookup", ROOT / "plugins/lookup/hal_firewall.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(plugin: ModuleType, groups: list[str] | None, **more: Any) -> list[dict[str, Any]]:
    variables = {"inventory_hostname": "hal05", "group_names": groups}
    (found,) = plugin.LookupModule(loader=DataLoader()).run(["zones"], variables, **{**ASKED, **more})
    zones: list[dict[str, Any]] = found
    return zones


EXTRA = [{"id": "x", "ports": ["8000-8010/tcp", "53/udp"], "why": "y"}]


def test_a_host_without_roles_has_its_zones_and_what_is_added(plugin: ModuleType) -> None:
    management = asked(plugin, None, extra=EXTRA)[0]
    assert (management["name"], management["interface"]) == ("management", "eth0")
    assert management["tcp"] == [{"first": 8000, "last": 8010}]
    assert "management port 53/udp" in management["shown"]
    assert '<port port="8000-8010" protocol="tcp"/>' in management["xml"]
    assert [one["name"] for one in asked(plugin, [])] == ["management", "other"]
    assert asked(plugin, [])[0]["tcp"] == []


def test_the_files_have_their_places_and_direct_rules_come_last_where_there_are_any(plugin: ModuleType) -> None:
    assert [one["path"] for one in asked(plugin, [])] == ["zones/management.xml", "zones/other.xml"]
    limited = asked(plugin, [], extra=[{"id": "x", "ports": ["80/tcp"], "each": 8, "why": "y"}])
    assert [(one["name"], one["path"]) for one in limited[:2]] == [
        ("management", "zones/management.xml"), ("other", "zones/other.xml"),
    ]  # fmt: skip
    (direct,) = limited[2:]
    assert (direct["name"], direct["path"], direct["interface"], direct["tcp"]) == ("direct", "direct.xml", None, [])
    assert [line.split()[2] for line in direct["shown"]] == ["ipv4", "ipv6"]
    assert direct["xml"].count("--connlimit-above 8 ") == 2


def test_a_network_that_is_trusted_lets_everything_in(plugin: ModuleType) -> None:
    assert asked(plugin, [], trusted=["management"])[0]["shown"][0] == "management target ACCEPT"
    assert asked(plugin, [])[0]["shown"][0] == "management target default"


def test_it_is_worked_out_once_for_the_same_question(plugin: ModuleType) -> None:
    first = asked(plugin, [])
    assert asked(plugin, []) is first
    assert asked(plugin, [], extra=EXTRA) is not first
    assert len(plugin._answers) == 1


@pytest.mark.parametrize("terms", [[], ["zone"], ["zones", "zones"]])
def test_zones_is_all_that_can_be_asked(plugin: ModuleType, terms: list[str]) -> None:
    with pytest.raises(AnsibleError) as caught:
        plugin.LookupModule(loader=DataLoader()).run(terms, {}, **ASKED)
    assert caught.value.message == "lookup hal_firewall: zones is all it knows"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"extra": [{"id": "x", "ports": ["8000"], "why": "y"}]}, 'x: "8000" is not a port; write 22/tcp'),
        ({"trusted": ["other"]}, "unknown network other; the model has bmc, management"),
    ],
)
def test_what_is_wrong_is_an_error_of_the_lookup(plugin: ModuleType, more: dict[str, Any], said: str) -> None:
    with pytest.raises(AnsibleError) as caught:
        asked(plugin, [], **more)
    assert str(caught.value.message).startswith(f"lookup hal_firewall: {said}")


def test_a_group_that_is_no_role_opens_nothing(plugin: ModuleType, roles: Path) -> None:
    (roles / "empty").mkdir()
    assert asked(plugin, ["nobody", "empty"]) == asked(plugin, [])

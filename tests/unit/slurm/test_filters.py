"""Settings over each other, with the names that a release has."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from ansible.errors import AnsibleFilterError

SOURCE = Path(__file__).resolve().parents[3] / "plugins" / "filter" / "hal_slurm.py"


@pytest.fixture(scope="module")
def filters() -> ModuleType:
    """The filter plugin, loaded as Ansible does: by its path."""
    spec = importlib.util.spec_from_file_location("hal_slurm_filter", SOURCE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings(filters: ModuleType, version: str, *layers: dict[str, object]) -> dict[str, str]:
    return {row["key"]: row["value"] for row in filters.hal_slurm_settings(layers, version)}


def test_later_layers_win_whatever_the_case_and_null_withdraws(filters: ModuleType) -> None:
    got = settings(
        filters,
        "22.05.8",
        {"KillWait": 30, "Prolog": "/a", "PrologFlags": ["Contain"]},
        {"killwait": 60, "PrologFlags": None},
    )
    assert got == {"KillWait": "60", "Prolog": "/a"}


def test_lists_get_commas_and_booleans_slurms_words(filters: ModuleType) -> None:
    got = settings(filters, "22.05.8", {"GresTypes": ["gpu", "mps"], "TrackWCKey": False})
    assert got == {"GresTypes": "gpu,mps", "TrackWCKey": "NO"}


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("19.05.8", {"FastSchedule": "2", "AccountingStoreJobComment": "YES"}),
        ("20.02.7", {"SlurmdParameters": "config_overrides", "AccountingStoreJobComment": "YES"}),
        ("22.05.8", {"SlurmdParameters": "config_overrides", "AccountingStoreFlags": "job_comment"}),
    ],
)
def test_names_are_those_of_the_release(filters: ModuleType, version: str, shown: dict[str, str]) -> None:
    layer: dict[str, object] = {"SlurmdParameters": ["config_overrides"], "AccountingStoreFlags": ["job_comment"]}
    assert settings(filters, version, layer) == shown


def test_cgroup_settings_have_their_own_words(filters: ModuleType) -> None:
    layer = {"ConstrainCores": True, "CgroupPlugin": "cgroup/v1"}
    assert filters.hal_slurm_cgroup_settings([layer], "20.02.7") == [{"key": "ConstrainCores", "value": "yes"}]
    assert len(filters.hal_slurm_cgroup_settings([layer], "22.05.8")) == 2


def test_a_version_that_is_none_is_refused(filters: ModuleType) -> None:
    with pytest.raises(AnsibleFilterError, match=r"is not year\.month\.patch"):
        filters.hal_slurm_settings([{}], "latest")

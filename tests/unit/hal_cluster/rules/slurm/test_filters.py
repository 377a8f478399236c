"""Settings over each other, with the names that a release has."""

from __future__ import annotations

import pytest

from hal_cluster.rules.errors import RuleError
from hal_cluster.rules.slurm import settings as rule


def settings(version: str, *layers: dict[str, object]) -> dict[str, str]:
    return {row["key"]: row["value"] for row in rule.settings(layers, version)}


def test_later_layers_win_whatever_the_case_and_null_withdraws() -> None:
    got = settings(
        "22.05.8",
        {"KillWait": 30, "Prolog": "/a", "PrologFlags": ["Contain"]},
        {"killwait": 60, "PrologFlags": None},
    )
    assert got == {"KillWait": "60", "Prolog": "/a"}


def test_lists_get_commas_and_booleans_slurms_words() -> None:
    got = settings("22.05.8", {"GresTypes": ["gpu", "mps"], "TrackWCKey": False})
    assert got == {"GresTypes": "gpu,mps", "TrackWCKey": "NO"}


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("19.05.8", {"FastSchedule": "2", "AccountingStoreJobComment": "YES"}),
        ("20.02.7", {"SlurmdParameters": "config_overrides", "AccountingStoreJobComment": "YES"}),
        ("22.05.8", {"SlurmdParameters": "config_overrides", "AccountingStoreFlags": "job_comment"}),
    ],
)
def test_names_are_those_of_the_release(version: str, shown: dict[str, str]) -> None:
    layer: dict[str, object] = {"SlurmdParameters": ["config_overrides"], "AccountingStoreFlags": ["job_comment"]}
    assert settings(version, layer) == shown


def test_cgroup_settings_have_their_own_words() -> None:
    layer = {"ConstrainCores": True, "CgroupPlugin": "cgroup/v1"}
    assert rule.cgroup_settings([layer], "20.02.7") == [{"key": "ConstrainCores", "value": "yes"}]
    assert len(rule.cgroup_settings([layer], "22.05.8")) == 2


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(RuleError, match=r"is not year\.month\.patch"):
        rule.settings([{}], "latest")

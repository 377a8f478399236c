"""The module itself: what it prints and logs on the node."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from ansible.module_utils import basic

MODULE = Path(__file__).resolve().parents[4] / "plugins" / "modules" / "hal_expect.py"
ENTRIES = [
    {"file": {"path": "/proc/sys/kernel/ostype"}, "equal": "hunter2", "secret": True},
    {"file": {"path": "/proc/sys/kernel/ostype"}, "equal": "Linux"},
]


@pytest.fixture
def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hal_expect_module", MODULE)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_neither_output_nor_log_of_the_node_repeats_what_was_expected(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": {"entries": ENTRIES}}).encode())
    monkeypatch.setattr(basic.AnsibleModule, "log", lambda _self, message, log_args=None: logged.append(message))
    with pytest.raises(SystemExit) as ended:
        module.main()
    text = capsys.readouterr().out
    answer = json.loads(text)
    assert ended.value.code == 0
    assert [one["status"] for one in answer["evaluated"]] == ["fail", "pass"]
    assert answer["changed"] is False
    assert "hunter2" not in text
    assert logged == ["hal_expect evaluates 2 expectations"]

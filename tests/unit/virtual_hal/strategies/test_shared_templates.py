"""The lab's strategies/shared_templates.py: what one process has compiled, others need not, nor is it another."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible import constants
from ansible.parsing.dataloader import DataLoader
from ansible.template import AnsibleEnvironment, AnsibleNativeEnvironment, Templar

from hal_cluster.expect import templating

PROGRAM = Path(__file__).resolve().parents[4] / "molecule/virtual_hal/strategies/shared_templates.py"
VARIABLES = {"name": "hal01", "words": ["a", "b"]}


class Process:
    """One of Ansible's processes, as far as templates go: which texts it has compiled."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.compiled = module, list[str]()
        original: Callable[..., Any] = module._compile

        def counting(environment: Any, source: Any, *more: Any, **named: Any) -> Any:
            self.compiled.append(str(source))
            return original(environment, source, *more, **named)

        module._compile = counting  # type: ignore[attr-defined]

    def template(self, text: str) -> Any:
        """Return what becomes of a text."""
        return Templar(DataLoader(), VARIABLES).template(text)


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Process]:
    """Each is one that was forked when nothing was compiled yet; the last one is at work."""
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    ansibles = AnsibleEnvironment.compile
    monkeypatch.setattr(AnsibleEnvironment, "compile", ansibles)

    def start() -> Process:
        spec = importlib.util.spec_from_file_location("shared_templates", PROGRAM)
        assert spec is not None
        assert spec.loader is not None
        AnsibleEnvironment.compile = ansibles
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if (tmp_path / "templates").exists():
            module._folder = str(tmp_path / "templates")  # type: ignore[attr-defined]
            AnsibleEnvironment.compile = module._shared
        else:
            module.share()
            module.share()  # a second play
        return Process(module)

    return start


TEXTS = [
    "{{ name }} and {{ words | join(',') }}",
    "{% for word in words %}{{ loop.index }}{{ word | upper }}{% endfor %}",
    "{% set x = words | length %}{{ 'two' if x is eq(2) else name }}",
    "{{ words is defined }} {{ words | map('upper') | list }}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_one_process_has_compiled_another_need_not(processes: Callable[[], Process], text: str) -> None:
    first = processes()
    said = first.template(text)
    assert first.template(text) == said
    assert first.compiled.count(text) == 1
    second = processes()
    assert second.template(text) == said
    assert text not in second.compiled


@pytest.mark.parametrize(
    "text", ["{{ 1000000000 | random }}", "{{ name }}{{ '%s' | strftime }}", "{{ [1, 2] | shuffle }}"]
)
def test_what_jinja_works_out_when_it_compiles_is_worked_out_each_time(
    processes: Callable[[], Process], text: str
) -> None:
    process = processes()
    process.template(text)
    process.template(text)
    assert process.compiled.count(text) == 2
    assert list((Path(constants.DEFAULT_LOCAL_TMP) / "templates").iterdir()) == []


def test_the_same_text_with_other_settings_is_another(processes: Callable[[], Process]) -> None:
    process = processes()
    text = "{% if name %}\n{{ name }}\n{% endif %}\n"
    plain = process.template(text)
    assert process.template(f"#jinja2: trim_blocks:False\n{text}") == "\nhal01\n"
    assert process.template(text) == plain == "hal01\n"


def test_what_promises_are_templated_with_shares_too(processes: Callable[[], Process]) -> None:
    def prepare() -> list[str]:
        process = processes()
        known = dict(templating._compiled)
        templating._compiled.clear()
        assert templating.CompilingTemplar(DataLoader(), VARIABLES).template(TEXTS[0]) == "hal01 and a,b"
        templating._compiled.update(known)
        return process.compiled

    assert prepare() == [TEXTS[0]]
    assert prepare() == []


def test_what_becomes_no_text_is_left_alone(processes: Callable[[], Process]) -> None:
    process = processes()
    for _ in range(2):
        AnsibleNativeEnvironment().from_string("{{ 1 + name }}")
    assert process.compiled == ["{{ 1 + name }}"] * 2
    assert AnsibleEnvironment().compile("{{ name }}", raw=True).startswith("from jinja2.runtime import")


def test_a_text_that_is_no_template_is_refused_as_ever(processes: Callable[[], Process]) -> None:
    processes()
    for _ in range(2):
        with pytest.raises(Exception, match="expected token 'end of print statement', got 'b'"):
            AnsibleEnvironment().from_string("{{ a b }}")


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_what_cannot_be_read_is_compiled_again(processes: Callable[[], Process], damage: bytes | None) -> None:
    processes().template(TEXTS[0])
    (kept,) = (Path(constants.DEFAULT_LOCAL_TMP) / "templates").iterdir()
    kept.write_bytes(damage) if damage is not None else kept.unlink()
    assert processes().template(TEXTS[0]) == "hal01 and a,b"


def test_a_disk_that_is_full_costs_time_only(processes: Callable[[], Process], monkeypatch: pytest.MonkeyPatch) -> None:
    process = processes()

    def full(*_arguments: Any) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert process.template(TEXTS[0]) == "hal01 and a,b"


def test_nobody_else_can_read_them(processes: Callable[[], Process]) -> None:
    processes().template(TEXTS[0])
    assert (Path(constants.DEFAULT_LOCAL_TMP) / "templates").stat().st_mode & 0o777 == 0o700

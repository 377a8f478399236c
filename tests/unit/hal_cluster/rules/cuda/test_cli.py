"""`python -m hal_cluster.rules.cuda` as an administrator types it."""

from __future__ import annotations

import pytest

from hal_cluster.rules.cuda import cli
from hal_cluster.rules.cuda.cli import main
from hal_cluster.rules.cuda.table import load
from hal_cluster.rules.cuda.versions import HalCudaError

HAL = ["check", "--driver", "440.33.01", "--kernel", "4.18.0-80.7.2.el7", "--gpu", "Tesla V100-SXM2-16GB"]


@pytest.mark.parametrize(
    ("arguments", "status", "begins"),
    [
        ([*HAL, "--toolkit", "10.2"], 0, ["goes together"]),
        (
            [*HAL, "--toolkit", "10.2", "--toolkit", "11.0"],
            2,
            ["refused: NVIDIA has no packages", "refused: CUDA 11.0"],
        ),
        ([*HAL[:4], "4.14.0-49.el7a", "--toolkit", "10.2"], 3, ["remark: whether driver 440.33.01 builds on kernel"]),
        (["check", "--toolkit", "10.2", "--arch", "x86_64"], 0, ["goes together"]),
        (["check", "--driver", "x", "--toolkit", "10.2"], 2, ['refused: nvidia_driver_version: "x" is not a version']),
    ],
)
def test_the_status_says_whether_it_goes_together(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, begins: list[str]
) -> None:
    assert main(arguments) == status
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == len(begins)
    assert all(line.startswith(begin) for line, begin in zip(shown, begins, strict=True))


def test_the_table_is_shown_whole_with_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table"]) == 0
    shown = capsys.readouterr().out
    table = load()
    for update in (one for row in table.toolkits for one in row.updates):
        assert f" {update.version} " in shown
    for source in table.sources.values():
        assert source.url in shown
    assert "  10.2  10.2.89   440.33      [1]\n" in shown
    assert "  rhel7  ppc64le  7.5         10.2       [" in shown


def test_a_table_that_cannot_be_used_drives_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged() -> None:
        raise HalCudaError("compatibility.yml:3: \x1b[2J\u202e is no driver\ncompatibility.yml:4: neither")

    monkeypatch.setattr(cli, "load", damaged)
    assert main(["table"]) == 2
    said = "compatibility.yml:3: \\x1b[2J\\u202e is no driver\ncompatibility.yml:4: neither\n"
    assert capsys.readouterr() == ("", said)


def test_what_was_asked_for_drives_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    odd = "x\x1b[2J\u202e\nrefused: y"
    main(["check", *(word for name in ("driver", "toolkit", "arch", "kernel", "gpu") for word in (f"--{name}", odd))])
    main([*HAL, "--toolkit", "10.2", "--compat", odd, "--gpu", odd, "--distribution", odd])
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) > 5
    assert all(line.isprintable() and not line.startswith("refused: y") for line in lines)

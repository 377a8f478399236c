"""What the roles ask of hal_cluster.rules.cuda: each filter answers as its function does, and words its errors."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

SOURCE = Path(__file__).resolve().parents[4] / "plugins" / "filter" / "hal_cuda.py"


@pytest.fixture(scope="module")
def filters() -> dict[str, Callable[..., Any]]:
    """The filters, loaded as Ansible does: by the path of the plugin."""
    spec = importlib.util.spec_from_file_location("hal_cuda_filter", SOURCE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Callable[..., Any]] = module.FilterModule().filters()
    return found


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("hal_cuda_packages", [["10.2", "10.1.243"]], ["cuda-toolkit-10-2", "cuda-toolkit-10-1-10.1.243"]),
        ("hal_cuda_releases", [["10.2.89"]], ["10.2"]),
        ("hal_cuda_minimum_driver", [["10.1", "10.2"]], "440.33"),
        ("hal_cuda_undeclared", [["cuda-nvcc-10-1", "cuda-nvcc-10-2"], ["10.2"]], {"10.1": ["cuda-nvcc-10-1"]}),
        ("hal_cuda_with_driver", [["cuda-10-2", "cuda-toolkit-10-2"]], ["cuda-10-2"]),
        ("hal_cuda_problems", [["10.2"], "440.33.01", "ppc64le", "rhel7"], []),
        ("hal_cuda_remarks", [["10.2"], "440.33.01", "ppc64le", "rhel7"], []),
        ("hal_driver_problems", ["440.33.01", "ppc64le", "4.18.0-80.7.2.el7", []], []),
        ("hal_driver_remarks", ["440.33.01", "ppc64le", "4.18.0-80.7.2.el7", []], []),
    ],
)
def test_a_filter_is_its_function(
    filters: dict[str, Callable[..., Any]], name: str, arguments: list[Any], answer: object
) -> None:
    assert filters[name](*arguments) == answer


def test_a_module_is_offered_for_each_toolkit(filters: dict[str, Callable[..., Any]]) -> None:
    (one, other) = filters["hal_cuda_modules"](["10.2", "10.1.243"], "10.1")
    assert (one["version"], one["default"]) == ("10.2", False)
    assert (other["version"], other["default"], other["roots"]) == ("10.1", True, ["/usr/local/cuda-10.1/bin/nvcc"])


def test_a_version_that_is_none_is_an_error_of_the_filter(filters: dict[str, Callable[..., Any]]) -> None:
    with pytest.raises(
        AnsibleFilterError, match=r'^"ten" is not a release of CUDA; write one such as 10\.2 or 10\.2\.89$'
    ):
        filters["hal_cuda_releases"](["ten"])

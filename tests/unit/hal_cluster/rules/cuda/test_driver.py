"""What is said of a driver on a node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.rules.cuda.driver import driver_problems, driver_remarks

V100 = "Tesla V100-SXM2-16GB"
POWER9 = ("ppc64le", "4.18.0-80.7.2.el7")
X86 = ("x86_64", "3.10.0-1062.el7")


def test_hal_s_own_pair_goes_together() -> None:
    assert driver_problems("440.33.01", *POWER9, [V100] * 4) == []
    assert driver_remarks("440.33.01", *POWER9, [V100] * 4) == []
    assert driver_remarks("440.33.01", "x86_64", "3.10.0-1062.el7.x86_64", []) == []


@pytest.mark.parametrize(
    ("driver", "node", "model", "said"),
    [
        (
            "590.48.01",
            X86,
            V100,
            "driver 590.48.01 does not drive Tesla V100-SXM2-16GB (Volta): branch 580 is the last that does (NVIDIA,"
            " deprecation schedule of the Unix graphics driver, as the press quotes it); set nvidia_driver_version to"
            " one of 580 or earlier",
        ),
        (
            "495.29.05",
            X86,
            "Tesla K80",
            "driver 495.29.05 does not drive Tesla K80 (Kepler): branch 470 is the last that does (NVIDIA, deprecation"
            " schedule of the Unix graphics driver, as the press quotes it); set nvidia_driver_version to one of 470 or"
            " earlier",
        ),
        (
            "440.33.01",
            X86,
            "NVIDIA A100-SXM4-40GB",
            "driver 440.33.01 does not drive NVIDIA A100-SXM4-40GB (Ampere), which needs 450.36.06 or later (NVIDIA,"
            " CUDA compatibility guide, hardware generations of drivers and toolkits); set nvidia_driver_version",
        ),
        (
            "555.42.02",
            POWER9,
            V100,
            "driver 555.42.02 does not exist for ppc64le: branch 550 is the last (NVIDIA's installers for ppc64le, the"
            " last being cuda_12.4.1_550.54.15_linux_ppc64le.run); set nvidia_driver_version to one of 550 or earlier",
        ),
    ],
)
def test_what_does_not_go_together_is_said_with_source_and_remedy(
    driver: str, node: tuple[str, str], model: str, said: str
) -> None:
    assert driver_problems(driver, *node, [model]) == [said]


def test_the_last_branch_still_does() -> None:
    assert driver_problems("580.95.05", *X86, [V100]) == []
    assert driver_problems("550.54.15", *POWER9, [V100]) == []
    assert driver_problems("470.256.02", *X86, ["Tesla K80"]) == []


def test_what_no_source_says_is_no_pass_and_no_refusal() -> None:
    assert driver_problems("440.64.00", *POWER9, [V100]) == []
    (said,) = driver_remarks("440.64.00", *POWER9, [V100])
    assert said.startswith(
        "whether driver 440.64.00 builds on kernel 4.18.0-80.7.2.el7 (ppc64le) is not known: the table has 440.33.01 on"
    )
    assert said.endswith("; try it on one node first")
    (said,) = driver_remarks("440.33.01", "x86_64", "3.10.0-693.el7", [])
    assert "for x86_64 the table has 3.10.0-1062.el7 with 440.33.01" in said


def test_a_gpu_that_the_table_does_not_have_is_said_once() -> None:
    assert driver_remarks("440.33.01", *POWER9, ["Radeon VII", "Radeon VII"]) == [
        'GPU "Radeon VII" is not in the table: whether driver 440.33.01 drives it is not known'
    ]


def test_a_driver_after_the_table_s_time_is_a_remark() -> None:
    assert driver_problems("999.10", *X86, []) == []
    assert "what it supports is not known" in driver_remarks("999.10", *X86, [])[0]


@pytest.mark.parametrize("kernel", [None, ""])
def test_a_model_without_kernel_is_a_remark(kernel: str | None) -> None:
    (said,) = driver_remarks("440.33.01", "ppc64le", kernel, [])
    assert said == "the model declares no kernel: whether driver 440.33.01 builds on it is not known"


def test_slips_are_one_line_each() -> None:
    assert driver_problems("440,33", *POWER9, [V100]) == [
        'nvidia_driver_version: "440,33" is not a version of a driver; write one such as 440.33.01'
    ]
    assert driver_problems(440.33, *POWER9, [V100]) == [
        'nvidia_driver_version: "440.33" is not a version of a driver; write one such as 440.33.01, in quotes'
    ]
    assert driver_problems("440.33.01", "aarch64", "4.18.0-80.7.2.el7", []) == [
        'architecture "aarch64" is not in the table; it has ppc64le, x86_64'
    ]
    assert driver_problems("440.33.01", "ppc64le", "el7", []) == [
        'kernel: "el7" is not a release of a kernel; write one such as 4.18.0-80.7.2.el7'
    ]


@given(
    st.one_of(st.text(max_size=60), st.integers(), st.floats(), st.none(), st.lists(st.text(max_size=3))),
    st.text(max_size=9),
)
def test_whatever_somebody_writes_each_answer_is_one_line(driver: object, kernel: str) -> None:
    said = driver_problems(driver, "ppc64le", kernel, [V100]) + driver_remarks(driver, "ppc64le", kernel, [V100])
    assert all("\n" not in one and one for one in said)


@given(st.integers(100, 999), st.integers(0, 999), st.integers(0, 99))
def test_each_driver_is_judged_by_its_branch_alone_at_the_upper_end(branch: int, minor: int, patch: int) -> None:
    refused = driver_problems(f"{branch}.{minor}.{patch:02}", *X86, ["Tesla K80"])
    assert bool(refused) == (branch > 470)

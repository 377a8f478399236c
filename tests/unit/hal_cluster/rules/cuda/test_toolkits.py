"""What is said of toolkits on a node."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.rules.cuda.table import load
from hal_cluster.rules.cuda.toolkits import cuda_problems, cuda_remarks, minimum_driver

V100 = "Tesla V100-SXM2-16GB"
NOTES = "NVIDIA, CUDA 13.2 Update 2 release notes, table 3"
RELEASES = [row.release for row in load().toolkits]
RANGE = st.tuples(st.integers(300, 620), st.integers(0, 130), st.integers(0, 99))


def on_x86(toolkits: Sequence[object], driver: object, *models: str) -> list[str]:
    return cuda_problems(toolkits, driver, "x86_64", "rhel7", models)


def test_hal_s_own_toolkit_goes_with_its_driver() -> None:
    assert cuda_problems(["10.2"], "440.33.01", "ppc64le", "rhel7", [V100] * 4) == []
    assert cuda_remarks(["10.2"], "440.33.01", "ppc64le", "rhel7", [V100] * 4) == []
    assert cuda_problems(["10.1.243", "10.2.89"], "440.33.01", "ppc64le", "rhel7", [V100]) == []


def test_a_driver_that_is_too_old_is_refused_with_source_and_remedy() -> None:
    assert on_x86(["11.0"], "440.33.01", V100) == [
        f"CUDA 11.0 needs driver 450.51.06 or later ({NOTES}); 440.33.01 is declared: set nvidia_driver_version,"
        " or leave cuda_toolkits at 10.2"
    ]


def test_without_a_toolkit_that_would_go_none_is_proposed() -> None:
    (said,) = cuda_problems(["11.0"], "440.33.01", "ppc64le", "rhel8", [V100])
    assert said.endswith("440.33.01 is declared: set nvidia_driver_version")


def test_an_exact_version_has_its_own_minimum() -> None:
    assert on_x86(["11.0.2"], "450.51.05") == []
    assert on_x86(["11.0.3"], "450.51.05")[0].startswith("CUDA 11.0 needs driver 450.51.06 or later")


def test_a_driver_of_the_same_major_version_runs_it_with_limits() -> None:
    assert on_x86(["11.8"], "450.80.02", V100) == []
    (said,) = cuda_remarks(["11.8"], "450.80.02", "x86_64", "rhel7", [V100])
    assert said.startswith("CUDA 11.8 comes with driver 520.61.05; on 450.80.02 it runs by minor version compatibility")
    assert on_x86(["11.8"], "450.51.06", V100)[0].startswith("CUDA 11.8 needs driver 520.61.05 or later")
    assert on_x86(["12.4"], "525.60.13") == []
    assert on_x86(["12.4"], "520.61.05")[0].startswith("CUDA 12.4 needs driver 550.54.15")


def test_a_toolkit_without_a_stated_driver_needs_its_major_version_s() -> None:
    arguments = (["13.4"], "570.26", "x86_64", "rhel9", ["NVIDIA H100 80GB HBM3"])
    assert "CUDA 13.4 needs driver 580.65.06 or later (NVIDIA, CUDA compatibility guide" in cuda_problems(*arguments)[0]
    newer = (["13.4"], "610.43.02", "x86_64", "rhel9", ["NVIDIA H100 80GB HBM3"])
    assert cuda_problems(*newer) == []
    assert any("states no driver of its own" in said for said in cuda_remarks(*newer))


def test_a_node_without_gpus_needs_no_driver_but_a_package() -> None:
    assert cuda_problems(["10.2"], None, "ppc64le", "rhel7") == []
    (said,) = cuda_problems(["11.0"], None, "ppc64le", "rhel7")
    assert said == (
        "NVIDIA has no packages of CUDA 11.0 for rhel7 on ppc64le, only of 7.5 to 10.2 (NVIDIA's repository"
        " rhel7/ppc64le, its index); take one of these in cuda_toolkits"
    )


def test_power_ends_with_12_4() -> None:
    assert cuda_problems(["12.4"], "550.54.15", "ppc64le", "rhel8", [V100]) == []
    assert cuda_problems(["12.5"], "550.54.15", "ppc64le", "rhel8", [V100])[0].startswith(
        "CUDA 12.5 does not exist for ppc64le: 12.4 is the last (NVIDIA, CUDA 12.4 Update 1 and 12.5 release notes"
    )


def test_volta_ends_with_12_9_and_blackwell_begins_with_12_8() -> None:
    (said,) = cuda_problems(["13.0"], "580.95.05", "x86_64", "rhel9", [V100])
    assert said == (
        f"CUDA 13.0 makes no programs for {V100} (Volta): 12.9 is the last that does (NVIDIA, CUDA 13.0 release notes,"
        " deprecated architectures); take 12.9 or earlier in cuda_toolkits"
    )
    (said,) = cuda_problems(["12.4"], "570.26", "x86_64", "rhel9", ["NVIDIA B200"])
    assert said.startswith("CUDA 12.4 makes no programs for NVIDIA B200 (Blackwell): 12.8 is the first that does")


def test_several_gpus_of_one_generation_are_one_sentence() -> None:
    assert len(cuda_problems(["13.0"], "580.95.05", "x86_64", "rhel9", ["Tesla V100-SXM2-16GB", "TITAN V", V100])) == 1


def test_a_distribution_that_the_table_does_not_have_is_a_remark() -> None:
    assert cuda_problems(["12.8"], "570.26", "x86_64", "rhel9", ["NVIDIA B200"]) == []
    assert 'which toolkits NVIDIA has for "rhel9" on x86_64 is not in the table' in cuda_remarks(
        ["12.8"], "570.26", "x86_64", "rhel9", ["NVIDIA B200"]
    )


def test_an_unknown_toolkit_is_named_with_what_there_is() -> None:
    assert on_x86(["10.3"], "440.33.01") == [
        "cuda_toolkits: CUDA 10.3 is not in the table; take one of 10.0, 10.1, 10.2"
    ]
    assert on_x86(["20.1"], "440.33.01") == ["cuda_toolkits: CUDA 20.1 is not in the table, which has 9.0 to 13.4"]
    assert on_x86(["11.3.7"], "470.82.01") == [
        "cuda_toolkits: CUDA 11.3.7 is not in the table, which has 11.3.0, 11.3.1"
    ]


def test_slips_are_one_line_each() -> None:
    assert on_x86(["ten", 10.2, "10.2", "10.2.89"], "44O.33.01") == [
        'cuda_toolkits: "ten" is not a release of CUDA; write one such as 10.2 or 10.2.89',
        'cuda_toolkits: "10.2" is not a release of CUDA; write one such as 10.2 or 10.2.89, in quotes',
        "cuda_toolkits names CUDA 10.2 twice; both would be /usr/local/cuda-10.2: name one",
        'nvidia_driver_version: "44O.33.01" is not a version of a driver; write one such as 440.33.01',
    ]


def test_a_slip_does_not_hide_those_after_it() -> None:
    assert on_x86(["ten", "20.1", "11.3.7", "10.3"], "440.33.01") == [
        'cuda_toolkits: "ten" is not a release of CUDA; write one such as 10.2 or 10.2.89',
        "cuda_toolkits: CUDA 20.1 is not in the table, which has 9.0 to 13.4",
        "cuda_toolkits: CUDA 11.3.7 is not in the table, which has 11.3.0, 11.3.1",
        "cuda_toolkits: CUDA 10.3 is not in the table; take one of 10.0, 10.1, 10.2",
    ]


class TestCompat:
    """Toolkits on the driver of an older major version."""

    def said(self, toolkit: str, driver: str, model: str = V100) -> tuple[list[str], list[str]]:
        arguments = ([toolkit], driver, "x86_64", "rhel7", [model], [toolkit])
        return cuda_problems(*arguments), cuda_remarks(*arguments)

    def test_a_branch_that_it_is_made_for(self) -> None:
        assert self.said("11.4", "418.226.00") == ([], [])
        assert self.said("12.4", "450.248.02") == ([], [])

    def test_a_branch_beyond_its_end(self) -> None:
        (said,), _ = self.said("11.8", "418.226.00")
        assert said.startswith("cuda_compat: on branch 418 cuda-compat goes up to CUDA 11.6, not 11.8 (")

    def test_a_driver_before_its_beginning(self) -> None:
        (said,), _ = self.said("11.4", "418.39")
        assert said.startswith("cuda_compat: cuda-compat needs driver 418.40.04 or later of branch 418 (")

    def test_a_branch_that_no_source_has(self) -> None:
        problems, (said,) = self.said("11.0", "440.33.01")
        assert problems == []
        assert said.startswith("whether cuda-compat lets CUDA 11.0 run on driver 440.33.01 is not known")

    def test_a_gpu_that_is_not_for_data_centres(self) -> None:
        (said,), _ = self.said("11.4", "418.226.00", "GeForce GTX 1080 Ti")
        assert said.startswith("cuda_compat: cuda-compat is for data centre GPUs, not for GeForce GTX 1080 Ti (")

    def test_where_it_is_not_needed(self) -> None:
        problems, (said,) = self.said("10.2", "440.33.01")
        assert (problems, said) == ([], "cuda_compat: CUDA 10.2 needs no cuda-compat on driver 440.33.01")

    def test_a_toolkit_that_has_none(self) -> None:
        (said,), _ = self.said("9.2", "390.46")
        assert said.startswith("cuda_compat: there is no cuda-compat for CUDA 9.2, only from 10.0 on (")

    def test_a_release_that_is_no_toolkit_of_the_site(self) -> None:
        assert cuda_problems(["10.2"], "440.33.01", "x86_64", "rhel7", [V100], ["11.0"]) == [
            'cuda_compat: "11.0" is not a release that cuda_toolkits has (10.2); name one of those'
        ]


def test_the_least_driver_of_several_toolkits() -> None:
    assert minimum_driver(["10.1", "10.2"]) == "440.33"
    assert minimum_driver(["10.2", "11.8"]) == "450.80.02"
    assert minimum_driver(["11.0"]) == "450.51.06"
    assert minimum_driver([]) is None


@given(RANGE, RANGE, st.sampled_from(RELEASES))
def test_a_later_driver_never_has_more_against_a_toolkit(
    one: tuple[int, int, int], other: tuple[int, int, int], release: str
) -> None:
    older, newer = (f"{a}.{b}.{c:02}" for a, b, c in sorted((one, other)))
    assert len(on_x86([release], newer)) <= len(on_x86([release], older))


@given(st.sampled_from(RELEASES))
def test_the_least_driver_is_the_least(release: str) -> None:
    least = minimum_driver([release])
    assert least is not None
    arguments = ([release], "x86_64", "rhel7")

    def refused(driver: str) -> bool:
        return any("needs driver" in said for said in cuda_problems(arguments[0], driver, *arguments[1:]))

    branch, minor, *rest = (int(part) for part in least.split("."))
    before = f"{branch}.{minor}.{rest[0] - 1:02}" if rest and rest[0] else f"{branch}.{minor - 1}.99"
    assert not refused(least)
    assert refused(before)


ANYTHING = st.one_of(st.text(max_size=50), st.integers(), st.floats(), st.none(), st.sampled_from(RELEASES))


MODELS = st.lists(st.one_of(st.text(max_size=20), st.sampled_from(["V100\n", V100, "\tGTX 970"])), max_size=3)


@given(st.lists(ANYTHING, max_size=4), ANYTHING, st.text(max_size=8), st.text(max_size=8), MODELS)
def test_whatever_somebody_writes_each_answer_is_one_line(
    toolkits: list[object], driver: object, arch: str, distribution: str, models: list[str]
) -> None:
    for where in (arch, "ppc64le", "x86_64"):
        for said in (cuda_problems, cuda_remarks):
            assert all(text and "\n" not in text for text in said(toolkits, driver, where, distribution, models))


@pytest.mark.parametrize("release", RELEASES)
def test_no_pair_is_both_refused_and_proposed(release: str) -> None:
    for said in on_x86([release], "440.33.01", V100):
        assert not said.endswith(f"leave cuda_toolkits at {release}")

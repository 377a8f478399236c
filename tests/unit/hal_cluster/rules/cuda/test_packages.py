"""Names of NVIDIA's packages, and the modules that users load toolkits by."""

from __future__ import annotations

import pytest

from hal_cluster.rules.cuda.packages import modules, releases, toolkit_packages, undeclared, with_driver
from hal_cluster.rules.cuda.versions import VersionError
from hal_cluster.rules.lmod.declared import problems
from hal_cluster.rules.lmod.files import modulerc

# What cuda-10-2 and cuda-toolkit-11-3 leave installed on EL7, in part (names: index of NVIDIA's rhel7 repositories).
INSTALLED = [
    "cuda-toolkit-10-2",
    "cuda-nvcc-10-2",
    "cuda-cudart-dev-10-2",
    "cuda-nsight-compute-10-2",
    "cuda-compat-10-2",
    "cuda-10-2",
    "cuda-toolkit-11-3",
    "cuda-nvcc-11-3",
    "libcublas-11-3",
    "libcublas-devel-11-3",
    "libnvjpeg-11-3",
    "libnpp-devel-11-3",
    "cuda-toolkit-11-3-config-common",
    "cuda-toolkit-config-common",
    "libcublas10",
    "libcudnn8",
    "cuda-drivers",
    "nvidia-driver-latest-dkms",
    "libnvidia-container1",
    "glibc",
]


def test_packages_of_declared_toolkits() -> None:
    assert toolkit_packages(["10.2", "11.3.1"]) == ["cuda-toolkit-10-2", "cuda-toolkit-11-3-11.3.1"]
    assert releases(["10.2", "11.3.1"]) == ["10.2", "11.3"]
    with pytest.raises(VersionError, match='"ten" is not a release of CUDA'):
        toolkit_packages(["ten"])


def test_what_belongs_to_a_withdrawn_toolkit_and_nothing_else() -> None:
    assert undeclared(INSTALLED, ["10.2"]) == {
        "11.3": [
            "cuda-nvcc-11-3",
            "cuda-toolkit-11-3",
            "cuda-toolkit-11-3-config-common",
            "libcublas-11-3",
            "libcublas-devel-11-3",
            "libnpp-devel-11-3",
            "libnvjpeg-11-3",
        ]
    }
    assert undeclared(INSTALLED, ["10.2.89", "11.3.1"]) == {}


def test_packages_that_bring_a_driver() -> None:
    bring = ["cuda", "cuda-10-2", "cuda-runtime-10-2", "cuda-demo-suite-10-2", "cuda-drivers", "cuda-drivers-470"]
    assert with_driver([*bring, "cuda-toolkit-10-2", "cuda-samples-10-2", "cuda-compat-10-2", "cudatoolkit"]) == bring


def test_each_toolkit_has_a_module_of_its_release_and_they_can_be_written() -> None:
    found = modules(["10.1.243", "10.2", "10.2.89"], "10.2")
    assert [(one["version"], one["default"]) for one in found] == [("10.1", False), ("10.2", True)]
    assert problems(found) == []
    assert found[1]["roots"] == ["/usr/local/cuda-10.2/bin/nvcc"]
    assert found[1]["set"] == {"CUDA_HOME": "/usr/local/cuda-10.2"}
    assert found[1]["prepend"] == {
        "PATH": ["/usr/local/cuda-10.2/bin"],
        "LD_LIBRARY_PATH": ["/usr/local/cuda-10.2/lib64"],
    }
    assert 'module_version("cuda/10.2", "default")' in modulerc(found)

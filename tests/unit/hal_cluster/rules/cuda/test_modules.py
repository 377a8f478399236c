"""The modules that users load toolkits by."""

from __future__ import annotations

from hal_cluster.rules.cuda.modules import modules
from hal_cluster.rules.lmod.declared import problems
from hal_cluster.rules.lmod.files import modulerc


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

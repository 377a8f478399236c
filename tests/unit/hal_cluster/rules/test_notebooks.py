"""Kernels and modules of notebooks, as they are declared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hal_cluster.rules import notebooks
from hal_cluster.rules.lmod.declared import problems


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"module": "a/1"}, "notebooks_kernels: not a list"),
        (["wmlce/1"], "notebooks_kernels[0]: not a mapping"),
        ([{"module": "wmlce"}], "module is wmlce; write NAME/VERSION"),
        ([{"modul": "wmlce/1", "module": "wmlce/1"}], "modul is not a field"),
        ([{"module": "wmlce/1", "title": 1}], "title is not text"),
        ([{"module": "wmlce/1.A"}, {"module": "wmlce/1.a"}], "wmlce-1.a is declared 2 times"),
        ([{"module": "../x/1"}], "write NAME/VERSION"),
    ],
)
def test_a_fault_is_said_with_what_would_be_right(declared: Any, words: str) -> None:
    assert words in notebooks.kernel_problems(declared)[0]


def test_a_kernel_loads_its_module() -> None:
    declared = [{"module": "wmlce/1.7.0-py3.7", "title": "WMLCE"}, {"module": "h2o/3"}]
    assert notebooks.kernel_problems(declared) == []
    table = notebooks.kernel_table(declared, "/opt/apps/jupyter/kernels", "/usr/libexec/kernel")
    assert table[0]["path"] == "/opt/apps/jupyter/kernels/wmlce-1.7.0-py3.7/kernel.json"
    content = json.loads(table[0]["content"])
    assert content["argv"] == ["/usr/libexec/kernel", "wmlce/1.7.0-py3.7", "{connection_file}"]
    assert content["display_name"] == "WMLCE"
    assert json.loads(table[1]["content"])["display_name"] == "Python (h2o/3)"


def environment(**changes: Any) -> dict[str, Any]:
    return {
        "name": "jupyter", "version": "6", "title": "Jupyter", "default": True, "roots": ["/home/apps/jupyter/6"],
        "settings_file": "/home/apps/jupyter/6/.hal/activate.lua", "owner_role": "notebooks", **changes,
    }  # fmt: skip


def test_lab_loads_jupyter_and_both_find_the_kernels() -> None:
    made = notebooks.modules([environment(), environment(name="h2o")], "/opt/apps/jupyter", "", "/c")
    assert problems(made) == []
    assert [one["name"] for one in made] == ["jupyter", "h2o", "jupyterlab"]
    assert made[0]["prepend"] == {"JUPYTER_PATH": ["/opt/apps/jupyter"]}
    assert "prepend" not in made[1]
    assert made[2]["requires"] == ["jupyter/6"]


def test_a_retired_one_can_be_unloaded_whole_and_has_no_lab() -> None:
    (made,) = notebooks.modules([environment(default=False, retired="use 7")], "/opt/apps/jupyter", "jupyter", "/c")
    assert made["prepend"] == {"JUPYTER_PATH": ["/opt/apps/jupyter"]}


def test_an_image_has_a_module_that_needs_it() -> None:
    made = notebooks.modules([environment()], "/opt/apps/jupyter", "jupyter", "/c")
    assert problems(made) == []
    container = made[-1]
    assert container["roots"] == ["/c/jupyter.sif"]
    assert container["set"] == {"HAL_NOTEBOOK_IMAGE": "/c/jupyter.sif", "HAL_NOTEBOOK_PREFIX": "/home/apps/jupyter/6"}


def test_only_the_notebook_that_is_in_the_image_starts_from_it() -> None:
    other = {**environment(version="5"), "default": False}
    made = notebooks.modules([environment(), other], "/opt/apps/jupyter", "jupyter", "/c")
    assert [one["version"] for one in made if one["name"] == "notebook-container"] == ["6"]

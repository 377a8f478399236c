"""Sets of nodes in words."""

from __future__ import annotations

import pytest

from hal_inventory.errors import ExpressionError
from hal_inventory.expressions import Names, evaluate
from hal_inventory.model import Site
from hal_inventory.restrict import names_of, only, select


@pytest.mark.parametrize(
    ("expression", "nodes"),
    [
        ("all", 22),
        ("gpu", 16),
        ("gpu and not hal05", 15),
        ("not gpu", 6),
        ("not not gpu", 16),
        ("hal[01-04,16]", 5),
        ("hal[03,01-02]", 3),
        ("hal[01-10,05]", 10),
        ("hal01,hal02,login", 3),
        ("login or management and x86", 2),
        ("(login or management) and x86", 1),
        ("ppc64le and not (compute or test)", 3),
        ("slurm_controller", 1),
        ("compute and management", 0),
        ("  gpu  ", 16),
    ],
)
def test_an_expression_selects(hal: Site, expression: str, nodes: int) -> None:
    assert len(select(hal, expression)) == nodes


def test_the_order_is_the_models(hal: Site) -> None:
    assert select(hal, "hal02 or hal01 or hal-test or hal-login") == ["hal-login", "hal-test", "hal01", "hal02"]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("hal17", 'unknown name "hal17"; did you mean "hal10"?'),
        ("hal[5-6]", 'unknown names "hal[5-6]"; did you mean "hal[05-06]"?'),
        ("hal-mgmt[01-02],hal5", 'unknown names "hal-mgmt[01-02],hal5"; did you mean "hal-mgmt[1-2],hal05"?'),
        ("hal[15-99] and gpu", 'unknown names "hal[17-99]"; did you mean "hal10"?'),
        ("compute:!hal05", 'unknown name "compute:!hal05"; did you mean "compute"?'),
        ("gpus", 'unknown name "gpus"; did you mean "gpu"?'),
        ("hal[15-17]", 'unknown name "hal17"; did you mean "hal10"?'),
        ("", "an empty expression; write all for every node"),
        ("gpu and", '"gpu and": a name is missing after "and"'),
        ("or gpu", '"or gpu": a name is missing at the start'),
        ("gpu hal05", '"gpu hal05": "hal05" is not expected here; write "and" or "or" before it'),
        ("(gpu", '"(gpu": a ")" is missing'),
        ("gpu)", '"gpu)": ")" is not expected here; there is no "(" for it'),
        ("()", '"()": a name is missing after "("'),
        ("gpu, hal05", '"gpu,": a name is missing beside a comma'),
        ("hal[5-1]", '"hal[5-1]": [5-1] expands to nothing; write the smaller number first'),
        ("hal[1-9999999]", '"hal[1-9999999]" stands for more than 65536 values; that is taken for a slip'),
        ("(" * 60 + "gpu" + ")" * 60, "parentheses are nested more than 50 deep"),
    ],
)
def test_an_expression_that_is_none_is_refused(hal: Site, expression: str, says: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        select(hal, expression)
    assert str(caught.value) == says


def test_a_very_long_expression_is_no_harm() -> None:
    names = Names(["a", "b"], {})
    assert evaluate("not " * 100_001 + "a", names) == {"b"}
    assert evaluate(" or ".join(["a"] * 50_000), names) == {"a"}


def test_a_restricted_site_still_knows_the_names_it_left_out(hal: Site) -> None:
    part = only(hal, "hal[01-02]")
    assert select(part, "gpu and not hal05") == ["hal01", "hal02"]
    assert select(part, "hal05 or login") == []
    assert select(part, "not hal01") == ["hal02"]
    assert names_of(part).present == {"hal01", "hal02"}
    with pytest.raises(ExpressionError, match="hal99"):
        select(part, "hal99")

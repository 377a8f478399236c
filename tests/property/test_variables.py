"""What holds for every file of group_vars: it ends in lines, and its names are those that Ansible would read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from hal_inventory.errors import ClusterFileError
from hal_inventory.reader import parse
from hal_inventory.variables import check

# What YAML and its readers trip over, and any text between.
pieces = st.sampled_from([
    "a", "a: ", "- ", "\n", "  ", "{", "}", "[", "]", "&x ", "*x", "<<: ", "!vault |", "!unsafe ", "!!binary ", "!y ",
    "? ", "---\n", "'", '"', "{{ b }}", "{%", "#", "\t", "\ufeff", "\x00", "site_variables: ", "base_time_zone: ",
    "|\n",
    "%YAML 9\n",
])  # fmt: skip
texts = st.one_of(st.binary(max_size=40), st.lists(st.one_of(pieces, st.text(max_size=4)), max_size=25).map("".join))
names = st.text(st.characters(codec="ascii", categories=["Ll", "Nd"], include_characters="_-"), min_size=1, max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.dates() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@given(texts)
@example("base_time_zone: \x1b[2J")
@example("? {a: b}\n: 1")
@example("*x : 1")
@example("a: *x")
def test_any_file_ends_in_lines(tmp_path_factory: Any, text: str | bytes) -> None:
    folder = tmp_path_factory.mktemp("site")
    path = Path(folder, "group_vars", "all.yml")
    path.parent.mkdir()
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    read = check([folder], frozenset({"base_time_zone", "site_variables", "a"}))
    for line in (*map(str, read.findings), *read.remarks):
        assert line.isprintable()


@given(st.dictionaries(names, values, max_size=6))
def test_what_ansible_reads_has_its_names_and_no_fault(data: dict[str, Any]) -> None:
    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    document = parse(yaml.dump(data, Dumper=Dumper, allow_unicode=True).encode(), "all.yml", variables=True)
    assert document.findings == []
    assert list(document.root.items) == sorted(data)


@given(st.text(alphabet="#-.a: \n", max_size=12))
@example("")
@example("---\n")
@example("# nothing")
def test_a_file_is_empty_where_yaml_says_so(text: str) -> None:
    try:
        expected = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, TypeError):
        return
    try:
        document = parse(text.encode("utf-8", "surrogatepass"), "all.yml", variables=True)
    except ClusterFileError:
        assert expected is not None
        return
    assert bool(document.root.items) == bool(expected)

"""What Spectrum Scale's commands print with -Y: read as published, refused when it is broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.hal_node.scale.text import (
    ScaleTextError,
    classes,
    configured,
    file_system,
    member,
    members,
    rows,
    running,
    state,
)


def test_configured_values_are_read_with_their_nodes(captures: Path) -> None:
    found = configured((captures / "mmlsconfig.txt").read_text())
    assert len(found) == 19
    assert ("maxblocksize", "16M", "") in found
    assert ("workerThreads", "512", "cesNodes") in found


def test_an_escaped_colon_is_one_of_the_value(captures: Path) -> None:
    found = configured((captures / "mmlsconfig_nodes.txt").read_text())
    assert found[-1] == ("cesCidrPool", "<IP=10.241.17.5><ATTRIBUTE=>:<GROUP=>", "")
    shown = running((captures / "mmdiag_config.txt").read_text())
    assert shown["openssllibname"].split(":")[0] == "/usr/lib64/libssl.so.10"


def test_running_values_are_found_by_lower_case_names(captures: Path) -> None:
    shown = running((captures / "mmdiag_config.txt").read_text())
    assert shown["pagepool"] == "4294967296"
    assert shown["parallelmetadatawrite"] == "0"
    assert len(shown) == 4


def test_members_are_known_by_every_name_and_address(captures: Path) -> None:
    found = members((captures / "mmlscluster.txt").read_text())
    assert set(found.values()) == {"server-1", "server-2", "server-3"}
    assert [found[one] for one in ("server-2", "server-2.domain.com", "10.0.0.2")] == ["server-2"] * 3


@pytest.mark.parametrize(
    ("name", "addresses", "node"),
    [
        ("hal01", [], "hal01"),
        ("hal01.hal.example", [], "hal01"),
        ("HAL01", [], "hal01"),
        ("hal01-ib", [], "hal01"),
        ("hal01-ib.hal.example", [], "hal01"),
        # Both interfaces have another name than the node.
        ("hal02", [], None),
        ("hal02", ["10.64.0.102", "10.64.2.102"], "node2-ib"),
        ("hal03", ["10.64.0.103"], None),
    ],
)
def test_a_node_whose_daemon_uses_another_interface_is_a_member(
    captures: Path, name: str, addresses: list[str], node: str | None
) -> None:
    assert member(members((captures / "mmlscluster_ipoib.txt").read_text()), name, addresses) == node


@pytest.mark.parametrize("name", ["mmgetstate.txt", "mmgetstate_52.txt"])
def test_columns_are_found_by_name_in_every_release(captures: Path, name: str) -> None:
    assert state((captures / name).read_text()) == "active"


def test_a_file_system_is_read(captures: Path) -> None:
    found = file_system((captures / "mmlsfs.txt").read_text())
    assert found["blockSize"] == "4194304"
    assert found["logfileSize"] == "33554432"
    assert found["defaultMountPoint"] == "/ibm/FS1"
    assert found["create-time"] == "Fri Feb 21 01:36:21 2020"


def test_rows_of_old_releases_may_lack_the_last_field(captures: Path) -> None:
    assert file_system((captures / "mmlsfs_41.txt").read_text())["filesystemVersion"] == "14.03 (4.1.0.0)"


@pytest.mark.parametrize(
    ("name", "read", "said"),
    [
        ("mmlsconfig_cut.txt", configured, "mmlsconfig: a line is cut off"),
        ("mmlsconfig_header.txt", configured, "mmlsconfig: a row comes before its header"),
        ("mmlscluster_none.txt", members, 'mmlscluster printed "mmlscluster: This node does not belong to a GPFS'),
        ("mmlscluster_german.txt", members, 'printed "mmlscluster: Dieser Knoten'),
        ("mmdiag_config_wrapped.txt", running, "mmdiag: a line is cut off: "),
        ("mmlsfs_unknown.txt", file_system, 'mmlsfs printed "mmlsfs: File system i_dont_exist is not known'),
        ("mmlsfs.txt", configured, "mmlsconfig printed"),
        ("mmlsfs.txt", members, "mmlscluster printed"),
    ],
)
def test_what_is_broken_is_refused_in_words(captures: Path, name: str, read: object, said: str) -> None:
    assert callable(read)
    with pytest.raises(ScaleTextError) as caught:
        read((captures / name).read_text())
    assert said in str(caught.value)


def test_nothing_is_no_empty_list() -> None:
    with pytest.raises(ScaleTextError, match="mmlsconfig printed nothing"):
        configured("")


def test_a_header_without_a_column_is_refused(captures: Path) -> None:
    text = (captures / "mmlsconfig.txt").read_text().replace("nodeList", "nodes")
    with pytest.raises(ScaleTextError, match="mmlsconfig: no column nodeList in its header"):
        configured(text)


def test_a_row_before_its_header_is_refused() -> None:
    with pytest.raises(ScaleTextError, match="a row comes before its header"):
        rows("mmx::0:1:::a:b:\nmmx::HEADER:version:reserved:reserved:one:two:\n", "mmx", ("one",))


def test_a_row_that_lacks_a_column_is_refused() -> None:
    with pytest.raises(ScaleTextError, match="a row has no two"):
        rows("mmx::HEADER:version:reserved:reserved:one:two:\nmmx::0:1:::a:\n", "mmx", ("one", "two"))


def test_a_header_without_rows_is_an_empty_list_and_no_daemon() -> None:
    header = "mmdiag:config:HEADER:version:reserved:reserved:name:value:changed:\n"
    assert rows(header, "mmdiag", ("name",), "config") == []
    with pytest.raises(ScaleTextError, match="the daemon does not run"):
        running(header)


def test_a_banner_before_the_header_does_not_matter(captures: Path) -> None:
    text = "Authorized use only\n" + (captures / "mmlsconfig.txt").read_text()
    assert len(configured(text)) == 19


def test_a_class_of_classes_has_their_nodes(captures: Path) -> None:
    """As IBM's example has it, where siteA is made of a class that every cluster has."""
    found = classes((captures / "mmlsnodeclass_all.txt").read_text())
    every = frozenset(["flash1", "flash2", "hal01", "hal02", "hal03"])
    assert found["siteA"] == found["linuxNodes"] == every
    assert found["nsdNodes"] == frozenset(["flash1", "flash2"])
    assert found["aixNodes"] == frozenset()


def test_classes_of_nodes_are_read_from_their_table(captures: Path) -> None:
    assert classes((captures / "mmlsnodeclass.txt").read_text()) == {
        "siteA": frozenset(["linuxNodes"]),
        "nsdservers": frozenset(["flash1", "flash2", "flash3"]),
    }
    assert classes("") == {}
    assert classes("mmlsnodeclass: There are no node classes.\n") == {}

"""The stand-in for Spectrum Scale, run on nodes that are folders: formats and states that roles and people use.

What containers and FUSE add is tried on virtual nodes, in the scenario of the role.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import scale_node
from scale_node import KERNEL, Node
from virtual_scale import main

PROPAGATING = (
    "mmchconfig: Propagating the cluster configuration data to all\n"
    "  affected nodes.  This is an asynchronous process.\n"
)


class Cluster:
    """An administration node that the vendor's cluster knows, and a node that it does not."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.volume = folder / "arrays"
        self.admin = Node(folder, self.volume, "admin", "10.64.0.11")
        self.hal01 = Node(folder, self.volume, "hal01", "10.64.0.101")

    def stop(self) -> None:
        """End every process."""
        for node in (self.admin, self.hal01):
            node.stop()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose name leaves room for that of a socket below it: the kernel takes 107 letters."""
    with tempfile.TemporaryDirectory(prefix="scale-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def fresh(short: Path) -> Iterator[Cluster]:
    """As the arrays' vendor leaves it."""
    scale_node.arrays(short / "arrays", short / "home", (("admin", "10.64.0.11"),))
    made = Cluster(short)
    for node in (made.admin, made.hal01):
        node.install()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders in which both nodes are in the cluster, have the kernel's modules, and nothing runs."""
    folder = tmp_path_factory.mktemp("joined")
    scale_node.arrays(folder / "arrays", Path("MOUNT"), (("admin", "10.64.0.11"),))
    made = Cluster(folder)
    for node in (made.admin, made.hal01):
        node.install()
        node.compile()
    made.admin.ok("mmsdrrestore", "-p", "flash1")
    made.hal01.listen()
    made.admin.ok("mmaddnode", "-N", "hal01")
    made.admin.ok("mmchlicense", "client", "--accept", "-N", "hal01")
    for node in (made.admin, made.hal01):
        node.ok("mmbuildgpl", "--quiet")
    made.stop()
    (folder / "arrays/nodes/hal01/socket").unlink()
    return folder


@pytest.fixture
def cluster(short: Path, joined: Path) -> Iterator[Cluster]:
    """Both nodes joined, nothing started."""
    shutil.copytree(joined, short, symlinks=True, dirs_exist_ok=True)
    made = Cluster(short)
    state = made.volume / "cluster.json"
    state.write_text(state.read_text().replace("MOUNT", str(made.home)))
    made.hal01.listen()
    yield made
    made.stop()


def wait(happened: Callable[[], object], seconds: float = 60) -> None:
    """Wait until a function returns something true."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.05)


# ---------------------------------------------------------------- belonging to the cluster
def test_a_node_without_its_files_knows_no_cluster_until_they_are_restored(fresh: Cluster) -> None:
    assert fresh.admin.fails("mmlscluster") == (
        "mmlscluster: This node does not belong to a GPFS cluster.\n"
        "mmlscluster: Command failed. Examine previous error messages to determine cause.\n"
    )
    assert "Node admin.hal.example successfully restored." in fresh.admin.ok(
        "mmsdrrestore", "-p", "flash1", "-R", "/usr/bin/scp"
    )
    (summary,) = fresh.admin.table("mmlscluster", section="clusterSummary")
    assert summary["clusterName"] == "scale.hal.example"
    assert [
        (row["nodeNumber"], row["daemonNodeName"], row["ipAddress"], row["designation"])
        for row in fresh.admin.table("mmlscluster", section="clusterNode")
    ] == [
        ("1", "flash1.hal.example", "10.64.0.252", "quorumManager"),
        ("2", "flash2.hal.example", "10.64.0.253", "quorumManager"),
        ("3", "admin.hal.example", "10.64.0.11", ""),
    ]


def test_a_node_that_is_not_in_the_cluster_cannot_restore_itself(fresh: Cluster) -> None:
    assert "Incorrect node hal01 specified for command." in fresh.hal01.fails("mmsdrrestore", "-p", "flash1")
    assert not (fresh.hal01.root / "var/mmfs/gen/mmsdrfs").exists()


def test_configuration_comes_only_from_a_node_that_has_it(fresh: Cluster) -> None:
    fresh.admin.listen()
    assert "Unable to retrieve GPFS cluster files from node admin" in fresh.admin.fails("mmsdrrestore", "-p", "admin")


def test_a_node_joins_when_it_answers(fresh: Cluster) -> None:
    fresh.admin.ok("mmsdrrestore", "-p", "flash1")
    refused = fresh.admin.fails("mmaddnode", "-N", "hal01")
    assert "mmaddnode: hal01 cannot be reached." in refused
    assert "mmaddnode: The following nodes could not be added to the GPFS cluster:\n\t\thal01\n" in refused
    fresh.hal01.listen()
    done = fresh.admin.run("mmaddnode", "-N", "hal01")
    assert "mmaddnode: Processing node hal01\nmmaddnode: Command successfully completed\n" in done.stdout
    assert "Not all nodes have proper GPFS license designations." in done.stderr
    assert (fresh.hal01.root / "var/mmfs/gen/mmsdrfs").exists()
    assert fresh.admin.table("mmlscluster", section="clusterNode")[-1]["daemonNodeName"] == "hal01.hal.example"
    assert "This cluster contains nodes that do not have a proper GPFS license" in fresh.admin.run("mmlscluster").stderr
    fresh.admin.ok("mmchlicense", "client", "--accept", "-N", "hal01")
    row = fresh.admin.table("mmlslicense")[-1]
    assert (row["nodeName"], row["requiredLicense"], row["designatedLicense"]) == (
        "hal01.hal.example",
        "client",
        "client",
    )
    assert fresh.admin.run("mmlscluster").stderr == ""
    assert "already belongs to the GPFS cluster" in fresh.admin.fails("mmaddnode", "-N", "hal01")


def test_a_daemon_may_have_an_interface_of_its_own(fresh: Cluster) -> None:
    fresh.admin.ok("mmsdrrestore", "-p", "flash1")
    fresh.hal01.listen()
    fresh.admin.ok("mmaddnode", "-N", "hal01-ib::hal01")
    row = fresh.admin.table("mmlscluster", section="clusterNode")[-1]
    assert (row["daemonNodeName"], row["adminNodeName"]) == ("hal01-ib.hal.example", "hal01.hal.example")
    fresh.admin.ok("mmchlicense", "client", "--accept", "-N", "hal01-ib")
    shown = " ".join(fresh.admin.ok("mmlscluster").split())
    assert "hal01-ib.hal.example 10.64.0.101 hal01.hal.example" in shown


def test_a_license_has_to_be_accepted(cluster: Cluster) -> None:
    assert "not accepted" in cluster.admin.fails("mmchlicense", "server", "-N", "hal01")
    assert cluster.admin.table("mmlslicense")[-1]["designatedLicense"] == "client"


def test_a_deleted_node_is_out_and_forgets(cluster: Cluster) -> None:
    cluster.admin.ok("mmchconfig", "pagepool=2G", "-N", "hal01")
    cluster.hal01.ok("mmstartup")
    assert "GPFS is still active on hal01.hal.example" in cluster.admin.fails("mmdelnode", "-N", "hal01")
    cluster.hal01.ok("mmshutdown")
    cluster.admin.ok("mmdelnode", "-N", "hal01")
    assert not (cluster.hal01.root / "var/mmfs/gen/mmsdrfs").exists()
    assert "pagepool" not in [
        row["configParameter"] for row in cluster.admin.table("mmlsconfig") if "hal01" in row["nodeList"]
    ]


# ---------------------------------------------------------------- attributes
def test_values_keep_the_unit_they_were_given_with(cluster: Cluster) -> None:
    done = cluster.admin.run("mmchconfig", "maxFilesToCache=128K,maxStatCache=128K,nsdBufSpace=70")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "mmchconfig: Command successfully completed\n",
        PROPAGATING,
    )
    lines = cluster.hal01.ok("mmlsconfig").splitlines()
    assert lines[0] == "Configuration data for cluster scale.hal.example:"
    assert "maxFilesToCache 128K" in lines
    assert "nsdbufspace 70" in lines
    assert lines[-3:] == ["File systems in cluster scale.hal.example:", "-" * 42, "/dev/home"]
    cluster.hal01.ok("mmstartup")
    running = {
        row["name"]: (row["value"], row["changed"])
        for row in cluster.hal01.table("mmdiag", "--config", section="config")
    }
    assert running["maxFilesToCache"] == ("131072", "static")
    assert running["workerThreads"] == ("48", "")
    assert " ! maxFilesToCache 131072" in cluster.hal01.ok("mmdiag", "--config").splitlines()


def test_attributes_for_some_nodes_stand_in_sections_and_in_the_node_list(cluster: Cluster) -> None:
    cluster.admin.ok("mmcrnodeclass", "gpu", "-N", "hal01")
    cluster.admin.ok("mmchconfig", "pagepool=4G", "-N", "gpu")
    cluster.admin.ok("mmchconfig", "workerThreads=512", "-N", "admin")
    assert [
        (row["configParameter"], row["value"], row["nodeList"])
        for row in cluster.admin.table("mmlsconfig")
        if row["nodeList"]
    ] == [
        ("workerThreads", "512", "admin"),
        ("pagepool", "4G", "gpu"),
        ("autoload", "yes", "nsdservers"),
        ("pagepool", "32G", "nsdservers"),
        ("nsdbufspace", "70", "nsdservers"),
    ]
    plain = cluster.admin.ok("mmlsconfig")
    assert (
        "[gpu]\npagepool 4G\n[nsdservers]\nautoload yes\npagepool 32G\nnsdbufspace 70\n[common]\nadminMode central\n"
        in plain
    )
    assert cluster.admin.ok("mmlsconfig", "pagepool").splitlines() == [
        "pagepool 1073741824",
        "pagepool 32G [nsdservers]",
        "pagepool 4G [gpu]",
    ]
    assert cluster.admin.ok("mmlsconfig", "tscCmdPortRange") == "tscCmdPortRange (undefined)\n"
    (row,) = cluster.admin.table("mmlsnodeclass", "gpu", section="nodeClasses")
    assert (row["nodeClassName"], row["memberNodes"]) == ("gpu", "hal01.hal.example")
    of_all = {
        row["nodeClassName"]: row["allMembers"]
        for row in cluster.admin.table("mmlsnodeclass", "--all", section="nodeClasses")
    }
    assert of_all["gpu"] == "hal01.hal.example"
    assert "hal01.hal.example" in of_all["all"].split(",")
    assert "hal01.hal.example" not in of_all["nsdNodes"].split(",")
    assert "gpu" not in cluster.admin.ok("mmlsnodeclass", "--system")


def test_empty_and_default_remove_what_was_set(cluster: Cluster) -> None:
    cluster.admin.ok("mmchconfig", "pagepool=2G,workerThreads=512")
    cluster.admin.ok("mmchconfig", "pagepool=DEFAULT,workerThreads=")
    assert "workerThreads" not in cluster.admin.ok("mmlsconfig")
    assert "pagepool" not in scale_node.settings(cluster.volume)  # those of single nodes are gone, too


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pagepool=3M",), "Incorrect value 3M specified for pagepool. Valid: 4194304 through"),
        (("nsdBufSpace=71",), "Incorrect value 71 specified for nsdBufSpace. Valid: 10 through 70"),
        (("autoload=maybe",), "Incorrect value maybe specified for autoload. Valid: yes, no"),
        (("pagepoool=1G",), "Attribute pagepoool is not known."),
        (("workerThreads=512", "-i"), "Attribute workerThreads cannot be changed with the -i or -I option."),
        (("pagepool=1G", "-N", "hal99"), "Incorrect node hal99 specified for command."),
        (("pagepool",), "Incorrect option: pagepool"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(cluster: Cluster, words: tuple[str, ...], message: str) -> None:
    before = (cluster.volume / "cluster.json").read_text()
    complaint = cluster.admin.fails("mmchconfig", *words)
    assert message in complaint
    assert complaint.endswith("mmchconfig: Command failed. Examine previous error messages to determine cause.\n")
    assert (cluster.volume / "cluster.json").read_text() == before


def test_an_active_daemon_takes_up_only_what_is_told_at_once(cluster: Cluster) -> None:
    def value(name: str) -> str:
        return {row["name"]: row["value"] for row in cluster.hal01.table("mmdiag", "--config", section="config")}[name]

    cluster.hal01.ok("mmstartup")
    cluster.admin.ok("mmchconfig", "pagepool=2G,maxFilesToCache=8000", "-N", "hal01")
    assert (value("pagepool"), value("maxFilesToCache")) == ("1073741824", "4000")
    cluster.admin.ok("mmchconfig", "pagepool=3G", "-i", "-N", "hal01")
    assert value("pagepool") == str(3 << 30)
    assert f" * pagepool {3 << 30}" in cluster.hal01.ok("mmdiag", "--config").splitlines()
    cluster.admin.ok("mmchconfig", "maxMBpS=5000", "-I", "-N", "hal01")
    assert value("maxMBpS") == "5000"
    assert "maxMBpS" not in cluster.admin.ok("mmlsconfig")
    cluster.hal01.ok("mmshutdown")
    cluster.hal01.ok("mmstartup")
    assert (value("pagepool"), value("maxFilesToCache"), value("maxMBpS")) == (str(3 << 30), "8000", "2048")


def test_changes_of_several_nodes_at_once_are_all_kept(cluster: Cluster) -> None:
    names = [
        "workerThreads",
        "maxFilesToCache",
        "maxStatCache",
        "prefetchThreads",
        "nsdMaxWorkerThreads",
        "logWrapThreads",
    ]
    with ThreadPoolExecutor(max_workers=len(names)) as pool:
        list(pool.map(lambda name: (cluster.admin, cluster.hal01)[len(name) % 2].ok("mmchconfig", f"{name}=64"), names))
    assert {name: scale_node.settings(cluster.volume)[name] for name in names} == {name: {"": "64"} for name in names}


# ---------------------------------------------------------------- the daemon
def test_the_daemon_does_not_start_without_the_gpl_layer_of_the_running_kernel(cluster: Cluster) -> None:
    modules = cluster.hal01.root / "lib/modules" / KERNEL / "extra"
    assert sorted(path.name for path in modules.iterdir()) == ["mmfs26.ko", "mmfslinux.ko", "tracedev.ko"]
    (modules / "mmfslinux.ko").unlink()
    complaint = cluster.hal01.fails("mmstartup")
    assert f"{KERNEL}/extra/mmfslinux.ko kernel extension does not exist. Use mmbuildgpl command to create" in complaint
    assert cluster.hal01.table("mmgetstate")[0]["state"] == "down"
    assert "already active" not in cluster.hal01.ok("mmbuildgpl")
    cluster.hal01.ok("mmstartup")
    assert cluster.hal01.table("mmgetstate")[0]["state"] == "active"
    assert "The GPFS subsystem is already active." in cluster.hal01.ok("mmstartup")
    assert "mmfsd ready" in (cluster.hal01.root / "var/adm/ras/mmfs.log.latest").read_text()


def test_every_node_sees_the_state_of_all(cluster: Cluster) -> None:
    cluster.admin.ok("mmstartup", "-N", "hal01")

    def states() -> dict[str, str]:
        return {row["nodeName"].partition(".")[0]: row["state"] for row in cluster.admin.table("mmgetstate", "-a")}

    assert states() == {"flash1": "active", "flash2": "active", "admin": "down", "hal01": "active"}
    assert "       4      hal01            active" in cluster.admin.ok("mmgetstate", "-a").splitlines()
    cluster.admin.ok("virtual-scale", "arrays", "off")
    assert states() == {"flash1": "unknown", "flash2": "unknown", "admin": "down", "hal01": "arbitrating"}
    cluster.admin.ok("virtual-scale", "arrays", "on")
    cluster.hal01.stop()
    assert states()["hal01"] == "unknown"
    assert "mmdsh: hal01 remote shell process had return code 255." in cluster.admin.fails("mmstartup", "-N", "hal01")


def test_commands_that_ask_the_daemon_say_that_it_is_down(cluster: Cluster) -> None:
    assert cluster.hal01.fails("mmdiag", "--config") == (
        "Failed to connect to file system daemon: No such process\n"
        "mmdiag: GPFS is down on this node.\n"
        "mmdiag: Command failed. Examine previous error messages to determine cause.\n"
    )


def test_at_boot_the_daemon_starts_where_autoload_says_so(cluster: Cluster) -> None:
    cluster.hal01.ok("mmautoload")
    assert cluster.hal01.table("mmgetstate")[0]["state"] == "down"
    cluster.admin.ok("mmchconfig", "autoload=yes")
    cluster.hal01.ok("mmautoload")
    wait(lambda: cluster.hal01.table("mmgetstate")[0]["state"] == "active")


# ---------------------------------------------------------------- mounts
def test_a_file_system_is_mounted_by_the_daemon_that_starts_and_gone_with_it(cluster: Cluster) -> None:
    cluster.hal01.ok("mmstartup")
    wait(cluster.hal01.mounts)
    (line,) = cluster.hal01.mounts()
    assert line.startswith(f"home {cluster.home} fuse.gpfs rw,fsname=home,subtype=gpfs,allow_other,")
    (row,) = cluster.admin.table("mmlsmount", "home", "-L")
    assert (row["localDevName"], row["totalNodes"], row["nodeIP"], row["nodeName"], row["mode"]) == (
        "home",
        "1",
        "10.64.0.101",
        "hal01",
        "RW",
    )
    cluster.hal01.ok("mmshutdown")
    assert cluster.hal01.mounts() == []
    assert cluster.admin.ok("mmlsmount", "home", "-L") == "File system home is not mounted.\n"


def test_mounting_needs_the_daemon(cluster: Cluster) -> None:
    assert "GPFS is down on this node." in cluster.hal01.fails("mmmount", "home")
    assert cluster.hal01.mounts() == []


def test_a_busy_file_system_is_unmounted_by_force_only(cluster: Cluster) -> None:
    cluster.hal01.ok("mmstartup")
    wait(cluster.hal01.mounts)
    (cluster.hal01.root / "busy").touch()
    assert "target is busy" in cluster.hal01.fails("mmumount", "home")
    assert cluster.hal01.mounts()
    cluster.hal01.ok("mmumount", "home", "-f")
    assert cluster.hal01.mounts() == []
    cluster.admin.ok("mmmount", "home", "-N", "hal01")
    assert cluster.hal01.mounts()


def test_a_killed_daemon_leaves_a_dead_mount_that_the_next_start_clears(cluster: Cluster) -> None:
    cluster.hal01.ok("mmstartup")
    wait(cluster.hal01.mounts)
    cluster.hal01.ok("virtual-scale", "die")
    assert cluster.hal01.table("mmgetstate")[0]["state"] == "down"
    cluster.hal01.ok("mmremote", "lostDaemon")  # ExecStopPost of the unit
    assert cluster.hal01.mounts()
    assert cluster.admin.ok("mmlsmount", "home") == "File system home is not mounted.\n"
    states = {
        row["component"]: row["status"] for row in cluster.hal01.table("mmhealth", "node", "show", section="State")
    }
    assert states == {"NODE": "FAILED", "GPFS": "FAILED", "FILESYSTEM": "FAILED"}
    (cluster.hal01.root / "var/mmfs/etc/ignoreStartupMount").touch()
    cluster.hal01.ok("mmstartup")
    assert cluster.hal01.mounts() == []
    cluster.hal01.ok("mmmount", "home")
    assert cluster.admin.ok("mmlsmount", "home") == "File system home is mounted on 1 nodes.\n"
    assert len(cluster.hal01.mounts()) == 1


def test_a_hung_file_system_has_a_waiter_and_is_resumed(cluster: Cluster) -> None:
    assert "home is not mounted here" in cluster.hal01.fails("virtual-scale", "hang", "home")
    cluster.hal01.ok("mmstartup")
    wait(cluster.hal01.mounts)
    assert cluster.hal01.table("mmdiag", "--waiters", section="waiters") == []
    cluster.hal01.ok("virtual-scale", "hang", "home")
    (waiter,) = cluster.hal01.table("mmdiag", "--waiters", section="waiters")
    assert "NSD I/O completion" in waiter["condVarReason"]
    cluster.hal01.ok("virtual-scale", "resume", "home")
    assert cluster.hal01.table("mmdiag", "--waiters", section="waiters") == []


# ---------------------------------------------------------------- file systems
def test_a_file_system_is_what_the_model_says(cluster: Cluster) -> None:
    values = {row["fieldName"]: row["data"] for row in cluster.admin.table("mmlsfs", "home")}
    assert (values["blockSize"], values["logfileSize"]) == ("1048576", "4194304")
    assert values["defaultMountPoint"] == str(cluster.home).replace("/", "%2F")
    assert cluster.admin.ok("mmlsfs", "home", "-B").splitlines() == [
        "flag                value                    description",
        "------------------- ------------------------ -----------------------------------",
        " -B                 1048576                  Block size",
    ]
    assert "mmlsfs: File system scratch is not known to the GPFS cluster." in cluster.admin.fails("mmlsfs", "scratch")
    assert {row["diskName"] for row in cluster.admin.table("mmlsnsd", section="nsd")} == {
        f"home_flash{array}_{number}" for array in (1, 2) for number in (1, 2)
    }


def test_the_size_of_the_log_is_changed_in_whole_blocks(cluster: Cluster) -> None:
    assert (
        "You must restart the GPFS daemons before the new log file"
        in cluster.admin.run("mmchfs", "home", "-L", "32M").stderr
    )
    (row,) = cluster.admin.table("mmlsfs", "home", "-L")
    assert row["data"] == str(32 << 20)
    assert "Incorrect value 3000K specified for option -L" in cluster.admin.fails("mmchfs", "home", "-L", "3000K")


def test_a_package_of_the_modules_can_be_built(cluster: Cluster) -> None:
    said = cluster.admin.ok("mmbuildgpl", "--build-package")
    (path,) = [line.removeprefix("Wrote: ") for line in said.splitlines() if line.startswith("Wrote: ")]
    assert Path(path).name.startswith(f"gpfs.gplbin-{KERNEL}-5.0.4-1.")
    assert Path(path).exists()


def test_every_command_is_packaged_and_says_that_it_is_a_stand_in(capsys: pytest.CaptureFixture[str]) -> None:
    packaged = {Path(path).name for path in scale_node.RECIPE.links if path.startswith("/usr/lpp/mmfs/bin/")}
    assert packaged == set(main.COMMANDS)
    for name in sorted(packaged):
        assert main.command(name, ["--help"]) == 0
        assert capsys.readouterr().out.endswith(
            "Stand-in of the virtual HAL for IBM Spectrum Scale; the command line is IBM's.\n"
        )
    with pytest.raises(SystemExit):
        main.command("virtual-scale", ["--help"])
    assert "no command of IBM's" in capsys.readouterr().out

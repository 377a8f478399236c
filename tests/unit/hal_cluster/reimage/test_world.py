"""What the command hands on to the parts of the real world."""

from __future__ import annotations

from hal_cluster.reimage.asked import Connected
from hal_cluster.reimage.assembly import Assembly
from hal_cluster.reimage.settings import settings_of
from hal_cluster.reimage.site import Site
from hal_inventory.compiled import Compiled
from hal_inventory.packed import host_vars
from tests.unit.hal_cluster.reimage.asking import ROOT, Desk
from tests.unit.hal_cluster.reimage.slurmctld import Node, Slurmctld


def test_a_test_job_asks_for_all_gpus_that_are_declared_for_its_node(desk: Desk) -> None:
    source = desk.folder / "hal.yml"
    variables = host_vars(Compiled(source).inventory())
    declared = [gpu["type"] for gpu in variables["hal06"]["hal_node"]["gpus"]]
    assert declared == ["v100"] * 4
    slurmctld = Slurmctld(Node("hal05", ["gpu"], flags={"DRAIN"}), Node("hal06", ["gpu"], flags={"DRAIN"}))
    connected = Connected(
        sources=[str(source)],
        variable=lambda host, name: variables.get(host, {}).get(name),
        run_on=lambda host, fresh=False: slurmctld if host == "hal-login" else desk.server,
        program=["ansible-playbook"],
        environment={},
        extra={},
        project=ROOT,
        say=desk.said.append,
    )
    settings = settings_of({**desk.settings(), "job_user": "bob", "job_command": "nvidia-smi -L"})
    world = Assembly(Site("hal[05-06]", settings, connected), connected).world()
    for name in ("hal05", "hal06"):
        world.slurm.prove(name)
        (job,) = (words for words in slurmctld.asked if "sbatch" in words and f"--nodelist={name}" in words)
        assert job[:4] == ["runuser", "-u", "bob", "--"]
        assert {"--gres=gpu:v100:4", "--time=5", "--wrap=nvidia-smi -L"} <= set(job)

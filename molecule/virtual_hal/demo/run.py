"""Bring up the virtual HAL, run a job on all of its GPUs, audit it, break two nodes, reimage one: `make demo`.

Can be run again: what is there already is kept, and a second rollout changes nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

PROJECT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

from ClusterShell.NodeSet import NodeSet  # noqa: E402  found through the line above
from running import surroundings  # noqa: E402
from running.ansible_run import Ansible  # noqa: E402
from running.ssh_config import Cluster  # noqa: E402
from running.stages import Runner, Stage, say  # noqa: E402
from running.strategy import environment  # noqa: E402

from demo.environment import leave  # noqa: E402
from demo.mini import IMAGE_OF_ALL, IMAGE_VARIABLES, IMAGES, NODES  # noqa: E402
from demo.reimage import image_key, reimage  # noqa: E402

OVERLAYS = {"full": "hal.yml", "mini": "mini.yml"}
USER = "alice"
LOGIN = "hal-login"
MODULE = "wmlce/1.7.0-py3.7"
VERSIONS = 'python -c "import platform, tensorflow; print(platform.python_version(), tensorflow.__version__)"'
DRIFT = 2  # exit status of hal-audit
# The health check runs every 30 s.
WAIT_FOR_DRAIN = "for i in $(seq 90); do sinfo --noheader --list-reasons | grep -q . && exit; sleep 1; done; exit 1"
WAIT_FOR_EPILOG = "for i in $(seq 60); do squeue --noheader --states completing | grep -q . || exit 0; sleep 1; done"
SHOW_REASONS = 'sinfo -R -o "%60E %19H %N"'


def job(cluster: Cluster, runner: Runner) -> bool:
    """Hold every GPU of the model with one srun of an ordinary user who has loaded a module; say what ran where."""
    computes = cluster.slice("nodes", where="compute and gpu")
    gpus = sum(len(cluster.node(name)["gpus"]) for name in computes)
    per_node = gpus // len(computes)
    # One task for each GPU; each says where it is, which GPUs Slurm gave it and which programs the module did.
    srun = (
        f"srun --partition=gpu --nodes={len(computes)} --ntasks-per-node={per_node} --gres=gpu:v100:{per_node}"
        f" --job-name=all-gpus --time=5 sh -c 'echo $SLURM_JOB_ID $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $({VERSIONS})'"
    )
    command = f"module load {MODULE} && {srun}"
    stage = Stage(f"srun on {gpus} GPUs", cluster.ssh_argv(LOGIN, f"runuser -l {USER} -c {quote(command)}"))
    if not runner.run(stage):
        return False
    lines = [line.split() for line in runner.outcomes[-1].log.read_text().splitlines() if line.strip()]
    rows = [line for line in lines if len(line) == 5 and line[0].isdigit()]
    number = rows[0][0] if rows else "0"
    await_record(cluster, number)
    visible: dict[tuple[str, str], NodeSet] = defaultdict(NodeSet)
    for _, node, devices, python, tensorflow in rows:
        visible[devices, f"Python {python}, TensorFlow {tensorflow}"].add(node)
    held = sum(len(devices.split(",")) * len(nodes) for (devices, _), nodes in visible.items())
    say(f"\n[{USER}@{LOGIN} ~]$ module load {MODULE}\n[{USER}@{LOGIN} ~]$ {srun}\n")
    for (devices, versions), nodes in sorted(visible.items()):
        say(f"  {nodes!s:<12} GPUs {devices}: {len(nodes)} nodes x {len(devices.split(','))}, {versions}")
    cluster.run(LOGIN, WAIT_FOR_EPILOG)
    for command in (
        "sinfo",
        f"sacct -j {number} -X -P -o JobID,JobName,User,Partition,State,AllocTRES",
    ):
        say(f"\n[{USER}@{LOGIN} ~]$ {command}\n{cluster.run(LOGIN, f'runuser -l {USER} -c {quote(command)}')}")
    if held != gpus or len(rows) != gpus:
        say(f"\nthe job held {held} GPUs with {len(rows)} tasks; the model has {gpus}")
        return False
    return True


def image_of_all(cluster: Cluster, runner: Runner, ansible: Ansible) -> bool:
    """Build the image that docs/users.md names, as an administrator does, unless it is there."""
    if cluster.run(LOGIN, f"test ! -e {IMAGE_OF_ALL} || echo there"):
        return True
    return runner.run(Stage("container image", ansible.command(*IMAGES, **IMAGE_VARIABLES)))


def audit(cluster: Cluster, runner: Runner, sources: Sequence[str]) -> bool:
    """Audit all nodes, which has to be clean; then break two of them, and show what Slurm and an audit say of it."""
    options = ["run", *(word for source in sources for word in ("-i", source))]
    run = [str(Path(sys.executable).with_name("hal-audit")), *options]
    typed = f"$ .venv/bin/hal-audit {' '.join(options)}\n"
    if not runner.run(Stage("audit", run)):
        return False
    say(f"\n{typed}{runner.outcomes[-1].log.read_text()}")
    edited, broken = cluster.slice("nodes", where="compute and gpu")[-2:]
    edit, lose = "sed -i 's/^server .*/server 192.0.2.1 iburst/' /etc/chrony.conf", "virtual-gpu lose 2"
    cluster.run(edited, "cp --preserve /etc/chrony.conf /run/chrony.conf")
    say(f"[root@{edited} ~]# {edit}\n[root@{broken} ~]# {lose}\n")
    try:
        cluster.run(edited, edit)
        cluster.run(broken, lose)
        drained = runner.run(Stage("Slurm notices", cluster.ssh_argv(LOGIN, WAIT_FOR_DRAIN)))
        reasons = cluster.run(LOGIN, SHOW_REASONS)
        say(f"\n[{USER}@{LOGIN} ~]$ {SHOW_REASONS}\n{reasons}")
        seen = subprocess.run(run, cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        say(f"{typed}{seen.stdout}{seen.stderr}")
    finally:
        cluster.run(edited, "cp --preserve /run/chrony.conf /etc/chrony.conf")
        cluster.run(broken, "virtual-gpu repair")
    resume = Ansible(sources).command("playbooks/resume.yml", resume_nodes=broken)
    given = runner.run(Stage(f"{broken} repaired and given back", resume))
    rows = [line.split() for line in reasons.splitlines()[1:]]
    faults = {
        f"exactly {broken} drained": drained and [row[-1] for row in rows] == [broken],
        "a lost GPU in the reason": "health: GPU lost" in reasons,
        "both faults in the audit": seen.returncode == DRIFT
        and "Write the configuration of chronyd" in seen.stdout
        and "GPU" in seen.stdout,
    }
    for what, noticed in faults.items():
        if not noticed:
            say(f"not seen: {what}")
    return given and all(faults.values())


def await_record(cluster: Cluster, number: str) -> None:
    """Return when accounting knows the job's user and partition: slurmctld tells slurmdbd a few seconds later."""
    for _ in range(20):
        if cluster.run(LOGIN, f"sacct -j {number} -X -n -P -o Partition").strip():
            return
        time.sleep(1)


def main() -> int:
    """Run the stages; 0 when the job held every GPU, the audit told right from wrong, and a node was reimaged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", choices=sorted(OVERLAYS), default="full")
    options = parser.parse_args()
    sources = [f"inventory/virtual/{OVERLAYS[options.nodes]}"]
    ansible = Ansible(sources)
    surroundings.take_ours()
    cluster = Cluster([PROJECT / source for source in sources])
    names = cluster.slice("nodes")
    say(f"Virtual HAL, {options.nodes}: {len(names)} servers, {NodeSet.fromlist(names)}\n")

    runner = Runner("demo")
    built = runner.run(
        Stage("node image", [sys.executable, "molecule/virtual_hal/setup", "image", "build"]),
        Stage("package repository", [sys.executable, "molecule/virtual_hal/setup", "packages", "build"]),
    )
    done = (
        built
        and runner.run(Stage(f"{len(names)} nodes", ansible.command(*NODES, virtual_bmcs=True)))
        and leave(PROJECT / sources[0])
        and runner.run(image_key())
        and runner.run(Stage("rollout of site.yml", ansible.command("playbooks/site.yml"), env=environment()))
        and image_of_all(cluster, runner, ansible)
        and job(cluster, runner)
        and audit(cluster, runner, sources)
        and reimage(cluster, runner, sources)
    )
    say(f"\n{runner.table()}\n")
    if not done:
        return 1
    mini = " NODES=mini" if options.nodes == "mini" else ""
    ways = {
        f"make ssh NODE=hal01{mini}": f"a shell on a node; on hal-login try: sinfo, squeue, su - {USER}",
        f"make site{mini}": "roll out again: nothing changes",
        "make shell": "a shell in which commands of README and docs are for these nodes:\n"
        f"{'':36}hal-audit run --limit hal01\n"
        f"{'':36}ansible-playbook playbooks/site.yml --limit hal01 --tags slurm",
        "make clean": "remove every container, network and mount",
    }
    say("Next:\n" + "\n".join(f"  {command:<32}{what}" for command, what in ways.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

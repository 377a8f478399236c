"""The demo's last stage: a node is reimaged, by its BMC and over the network, while a job runs on another."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from running.ansible_run import PROJECT, Ansible
from running.ssh_config import STATE, Cluster
from running.stages import Runner, Stage, say
from testing.bmc_site import SERVER
from testing.reimage_site import CODE, ReimageSite

INSTANCE = "virtual"
USER, LOGIN = "alice", "hal-login"
# An emulated machine needs seconds where a real one needs minutes.
POLL_SECONDS = 2


def image_key() -> Stage:
    """Make the key that signs images, before the rollout brings its public part to the server."""
    key = STATE / "images" / INSTANCE / "image_key"
    return Stage("key of images", [sys.executable, "-m", "hal_cluster.provision", "key", str(key)])


def reimage(cluster: Cluster, runner: Runner, sources: Sequence[str]) -> bool:
    """Give the BMCs their password, build an image, and reimage one node; say what an administrator types and sees."""
    ansible = Ansible(sources)
    target, other = cluster.slice("nodes", where="compute and gpu")[:2]
    with tempfile.TemporaryDirectory(prefix="hal-demo-") as work:
        site = ReimageSite(Path(INSTANCE), cluster, Path(work))
        prepared = runner.run(
            # Their passwords are those of the factory; from here on they have the site's, and a certificate.
            Stage(
                "BMCs",
                ansible.command("playbooks/bmc.yml", "-e", f"@{site.former_passwords()}", **_bmcs(site, cluster)),
            ),
            Stage("an image of ac922", ansible.command("playbooks/image.yml", image_profile="ac922")),
        )
        if not prepared:
            return False
        site.serve_installer()
    wrap = quote("sleep 3600")
    sbatch = f"cd /tmp && sbatch --parsable --nodelist={other} --gres=gpu:v100:4 --output=/dev/null --wrap {wrap}"
    job = cluster.run(LOGIN, f"runuser -l {USER} -c {quote(sbatch)}").strip()
    say(f"\n[{USER}@{LOGIN} ~]$ sbatch --nodelist={other} --gres=gpu:v100:4 --wrap {wrap}\n{job}\n")
    try:
        done = _reimaged(ansible, runner, sources, target)
        state = cluster.run(LOGIN, f"squeue --noheader --format='%A %T on %N' --jobs={job}").strip()
        say(f"\n[{USER}@{LOGIN} ~]$ squeue --format='%A %T on %N' --jobs={job}\n{state}\n")
    finally:
        cluster.run(LOGIN, f"scancel {job}")
    if state != f"{job} RUNNING on {other}":
        say(f"not seen: the job on {other} goes on")
        return False
    return done


def _bmcs(site: ReimageSite, cluster: Cluster) -> dict[str, Any]:
    """Those of all nodes: power.yml, and a reimage of any of them, ask for the certificate."""
    names = [name for name in cluster.slice("nodes") if cluster.node(name)["bmc"]]
    return {
        "bmc_nodes": " or ".join(names),
        "bmc_certificate_days": 365,
        "bmc_fingerprints": site.fingerprints(names),
    }


def _reimaged(ansible: Ansible, runner: Runner, sources: Sequence[str], node: str) -> bool:
    """Show the plan, then do it with its code."""
    typed = f"$ ansible-playbook -i {' -i '.join(sources)} playbooks/reimage.yml -e reimage_nodes={node}"
    asked = {"reimage_nodes": node, "reimage_poll_seconds": POLL_SECONDS}
    first = Stage("plan of a reimage", ansible.command("playbooks/reimage.yml", **asked))
    if not runner.run(first):
        return False
    shown = runner.outcomes[-1].log.read_text()
    say(f"\n{typed}\n{_message(shown)}\n")
    code = CODE.search(" ".join(shown.split()))
    if code is None:
        say("not seen: a code")
        return False
    say(f"{typed} -e reimage_code={code[1]}\n")
    command = ansible.command("playbooks/reimage.yml", **asked, reimage_code=code[1])
    well = runner.run(Stage(f"{node} reimaged", command))
    say(f"\n{_message(runner.outcomes[-1].log.read_text())}\n")
    server = subprocess.run(
        [*Cluster([PROJECT / source for source in sources]).ssh_argv(SERVER, f"hal-reimage show {node}")],
        capture_output=True,
        text=True,
        check=False,
    )
    say(f"[root@{SERVER} ~]# hal-reimage show {node}\n{server.stdout}")
    return well


def _message(output: str) -> str:
    """Return what the playbook said, without Ansible's own lines around it."""
    lines = output.splitlines()
    kept = [
        line for line in lines if line and not re.match(r"PLAY|TASK|ok:|changed:|localhost|fatal:|\s+changed:", line)
    ]
    return "\n".join(kept)

"""Drains nodes and gives them back by Slurm's own commands, for a reimage and for a reboot.

The commands run where slurmctld runs. hal_node/slurm/drains.py says whose a drain is and how many nodes stay.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Mapping
from typing import Any

from hal_cluster.reimage.errors import ReimageError, Trouble
from hal_cluster.reimage.remote import Run
from hal_cluster.reimage.slurm_text import impossible, may_pass, read_jobs, read_node, read_nodes
from hal_cluster.reimage.world import Job, SlurmNode
from hal_node.slurm.drains import BUSY, HEALTH, away, floors_of, is_by, proving, reason_line, too_few

SECONDS = 30  # for one command


class Draining:
    """Implements world.Drains. It decides the drains of one process one by one, and sees those of others afterwards.

    ``mark``: how the reasons of our drains begin, before a colon. ``floors``: how many nodes a partition keeps for
    jobs; half of its nodes where it is not named. ``site``: how many of all nodes stay; a partition that is not
    named keeps no more than that. None: nobody asks for that.
    """

    def __init__(
        self, run: Run, mark: str, *, floors: Mapping[str, int] | None = None, site: int | None = None
    ) -> None:
        self._run, self._mark = run, mark
        self._floors, self._site = dict(floors or {}), site
        self._deciding = threading.Lock()

    def see(self, node: str) -> SlurmNode:
        """Return what slurmctld says of a node."""
        shown = self._node(node)
        if shown is None:
            return SlurmNode(known=False)
        on = self._ask("squeue", "--noheader", "--all", "--nodelist", node, "--states", BUSY, "--format", "%A|%u|%e")
        return SlurmNode(
            known=True,
            drained=away(shown),
            ours=is_by(shown, self._mark),
            usable=shown["usable"],
            maintained=shown["maintained"],
            unhealthy=is_by(shown, HEALTH),
            reason=shown["reason"],
            by=shown["by"],
            started=shown["slurmd_start"],
            answers=shown["answers"],
            jobs=tuple(Job(job["id"], job["user"], job["end"]) for job in read_jobs(on)),
            reboot=shown["reboot"],
            next_state=shown["next_state"] if shown["next_state"] in ("RESUME", "DOWN") else "",
        )

    def check_floors(self) -> dict[str, tuple[int, int]]:
        """Return {partition: (how many nodes it keeps for jobs, how many it has)} of all partitions.

        ReimageError, a line for each mistake, when there is no such partition, or it has fewer nodes than it keeps.
        """
        nodes = self._all()
        if wrong := impossible(nodes, self._floors):
            raise ReimageError("\n".join(wrong))
        floors: dict[str, tuple[int, int]] = floors_of(nodes, self._floors, self._site)
        return floors

    def refusal(self, nodes: Collection[str]) -> str:
        """Return why these nodes may not all be drained now, or ""."""
        return self._too_few(nodes, self._all())

    def drain(self, node: str, reason: str) -> str:
        """Drain a node that is not drained; a drain of the health check becomes ours. Return "" or why not now.

        Another controller may have drained another node at the same moment. If too few are left then, this drain is
        taken back.
        """
        with self._deciding:
            nodes = self._nodes(node)
            before = nodes[node]
            if away(before) and not is_by(before, HEALTH):
                return ""
            if refused := self._too_few([node], nodes):
                return refused
            self._drain(node, reason)
            return self._after_all(node, reason, before)

    def give_back(self, node: str, stays: str) -> None:
        """Have a node serve jobs again.

        ``stays``: a reason to keep it drained instead; a node that is drained keeps the reason that it has.
        """
        if stays:
            self._stay_away(node, stays)
        elif resumable(self._nodes(node)[node]):
            self._resume(node)

    def _ask(self, *argv: str, fine: str = "", zone: str = "") -> str:
        """Return what a command prints; Trouble with its last line when it fails, unless its words are ``fine``."""
        settings = ["LC_ALL=C", *([f"TZ={zone}", "SLURM_TIME_FORMAT=standard"] if zone else [])]
        done = self._run(["env", *settings, "timeout", str(SECONDS), *argv])
        said = (done.err or done.out).strip().splitlines()
        if done.status == 0 or (fine and re.search(fine, f"{done.out}\n{done.err}")):
            return done.out
        program = list(argv[argv.index("--") + 1 :] if "--" in argv else argv)
        asked = " ".join([word for word in program if not word.startswith("-")][:3])
        if done.status == 124:  # timeout's own
            raise Trouble(f"{asked}: no answer within {SECONDS} s", passes=True)
        words = said[-1] if said else f"exit status {done.status}"
        raise Trouble(f"{asked}: {words}", passes=may_pass(words))

    def _node(self, node: str) -> dict[str, Any] | None:
        """Return what is known of one node, None when Slurm does not know it."""
        # "all" is every node to scontrol, and a list is several.
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9.-]*", node) or node.lower() == "all":
            raise Trouble(f'"{node}" is not the name of one node')
        text = self._ask("scontrol", "--oneliner", "show", "node", node, fine="Node .* not found")
        entries = [entry for entry in map(read_node, text.splitlines()) if entry and entry["name"] == node]
        if not entries and "not found" not in text:  # an answer that cannot be read does not say that there are no jobs
            raise Trouble(f"scontrol show node {node}: no answer that can be read: {reason_line(text)!r}", passes=True)
        return entries[0] if entries else None

    def _nodes(self, node: str) -> dict[str, dict[str, Any]]:
        """Return what is known of all nodes, this one among them."""
        nodes = self._all()
        if node not in nodes:
            raise Trouble(f"Slurm does not know {node}")
        return nodes

    def _all(self) -> dict[str, dict[str, Any]]:
        nodes: dict[str, dict[str, Any]] = read_nodes(self._ask("scontrol", "--oneliner", "show", "node"))
        return nodes

    def _after_all(self, node: str, reason: str, before: dict[str, Any]) -> str:
        """Look once more whether a node that was just drained may be away. If not, give it back and return why.

        It is not given back if its reboot was issued, if it is down, or if the drain is somebody else's by now.
        """
        refused = self._too_few([node], {**self._nodes(node), node: before})
        if refused:
            now = self._nodes(node)[node]
            ours = now["drained"] and now["reason"] == reason_line(reason)
            if ours and now["reboot"] != "issued" and not now["down"]:
                self._resume(node)
        return refused

    def _too_few(self, names: Collection[str], nodes: Mapping[str, Mapping[str, Any]]) -> str:
        reservations = self._ask("scontrol", "--oneliner", "show", "reservation")
        return str(too_few(names, nodes, self._floors, proving(reservations), self._site))

    def _drain(self, node: str, reason: str, *, state: str = "DRAIN") -> None:
        self._ask("scontrol", "update", f"NodeName={node}", f"State={state}", f"Reason={reason_line(reason)}")

    def _stay_away(self, node: str, reason: str) -> None:
        """Drain a node that takes jobs; a node that is drained keeps its reason."""
        if not away(self._nodes(node)[node]):
            self._drain(node, reason)

    def _resume(self, node: str) -> None:
        try:
            self._ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
        except Trouble:
            if resumable(self._nodes(node)[node]):  # if not, somebody else has just given it back
                raise


def resumable(node: Mapping[str, Any]) -> bool:
    """Return whether State=RESUME gives a node back."""
    return away(node) or bool(node["down"])

"""What captures say of a kind of machine: all nodes of a profile have it in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hal_inventory.capture.machine import Machine
from hal_inventory.capture.work import Seen, Work
from hal_inventory.declared import Profile
from hal_inventory.reader import Path_, Scalar

# A kernel may show this much less memory than is plugged in.
_MEMORY_SHOWN = 0.95
Fact = str | int | None


def propose_for_profiles(work: Work) -> None:
    """Go through the profiles whose machines have been captured."""
    for name, profile in work.cluster.profiles.items():
        seen = [capture for capture in work.seen if work.site.nodes[capture.node].profile == name]
        if seen:
            _Kind(work, ("profiles", name), profile).propose(seen)


@dataclass(frozen=True)
class _Kind:
    """One profile."""

    work: Work
    path: Path_
    profile: Profile

    def propose(self, seen: Sequence[Seen]) -> None:
        """Answer placeholders and name contradictions."""
        path, profile = self.path, self.profile
        for steps, fact, agrees in self._facts():
            self._single((*path, *steps), [(capture, fact(capture.machine)) for capture in seen], agrees)
        for network in profile.interfaces:
            names = [(capture, self.work.interface(capture, network)) for capture in seen]
            self._single((*path, "interfaces", network, "name"), names, _same)
        for capture in seen:
            self._numa((*path, "numa"), profile, capture)
            self._gpus((*path, "gpus"), profile, capture)
            self._hcas((*path, "hcas"), profile, capture)

    def _facts(self) -> Sequence[tuple[Path_, Callable[[Machine], Fact], Callable[[str, str | int], bool]]]:
        """Return the fields of one value, how a machine tells it, and when that agrees with what is declared."""

        def of_processors(name: str) -> Callable[[Machine], Fact]:
            return lambda machine: getattr(machine.processors, name, None)

        def kernel(machine: Machine) -> Fact:
            return machine.kernel.removesuffix(f".{self.profile.arch}") if machine.kernel else None

        return (
            (("model",), lambda machine: machine.model, _named),
            (("arch",), of_processors("arch"), _same),
            (("cpus", "model"), of_processors("model"), _named),
            (("cpus", "sockets"), of_processors("sockets"), _same),
            (("cpus", "cores_per_socket"), of_processors("cores_per_socket"), _same),
            (("cpus", "threads_per_core"), of_processors("threads_per_core"), _same),
            (("memory_mb",), lambda machine: machine.memory_mb, _nearly),
            (("kernel",), kernel, _same),
        )

    def _single(
        self, path: Path_, captured: Sequence[tuple[Seen, Fact]], agrees: Callable[[str, str | int], bool]
    ) -> None:
        """Replace a placeholder by the value that all machines have, or compare each machine with what is there."""
        answers = [(capture, value) for capture, value in captured if value]
        tree = self.work.tree(path)
        if not answers or not isinstance(tree, Scalar):
            return
        (first, value), *rest = answers
        if not tree.placeholder:
            for capture, other in answers:
                if not agrees(tree.text, other):
                    self.work.fault(path, f"is {tree.text}; {capture.source} says {other}")
            return
        different = [(capture, other) for capture, other in rest if not agrees(str(value), other)]
        for capture, other in different:
            self.work.fault(
                path, f"machines of one profile differ: {first.source} says {value}, {capture.source} says {other}"
            )
        if not different:
            self.work.note(path, first, value)
            self.work.editor.replace(path, value)

    def _numa(self, path: Path_, profile: Profile, capture: Seen) -> None:
        if capture.machine.processors is None or not profile.numa:
            return
        declared = {numa.id: _cpus(numa.cpus) for numa in profile.numa}
        seen = {number: _cpus(cpus) for number, cpus in capture.machine.processors.numa}
        if declared != seen:
            shown = ", ".join(f"{number}: {cpus}" for number, cpus in capture.machine.processors.numa)
            self.work.fault(path, f"differs; {capture.source} has {shown}")

    def _gpus(self, path: Path_, profile: Profile, capture: Seen) -> None:
        gpus = capture.machine.gpus
        if gpus is None:
            return
        if len(gpus.answered) != len(profile.gpus):
            self.work.fault(path, f"{len(profile.gpus)} are declared; in {capture.source} {len(gpus.answered)} answer")
        for declared in profile.gpus:
            for gpu in gpus.answered:
                where = (*path, profile.gpus.index(declared))
                if gpu.index == declared.index and not _named(declared.model, gpu.model):
                    self.work.fault((*where, "model"), f"is {declared.model}; {capture.source} says {gpu.model}")
                if gpu.index == declared.index and not _nearly(str(declared.memory_mb), gpu.memory_mb):
                    self.work.fault(
                        (*where, "memory_mb"), f"is {declared.memory_mb}; {capture.source} says {gpu.memory_mb}"
                    )

    def _hcas(self, path: Path_, profile: Profile, capture: Seen) -> None:
        rates = {hca.rate_gbps for hca in profile.hcas}
        for port in capture.machine.ports:
            if not rates:
                self.work.fault(path, f"none is declared; {capture.source} has port {port.name}")
            elif port.state == "Active" and port.rate_gbps not in rates:
                wanted = " or ".join(map(str, sorted(rates)))
                self.work.fault(
                    path, f"rate_gbps is {wanted}; {capture.source} has port {port.name} at {port.rate_gbps}"
                )


def _same(declared: str, seen: str | int) -> bool:
    return declared == str(seen)


def _named(declared: str, seen: str | int) -> bool:
    """Tell whether one name has all words of the other: a machine "8335-GTH" is an "IBM AC922 8335-GTH"."""
    words, other = (set(text.lower().split()) for text in (declared, str(seen)))
    return words <= other or other <= words


def _nearly(declared: str, seen: str | int) -> bool:
    """Tell whether memory is as declared, less what firmware keeps for itself."""
    return int(declared) * _MEMORY_SHOWN <= int(seen) <= int(declared)


def _cpus(text: str) -> frozenset[int]:
    """Return the numbers of a list such as 0-19,40-59 or 0-38/2."""
    numbers: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        numbers.update(range(int(low), int(high or low) + 1, int(step or 1)))
    return frozenset(numbers)

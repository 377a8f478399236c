"""What boot configurations cost: DHCP, options and standing configurations of 22 to 10,000 nodes, and one node's order.

No node is needed. The plain way beside it is a Jinja template for each file, as a role with three template tasks has
it; both make the same bytes. How much a change of one node changes is counted, not timed.
"""

from __future__ import annotations

import json
import re
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from hal_cluster.provision import boot, dhcp, petitboot
from hal_cluster.provision.nodes import BootNode
from hal_cluster.provision.tokens import issue
from tests.bench.part import Goal, Measured, NotMeasured, Session

SIZES = (22, 1000, 10000)
MOST_SECONDS, MOST_MB, MOST_GROWTH = 5, 500, 2.0
NETWORK, URL = "management", "http://10.64.0.11:8480/boot/"
SERVER = dhcp.Server(
    networks=[dhcp.Served(NETWORK, "eno1", "10.64.0.0/16")],
    boot_network=NETWORK,
    domain="bench.example",
    url=URL,
    hosts_dir="/hosts",
    options_dir="/options",
    tftp_root="/tftp",
    lease_file="/leases",
)
INSTALLER = boot.Installer("http://10.64.0.11/i/vmlinuz", "http://10.64.0.11/i/initrd.img", "ip=dhcp")
# The same three files, as templates.
HOSTS = "{{ mac }},set:node-{{ name }},{{ address }},{{ name }}\n"
OPTIONS = "tag:node-{{ name }},tag:opal,209,{{ url }}{{ name }}\n"
KNOWN = """{
 "address": "{{ address }}",
 "names": [
  "{{ '01-' ~ mac | replace(':', '-') }}",
  "{{ '%02X%02X%02X%02X' % octets }}"
 ],
 "standing": {{ standing | tojson }}
}
"""


@dataclass(frozen=True)
class Cost:
    """Processor seconds of all files, this way and by templates (medians), and memory of the process afterwards."""

    seconds: float
    templates_seconds: float
    memory_mb: float


def nodes(number: int) -> list[BootNode]:
    """That many POWER9 nodes."""
    return [
        BootNode(
            name=f"n{at:05d}",
            fqdn=f"n{at:05d}.bench.example",
            arch="ppc64le",
            macs={NETWORK: "02:48:41:" + ":".join(re.findall("..", f"{at:06x}"))},
            addresses={NETWORK: f"10.64.{1 + at // 250}.{1 + at % 250}"},
        )
        for at in range(number)
    ]


def ours(of: Sequence[BootNode]) -> dict[str, str]:
    """All files of nodes by path, and dnsmasq's own."""
    made = dhcp.files(of, SERVER)
    for one in of:
        made[f"/nodes/{one.name}"] = json.dumps(boot.known(one, NETWORK), indent=1, sort_keys=True) + "\n"
    return made | {"/hal.conf": dhcp.main_file(SERVER)}


def by_templates(of: Sequence[BootNode]) -> dict[str, str]:
    """The same by templates, compiled once each."""
    from jinja2 import Environment

    environment = Environment(keep_trailing_newline=True, autoescape=False)
    environment.policies["json.dumps_function"] = lambda value, **_: json.dumps(value)
    hosts, options, known = map(environment.from_string, (HOSTS, OPTIONS, KNOWN))
    made = {"/hal.conf": dhcp.main_file(SERVER)}
    for one in of:
        address = one.addresses[NETWORK]
        words = {"name": one.name, "mac": one.macs[NETWORK], "address": address, "url": URL}
        made[f"/hosts/{one.name}"] = hosts.render(words)
        made[f"/options/{one.name}"] = options.render(words)
        octets = tuple(int(part) for part in address.split("."))
        made[f"/nodes/{one.name}"] = known.render(words, octets=octets, standing=petitboot.standing(one.name))
    return made


def _seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def measure(number: int, rounds: int) -> Cost:
    """One size. NotMeasured when the two ways do not make the same."""
    of = nodes(number)
    if ours(of) != by_templates(of):
        raise NotMeasured("templates make other files: the comparison is none")
    pairs = [(_seconds(lambda: ours(of)), _seconds(lambda: by_templates(of))) for _ in range(rounds)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Cost(statistics.median(one for one, _ in pairs), statistics.median(two for _, two in pairs), memory)


def changed_files(number: int) -> list[str]:
    """The files that differ when one node of many has another MAC."""
    of = nodes(number)
    before = ours(of)
    of[number // 2] = replace(of[number // 2], macs={NETWORK: "02:00:00:00:00:01"})
    after = ours(of)
    return sorted(path for path in before if before[path] != after[path])


def order_seconds() -> float:
    """Processor seconds of one node's order, with the kickstart's text given: the same whatever nodes there are."""
    of = nodes(1)[0]
    times = [
        _seconds(
            lambda: boot.order(of, NETWORK, "bench", INSTALLER, URL.removesuffix("/boot/"), "text\n", issue(0, 60))
        )
        for _ in range(100)
    ]
    return statistics.median(times)


def table(costs: dict[int, Cost], changed: Sequence[str], order: float) -> str:
    """The sizes below each other."""
    lines = [
        "Boot configurations: leases, options and standing configurations (processor time, medians)",
        f"  {'nodes':>6}{'seconds':>10}{'templates':>11}{'ratio':>7}{'ms/node':>9}{'memory MB':>11}",
        *(
            f"  {number:>6}{cost.seconds:>10.3f}{cost.templates_seconds:>11.3f}"
            f"{cost.templates_seconds / cost.seconds:>7.1f}{1000 * cost.seconds / number:>9.3f}{cost.memory_mb:>11.0f}"
            for number, cost in costs.items()
        ),
        f"  another MAC of one node of {SIZES[-1]} changes {len(changed)} of {3 * SIZES[-1] + 1} files:"
        f" {', '.join(changed)}",
        f"  one node's order: {1000 * order:.2f} ms",
    ]
    return "\n".join(lines)


def part(session: Session) -> Measured:
    """All sizes. A node of many may cost at most twice what one of a thousand does."""
    costs = {number: measure(number, session.options.rounds) for number in SIZES}
    changed, order = changed_files(SIZES[-1]), order_seconds()
    print(table(costs, changed, order), flush=True)
    many, some = costs[SIZES[-1]], costs[SIZES[1]]
    growth = (many.seconds / SIZES[-1]) / (some.seconds / SIZES[1])
    return Measured(
        {**{number: asdict(cost) for number, cost in costs.items()}, "order_seconds": order, "changed": changed},
        [
            Goal(f"boot configurations of {SIZES[-1]} nodes, CPU", many.seconds, MOST_SECONDS, unit=" s"),
            Goal("boot configurations, a node of 10,000 against one of 1,000", growth, MOST_GROWTH),
            Goal("boot configurations, memory", many.memory_mb, MOST_MB, unit=" MB"),
            Goal("boot configurations, files of a changed node", float(len(changed)), 2),
        ],
    )

"""What a single field may say: the last value that is taken and the first that is not, on either side."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from hal_inventory.errors import ClusterFileError
from hal_inventory.load import load_bytes
from hal_inventory.model import Site

MANAGEMENT = "management: {kind: ethernet, cidr: 10.1.0.0/24,"
PARTITION = "gpu: {nodes: compute,"
SWITCH = "edr1: {nodes: compute}"
SERVER = "    cpus: {model: Xeon, sockets: 1, cores_per_socket: 4, threads_per_core: 1}\n    memory_mb: 65536\n"
LABEL = "a" * 60
ONE_NETWORK = """
format: 1
name: one
domain: one.example
networks:
  management: {kind: ethernet, cidr: 10.1.0.0/24}
profiles:
  server:
    model: x86 server
    arch: x86_64
    cpus: {model: Xeon, sockets: 1, cores_per_socket: 4, threads_per_core: 1}
    memory_mb: 65536
    kernel: 3.10.0
nodes:
  front: {role: login, profile: server, addresses: {management: 10.1.0.10}}
"""


def site_of(text: str) -> Site:
    return load_bytes(text.encode(), "cluster.yml")


def findings(text: str) -> list[str]:
    """Return the findings of a model as lines without its name and without numbers of lines; none when it is sound."""
    try:
        site_of(text)
    except ClusterFileError as error:
        return [str(one).partition(": ")[2] for one in error.findings]
    return []


def planted(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("field", "old", "new", "least", "most"),
    [
        ("networks.management.mtu", MANAGEMENT, f"{MANAGEMENT} mtu: @,", 576, 65520),
        ("networks.management.vlan", MANAGEMENT, f"{MANAGEMENT} vlan: @,", 1, 4094),
        ("networks.management.rate_gbps", MANAGEMENT, f"{MANAGEMENT} rate_gbps: @,", 1, None),
        ("partitions.gpu.priority", PARTITION, f"{PARTITION} priority: @,", 0, 65533),
        ("partitions.gpu.max_cpus_per_node", PARTITION, f"{PARTITION} max_cpus_per_node: @,", 1, None),
        ("fabric.switches.edr1.ports", SWITCH, "edr1: {nodes: compute, ports: @}", 1, 254),
        ("arrays.flash[1-2].drives", "drives: 12", "drives: @", 1, None),
        ("profiles.worker.numa[0].id", "{id: 0,", "{id: @,", 0, None),
    ],
)
def test_a_number_reaches_its_bounds_and_no_farther(
    small: str, field: str, old: str, new: str, least: int, most: int | None
) -> None:
    def said(number: int) -> list[str]:
        return findings(planted(small, old, new.replace("@", str(number))))

    assert said(least) == []
    assert said(least - 1) == [f"{field}: must be at least {least}, not {least - 1}"]
    if most is not None:
        assert said(most) == []
        assert said(most + 1) == [f"{field}: must be at most {most}, not {most + 1}"]


@pytest.mark.parametrize(
    ("field", "old", "cores", "least", "of"),
    [
        ("server.memory_mb", "memory_mb: 65536", 4, 256, "a core"),
        ("worker.memory_mb", "memory_mb: 262144", 8, 256, "a core"),
        ("worker.gpus[1].memory_mb", "memory_mb: 16384, socket: 1", 1, 1000, "a GPU"),
    ],
)
def test_memory_in_another_unit_is_refused(small: str, field: str, old: str, cores: int, least: int, of: str) -> None:
    for number, sound in ((least, True), (least - 1, False), (1048576, True), (1048577, False)):
        text = planted(small, old, re.sub(r"\d+", str(number * cores), old, count=1))
        said = f"profiles.{field}: {number} MB {of}, not {least} MB to 1024 GB; the unit is MB: 16 GB are 16384"
        assert findings(text) == ([] if sound else [said])


@pytest.mark.parametrize(("size", "said"), [("0.01", []), ("3", []), ("0.0", ["more than 0.0, not 0.0"])])
def test_a_drive_holds_something(small: str, size: str, said: list[str]) -> None:
    found = findings(planted(small, "drive_tb: 3.84", f"drive_tb: {size}"))
    assert found == [f"arrays.flash[1-2].drive_tb: must be {one}" for one in said]


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("nonsense", "write one such as 10.64.0.0/24"),
        ("10.1.2.0", "write 10.1.2.0/32"),
        ("10.1.2.0/255.255.255.0", "write 10.1.2.0/24"),
        ("10.1.2.9/24", "write 10.1.2.0/24"),
        ("FD00::/64", "write fd00::/64"),
    ],
)
def test_a_network_is_written_in_one_way(small: str, written: str, advice: str) -> None:
    found = findings(planted(small, "cidr: 10.1.2.0/24", f'cidr: "{written}"'))
    assert found == [f'networks.ipoib.cidr: "{written}" is not a network; {advice}']


@pytest.mark.parametrize("written", ["nonsense", "10.1.0", "10.1.0.256", "10.1.0.1/24", ""])
def test_what_is_no_address_is_refused_as_none(small: str, written: str) -> None:
    found = findings(planted(small, "gateway: 10.1.0.254", f'gateway: "{written}"'))
    assert found == [f'networks.management.gateway: "{written}" is not an address; write one such as 10.64.0.10']


@pytest.mark.parametrize("length", [1, 17, 199, 200])
def test_a_domain_may_have_200_characters(small: str, length: int) -> None:
    long = f"{LABEL}.{LABEL}.{LABEL}.{'b' * 17}"[:length]
    assert findings(planted(small, "small.example", long)) == []


def test_a_domain_of_201_characters_is_refused(small: str) -> None:
    long = f"{LABEL}.{LABEL}.{LABEL}.{'b' * 18}"
    assert findings(planted(small, "small.example", long)) == [
        f'domain: "{long}" is not a domain name; write one such as cluster.example.org'
    ]


@pytest.mark.parametrize("path", [
    "/", "/etc", "/etc/x", "/proc", "/sys/fs", "/dev/shm", "/usr", "/usr/bin", "/usr/lib64/x", "/usr/share",
    "/boot/efi", "/run/x", "/var", "/var/run/x", "/var/lib", "/root", "/bin", "/sbin", "/lib", "/lib64/x", "//usr/",
])  # fmt: skip
def test_nothing_is_mounted_over_the_system(small: str, path: str) -> None:
    assert findings(planted(small, "mount: /home", f"mount: {path}")) == [
        f'file_systems.home.mount: "{path}" is a folder of the system, which would be hidden; write one such as /home'
    ]


@pytest.mark.parametrize("path", [
    "/usr/local", "/usr/local/bin", "/usr/projects", "/opt", "/opt/x", "/var/lib/x", "/var/log", "/srv", "/mnt",
    "/tmp", "/etcetera", "/home", "/a/b/c", "/.x", "/..x", "/usr/sharing",
])  # fmt: skip
def test_what_a_site_may_have_of_its_own_is_a_mount_point(small: str, path: str) -> None:
    assert findings(planted(small, "mount: /home", f"mount: {path}")) == []


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("/home/", "/home"),
        ("//home", "/home"),
        ("/a//b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/../a", "/a"),
    ],
)
def test_a_path_is_written_in_one_way(small: str, written: str, form: str) -> None:
    said = f'"{written}" is not written plainly; write {form}'
    assert findings(planted(small, "mount: /home", f"mount: {written}")) == [f"file_systems.home.mount: {said}"]
    export = planted(small, "    server: front\n", f"    server: front\n    export: {written}\n")
    assert findings(export) == [f"file_systems.home.export: {said}"]


@pytest.mark.parametrize("written", ["a..b", ".a", "a.", "A.b", "a_b.c", "a.-b"])
def test_every_label_of_a_domain_is_a_name(small: str, written: str) -> None:
    assert findings(planted(small, "small.example", written)) == [
        f'domain: "{written}" is not a domain name; write one such as cluster.example.org'
    ]


def test_a_bare_number_is_a_list_of_cpus(small: str) -> None:
    one = SERVER.replace("cores_per_socket: 4", "cores_per_socket: 1")
    text = planted(small, SERVER, f"{one}    numa: [{{id: 0, socket: 0, cpus: 0}}]\n")
    assert findings(text) == []
    assert site_of(text).profiles["server"].numa[0].cpus == "0"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("true", "true; put it in quotes"),
        ("1.5", "the number 1.5; put it in quotes"),
        ("[0, 1]", "a list"),
        ("", "nothing"),
    ],
)
def test_nothing_else_than_a_number_is_taken_for_a_list_of_cpus(small: str, written: str, said: str) -> None:
    text = planted(small, "cpus: 0-15}", f"cpus: {written}}}")
    assert findings(text) == [f"profiles.worker.numa[0].cpus: must be text, not {said}"]


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [
        ("profiles.server.model", "model: x86 server", 'model: ""'),
        ("services.time_server", "time_server: front", 'time_server: ""'),
        ("partitions.gpu.nodes", PARTITION, 'gpu: {nodes: "",'),
        ("fabric.switches.edr1.switches", SWITCH, 'edr1: {switches: ""}'),
        ("file_systems.home.arrays", "    server: front\n", '    server: front\n    arrays: ""\n'),
    ],
)
def test_an_empty_text_says_nothing(small: str, field: str, old: str, new: str) -> None:
    assert findings(planted(small, old, new)) == [f"{field}: must not be empty"]


def test_one_letter_is_a_name_everywhere(small: str) -> None:
    text = planted(small, SWITCH, f"{SWITCH}\n    s: {{switches: t}}\n    t: {{nodes: login}}")
    text = planted(text, "model: x86 server", "model: x")
    text = planted(text, "  time_server: front", "  t: login")
    assert findings(planted(text, "  base: all", "  base: t")) == []


@pytest.mark.parametrize("section", ["networks", "profiles", "nodes"])
def test_a_site_has_one_of_each_at_least(section: str) -> None:
    assert findings(ONE_NETWORK) == []
    lines = ONE_NETWORK.split("\n")
    begin = lines.index(f"{section}:")
    end = next(at for at in range(begin + 1, len(lines)) if not lines[at].startswith(" "))
    text = "\n".join([*lines[:begin], f"{section}: {{}}", *lines[end:]])
    assert findings(text) == [f"{section}: must not be empty"]


@pytest.mark.parametrize("field", ["memory_mb", "cpus", "gpus"])
def test_what_was_read_cannot_be_changed(small: str, field: str) -> None:
    profile = site_of(small).profiles["server"]
    with pytest.raises(ValidationError, match="frozen"):
        setattr(profile, field, getattr(profile, field))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("4711", "4711; put it in quotes"),
        ("1.5", "1.5; put it in quotes"),
        ("{a: b}", "a mapping of fields"),
        ("", "nothing"),
    ],
)
def test_what_stands_for_several_values_is_text_or_a_list(small: str, written: str, said: str) -> None:
    assert findings(planted(small, "      management: 10.1.0.10\n", f"      management: {written}\n")) == [
        f"nodes.front.addresses.management: must be text, a range or a list, not {said}"
    ]


@pytest.mark.parametrize(
    ("longest", "default", "said"),
    [
        ("unlimited", "unlimited", []),
        ("unlimited", "9999-999:59:59", []),
        ("1-00:00:00", "24:00:00", []),
        ("1-00:00:00", "24:00:01", ["24:00:01 is longer than max_time 1-00:00:00"]),
        ("24:00:00", "1-00:00:01", ["1-00:00:01 is longer than max_time 24:00:00"]),
        ("01:00:00", "00:59:59", []),
        ("00:59:59", "01:00:00", ["01:00:00 is longer than max_time 00:59:59"]),
        ("00:01:00", "00:00:59", []),
        ("00:00:59", "00:01:00", ["00:01:00 is longer than max_time 00:00:59"]),
        ("60:00:00", "2-12:00:00", []),
        ("60:00:00", "2-12:00:01", ["2-12:00:01 is longer than max_time 60:00:00"]),
        ("24:00:00", "1-08:00:00", ["1-08:00:00 is longer than max_time 24:00:00"]),
        ("01:00:00", "01:04:00", ["01:04:00 is longer than max_time 01:00:00"]),
        ("00:01:00", "00:01:04", ["00:01:04 is longer than max_time 00:01:00"]),
        ("24:00:00", "unlimited", ["unlimited is longer than max_time 24:00:00"]),
    ],
)
def test_times_are_compared_whatever_they_are_written_in(
    small: str, longest: str, default: str, said: list[str]
) -> None:
    text = planted(small, 'max_time: "24:00:00"', f'max_time: "{longest}"')
    text = planted(text, 'default_time: "04:00:00"', f'default_time: "{default}"')
    assert findings(text) == [f"partitions.gpu.default_time: {one}" for one in said]

"""Ansible as a user runs it: plugin, script and lookup say the same, and a faulty model stops everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hal_inventory.variables import endless
from tests.unit.hal_inventory.conftest import SMALL, Folder

PLAY = """\
- name: Show what a play sees
  hosts: "{{ where | default('localhost') }}"
  gather_facts: false
  connection: local
  tasks:
    - name: Print it
      ansible.builtin.debug:
        msg: "SEEN {{ what | default('nothing') }}"
"""


def without_empty(listed: dict[str, Any]) -> dict[str, Any]:
    """Return a --list document as ansible-inventory prints it.

    It leaves out groups without hosts, and hosts have the variables of their groups.
    """
    everywhere = listed["all"].pop("vars")
    hosts = {name: {**everywhere, **own} for name, own in listed["_meta"]["hostvars"].items()}
    kept = {name: group for name, group in listed.items() if name == "all" or group.get("hosts")}
    return {**kept, "_meta": {**listed["_meta"], "hostvars": hosts}}


@pytest.mark.parametrize("which", ["hal/hal.yml", "virtual/hal.yml", "virtual/mini.yml"])
def test_the_plugin_the_script_and_the_program_say_the_same(folder: Folder, root: Path, which: str) -> None:
    # Beside a copy without group_vars, whose variables ansible-inventory would add.
    for name in ("hal/hal.yml", "hal/cluster.yml", "virtual/hal.yml", "virtual/mini.yml", "virtual/users.yml"):
        folder.write(f"copy/{name}", (root / "inventory" / name).read_text())
    source = folder.path / "copy" / which
    script = root / "inventory" / "hal_inventory.py"

    by_plugin = folder.listed(source)
    by_script = folder.run(sys.executable, script, "--list", HAL_INVENTORY_SOURCES=str(source))
    by_program = folder.run(sys.executable, "-m", "hal_cluster.inventory", "-i", source, "--list")
    by_ansible = folder.ansible(
        "ansible-inventory", "--list", "-i", script,
        ANSIBLE_INVENTORY_ENABLED="script", HAL_INVENTORY_SOURCES=str(source),
    )  # fmt: skip

    assert by_script.stdout == by_program.stdout
    assert without_empty(json.loads(by_script.stdout)) == by_plugin
    assert json.loads(by_ansible.stdout) == by_plugin, by_ansible.stderr
    assert len(by_plugin["_meta"]["hostvars"]) == (6 if "mini" in which else 22)


def test_the_script_answers_for_one_host(folder: Folder, root: Path) -> None:
    source = folder.site()
    script = root / "inventory" / "hal_inventory.py"
    listed = json.loads(folder.run(sys.executable, script, "--list", HAL_INVENTORY_SOURCES=str(source)).stdout)
    one = folder.run(sys.executable, script, "--host", "worker3", HAL_INVENTORY_SOURCES=str(source))
    assert json.loads(one.stdout) == {**listed["all"]["vars"], **listed["_meta"]["hostvars"]["worker3"]}
    none = folder.run(sys.executable, script, "--host", "worker9", HAL_INVENTORY_SOURCES=str(source))
    assert (none.returncode, none.stdout) == (2, "")
    assert none.stderr == 'unknown node "worker9"; did you mean "worker1"?\n'


def test_a_script_that_fails_prints_no_inventory(folder: Folder, small: str, root: Path) -> None:
    source = folder.site(small.replace("role: login", "role: x"))
    done = folder.run(root / "inventory" / "hal_inventory.py", "--list", HAL_INVENTORY_SOURCES=str(source))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cluster.yml:30: nodes.front.role: must be")
    assert "Traceback" not in done.stderr


def test_a_script_run_by_a_python_that_lacks_something_says_so(folder: Folder, root: Path) -> None:
    script = folder.write("inventory/hal_inventory.py", (root / "inventory" / "hal_inventory.py").read_text())
    done = folder.run(sys.executable, "-I", "-S", script, "--list")  # -S: without the packages that are installed
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(
        f"{sys.executable} lacks yaml, pydantic, ClusterShell; make setup installs them into .venv\n"
    )


def test_the_script_is_never_taken_for_a_source_by_accident(folder: Folder, root: Path) -> None:
    done = folder.ansible("ansible-inventory", "--list", "-i", root / "inventory" / "hal_inventory.py")
    assert done.returncode != 0
    assert "Completely failed to parse inventory source" in done.stderr


def test_the_same_input_gives_the_same_bytes(folder: Folder) -> None:
    source = folder.site()
    outputs = {
        folder.run(
            sys.executable, "-m", "hal_cluster.inventory", "-i", source, "--list",
            PYTHONHASHSEED=seed, HAL_CACHE_DIR=str(folder.path / f"cache{seed}"),
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(outputs) == 1


def test_a_later_source_takes_away_what_it_does_not_have(folder: Folder) -> None:
    whole = folder.site()
    part = folder.write("part.yml", "plugin: hal\ncluster: cluster.yml\nvirtual: true\nonly: front or worker[1-2]\n")
    alone, chained = folder.listed(part), folder.listed(whole, part)
    assert chained == alone
    assert sorted(chained["_meta"]["hostvars"]) == ["front", "worker1", "worker2"]
    assert chained["compute"]["hosts"] == ["worker1", "worker2"]
    assert chained["_meta"]["hostvars"]["front"]["hal_node"]["virtual"] is True
    assert len(folder.listed(part, whole)["_meta"]["hostvars"]) == 5


def test_a_later_source_with_another_model_leaves_nothing_of_the_first(folder: Folder, root: Path) -> None:
    first = folder.site()
    dell = folder.write("dell.yml", f"plugin: hal\nbase: hal.yml\ncluster: {root}/tests/sites/dell/cluster.yml\n")
    alone, chained = folder.listed(dell), folder.listed(first, dell)
    for listed in (alone, chained):
        listed["all"]["children"].sort()  # Ansible has them in the order of their first appearance
    assert chained == alone


def test_other_inventories_keep_their_hosts_and_memberships(folder: Folder) -> None:
    whole = folder.site()
    part = folder.write("part.yml", "plugin: hal\ncluster: cluster.yml\nonly: front or worker[1-2]\n")
    extra = folder.write("extra.ini", "[mine]\nworker1\nelsewhere\n[compute]\nelsewhere\n")
    done = folder.ansible(
        "ansible-inventory", "--list", "-i", whole, "-i", extra, "-i", part, ANSIBLE_INVENTORY_ENABLED="hal,ini"
    )
    listed = json.loads(done.stdout)
    assert listed["mine"]["hosts"] == ["worker1", "elsewhere"]
    assert sorted(listed["compute"]["hosts"]) == ["elsewhere", "worker1", "worker2"]
    assert set(listed["_meta"]["hostvars"]) == {"front", "worker1", "worker2"} | (
        {"elsewhere"} & set(listed["_meta"]["hostvars"])
    )


@pytest.mark.parametrize("merge", ["replace", "merge"])
def test_an_overlay_replaces_host_variables_whatever_hash_behaviour_says(
    folder: Folder, small: str, merge: str
) -> None:
    folder.write("other/cluster.yml", small.replace('    macs: {management: "02:00:00:00:00:10"}\n', ""))
    first = folder.site()
    other = folder.write("other/hal.yml", "plugin: hal\nbase: ../hal.yml\ncluster: cluster.yml\n")
    done = folder.ansible(
        "ansible-inventory", "--host", "front", "-i", first, "-i", other, ANSIBLE_HASH_BEHAVIOUR=merge
    )
    assert json.loads(done.stdout)["hal_node"]["macs"] == {}


def test_a_model_that_cannot_be_read_stops_every_playbook(folder: Folder, small: str) -> None:
    folder.write("play.yml", PLAY)
    text = small.replace("role: login", "role: x").replace("drives: 12", "drives: 0")
    done = folder.ansible("ansible-playbook", "-i", folder.site(text), "play.yml")
    assert done.returncode != 0
    assert "SEEN" not in done.stdout
    lines = done.stderr.splitlines()
    assert (
        'cluster.yml:30: nodes.front.role: must be login, management, data, transfer, test or compute, not "x"' in lines
    )
    assert "cluster.yml:46: arrays.flash[1-2].drives: must be at least 1, not 0" in lines
    assert "Completely failed to parse inventory source" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("fault", ["missing model", "binary model", "empty source", "no source", "model as source"])
def test_so_does_a_file_that_is_none(folder: Folder, fault: str) -> None:
    folder.write("play.yml", PLAY)
    source = folder.site()
    if fault == "missing model":
        (folder.path / "cluster.yml").unlink()
    elif fault == "binary model":
        (folder.path / "cluster.yml").write_bytes(b"\xff\xfe\x00")
    elif fault == "empty source":
        source.write_text("")
    elif fault == "no source":
        source = folder.path / "nowhere.yml"
    else:
        source = folder.path / "cluster.yml"
    done = folder.ansible("ansible-playbook", "-i", source, "play.yml")
    assert done.returncode != 0
    assert "SEEN" not in done.stdout
    assert "Traceback" not in done.stderr


def test_a_broken_overlay_is_not_passed_over(folder: Folder) -> None:
    folder.write("play.yml", PLAY)
    broken = folder.write("broken.yml", "plugin: hal\ncluster: cluster.yml\nonly: nobody\n")
    done = folder.ansible("ansible-playbook", "-i", folder.site(), "-i", broken, "play.yml")
    assert done.returncode != 0
    assert 'broken.yml:3: only: unknown name "nobody"' in done.stderr


@pytest.fixture
def seen(folder: Folder) -> Callable[..., str]:
    """What a play on localhost prints for an expression."""

    def run(what: str, *sources: Path, where: str = "localhost") -> str:
        folder.write("play.yml", PLAY.replace("{{ what | default('nothing') }}", f"{{{{ {what} }}}}"))
        chosen = [part for source in sources for part in ("-i", source)]
        done = folder.ansible("ansible-playbook", *chosen, "play.yml", "-e", f"where={where}")
        return done.stdout + done.stderr

    return run


def test_the_lookup_shows_the_site_of_the_last_source(folder: Folder, seen: Callable[..., str]) -> None:
    whole = folder.site()
    part = folder.write("part.yml", "plugin: hal\ncluster: cluster.yml\nonly: front or worker[1-2]\n")
    what = "lookup('hal', 'nodeset', where='gpu and not worker1')"
    assert "SEEN worker[2-4]" in seen(what, whole)
    assert "SEEN worker2" in seen(what, whole, part)
    assert "SEEN worker2" in seen(what, part, where="front")


def test_the_lookup_gives_lists_and_mappings(folder: Folder, seen: Callable[..., str]) -> None:
    source = folder.site()
    what = [
        "lookup('hal', 'slurm.nodes', memory_reserve_mb=144)[0].memory_mb",
        "lookup('hal', 'slurm.nodes', memory_reserve_mb='144')[0].memory_mb",  # a templated number is text
        "lookup('hal', 'services').time_server | join(' ')",
        "lookup('hal', 'hosts') | length",
        "lookup('hal', 'placeholders') | length",
        "lookup('hal', 'placeholders') is sequence",
        "(lookup('hal', 'slurm.gres', slurm_version='19.05.5') | first).cores",
    ]
    assert "SEEN 262000 262000 front 5 0 True 0-15" in seen(" ~ ' ' ~ ".join(f"({one})" for one in what), source)


def test_the_lookup_says_what_is_wrong(folder: Folder, seen: Callable[..., str]) -> None:
    text = " ".join(seen("lookup('hal', 'slurm.node')", folder.site()).split())
    assert 'unknown slice "slurm.node"; did you mean "slurm.nodes"?' in text.replace('\\"', '"')


def test_the_lookup_uses_the_source_of_ansible_cfg(folder: Folder) -> None:
    folder.site()
    folder.write(
        "ansible.cfg",
        "[defaults]\ninventory=hal.yml\n[inventory]\nenable_plugins=hal\n",
    )
    root = Path(__file__).resolve().parents[3]
    done: subprocess.CompletedProcess[str] = folder.ansible(
        "ansible", "localhost", "-m", "ansible.builtin.debug", "-a", "msg={{ lookup('hal', 'site').name }}",
        config="ansible.cfg",
        ANSIBLE_INVENTORY_PLUGINS=str(root / "plugins/inventory"),
        ANSIBLE_LOOKUP_PLUGINS=str(root / "plugins/lookup"),
    )  # fmt: skip
    assert '"msg": "small"' in done.stdout


@pytest.mark.parametrize("kind", ["inventory", "lookup"])
def test_ansible_doc_shows_the_plugin(folder: Folder, root: Path, kind: str) -> None:
    done = folder.ansible("ansible-doc", "-t", kind, "--json", "hal")
    documented = json.loads(done.stdout)["hal"]
    assert documented["examples"]
    assert documented["doc"]["short_description"]
    assert all(option["description"] for option in documented["doc"]["options"].values())


def test_the_documented_options_are_the_accepted_ones(folder: Folder) -> None:
    from hal_inventory.derive.slices import SLICES
    from hal_inventory.sources import FIELDS

    options = {
        kind: json.loads(folder.ansible("ansible-doc", "-t", kind, "--json", "hal").stdout)["hal"]["doc"]["options"]
        for kind in ("inventory", "lookup")
    }
    assert set(options["inventory"]) == set(FIELDS)
    description = options["lookup"]["_terms"]["description"]
    assert [name for name in SLICES if f"V({name})" not in "".join(description)] == []


def test_one_source_has_the_variables_of_all_that_it_begins_with(folder: Folder) -> None:
    folder.write("sites/cluster.yml", SMALL)
    first = folder.write("sites/hal.yml", "plugin: hal\ncluster: cluster.yml\n")
    folder.write("sites/group_vars/all.yml", "a: hal\nb: hal\nc: hal\n")
    folder.write("sites/group_vars/compute/x.yml", "e: hal of compute\n")
    folder.write("sites/host_vars/worker1.yml", "d: hal\n")
    second = folder.write("sites/virtual/hal.yml", "plugin: hal\nbase: ../hal.yml\nvirtual: true\n")
    folder.write("sites/virtual/group_vars/all/x.yml", "b: virtual\nc: virtual\ne: virtual\n")
    third = folder.write("sites/virtual/parts/hal.yml", "plugin: hal\nbase: ../hal.yml\nonly: worker1\n")
    folder.write("sites/virtual/parts/group_vars/all.yml", "c: part\n")
    alone, together = folder.listed(third), folder.listed(first, second, third)
    variables = alone["_meta"]["hostvars"]["worker1"]
    assert [variables[name] for name in "abcde"] == ["hal", "virtual", "part", "hal", "hal of compute"]
    assert together == alone


def test_two_sites_in_one_call_are_refused_in_one_line(folder: Folder) -> None:
    one = folder.site()
    folder.write("other/cluster.yml", SMALL.replace("name: small", "name: other"))
    other = folder.write("other/hal.yml", "plugin: hal\ncluster: cluster.yml\n")
    done = folder.ansible("ansible-inventory", "--list", "-i", one, "-i", other)
    assert done.returncode != 0
    said = "other/hal.yml: is of another site than hal.yml in the same call; name one, or give it a base"
    assert done.stderr.splitlines().count(said) == 1
    assert done.stdout == ""


def test_a_base_whose_variables_nobody_loads_is_refused(folder: Folder, root: Path) -> None:
    folder.site()
    part = folder.write("part.yml", "plugin: hal\nbase: hal.yml\n")
    folder.write(
        "ansible.cfg",
        f"[defaults]\ninventory_plugins = {root}/plugins/inventory\n[inventory]\n"
        "enable_plugins = hal\nany_unparsed_is_failed = True\n",
    )
    done = folder.ansible("ansible-inventory", "--list", "-i", part, config="ansible.cfg")
    assert done.returncode != 0
    said = "part.yml has a base, whose group_vars the vars plugin hal_base loads: write vars_plugins_enabled ="
    assert "".join(said.split()) in "".join(done.stderr.split())  # Ansible breaks lines anywhere


def opened(pipe: Path, process: subprocess.Popen[str]) -> bool:
    """Whether a process opened a pipe for reading before it ended. It gets an end of file then, so that it goes on."""
    was_read = False
    while process.poll() is None:
        try:
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            was_read = True
        except OSError:  # nobody reads
            time.sleep(0.01)
    return was_read


@pytest.mark.parametrize("name", ["group_vars/all.yml", "group_vars/base", "host_vars/worker1.yaml"])
@pytest.mark.parametrize("where", ["beside the source", "beside its base"])
def test_a_pipe_among_the_variables_is_one_line_and_nobody_waits_for_it(folder: Folder, name: str, where: str) -> None:
    """Ansible's own plugin opens whatever has the name of a group."""
    source = folder.site()
    if where == "beside its base":
        source = folder.write("part/hal.yml", "plugin: hal\nbase: ../hal.yml\n")
    pipe = folder.path / name
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    words = [str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(source), "--host", "worker1"]
    with subprocess.Popen(
        words, cwd=folder.path, env=folder.environment({}), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        was_read = opened(pipe, process)
        said = process.communicate()[0]
    assert f"{name}: is neither a file nor a folder; take it away" in said, said
    assert (was_read, process.returncode) == (False, 1)


def test_an_endless_device_among_the_variables_is_not_read(folder: Folder) -> None:
    """Ansible would read it until no memory is left; so the plugin's own function is asked."""
    folder.write("group_vars/all/vars.yml", "a: 1\n")
    (folder.path / "group_vars/base.yml").symlink_to("/dev/zero")
    (folder.path / "group_vars/nothing.yml").symlink_to("nowhere")
    (found,) = endless([folder.path])
    assert str(found).endswith("group_vars/base.yml: is neither a file nor a folder; take it away")

"""A user starts notebooks that nobody else can use, and a cell runs in the environment that its kernel names.

Nothing here reads expect.yml. The tests are one story, in their order: rolled out, used, refused, broken, withdrawn.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from running.ansible_run import PROJECT, of_scenario
from testinfra.host import Host
from testing.people import user
from testing.promises import Rollout
from testing.waiting import wait_for

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
NODES = ("hal-login", "hal01")
KERNELS = "/opt/apps/jupyter/kernels"
KERNEL = "wmlce-1.7.0-py3.7"
CELL = "import os, sys, tensorflow; print(tensorflow.__version__, sys.prefix, os.environ['CONDA_PREFIX'])"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


def notebook(source: str, kernel: str) -> str:
    """A notebook with one cell."""
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": [source],
    }
    spec = {"name": kernel, "display_name": kernel, "language": "python"}
    return json.dumps({"cells": [cell], "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 2})


@pytest.mark.parametrize("name", NODES)
def test_a_cell_runs_in_the_environment_that_its_kernel_names(node: Node, name: str) -> None:
    host = node(name)
    user(host, f"printf %s {quote(notebook(CELL, KERNEL))} >{name}.ipynb")
    run = f"module load jupyter; jupyter nbconvert --to notebook --execute {name}.ipynb --output {name}-done.ipynb"
    said = user(host, run)
    done = json.loads(host.check_output(f"cat /home/alice/{name}-done.ipynb"))
    (output,) = done["cells"][0]["outputs"]
    version, prefix, active = "".join(output["text"]).split()
    assert version == "2.1.0", said
    assert prefix.startswith("/home/apps/wmlce/1.7.0-py3.7"), "the kernel's Python, not the notebook's"
    assert active.startswith("/home/apps/wmlce/1.7.0-py3.7"), "and activated"


def test_kernels_are_the_declared_ones_and_those_of_others(node: Node) -> None:
    said = user(node("hal01"), "module load jupyterlab; jupyter kernelspec list")
    assert KERNEL in said
    assert "mine" in said, "somebody else's is left"
    assert "old" not in said.split(), "withdrawn"


@pytest.fixture
def started(node: Node) -> Iterator[Callable[..., tuple[int, str]]]:
    """Start a program of the role as a user on hal01; ends it afterwards. Returns its port and what it said."""
    host = node("hal01")
    units: list[str] = []

    def start(command: str, module: str, name: str = "alice") -> tuple[int, str]:
        unit = f"test-{len(units)}"
        units.append(unit)
        host.run(f"rm -f /tmp/{unit}.out; touch /tmp/{unit}.out; chown {name} /tmp/{unit}.out")
        inner = f"module load {module}; exec {command} >/tmp/{unit}.out 2>&1"
        host.check_output(f"/usr/bin/systemd-run --quiet --unit={unit} runuser -l {name} -c {quote(inner)}")

        def said() -> str:
            return str(host.check_output(f"cat /tmp/{unit}.out"))

        text = wait_for(f"{command} said where", said, lambda text: "ssh -N -L" in text)
        port = int(re.search(r"-L (\d+):", text)[1])  # type: ignore[index]

        def listening() -> str:
            return "listens" if host.run(f"ss -ltn | grep -q :{port}").rc == 0 else said()

        # An image is mounted first, and its Python starts from there.
        wait_for(command, listening, "listens".__eq__, 180)
        return port, said()

    yield start
    for unit in units:
        host.run(f"/usr/bin/systemctl stop {unit}; /usr/bin/systemctl reset-failed {unit}")


def test_a_notebook_listens_to_this_node_alone_and_asks_for_its_token(
    node: Node, started: Callable[..., tuple[int, str]]
) -> None:
    host = node("hal01")
    port, said = started("hal-notebook", "jupyter")
    assert "-J alice@hal-login alice@hal01" in said
    assert f"127.0.0.1:{port}" in host.check_output(f"ss -ltn | grep :{port}")
    log = wait_for("the token", lambda: host.check_output("cat /tmp/test-0.out"), lambda text: "token=" in text)
    token = re.search(r"token=([0-9a-f]{48})", log)
    assert token
    page = f"curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{port}/api/contents"
    assert host.check_output(page) == "403", "not without the token"
    assert host.check_output(f"{page}?token={token[1]}") == "200"
    mine = host.check_output("find /home/alice -path '*jupyter*' -newer /etc/hal/notebooks.json -type f")
    assert "/home/alice/.local/share/jupyter/runtime/" in mine
    second, _ = started("hal-lab", "jupyterlab", "bob")
    assert second != port


def test_tensorboard_and_h2o_say_how_to_get_there(node: Node, started: Callable[..., tuple[int, str]]) -> None:
    host = node("hal01")
    port, said = started("hal-tensorboard --logdir /home/alice", "tensorboard")
    assert "does not ask for a password" in said
    assert "stand-in: /home/alice" in host.check_output(f"curl -s http://127.0.0.1:{port}/")
    port, said = started("hal-h2o", "h2o")
    place = re.search(r"User alice, the password is in (/home/alice/.hal-h2o/\S+), ", said)
    assert place, "its output is a file here, as a job's"
    password = re.search(r"alice: (\S+)", host.check_output(f"cat {place[1]}"))
    assert password
    assert f"127.0.0.1:{port + 1}" in host.check_output("ss -ltn"), "what H2O's own parts talk through"
    page = f"curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{port}/"
    assert host.check_output(page) == "401", "not without the password"
    assert host.check_output(f"{page} -u alice:{password[1]}") == "200"
    assert host.check_output("stat -c %a /home/alice/.hal-h2o/*").split() == ["600"]


def test_the_notebook_starts_from_an_image_that_has_its_environment(
    node: Node, rollout: Rollout, started: Callable[..., tuple[int, str]]
) -> None:
    login, host = node("hal-login"), node("hal01")
    script = (PROJECT / "molecule/virtual_hal/software/make_base.sh").read_text()
    libraries = "$(find /home/apps/jupyter/6-py3.7/ -type f -name '*.so*') /home/apps/jupyter/6-py3.7/bin/python3.7"
    login.check_output(f"sh -c {quote(script)} make_base.sh /srv/base {libraries}")
    built = of_scenario(SCENARIO).playbook(
        PROJECT / "playbooks/notebook_container.yml", notebooks_container_image="jupyter"
    )
    assert built.status == 0, built.explain()
    done = rollout.converge(notebooks_container_image="jupyter")
    assert done.status == 0, done.explain()
    listed = "singularity exec /opt/container/singularity/jupyter.sif ls /home/apps 2>/dev/null"
    assert user(host, listed).split() == ["jupyter"], "the image's, not the node's"
    port, _ = started("hal-notebook", "notebook-container")
    log = wait_for("the token", lambda: host.check_output("cat /tmp/test-0.out"), lambda text: "token=" in text)
    token = re.search(r"token=([0-9a-f]{48})", log)
    assert token
    page = f"http://127.0.0.1:{port}/api/kernelspecs"
    assert host.check_output(f"curl -s -o /dev/null -w '%{{http_code}}' {page}") == "403", "not without the token"
    kernels = json.loads(host.check_output(f"curl -s {page}?token={token[1]}"))["kernelspecs"]
    assert set(kernels) == {"python3"}, "kernels of modules are not in the image"
    text = notebook("import sys, os; print(sys.prefix, os.path.isdir('/usr/lib/systemd'))", "python3")
    user(host, f"printf %s {quote(text)} >inside.ipynb")
    run = "jupyter nbconvert --to notebook --execute inside.ipynb --output inside-done.ipynb"
    image = "/opt/container/singularity/jupyter.sif"
    said = user(host, f"singularity exec {image} sh -c {quote('PATH=/home/apps/jupyter/6-py3.7/bin:$PATH; ' + run)}")
    done_cells = json.loads(host.check_output("cat /home/alice/inside-done.ipynb"))["cells"]
    assert "".join(done_cells[0]["outputs"][0]["text"]).split()[1] == "False", said


def test_what_would_let_in_others_is_refused(node: Node) -> None:
    host = node("hal-login")
    assert "lets in everybody" in user(host, "module load jupyter; hal-notebook --NotebookApp.token=")
    assert "say --public" in user(host, "module load jupyter; hal-notebook --ip=0.0.0.0")
    assert "-hash_login is set here" in user(host, "module load h2o; hal-h2o -hash_login")
    assert "there is no jupyter-notebook: module load jupyter" in user(host, "hal-notebook --here")
    told = user(host, "module load jupyter; hal-notebook")
    assert "--pty bash -lc 'module load jupyter && hal-notebook'" in told, "on the login node: what to type instead"
    assert "not as root" in host.run("hal-notebook").stderr


def test_users_write_nowhere_but_at_home(node: Node) -> None:
    for name in NODES:
        places = "/home/apps /opt/apps /etc/jupyter /usr/libexec/hal-notebooks"
        assert user(node(name), f"find {places} ! -type l -writable 2>/dev/null") == ""


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"notebooks_kernels": [{"module": "wmlce"}]}, "module is wmlce; write NAME/VERSION"),
        ({"notebooks_first_port": 32000}, "up to 32768 together"),
        ({"notebooks_environments": [{"version": "9", "lock": "none-9", "python": "3.7"}]}, "none-9.lock.yml is not"),
    ],
)
def test_bad_input_is_refused_before_a_node_is_touched(rollout: Rollout, variables: dict[str, Any], words: str) -> None:
    done = rollout.converge(**variables)
    assert done.status != 0
    assert words in done.words
    assert not done.changes


FAULTS: dict[str, dict[str, Any]] = {
    "kernel edited": {
        "node": "hal01",
        "plant": f"sed -i s/wmlce/other/ {KERNELS}/{KERNEL}/kernel.json",
        "audit": (
            "changed", f"file:{KERNELS}/{KERNEL}/kernel.json", "notebooks",
            "Write the programs, the kernels, and what is declared",
        ),
    },
    "kernel points to nothing": {
        "node": "hal-login",
        "plant": "mv /opt/apps/modulefiles/wmlce /opt/apps/modulefiles/.wmlce",
        "audit": ("expectation", "expectation:notebooks: kernels would start", "notebooks", ""),
    },
    "settings let in everybody": {
        "node": "hal01",
        "plant": "echo 'c.NotebookApp.token = \"\"' >>/etc/jupyter/jupyter_notebook_config.py",
        "audit": (
            "changed", "file:/etc/jupyter/jupyter_notebook_config.py", "notebooks",
            "Write the programs, the kernels, and what is declared",
        ),
    },
    "other settings let in everybody": {
        "node": "hal-login",
        "plant": """echo '{"NotebookApp": {"ip": "*"}}' >/etc/jupyter/jupyter_notebook_config.json""",
        "audit": (
            "expectation", "expectation:notebooks: no other settings of the node open notebooks", "notebooks", "",
        ),
    },
    "everybody may write kernels": {
        "node": "hal01",
        "plant": f"chmod 777 {KERNELS}",
        "audit": ("mode", f"file:{KERNELS}", "notebooks", "Write the programs, the kernels, and what is declared"),
    },
    "everybody may write an environment": {
        "node": "hal-login",
        "plant": "chmod 777 /home/apps/tensorboard/2.1-py3.7/lib; hal-environment verify tensorboard/2.1-py3.7 || true",
        "audit": (
            "expectation", "expectation:notebooks: environment is what was installed [tensorboard/2.1-py3.7]",
            "notebooks", "",
        ),
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def planted(node: Node) -> None:
    """All at once; none may hide another."""
    for fault in FAULTS.values():
        node(fault["node"]).check_output(fault["plant"])


@pytest.fixture(scope="module")
def found(planted: None, rollout: Rollout) -> dict[str, list[dict[str, Any]]]:
    return {name: rollout.audited("--limit", name, audit_roles=["notebooks"]) for name in NODES}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_audit_names_a_fault_with_its_role_and_task(fault: str, found: dict[str, list[dict[str, Any]]]) -> None:
    kind, resource, role, task = FAULTS[fault]["audit"]
    here = found[FAULTS[fault]["node"]]
    mine = [one for one in here if (one["kind"], one["resource"], one["role"]) == (kind, resource, role)]
    assert mine, here
    assert task in ("", mine[0]["task"])


def test_a_rollout_mends_all_and_a_second_changes_nothing(rollout: Rollout, planted: None, node: Node) -> None:
    node("hal-login").run("rm -rf /opt/apps/modulefiles/.wmlce /etc/jupyter/jupyter_notebook_config.json")
    done = rollout.converge()
    assert done.status == 0, done.explain()
    again = rollout.converge()
    assert (again.status, dict(again.changes)) == (0, {}), again.explain()


def test_what_is_withdrawn_goes(rollout: Rollout, node: Node) -> None:
    done = rollout.converge(notebooks_kernels=[])
    assert done.status == 0, done.explain()
    assert not node("hal01").file(f"{KERNELS}/{KERNEL}").exists
    assert node("hal01").file(f"{KERNELS}/mine/kernel.json").exists

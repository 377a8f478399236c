"""Modules as users meet them: in every shell, on login and compute nodes alike, with words for what cannot be.

Nothing here reads expect.yml, except the tests that ask whether a planted fault is noticed.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shlex import quote

import pytest
from testinfra.host import Host
from testing.promises import Rollout
from testing.waiting import wait_for

from hal_cluster.rules.lmod.files import files

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
TREE = "/opt/apps/modulefiles"
CACHE = "/var/cache/lmod/spiderT.lua"
LOGIN, COMPUTE = "hal-login", "hal01"
NODES = (LOGIN, COMPUTE)
SHELLS = ("bash", "tcsh", "zsh")
LISTED = [
    *("at/12.0", "colabtools/1", "cuda/10.2", "gcc/9.2", "horovod/0.19.0", "matlab/R2018a", "matlab/R2019b"),
    *("moved/1.0", "openmpi/3.1.5", "spectrum_mpi/10.3"),
]
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


@pytest.fixture(params=NODES)
def host(node: Node, request: pytest.FixtureRequest) -> Host:
    return node(request.param)


@pytest.fixture(scope="module")
def people(node: Node) -> dict[str, str]:
    """An account for each shell, on both nodes; bash is alice's own."""
    add = "id {0} >/dev/null 2>&1 || useradd --uid {1} --gid 5000 --create-home --shell {2} {0}"
    for name in NODES:
        for account in (("carol", 5003, "/bin/tcsh"), ("dave", 5004, "/bin/zsh")):
            node(name).check_output(add.format(*account))
        node(name).check_output("touch /home/dave/.zshrc")  # else zsh asks whether it is to make one
    return {"bash": "alice", "tcsh": "carol", "zsh": "dave"}


def as_user(host: Host, command: str, user: str = "alice") -> str:
    """What a login shell of a user prints, both streams, in a terminal of 80 columns."""
    done = host.run(f"runuser -l {user} -c {quote('export COLUMNS=80; ' + command + ' 2>&1')}")
    return str(done.stdout)


def loaded(host: Host, *names: str) -> str:
    """What `module load` says, then the status; nothing else is loaded."""
    return as_user(host, f"{{ module load {' '.join(names)}; echo status $?; module -t list; }}")


def words(text: str) -> str:
    return " ".join(text.split())


# ---------------------------------------------------------------- every shell
@pytest.mark.parametrize("shell", SHELLS)
def test_a_login_shell_has_modules(host: Host, people: Mapping[str, str], shell: str) -> None:
    said = host.check_output(f"runuser -l {people[shell]} -c 'module load matlab; matlab; echo $MODULEPATH'")
    assert said.split() == ["R2019b", TREE]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_of_ssh_has_modules(host: Host, people: Mapping[str, str], shell: str) -> None:
    """Neither a login shell nor interactive: as sshd starts it, with the user's own start files."""
    user = people[shell]
    given = (
        f"SSH_CLIENT='10.1.1.1 5000 22' SHLVL=0 PATH=/usr/bin:/usr/sbin HOME=/home/{user} USER={user} LOGNAME={user}"
    )
    command = quote("module load matlab; matlab; echo $MODULEPATH")
    said = host.check_output(f"env -i {given} runuser -u {user} -- /bin/{shell} -c {command}")
    assert said.split() == ["R2019b", TREE]


@pytest.mark.parametrize("shell", SHELLS)
def test_an_interactive_shell_that_is_no_login_has_modules(host: Host, people: Mapping[str, str], shell: str) -> None:
    """As a terminal window or `su alice` starts it."""
    user = people[shell]
    given = f"TERM=dumb PATH=/usr/bin:/usr/sbin HOME=/home/{user} USER={user} LOGNAME={user}"
    typed = "sleep 1; printf 'module load matlab\\nmatlab\\nexit\\n'"
    shown = host.run(f"({typed}) | env -i {given} runuser -u {user} -- script -qec '/bin/{shell} -i' /dev/null").stdout
    assert "R2019b" in shown.replace("matlab/R2019b", ""), shown


# sh has the module command by bash's exported functions alone (docs/modules.md): not where people have another shell.
@pytest.mark.parametrize(
    ("shell", "interpreter"),
    [("bash", "/bin/sh"), *itertools.product(SHELLS, ["/bin/bash", "/bin/tcsh", "/bin/zsh"])],
)
def test_a_batch_script_has_modules(host: Host, people: Mapping[str, str], shell: str, interpreter: str) -> None:
    """A script that is handed over with the environment of a login shell, as sbatch does it."""
    script = f"/tmp/job.{shell}"
    host.check_output(f"printf '#!{interpreter}\\nmodule load matlab\\nmatlab\\n' >{script} && chmod 0755 {script}")
    assert host.check_output(f"runuser -l {people[shell]} -c {script}") == "R2019b"


def test_a_job_with_the_environment_that_slurm_asks_for_itself_has_modules(host: Host) -> None:
    """sbatch --export=NONE: Slurm runs `su - USER -c env` and gives the script what that prints."""
    environment = host.check_output("su - alice -c env | grep -v '^_=\\|^BASH_FUNC\\|^[ }]'")
    given = " ".join(quote(line) for line in environment.splitlines() if "=" in line)
    host.check_output("printf '#!/bin/bash\\nmodule load matlab\\nmatlab\\n' >/tmp/none && chmod 0755 /tmp/none")
    assert host.check_output(f"env -i {given} /tmp/none") == "R2019b"


# ---------------------------------------------------------------- what users see
def test_the_list_is_readable_in_a_terminal(host: Host) -> None:
    """80 columns, one heading in words, the default is marked, nothing hidden, retired or of the machinery is in it."""
    said = as_user(host, "module avail")
    lines = said.strip().splitlines()
    assert lines[0].strip("- ") == "Software on HAL"
    assert max(map(len, lines)) <= 80
    found = re.findall(r"([a-z]\w*/\S+)( +\(D\))?", "\n".join(line for line in lines if line.startswith("   ")))
    assert sorted(name for name, _ in found) == LISTED
    assert [name for name, default in found if default] == ["matlab/R2019b"]
    assert "module help NAME explains" in said


def test_login_and_compute_nodes_list_the_same(node: Node) -> None:
    lists = [as_user(node(name), "module -t avail").split() for name in NODES]
    assert lists[0] == lists[1]
    assert set(LISTED) <= set(lists[0])


def test_the_default_is_loaded_by_name_and_unloaded_without_a_trace(host: Host) -> None:
    loads = "module load cuda; echo $CUDA_HOME; nvcc --version | grep ^Cuda; module unload cuda; env"
    home, compiler, *after = as_user(host, f"{{ {loads}; }}").splitlines()
    assert home == "/usr/local/cuda-10.2"
    assert "release 10.2" in compiler
    assert [line for line in after if "cuda" in line.lower() and "ModuleTable" not in line] == []


def test_text_comes_through_as_it_was_declared(host: Host) -> None:
    assert as_user(host, "{ module load matlab; printenv MATLAB_WORDS; }") == 'a "b" $HOME `id` größe \\ 100 %\n'
    help_text = as_user(host, "module help matlab")
    assert "Licences: 20, for everybody.\nUse it on compute nodes." in re.sub(" *\n *", "\n", help_text)
    assert "MATLAB R2019b" in as_user(host, "module whatis matlab")


def test_manual_pages_of_the_system_stay(host: Host) -> None:
    """An empty entry in MANPATH is the system's own; a module that adds a folder must not push it out."""
    path = as_user(host, "{ module load matlab; echo $MANPATH; }").strip()
    assert path.startswith("/srv/apps/matlab/R2019b/man:")
    assert "" in path.split(":")


def test_a_module_brings_what_it_needs_and_what_its_environment_sets(host: Host) -> None:
    shown = "module -t list; echo $HOROVOD_GPU ${PATH%%:*}; module unload horovod; echo none=$HOROVOD_GPU"
    said = as_user(host, f"{{ module load horovod; {shown}; }}")
    assert said.split() == ["cuda/10.2", "openmpi/3.1.5", "horovod/0.19.0", "NCCL", "/srv/apps/horovod/bin", "none="]


def test_what_is_loaded_can_be_unloaded_after_it_was_switched_retired_or_removed(host: Host) -> None:
    """With modulefiles of the same program in a tree beside the site's, exchanged while one is loaded."""
    place = "/tmp/switched"
    declared = {"name": "net", "version": "1", "title": "Net", "owner_role": "lmod", "family": "nets"}
    (current, *_), (retired, *_) = (
        [one["content"] for one in files([{**declared, **more}], "/") if one["path"] == "/net/1.lua"]
        for more in (
            {"settings_file": f"{place}/net/1/settings.lua", "roots": [f"{place}/net/1"]},
            {"settings_file": f"{place}/net/1/settings.lua", "retired": "use net/2"},
        )
    )
    host.check_output(f"rm -rf {place}; mkdir -p {place}/tree/net {place}/net/1.old {place}/net/1.new")
    for name in ("old", "new"):
        settings = f'setenv("NET", "{name}")\nprepend_path("PATH", "{place}/net/1.{name}/bin")\n'
        host.check_output(f"printf %s {quote(settings)} >{place}/net/1.{name}/settings.lua")
    for name, content in (("current", current), ("retired", retired)):
        host.check_output(f"printf %s {quote(content)} >{place}/{name}.lua")
    host.check_output(f"ln -s 1.old {place}/net/1; cp {place}/current.lua {place}/tree/net/1.lua")
    host.check_output(f"chown -R alice {place}")
    say = "echo $NET:${PATH%%:*}:$LMOD_FAMILY_NETS"
    said = as_user(
        host,
        f"{{ cd {place}; module use {place}/tree; module load net; {say};"
        f" ln -sfn 1.new net/1; module unload net; {say};"
        f" module load net; {say}; cp retired.lua tree/net/1.lua; module unload net; {say};"
        f" cp current.lua tree/net/1.lua; module load net; rm -r net; module unload net; echo status $?; }}",
    )
    first = as_user(host, "echo ${PATH%%:*}").strip()
    assert said.splitlines() == [
        f"old:{place}/net/1.old/bin:net",
        f":{first}:",
        f"new:{place}/net/1.new/bin:net",
        f":{first}:",
        "status 0",
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["matlab/R2015b"], "matlab/R2015b is retired: use matlab/R2019b. Your scripts need no change but this"),
        (["matlab/R1999"], 'unknown: "matlab/R1999" There are: matlab/R2018a, matlab/R2019b (default)'),
        (["photoshop"], 'There is no module "photoshop"; "module avail" lists what there is'),
        (["gcc", "at"], ""),
        (["at", "gcc"], 'Cannot load module "gcc/9.2" because these module(s) are loaded: at'),
    ],
)
def test_what_cannot_be_loaded_says_why(host: Host, names: list[str], said: str) -> None:
    found = words(loaded(host, *names))
    assert said in found
    assert f"status {1 if said else 0}" in found


def test_a_batch_script_can_stop_at_a_module_that_fails(host: Host) -> None:
    assert host.run("runuser -l alice -c 'set -e; module load matlab/R2015b; echo went on'").stdout == ""


def test_a_deprecated_version_says_so_and_loads(host: Host) -> None:
    found = words(loaded(host, "matlab/R2018a"))
    assert "matlab/R2018a will be removed: in May 2027; move to matlab/R2019b" in found
    assert "status 0 matlab/R2018a" in found


def test_a_hidden_version_loads_by_its_full_name(host: Host) -> None:
    assert "status 0" in loaded(host, "matlab/R2020a-beta")


def test_one_of_a_family_takes_the_place_of_the_other_and_says_so(host: Host) -> None:
    found = words(as_user(host, "{ module load openmpi; module load spectrum_mpi; module -t list; echo $MPI_HOME; }"))
    assert 'replacing "openmpi/3.1.5" with "spectrum_mpi/10.3"' in found
    assert found.endswith("spectrum_mpi/10.3 /srv/apps/spectrum_mpi")


def test_another_version_takes_the_place_of_the_first_and_says_so(host: Host) -> None:
    found = words(as_user(host, "{ module load matlab; module load matlab/R2018a; }"))
    assert "matlab/R2019b => matlab/R2018a" in found


def test_a_module_whose_software_has_gone_fails_in_words(host: Host) -> None:
    host.check_output("mv /srv/apps/moved /srv/apps/away")
    try:
        found = words(loaded(host, "moved"))
        assert "moved/1.0 is not usable on this node: /srv/apps/moved is not there. Please tell the admin" in found
        assert "status 1" in found
    finally:
        host.check_output("mv /srv/apps/away /srv/apps/moved")


# ---------------------------------------------------------------- the cache
def test_the_cache_is_used_and_nobody_s_home_has_one(host: Host) -> None:
    assert json.loads(host.check_output("hal-modules status"))["cache"] == ""
    log = as_user(host, "module -D avail")
    assert re.search(rf"cacheFile found: *{CACHE}", log), "Lmod did not look there"
    assert "valid: true" in words(log)
    as_user(host, "{ module spider matlab; module keyword mpi; }")
    assert not host.file("/home/alice/.lmod.d/.cache").exists
    assert not host.file("/home/alice/.cache/lmod").exists


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        (f"mkdir {TREE}/new && echo 'help(\"x\")' >{TREE}/new/1.lua", f"rm -r {TREE}/new"),
        (f"mv {TREE}/at/12.0.lua /root/", f"mv /root/12.0.lua {TREE}/at/"),
        (f"touch -d 2001-01-01 /root/7.lua && cp -p /root/7.lua {TREE}/at/7.lua", f"rm {TREE}/at/7.lua"),
    ],
    ids=["new", "deleted", "with an old time"],
)
def test_an_old_cache_is_not_believed(node: Node, change: str, undo: str) -> None:
    """At once: nothing has renewed it yet."""
    host = node(LOGIN)
    host.check_output("systemctl stop hal-modules.path hal-modules.timer && hal-modules renew")
    before = as_user(host, "module -t avail").split()
    cache = host.check_output(f"cksum {CACHE}")
    host.check_output(f"sleep 1; {change}")
    try:
        assert as_user(host, "module -t avail").split() != before
        assert host.check_output(f"cksum {CACHE}") == cache
        assert "it is older than" in json.loads(host.check_output("hal-modules status"))["cache"]
    finally:
        # What changed while the unit was stopped waits for the timer.
        host.check_output(f"{undo}; systemctl start hal-modules.path hal-modules.timer; hal-modules renew")
    assert as_user(host, "module -t avail").split() == before


def test_no_user_holds_the_lock_that_a_rollout_waits_for(host: Host) -> None:
    assert host.file("/var/cache/lmod/.lock").mode == 0o600
    done = host.run("runuser -u alice -- flock --nonblock --shared /var/cache/lmod/.lock true")
    assert (done.rc, "Permission denied" in done.stderr) == (66, True), done.stderr


def test_a_list_of_a_clock_that_was_ahead_is_not_believed(node: Node) -> None:
    host = node(LOGIN)
    host.check_output("systemctl stop hal-modules.path hal-modules.timer && hal-modules renew")
    assert "at/12.0" in as_user(host, "module avail")
    host.check_output(f"touch -d '+1 hour' {CACHE}; mv {TREE}/at/12.0.lua /root/")
    try:
        assert "at/12.0" not in as_user(host, "module avail")
        assert "the clock was ahead" in json.loads(host.check_output("hal-modules status"))["cache"]
        host.check_output("hal-modules renew")
        assert json.loads(host.check_output("hal-modules status"))["cache"] == ""
    finally:
        host.check_output(
            f"mv /root/12.0.lua {TREE}/at/; systemctl start hal-modules.path hal-modules.timer; hal-modules renew"
        )


def test_a_folder_that_nobody_may_read_hides_nothing_else(node: Node) -> None:
    host = node(LOGIN)
    before = as_user(host, "module -t avail").split()
    host.check_output(f"mkdir -m 0700 {TREE}/shut")
    try:
        assert as_user(host, "module -t avail").split() == before
        assert 'There is no module "shut"' in words(loaded(host, "shut"))
        assert "status 0 matlab/R2019b" in words(loaded(host, "matlab"))
    finally:
        host.check_output(f"rmdir {TREE}/shut; hal-modules renew")


def test_the_cache_is_renewed_when_a_role_changes_the_tree(node: Node, rollout: Rollout) -> None:
    host = node(COMPUTE)
    done = rollout.converge("--limit", COMPUTE, cuda_toolkits=["10.1", "10.2"])
    assert done.status == 0, done.explain()
    assert "cuda/10.1" in as_user(host, "module -t avail").split()
    wait_for("the cache", lambda: json.loads(host.check_output("hal-modules status"))["cache"], "".__eq__, seconds=30)
    assert "cuda/10.1" in host.file(CACHE).content_string
    found = words(loaded(host, "cuda/10.1"))
    assert "status 0 cuda/10.1" in found
    done = rollout.converge("--limit", COMPUTE)
    assert done.status == 0, done.explain()
    assert "cuda/10.1" not in as_user(host, "module -t avail").split()


# ---------------------------------------------------------------- what was there, and faults
def test_old_files_of_a_role_went_and_those_of_others_stay_and_are_named(host: Host, rollout: Rollout) -> None:
    assert not host.file(f"{TREE}/cuda/9.0.lua").exists
    assert host.file(f"{TREE}/colabtools/1.lua").exists
    assert "status 0 colabtools/1" in words(loaded(host, "colabtools"))
    wait_for("the cache", lambda: json.loads(host.check_output("hal-modules status"))["cache"], "".__eq__, seconds=30)
    results = rollout.promises("lmod", host.backend.get_hostname())
    result = results["every modulefile is a role's"]
    assert (result["status"], result["severity"]) == ("fail", "warning")
    assert result["observed"] == [f"{TREE}/colabtools/1.lua"]
    assert [name for name, one in results.items() if one["status"] != "pass"] == [
        "modules of every login can be loaded",
        "every modulefile is a role's",
    ]


def test_modules_of_every_login_and_saved_ones_are_loaded_once(
    node: Node, rollout: Rollout, people: Mapping[str, str]
) -> None:
    host = node(COMPUTE)
    done = rollout.converge("--limit", COMPUTE, lmod_default_modules=["matlab", "openmpi/3.1.5"])
    assert done.status == 0, done.explain()
    for user in people.values():
        said = host.run(f"runuser -l {user} -c 'module -t list' 2>&1").stdout
        assert said.split() == ["matlab/R2019b", "openmpi/3.1.5"], f"{user}: {said}"
    assert host.check_output("bash -lc 'module -t list 2>&1'") in ("", "No modules loaded"), "root has none"
    # What a user has saved comes instead; a shell below keeps what its parent unloaded.
    as_user(host, "{ module purge; module load at; module save; }")
    assert as_user(host, "module -t list").split() == ["at/12.0"]
    assert as_user(host, "{ module purge; bash -lc 'module -t list'; }").split() in ([], ["No", "modules", "loaded"])
    host.check_output("rm -r /home/alice/.lmod.d")
    assert rollout.broken_promises("lmod", COMPUTE, lmod_default_modules=["matlab", "nothing"]) == [
        "every modulefile is a role's",
        "modules of every login can be loaded [nothing]",
    ]
    done = rollout.converge("--limit", COMPUTE)
    assert done.status == 0, done.explain()
    assert as_user(host, "module -t list").split() in ([], ["No", "modules", "loaded"])


@pytest.fixture(scope="module")
def faults(node: Node) -> Iterator[None]:
    """What people do to modules; all at once, none may hide another."""
    login, compute = node(LOGIN), node(COMPUTE)
    login.check_output(f"rm {TREE}/matlab/R2018a.lua")
    login.check_output(f"sed -i s/R2019b/R2018a/ {TREE}/matlab/.modulerc.lua")
    login.check_output("printf 'export MODULEPATH=/home/old\\n' >/etc/profile.d/zz_lab.sh")
    compute.check_output("echo 'export MODULEPATH=/old' >>/etc/profile.d/z01_default_modules.sh")
    compute.check_output(f"mkdir {TREE}/torch && echo 'help(\"x\")' >{TREE}/torch/1.lua")
    compute.check_output("mv /srv/apps/horovod /srv/apps/gone")
    compute.check_output("systemctl stop hal-modules.path")
    yield
    login.check_output("rm /etc/profile.d/zz_lab.sh")
    compute.check_output(f"rm -r {TREE}/torch; mv /srv/apps/gone /srv/apps/horovod")


@pytest.mark.usefixtures("faults")
def test_each_fault_is_found_with_its_role_and_task(rollout: Rollout) -> None:
    findings = [one for one in rollout.audited() if one["role"] in ("lmod", "")]
    seen = {(one["host"], one["kind"], one["resource"], one["task"]) for one in findings}
    write = "Write the site's own modulefiles"
    files = "Write what every shell reads, and the program that keeps the cache"
    for wanted in (
        (LOGIN, "missing", f"file:{TREE}/matlab/R2018a.lua", write),
        (LOGIN, "changed", f"file:{TREE}/matlab/.modulerc.lua", write),
        (COMPUTE, "changed", "file:/etc/profile.d/z01_default_modules.sh", files),
        (COMPUTE, "state", "service:hal-modules.path", "Renew the cache whenever the tree changes"),
        (LOGIN, "extra", "file:/etc/profile.d/zz_lab.sh", ""),
        (LOGIN, "extra", f"file:{TREE}/colabtools/1.lua", ""),
        (COMPUTE, "extra", f"file:{TREE}/torch/1.lua", ""),
    ):
        assert wanted in seen, f"{wanted} is not among {sorted(seen)}"
    promised = {(one["host"], one["resource"]) for one in findings if one["kind"] == "expectation"}
    shells = "expectation:lmod: every shell has the module command and the tree"
    assert {(LOGIN, f"{shells} [bash at login]"), (COMPUTE, f"{shells} [bash at login]")} <= promised
    led = "expectation:lmod: what the site's own modules lead to is there"
    assert (COMPUTE, f"{led} [horovod/0.19.0: /srv/apps/horovod/settings.lua]") in promised


@pytest.mark.usefixtures("faults")
def test_a_rollout_puts_right_what_is_its_own(node: Node, rollout: Rollout) -> None:
    node(COMPUTE).check_output("mv /srv/apps/gone /srv/apps/horovod")
    node(LOGIN).check_output("rm /etc/profile.d/zz_lab.sh")
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert node(LOGIN).file(f"{TREE}/matlab/R2018a.lua").exists
    for name in NODES:
        assert rollout.broken_promises("lmod", name) == ["every modulefile is a role's"]
    node(COMPUTE).check_output("mkdir -p /srv/apps/gone")  # what the fixture moves back
    node(LOGIN).check_output("touch /etc/profile.d/zz_lab.sh")


def test_login_and_compute_nodes_out_of_step_are_found(node: Node, rollout: Rollout) -> None:
    """Somebody has rolled a new module out to the login node alone."""
    declared = {"lmod_modules": [{"name": "at", "version": "13.0", "title": "Advance Toolchain 13.0"}]}
    done = rollout.converge("--limit", LOGIN, **declared)
    assert done.status == 0, done.explain()
    assert "status 0 at/13.0" in words(loaded(node(LOGIN), "at"))
    assert "status 0 at/12.0" in words(loaded(node(COMPUTE), "at"))
    found = [one for one in rollout.audited(**declared) if one["role"] == "lmod" and one["kind"] == "not-rolled-out"]
    assert {one["host"] for one in found} == {COMPUTE}
    assert f"file:{TREE}/at/13.0.lua" in {one["resource"] for one in found}
    done = rollout.converge("--limit", LOGIN)
    assert done.status == 0, done.explain()
    assert "status 0 at/12.0" in words(loaded(node(LOGIN), "at"))


# --------------------------------------------------- refusals; of declarations: tests/unit/hal_cluster/rules/lmod
def test_a_declared_module_in_the_place_of_somebody_s_needs_a_word(node: Node, rollout: Rollout) -> None:
    declared = [{"name": "colabtools", "version": "1", "title": "Tools of the lab"}]
    host = node(COMPUTE)
    done = rollout.converge("--limit", COMPUTE, lmod_modules=declared)
    assert done.status != 0
    assert f"{TREE}/colabtools/1.lua is of somebody else" in done.words
    assert "next door" in host.file(f"{TREE}/colabtools/1.lua").content_string
    assert host.file(f"{TREE}/matlab/R2019b.lua").exists, "nothing was written or withdrawn"
    done = rollout.converge("--limit", COMPUTE, lmod_modules=declared, software_modulefiles_replace_ok=True)
    assert done.status == 0, done.explain()
    assert "Tools of the lab" in host.file(f"{TREE}/colabtools/1.lua").content_string
    assert not host.file(f"{TREE}/matlab").exists, "withdrawn"


# ---------------------------------------------------------------- modules of before
BEFORE = """export MODULEPATH_ROOT=/opt/site
export MODULEPATH=/opt/site/modulefiles:/opt/site/empty
"""


@pytest.fixture
def production(node: Node) -> Iterator[Host]:
    """hal01 as its administrators have had it for years: a tree, a default module and hooks of their own."""
    host = node(COMPUTE)
    scripts = "/etc/profile.d/00-modulepath.sh /etc/profile.d/z01_default_modules.sh"
    host.check_output("mkdir -p /opt/site/modulefiles/gromacs /opt/site/empty /root/ours")
    host.check_output('echo \'setenv("GROMACS", "2019")\' >/opt/site/modulefiles/gromacs/2019.lua')
    host.check_output(f"cp -p {scripts} /etc/lmod/SitePackage.lua /root/ours/")
    host.check_output("printf %s >/etc/profile.d/00-modulepath.sh", BEFORE)
    host.check_output("echo export LMOD_SYSTEM_DEFAULT_MODULES=gromacs >/etc/profile.d/z01_default_modules.sh")
    host.check_output("echo '-- hooks of the site' >/etc/lmod/SitePackage.lua")
    host.check_output("echo export MODULEPATH=/opt/site/modulefiles >/etc/profile.d/zz-site.sh")
    yield host
    host.check_output("rm -f /etc/profile.d/zz-site.sh")
    host.check_output("cp -p /root/ours/*.sh /etc/profile.d/ && cp -p /root/ours/SitePackage.lua /etc/lmod/")
    host.check_output("rm -r /opt/site /root/ours")


def test_modules_of_before_stay_until_they_are_declared_away(production: Host, rollout: Rollout) -> None:
    looked = "cksum /etc/profile.d/*.sh /etc/lmod/* /opt/site/modulefiles/gromacs/*"
    before = production.check_output(looked)
    refused = rollout.converge("--limit", f"{COMPUTE},localhost")
    assert refused.status != 0
    for said in (
        "the tree /opt/site/modulefiles (1 modulefiles): lmod_modulepath_extra keeps it, lmod_modulepath_dropped ends",
        "what /etc/profile.d/zz-site.sh does to MODULEPATH, which would also undo ours: declare its trees as above",
        "/etc/lmod/SitePackage.lua, which somebody wrote: lmod_replace_ok: true replaces what it does",
        "gromacs, loaded for everybody: lmod_default_modules keeps it, lmod_replace_ok: true ends it",
    ):
        assert said in refused.words, refused.words
    assert "/opt/site/empty" not in refused.words
    assert production.check_output(looked) == before
    assert "gromacs/2019" in as_user(production, "module avail")

    kept = {"lmod_modulepath_extra": ["/opt/site/modulefiles"], "lmod_default_modules": ["gromacs"]}
    refused = rollout.converge("--limit", f"{COMPUTE},localhost", lmod_replace_ok=True, **kept)
    assert refused.status != 0
    assert production.check_output(looked) == before
    production.check_output("rm /etc/profile.d/zz-site.sh")
    done = rollout.converge("--limit", f"{COMPUTE},localhost", lmod_replace_ok=True, **kept)
    assert done.status == 0, done.explain()
    assert as_user(production, "echo $GROMACS").strip() == "2019"

    # From then on it is ours, and taken away as it is declared.
    done = rollout.converge("--limit", f"{COMPUTE},localhost")
    assert done.status == 0, done.explain()
    assert as_user(production, "echo $MODULEPATH").strip() == TREE
    assert production.file("/opt/site/modulefiles/gromacs/2019.lua").exists

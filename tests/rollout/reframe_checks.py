# mypy: ignore-errors
# ruff: noqa: F821, RUF012  ReFrame gives the body of a class words of its own: parameter, variable, run_before
"""ReFrame's checks of HAL, as its staff would write them. reframe_site.py says what there is to check."""

import reframe as rfm
import reframe.utility.sanity as sn


class OnNodes(rfm.RunOnlyRegressionTest):
    """A job's tasks each print a line of `name=value`."""

    valid_prog_environs = ["builtin"]
    time_limit = "10m"

    def told(self, name, kind=str):
        return sn.extractall(rf"\b{name}=(\S+)", self.stdout, 1, kind)


@rfm.simple_test
class Processors(OnNodes):
    """Each partition gives the processors that were asked for, and the memory that comes with them."""

    valid_systems = ["+slurm"]
    num_cpus_per_task = 16
    memory_mb = variable(int, value=1200)
    executable = "sh -c 'echo node=$(hostname -s) cpus=$SLURM_CPUS_ON_NODE mb=$SLURM_MEM_PER_CPU'"

    @sanity_function
    def as_asked(self):
        return sn.all([
            sn.assert_eq(self.told("cpus", int), [self.num_cpus_per_task]),
            sn.assert_eq(self.told("mb", int), [self.memory_mb]),
            sn.assert_in(self.told("node")[0], self.current_partition.extras["nodes"]),
        ])  # fmt: skip


@rfm.simple_test
class EveryNode(OnNodes):
    """One job has a task on every node of the partition."""

    valid_systems = ["+slurm +gpu"]
    num_tasks_per_node = 1
    executable = "sh -c 'echo node=$(hostname -s)'"

    @run_before("run")
    def ask(self):
        self.num_tasks = len(self.current_partition.extras["nodes"])

    @sanity_function
    def all_are_there(self):
        return sn.assert_eq(sn.sorted(self.told("node")), self.current_partition.extras["nodes"])


@rfm.simple_test
class Gpus(OnNodes):
    """A job is told of the GPUs that it asked for, and the node has them."""

    valid_systems = ["+slurm +gpu"]
    count = parameter([1, 4])
    wanted = variable(int, value=0)  # what is expected instead of what was asked for
    executable = "sh -c 'echo visible=$CUDA_VISIBLE_DEVICES; nvidia-smi -L'"

    @run_before("run")
    def ask(self):
        self.extra_resources = {"gpu": {"count": self.count}}

    @sanity_function
    def they_are_there(self):
        wanted = self.wanted or self.count
        model = self.current_partition.devices[0].model
        return sn.all([
            sn.assert_eq(self.told("visible", lambda numbers: len(numbers.split(","))), [wanted]),
            sn.assert_ge(sn.count(sn.findall(rf"^GPU \d+: Tesla {model}.*UUID", self.stdout)), wanted),
        ])  # fmt: skip


@rfm.simple_test
class Module(OnNodes):
    """A module of the login node is there in a job, by ReFrame's own way of loading it."""

    valid_systems = ["+slurm"]
    modules = ["wmlce/1.7.0-py3.7"]
    executable = "python"
    executable_opts = ["-c", "'import sys, torch; print(sys.version.split()[0], torch.__version__)'"]

    @sanity_function
    def its_versions(self):
        return sn.assert_found(r"^3\.7\.\d+ 1\.3\.1", self.stdout)


@rfm.simple_test
class Refused(rfm.RunOnlyRegressionTest):
    """What a partition does not give is refused at once, and the user is told why."""

    valid_systems = ["hal:login"]
    valid_prog_environs = ["builtin"]
    asked = parameter([
        ("debug", "--time=4:00:01", "Requested time limit is invalid"),
        ("cpu", "--gres=gpu:v100:1", "QOSMaxGRESPerJob"),
        ("cpu", "--ntasks=97 --nodes=1", "node configuration is not available"),
    ])  # fmt: skip
    executable = "srun"

    @run_before("run")
    def ask(self):
        partition, words, _said = self.asked
        self.executable_opts = [f"--partition={partition}", words, "true || echo status=$?"]

    @sanity_function
    def says_why(self):
        return sn.all([
            sn.assert_found(self.asked[2], self.stderr),
            sn.assert_found("status=1", self.stdout),
        ])  # fmt: skip

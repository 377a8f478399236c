"""The parts that the engine acts on, put together for a site: hal_cluster/reimage/world.py says what each does."""

from __future__ import annotations

from pathlib import Path

from hal_cluster.audit.store import Store as Audits
from hal_cluster.bmc.models import Target
from hal_cluster.bmc.operations import Limits as BmcLimits
from hal_cluster.bmc.retry import Patience
from hal_cluster.bmc.turns import Turns
from hal_cluster.provision.kickstart import Place, Server
from hal_cluster.reimage.asked import Connected
from hal_cluster.reimage.bmc import Bmcs, Machine
from hal_cluster.reimage.errors import ReimageError
from hal_cluster.reimage.nodes import Ssh
from hal_cluster.reimage.rollout import Playbook, Playbooks
from hal_cluster.reimage.server import Ordering, Provisioning, Records
from hal_cluster.reimage.site import Site
from hal_cluster.reimage.slurm import SlurmCommands, TestJob
from hal_cluster.reimage.world import Slurm, SlurmNode, World
from hal_inventory.ranges import expand_list


class Assembly:
    """Puts the parts together. ReimageError if something that they need is missing."""

    def __init__(self, site: Site, connected: Connected) -> None:
        self.site, self.settings, self.connected = site, site.settings, connected
        self.server = connected.run_on(self.settings.server)
        self.ordering = self._ordering()

    def _ordering(self) -> Ordering:
        settings, network = self.settings, self.settings.network
        of_network = self.site.slice("networks")[network]
        server = self.site.slice("boot")
        address = next(node["addresses"][network] for node in server if node["name"] == settings.server)
        authority = Path(settings.authority_dir)
        try:
            pem = (authority / "tls_ca.pem").read_text(encoding="utf-8")
        except OSError as error:
            raise ReimageError(f"{error.filename}: {error.strerror}; playbooks/authorities.yml makes it") from None
        return Ordering(
            nodes=self.site.boot,
            place=Place(network, str(of_network["netmask"]), of_network["gateway"]),
            url=f"http://{address}:{settings.port}",
            images_url=f"http://{address}/images",
            images_folder=settings.images_folder,
            secrets=Server(f"https://{address}:{settings.tls_port}", pem),
            authority=authority,
            key=Path(settings.image_key),
            installers=settings.installers,
            append=settings.append,
            root_principals=settings.root_principals,
            seconds=settings.limits.begin + settings.limits.install + 600,
            virtual=self.site.virtual,
        )

    def world(self) -> World:
        """Return the world of this site."""
        settings, connected = self.settings, self.connected
        controller = connected.run_on(settings.controllers[0]) if settings.controllers else None
        gres = {
            name: str(line["gres"]) for line in self.site.slice("slurm.nodes") for name in expand_list(line["names"])
        }
        job = TestJob(settings.job_command, settings.job_user, gres, settings.job_run_seconds)
        slurm: Slurm = SlurmCommands(controller, job=job, floors=settings.keep) if controller else NoSlurm()
        return World(
            store=Records(self.server),
            slurm=slurm,
            bmc=self._bmcs(),
            provision=Provisioning(self.server, self.ordering),
            nodes=Ssh(
                {name: node.address(settings.network) for name, node in self.site.boot.items()},
                lambda name: connected.run_on(name, fresh=True),
                settings.boot_id_command,
            ),
            rollout=self._playbooks(),
        )

    def _bmcs(self) -> Bmcs:
        variable, settings = self.connected.variable, self.settings
        machines = {}
        for name, node in self.site.node.items():
            target = Target(
                name=name,
                kind=node["bmc"]["kind"],
                address=node["bmc"]["address"],
                user=str(variable(name, "bmc_user") or ""),
                password=str(variable(name, "bmc_password") or ""),
                ca_file=str(variable(name, "bmc_ca_file") or ""),
                fingerprint=str((variable(name, "bmc_fingerprints") or {}).get(name, "")),
                console_key=str((variable(name, "bmc_console_keys") or {}).get(name, "")),
            )
            machines[name] = Machine(target, str(node["serial"]))
        limits = BmcLimits(
            answers=Patience(seconds=settings.bmc_wait_seconds),
            shut_down=Patience(seconds=settings.shut_down_seconds),
        )
        turns = Turns(Path(settings.state_dir) / "power_on", settings.on_at_once, settings.on_pause_seconds)
        try:
            turns.check()  # now, and not when the node is off
        except ValueError as error:
            raise ReimageError(f"bmc_on_at_once, bmc_on_pause_seconds: {error}") from None
        except OSError as error:
            raise ReimageError(f"{turns.file}: {error.strerror}") from None
        return Bmcs(machines, self.site.slice("serials"), limits, turns)

    def _playbooks(self) -> Playbooks:
        settings, connected = self.settings, self.connected

        # A disk that was wiped is empty: the role that makes file systems makes one there only when it is told to.
        wiped = {"local_storage_create_ok": True} if settings.wipe else {}

        def of(path: str) -> Playbook:
            return Playbook(connected.program, Path(path), {**connected.extra, **wiped})

        return Playbooks(
            of(settings.playbook),
            of(settings.gates),
            Path(settings.state_dir) / "reimage",
            connected.environment,
            connected.project,
            together_seconds=settings.together_seconds,
            limit_seconds=settings.limits.rollout,
            forget=Audits(settings.audit_dir).forget,
        )


class NoSlurm:
    """A site without Slurm, which knows no node."""

    def see(self, node: str) -> SlurmNode:
        """Nothing: Slurm does not know it."""
        return SlurmNode(known=False)

    def check_floors(self) -> dict[str, tuple[int, int]]:
        """No partitions."""
        return {}

    def check_job_user(self) -> None:
        """No test job."""

    def drain(self, node: str, reason: str) -> str:
        """Nothing to drain."""
        return ""

    def reboot(self, node: str, reason: str, next_state: str) -> str:
        """Nothing to reboot."""
        return ""

    def keep_drained(self, node: str, reason: str) -> None:
        """Nothing to keep."""

    def prove(self, node: str) -> str:
        """No job."""
        return ""

    def proven(self, node: str, job: str) -> str | None:
        """No job: nothing that could have ended badly."""
        return ""

    def end_proof(self, node: str, reason: str) -> None:
        """Nothing to end."""

"""Modules by what they do: manage something, run whatever they are given, or only look."""

from __future__ import annotations

from collections.abc import Callable

from hal_cluster.audit.resources import files, lines, own, system
from hal_cluster.audit.resources.model import Call, Resource, Units

MANAGING: dict[str, Callable[[Call], list[Resource]]] = {
    # files
    "ansible.builtin.assemble": files.written,
    "ansible.builtin.copy": files.written,
    "ansible.builtin.file": files.file,
    "ansible.builtin.get_url": files.downloaded,
    "ansible.builtin.git": files.unpacked,
    "ansible.builtin.template": files.written,
    "ansible.builtin.unarchive": files.unpacked,
    "community.crypto.openssh_cert": files.certificate,
    "community.crypto.openssh_keypair": files.key_pair,
    "community.crypto.openssl_privatekey": files.private_key,
    "community.crypto.x509_certificate": files.certificate,
    "community.general.alternatives": files.alternative,
    # lines of files
    "ansible.builtin.blockinfile": lines.block,
    "ansible.builtin.known_hosts": lines.known_host,
    "ansible.builtin.lineinfile": lines.line,
    "ansible.builtin.replace": lines.replacement,
    "ansible.posix.authorized_key": lines.authorized_key,
    "community.general.pam_limits": lines.limit,
    # packages
    "ansible.builtin.dnf": system.packages,
    "ansible.builtin.package": system.packages,
    "ansible.builtin.rpm_key": system.rpm_key,
    "ansible.builtin.yum": system.packages,
    "ansible.builtin.yum_repository": system.repository,
    # system
    "ansible.builtin.cron": system.cron,
    "ansible.builtin.group": system.group,
    "ansible.builtin.hostname": system.host_name,
    "ansible.builtin.service": system.service,
    "ansible.builtin.systemd": system.service,
    "ansible.builtin.systemd_service": system.service,
    "ansible.builtin.user": system.user,
    "ansible.posix.mount": system.mount,
    "ansible.posix.seboolean": system.selinux_boolean,
    "ansible.posix.selinux": system.selinux,
    "ansible.posix.sysctl": system.sysctl,
    "community.general.modprobe": system.kernel_module,
    "community.general.sefcontext": system.file_context,
    "community.general.timezone": system.time_zone,
    # databases
    "community.mysql.mysql_db": system.databases,
    "community.mysql.mysql_user": system.database_user,
    # this project's
    "hal_channel_mirror": own.channel_mirror,
    "hal_environment": own.environments,
    "hal_files": own.files,
    "hal_modulefiles": own.modulefiles,
    "hal_munge_key": own.munge_key,
    "hal_network": own.network_files,
    "hal_package_mirror": own.package_mirror,
    "hal_scale_config": own.scale_config,
    "hal_slurm_account": own.slurm_accounts,
    "hal_slurm_daemon": own.slurm_daemon,
    "hal_slurm_place": own.slurm_placed,
    "hal_slurm_reservation": own.slurm_reservations,
    "hal_subids": own.subids,
}

# Modules that make a unit read its files, or know which files it reads.
UNITS: dict[str, Callable[[Call], Units]] = {
    "ansible.builtin.service": system.service_units,
    "ansible.builtin.systemd": system.service_units,
    "ansible.builtin.systemd_service": system.service_units,
    "hal_slurm_daemon": own.slurm_daemon_units,
}

# Readers of expectations, and how to name the resource they read. If that differs, the expectation fails because of it.
READ_BY = {
    "file": ("file", "path"),
    "package": ("package", "name"),
    "service": ("service", "name"),
    "sysctl": ("sysctl", "name"),
    "mount": ("mount", "path"),
    "kernel-module": ("kernel-module", "name"),
}

# Modules that may install packages, with what these depend on.
PACKAGE_MODULES = frozenset(name for name, reader in MANAGING.items() if reader is system.packages)

# The task has to say what these do: `changed_when: false`, or what it manages in vars: hal_manages.
COMMANDS = frozenset(
    ["hal_command", *(f"ansible.builtin.{name}" for name in ("command", "expect", "raw", "script", "shell"))]
)

_LOOKING = """
add_host assert async_status debug fail fetch find gather_facts getent group_by import_role import_tasks include_role
include_tasks include_vars meta package_facts pause ping service_facts set_fact set_stats setup slurp stat tempfile
validate_argument_spec wait_for wait_for_connection
"""
READ_ONLY = frozenset(f"ansible.builtin.{name}" for name in _LOOKING.split()) | {
    "community.crypto.openssl_csr_pipe",
    "community.crypto.x509_certificate_info",
    "community.mysql.mysql_info",
    "community.mysql.mysql_query",
    "hal_audit",
    "hal_expect",
    "hal_lmod_site",
    "hal_munge_key_state",
    "hal_originals",  # writes its own store
    "hal_record",
    "hal_slurm_found",
    "hal_slurm_node",  # a node's state is slurmctld's, and changes by the hour
    "hal_slurm_trial",
    "hal_validate",
}

BUILTIN = frozenset(
    name.rpartition(".")[2] for name in {*MANAGING, *COMMANDS, *READ_ONLY} if name.startswith("ansible.builtin.")
)


def module_name(name: str) -> str:
    """A module's full name: builtin ones also answer to their short one, and to that of ansible.legacy."""
    short = name.removeprefix("ansible.legacy.")
    return f"ansible.builtin.{short}" if short in BUILTIN else short

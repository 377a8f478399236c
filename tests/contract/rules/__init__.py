"""The promises that every role, module, scenario and playbook keeps, one file for each subject."""

from tests.contract.rules import (
    arguments,
    centos7_systemd,
    centos7_tools,
    documents,
    expectations,
    files,
    layers,
    names,
    node_python,
    packages,
    plugins,
    provenance,
    role_shape,
    scenarios,
    secrets,
    tasks,
)

__all__ = [
    "arguments",
    "centos7_systemd",
    "centos7_tools",
    "documents",
    "expectations",
    "files",
    "layers",
    "names",
    "node_python",
    "packages",
    "plugins",
    "provenance",
    "role_shape",
    "scenarios",
    "secrets",
    "tasks",
]

"""Options of Ansible's connection plugin ssh, for one that extends it: Ansible has them nowhere as a fragment."""

from __future__ import annotations

import yaml
from ansible.plugins.connection import ssh


class ModuleDocFragment:
    """What Ansible looks for."""

    DOCUMENTATION: str = yaml.safe_dump({"options": yaml.safe_load(ssh.DOCUMENTATION)["options"]})

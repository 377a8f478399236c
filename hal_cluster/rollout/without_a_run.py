"""Ask the roles of a site what they refuse, without a run of Ansible: no node is contacted, nobody gives a password."""

from __future__ import annotations

import os

from hal_inventory.errors import Finding, FindingsError
from hal_inventory.reader import display_name
from hal_inventory.settings import PROJECT, root

SITE = PROJECT / "playbooks" / "site.yml"


def ask(source: str) -> tuple[list[Finding], list[str]]:
    """Return what roles refuse of a site, as a rollout of all its nodes would, and their remarks.

    FindingsError if they cannot be asked, for example without the password of a vault.
    """
    # Read when Ansible is imported.
    os.environ.setdefault("ANSIBLE_CONFIG", str(root() / "ansible.cfg"))
    os.environ.setdefault("ANSIBLE_HOST_PATTERN_MISMATCH", "ignore")  # a site has the groups that it needs
    from ansible import constants
    from ansible.cli import CLI
    from ansible.errors import AnsibleError
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader
    from ansible.vars.manager import VariableManager

    from hal_cluster.rollout import refusals

    init_plugin_loader([])
    loader = DataLoader()
    loader.set_basedir(str(SITE.parent))
    try:
        identities = constants.DEFAULT_VAULT_IDENTITY_LIST
        loader.set_vault_secrets(CLI.setup_vault_secrets(loader, vault_ids=identities, auto_prompt=False))
        inventory = InventoryManager(loader, sources=[source])
        manager = VariableManager(loader, inventory)
        said, _asked = refusals.ask(refusals.roles_of([str(SITE)], loader, manager), inventory)
    except AnsibleError as error:
        text = f"roles cannot be asked: {refusals.words(error)}"
        raise FindingsError([Finding(display_name(source), 0, "", text)]) from error
    refused = refusals.lines((statement for statement in said if statement.refused), PROJECT)
    remarks = refusals.lines((statement for statement in said if not statement.refused), PROJECT)
    return [Finding(display_name(source), 0, "", line) for line in refused], remarks

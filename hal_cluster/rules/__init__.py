"""The decisions of roles, by the role's name: no Ansible, no input or output."""

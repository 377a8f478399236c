"""The decisions of roles, by the role's name. Nothing here imports Ansible."""

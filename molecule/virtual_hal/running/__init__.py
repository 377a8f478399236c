"""How programs are run on a virtual HAL: through Ansible, over SSH, in stages, with this project's settings."""

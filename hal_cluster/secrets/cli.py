"""The program behind ``make secrets``. It shows names, never values.

Exit status: 0 every secret is there, 1 some have to be given by hand, 2 refused (one line on standard error).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from hal_cluster.secrets.declared import Secret, declared
from hal_cluster.secrets.errors import SecretError
from hal_cluster.secrets.site import Site
from hal_cluster.secrets.vault import Vault
from hal_inventory.errors import HalError
from hal_inventory.printable import complain

ROOT = Path(__file__).resolve().parents[2]
PASSWORD_FILE = "ANSIBLE_VAULT_PASSWORD_FILE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m hal_cluster.secrets", description="Make the secrets of a site that are missing."
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the project (default: this one)")
    parser.add_argument("--site", required=True, help="folder below inventory/")
    parser.add_argument(
        "--vault-password-file",
        type=Path,
        default=os.environ.get(PASSWORD_FILE) or None,
        help=f"file with the vault's password, 0600, or a program that prints it (default: {PASSWORD_FILE})",
    )
    parser.add_argument("--rotate", metavar="NAME", default="", help="replace one secret by a new value")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except (HalError, OSError) as error:
        complain(error)
        return 2


def _run(options: argparse.Namespace) -> int:
    secrets = declared(options.root)
    folder = options.root / "inventory" / options.site
    if options.site == "virtual":
        raise SecretError("the virtual site makes its own, in its state folder; there is nothing to do")
    if options.vault_password_file is None:
        raise SecretError(
            f"no password for the vault: VAULT_PASSWORD_FILE=FILE, or {PASSWORD_FILE} in the environment; "
            "the file has mode 0600 and stays out of the project"
        )
    site = Site(folder, Vault(options.vault_password_file))
    if options.rotate:
        return _rotate(site, secrets, options)
    for name, path in site.add(secrets):
        print(f"made      {name}  {path.relative_to(options.root)}")
    missing = [secret for secret in secrets if site.place(secret.name) is None]
    for secret in secrets:
        place = site.place(secret.name)
        if place is not None:
            print(f"there     {secret.name}  {place.relative_to(options.root)}")
    for secret in missing:
        target = f"inventory/{options.site}/group_vars/all/vault_{secret.role}.yml"
        print(f"missing   {secret.name}  ansible-vault edit {target}: {secret.recipe.given}")
    return 1 if missing else 0


def _rotate(site: Site, secrets: list[Secret], options: argparse.Namespace) -> int:
    by_name = {secret.name: secret for secret in secrets}
    if options.rotate not in by_name:
        raise SecretError(f"{options.rotate} is not a secret of the project; there are {', '.join(by_name)}")
    path = site.rotate(by_name[options.rotate])
    print(f"rotated   {options.rotate}  {path.relative_to(options.root)}")
    print(f"now do:   {' '.join(by_name[options.rotate].recipe.after_rotation.split())}")
    return 0

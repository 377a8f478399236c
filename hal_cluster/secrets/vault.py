"""Files of secrets, encrypted by ansible-vault; the plain text is never in a file, an argument or a message."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

from hal_cluster.secrets.errors import SecretError

MARK = "$ANSIBLE_VAULT;"
IDENTITY = "hal"  # ansible.cfg: vault_encrypt_identity


class _Loader(yaml.SafeLoader):
    """YAML in which a value may be encrypted by itself."""


_Loader.add_constructor("!vault", lambda loader, node: None)


class Vault:
    """ansible-vault with a password file, or with a program that prints the password."""

    def __init__(self, password_file: Path) -> None:
        """SecretError when others may read the password, or there is none."""
        self._password = password_file.expanduser()
        try:
            status = self._password.stat()
        except OSError as error:
            raise SecretError(
                f"{self._password}: {error.strerror}; write the vault's password there, mode 0600"
            ) from None
        program = os.access(self._password, os.X_OK)
        if not program and status.st_mode & 0o077:
            raise SecretError(f"{self._password}: others may read the vault's password; chmod 600 it")
        if program and status.st_mode & 0o022:
            raise SecretError(f"{self._password}: others may change the program that gives the vault's password")
        if not program and len(self._password.read_bytes().strip()) < 12:
            raise SecretError(f"{self._password}: the vault's password has fewer than 12 characters")

    def read(self, path: Path) -> dict[str, object]:
        """Return the variables of a file; SecretError when it is not a mapping, or has a value in plain text.

        A file whose single values are encrypted (``!vault``) is read as well; these are not opened.
        """
        text = path.read_text(encoding="utf-8")
        encrypted = text.startswith(MARK)
        if encrypted:
            text = self._run("decrypt", text, str(path))
        try:
            values = yaml.load(text, _Loader) or {}
        except yaml.YAMLError:
            raise SecretError(f"{path}: it is no YAML") from None
        if not isinstance(values, dict):
            raise SecretError(f"{path}: it is not a mapping of variables")
        for name, value in values.items():
            if not encrypted and isinstance(value, str) and "{{" not in value:
                raise SecretError(f"{path}: {name} is in plain text; ansible-vault encrypt {path}")
        return values

    def write(self, path: Path, variables: dict[str, object]) -> None:
        """Replace a file by the encrypted variables, mode 0600, all at once; never one that is encrypted by values."""
        if path.exists() and not path.read_text(encoding="utf-8").startswith(MARK):
            raise SecretError(f"{path} is not encrypted as a whole, so it is left alone; change it by hand")
        header = "# Written by make secrets. Show: ansible-vault view FILE; change: make secrets ROTATE=NAME.\n---\n"
        text = header + yaml.safe_dump(variables, sort_keys=True, width=10**6)
        encrypted = self._run("encrypt", text, str(path), "--encrypt-vault-id", IDENTITY)
        new = path.with_name(f".{path.name}.new")
        path.parent.mkdir(parents=True, exist_ok=True)
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(encrypted)
        new.replace(path)

    def _run(self, action: str, text: str, path: str, *options: str) -> str:
        program = Path(sys.executable).with_name("ansible-vault")
        argv = [str(program), action, "--vault-id", f"{IDENTITY}@{self._password}", *options, "--output", "-", "-"]
        # Without the caller's settings: this password opens and closes the files, and no other.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_VAULT_")}
        try:
            done = subprocess.run(argv, input=text, env=environment, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise SecretError(f"{program} is missing: make setup") from None
        if done.returncode != 0:
            said = next((line for line in done.stderr.splitlines() if "ERROR" in line), "it failed").removeprefix(
                "ERROR! "
            )
            raise SecretError(f"{path}: ansible-vault {action}: {said}")
        return done.stdout

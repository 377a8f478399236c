"""The secrets of one site: which are there, which are missing, and where they are kept."""

from __future__ import annotations

from pathlib import Path

from hal_cluster.secrets.declared import Secret
from hal_cluster.secrets.errors import SecretError
from hal_cluster.secrets.vault import Vault


class Site:
    """The vault files of a site: inventory/<site>/group_vars/*/vault*.yml, those written by hand too."""

    def __init__(self, folder: Path, vault: Vault) -> None:
        """SecretError when there is no such site, or the password does not open a file."""
        if not (folder / "cluster.yml").is_file():
            raise SecretError(f"{folder}: no site; there is no cluster.yml in it")
        self._folder, self._vault = folder, vault
        self._files = {path: vault.read(path) for path in sorted(folder.glob("group_vars/**/vault*.yml"))}

    def place(self, name: str) -> Path | None:
        """Return the file that has a secret."""
        return next((path for path, variables in self._files.items() if name in variables), None)

    def add(self, secrets: list[Secret]) -> list[tuple[str, Path]]:
        """Make those that are missing; return names and files. What is there is never touched."""
        made = []
        for secret in secrets:
            if self.place(secret.name) is None and secret.recipe.given is None:
                path = self._folder / "group_vars" / "all" / f"vault_{secret.role}.yml"
                self._files.setdefault(path, {})[secret.name] = secret.recipe.make()
                made.append((secret.name, path))
        for path in {path for _, path in made}:
            self._vault.write(path, self._files[path])
        return made

    def rotate(self, secret: Secret) -> Path:
        """Replace a secret by a new value; return its file. SecretError when there is none, or it is not made here."""
        path = self.place(secret.name)
        if path is None:
            raise SecretError(f"{secret.name} is not there yet; make secrets without ROTATE makes it")
        try:
            value = secret.recipe.make()
        except SecretError as error:
            raise SecretError(f"{secret.name}: {error}") from None
        self._files[path][secret.name] = value
        self._vault.write(path, self._files[path])
        return path

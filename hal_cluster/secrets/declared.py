"""Which secrets there are: the ``vault_*`` variables of roles' defaults. How each is made: roles' meta/secrets.yml.

What no role has, the controller alone, is in ``hal_cluster/<name>/secrets.yml`` of the package that uses it.

vault_munge_key:
  bytes: 128                # so many random bytes, as base64
  after_rotation: ...       # what a new value needs before it is in effect
vault_slurm_database_password:
  characters: 32            # so many random letters and digits
  after_rotation: ...
vault_directory_password:
  given: ...                # not made here: who has it, or how it is made
"""

from __future__ import annotations

import base64
import re
import secrets
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hal_cluster.secrets.errors import SecretError

VAULT = re.compile(r"\bvault_[a-z]\w*")
LETTERS = string.ascii_letters + string.digits


class Recipe(BaseModel):
    """How a secret comes to be; exactly one of ``bytes``, ``characters`` and ``given``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int | None = Field(None, ge=32)
    characters: int | None = Field(None, ge=16)
    given: str | None = None
    after_rotation: str = Field(min_length=1)

    @model_validator(mode="after")
    def _one_way(self) -> Recipe:
        if sum(form is not None for form in (self.bytes, self.characters, self.given)) != 1:
            raise ValueError("give one of bytes, characters and given")
        return self

    def make(self) -> str:
        """Return a new value; SecretError for one that is given."""
        if self.bytes is not None:
            return base64.b64encode(secrets.token_bytes(self.bytes)).decode("ascii")
        if self.characters is not None:
            return "".join(secrets.choice(LETTERS) for _ in range(self.characters))
        raise SecretError(f"it is not made here: {self.given}")


class Secret(BaseModel):
    """A secret by its variable; ``role`` declares it, or a package of the controller with this name."""

    model_config = ConfigDict(frozen=True)

    name: str
    role: str
    recipe: Recipe


def declared(root: Path) -> list[Secret]:
    """Return the secrets of all roles, and of the controller, each sorted.

    SecretError names the place where a recipe is missing or wrong.
    """
    made = []
    for role in sorted(path for path in (root / "roles").iterdir() if path.is_dir()):
        names = sorted(set(_names(role / "defaults")))
        recipes = _recipes(role / "meta" / "secrets.yml", root)
        for name in names:
            if name not in recipes:
                where = (role / "meta" / "secrets.yml").relative_to(root)
                raise SecretError(f"{where}: no {name}, which the role's defaults use; say there how it is made")
            made.append(Secret(name=name, role=role.name, recipe=recipes.pop(name)))
        if recipes:
            where = (role / "meta" / "secrets.yml").relative_to(root)
            raise SecretError(f"{where}: {min(recipes)} is in no default of the role; take it away")
    for path in sorted(root.glob("hal_cluster/*/secrets.yml")):
        part = path.parent.name
        made += [Secret(name=name, role=part, recipe=recipe) for name, recipe in sorted(_recipes(path, root).items())]
    return made


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.yml")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield from VAULT.findall(re.sub(r"(^|\s)#.*", "", line))


def _recipes(path: Path, root: Path) -> dict[str, Recipe]:
    if not path.is_file():
        return {}
    try:
        text: Any = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        return {str(name): Recipe.model_validate(value) for name, value in text.items()}
    except (yaml.YAMLError, AttributeError):
        raise SecretError(f"{path.relative_to(root)}: is not a mapping of secrets to how they are made") from None
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"]))
        raise SecretError(f"{path.relative_to(root)}: {': '.join(filter(None, (field, problem['msg'])))}") from None

"""What a scenario depends on, as files of this tree: read from the files themselves.

A file depends on every file that it names: by a path (`../virtual_hal/create.yml`, `PROJECT / "roles"`), a glob, an
import, a plugin's or filter's name, a role of a play. A folder that is named counts whole, and a role always does, but
for its README. What is named needlessly makes a scenario run once more; what is missed would leave a broken role
proven, so a run is watched for files that it read and that do not count here (`witness.py`).
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

from tests.register import names
from tests.register.meaning import meaning

RUNS = (
    "molecule/base.yml",
    "molecule/conftest.py",
    "molecule/virtual_hal/create.yml",
    "molecule/virtual_hal/destroy.yml",
    "molecule/virtual_hal/strategies",
    "plugins/callback",
    "plugins/connection",
    "plugins/doc_fragments",
    "plugins/inventory",
    "plugins/vars",
)
"""What every scenario runs, with all that this names."""
STANDS_ON = (
    "molecule/virtual_hal",
    "inventory/hal",
    "inventory/virtual",
    "ansible.cfg",
    "requirements.lock",
    "pyproject.toml",
)
"""What every scenario stands on: the lab with its recipes, the site, the settings, the locked Python packages.

Counted as they are: what a file of these names counts where the scenario names that file."""
SILENT = (".md", ".txt", ".lock", ".toml", ".cfg", "tests/skips.yml", "Makefile")
"""Texts that name much and use nothing; the Makefile names what it can be asked for, all tests among it."""
READS = {
    "plugins/lookup/hal_node_health.py": tuple(f"roles/*/{one}" for one in ("expect.yml", "defaults", "meta", "vars")),
    "plugins/lookup/hal_firewall.py": tuple(f"roles/*/{part}" for part in ("firewall.yml", "defaults", "meta", "vars")),
    "hal_cluster/packages/declared.py": tuple(f"roles/*/{part}" for part in ("tasks", "defaults", "meta", "vars")),
    "playbooks/image.yml": tuple(f"roles/*/{part}" for part in ("defaults", "meta", "vars")),  # those of a profile
    "playbooks/audit.yml": ("roles/**",),
    "molecule/provision_server/tests/test_image.py": ("roles/base/**", "roles/repositories/**", "roles/time/**"),
    "playbooks/takeover.yml": ("playbooks/site.yml",),  # a playbook without roles is about the site's
    "molecule/python2/converge.yml": ("playbooks/site.yml",),  # the same
    "hal_inventory/cache.py": ("hal_inventory/**",),  # another program, another cache
    "tests/rollout/test_site_audited.py": ("playbooks/audit.yml",),  # by hal-audit
    "tests/rollout/test_full.py": ("Makefile", "tools/prepare-controller"),  # by .ci/run
}
"""What is read and not named, most of it of roles: the product's code is for any role, and names none."""
PROOFS = "tests/proofs"
NOT_COUNTED = ("roles/*/README.md", "molecule/*/README.md", f"{PROOFS}/*")
"""What people read, and what a proof itself changes: a proof that counted proofs would end with the next one."""
SLOW = "pytest.mark.slow"
CALLS = {"audited": ("playbooks/audit.yml",)}
"""Methods of the lab that read more than their file names: an audit asks for every role of a node."""
PLAY = ("molecule/", "playbooks/", "tests/")
"""What runs playbooks. Others only speak of them, and of documents, to somebody."""
LIBRARIES = ("", "molecule/virtual_hal")
"""Where an import is looked for, after the file's own folder."""
PLUGINS = ("modules", "action", "lookup", "connection", "strategy")
RECOGNISES = "hal_cluster/audit/resources/"
"""It tells a role's tasks apart by the names of their modules, and runs none: whoever runs one names it elsewhere."""


class Tree:
    """The files of a checkout that are under version control or would be, and what each of them names."""

    def __init__(self, root: Path) -> None:
        """`root`: of a git checkout. Read once: what changes afterwards needs another Tree."""
        self.root = root
        listing = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(listing, check=True, stdout=subprocess.PIPE, text=True).stdout
        self.files = frozenset(name for name in listed.split("\0") if name and (root / name).is_file())
        self._folders: dict[str, list[str]] = {}
        for name in sorted(self.files):
            for folder in PurePosixPath(name).parents:
                self._folders.setdefault(str(folder), []).append(name)
        self._named: dict[str, frozenset[str]] = {}
        self._contents: dict[str, str] = {}

    def below(self, path: str) -> list[str]:
        """The file of this path, or all files of the folder; none where neither exists."""
        return [path] if path in self.files else self._folders.get(path, [])

    def scenarios(self) -> list[str]:
        """Names of the scenarios, sorted."""
        return sorted(name.split("/")[1] for name in self.files if re.fullmatch(r"molecule/[^/]+/molecule\.yml", name))

    def slow_tests(self, folder: str) -> list[str]:
        """The files below a folder that have slow tests."""
        tests = [file for file in self.below(folder) if PurePosixPath(file).match("test_*.py")]
        return [file for file in tests if names.is_marked((self.root / file).read_text(encoding="utf-8"), SLOW)]

    def of_scenario(self, name: str) -> frozenset[str]:
        """All files that this scenario depends on."""
        return self._with_ground([*RUNS, f"molecule/{name}"])

    def of_tests(self, path: str) -> frozenset[str]:
        """All files that a file of slow tests depends on: also every conftest.py above it."""
        above = [str(folder / "conftest.py") for folder in PurePosixPath(path).parents]
        return self._with_ground([*RUNS, path, *above, "tests/skips.yml"])

    def _with_ground(self, starts: Iterable[str]) -> frozenset[str]:
        reached = self.closure(file for path in starts for file in self.below(path))
        reached |= {file for path in STANDS_ON for file in self.below(path)}
        return frozenset(file for file in reached if not any(map(PurePosixPath(file).match, NOT_COUNTED)))

    def closure(self, start: Iterable[str]) -> frozenset[str]:
        """These files and all that they name, and those name."""
        reached, fresh = set[str](), set(start)
        while fresh:
            reached |= fresh
            fresh = {named for file in fresh for named in self.named(file)} - reached
        return frozenset(reached)

    def named(self, file: str) -> frozenset[str]:
        """The files that this file names, and the rest of its role."""
        if file not in self._named:
            self._named[file] = frozenset(self._read(file))
        return self._named[file]

    def digest(self, files: Iterable[str]) -> str:
        """A hash over names, contents and run bits of these files; their comments do not count."""
        whole = hashlib.sha256()
        for name in sorted(files):
            if name not in self._contents:
                path = self.root / name
                counts = hashlib.sha256(meaning(name, path.read_bytes())).hexdigest()
                self._contents[name] = f"{name}\0{counts}\0{path.stat().st_mode & 0o100}\0"
            whole.update(self._contents[name].encode())
        return whole.hexdigest()[:32]

    @cached_property
    def roles(self) -> frozenset[str]:
        """Names of the roles."""
        return frozenset(name.split("/")[1] for name in self.files if name.startswith("roles/"))

    @cached_property
    def _filters(self) -> dict[str, set[str]]:
        """The files that define a filter, by its name: what stands as a key in plugins/filter."""
        found: dict[str, set[str]] = {}
        for file in self.below("plugins/filter"):
            if file.endswith(".py"):
                for name in re.findall(r"""["'](hal_\w+)["']\s*:""", (self.root / file).read_text(encoding="utf-8")):
                    found.setdefault(name, set()).add(file)
        return found

    def _read(self, file: str) -> Iterator[str]:
        here = PurePosixPath(file).parent
        if file.endswith(SILENT):
            return
        try:
            text = (self.root / file).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return  # a picture, a key
        python = file.endswith(".py") or text.startswith("#!/usr/bin/env python")
        found = names.of_python(text) if python else names.of_text(text)
        for name in found.imports:
            yield from self._module(name, here)
        spoken = () if file.startswith("inventory/") else found.paths
        for reached in (name for path in spoken for name in self._path(path, here)):
            said = reached.startswith(("playbooks/", "docs/", "molecule/")) and not file.startswith(PLAY)
            if not said:
                yield reached
        called = [pattern for word in found.words & CALLS.keys() for pattern in CALLS[word]]
        for pattern in (*READS.get(file, ()), *called):
            yield from self._matching(pattern) if "*" in pattern else self.below(pattern)
        # A plugin's own name says who it is. Whatever word leads to an action plugin leads to its module as well.
        own = {PurePosixPath(file).stem} if file.startswith("plugins/") else set()
        for word in set() if file.startswith(RECOGNISES) else found.words - own:
            yield from self._word(word)
        # A word such as hal-reimage in hal_node is an owner's name: nodes do not have the controller's scripts.
        for program in found.programs | (set() if file.startswith("hal_node/") else found.scripts):
            yield from self.below(program.replace(".", "/"))
        for role in found.roles & self.roles:
            yield from self.below(f"roles/{role}")

    def _module(self, name: str, here: PurePosixPath) -> Iterator[str]:
        """The file of a Python module, with those of the packages around it."""
        bare = name.lstrip(".")
        if level := len(name) - len(bare):
            name = ".".join([*here.parts[: len(here.parts) - level + 1], *bare.split(".")]).rstrip(".")
        parts = name.removeprefix("ansible.module_utils.").split(".")
        for library in dict.fromkeys([str(here), *LIBRARIES]):
            for count in range(1, len(parts) + 1):
                path = str(PurePosixPath(library, *parts[:count]))
                yield from {f"{path}.py", f"{path}/__init__.py"} & self.files

    def _word(self, word: str) -> Iterator[str]:
        """The files of a plugin, a filter or a Python module that a word means."""
        first = word.partition(".")[0]
        for kind in PLUGINS:
            yield from self.below(f"plugins/{kind}/{first}.py")
        yield from self._filters.get(first, ())
        if "." in word:
            yield from self._module(word, PurePosixPath())

    def _path(self, text: str, here: PurePosixPath) -> Iterator[str]:
        """What a path or a glob means, below the file's folder, its role's, or the tree's."""
        if set(text.split("/")) <= {"..", ""}:  # the beginning of a path
            return
        for base in {here, PurePosixPath(*here.parts[:2]), PurePosixPath()}:
            parts: list[str] = []
            for part in (base / text.strip("/").rstrip(".")).parts:
                if part != "..":
                    parts.append(part)
                elif parts:
                    parts.pop()
            if any("*" in part for part in parts):
                first = 3 if parts[:2] == ["molecule", "virtual_hal"] else 2  # the lab's folders are as top ones
                if parts[0] == "playbooks" or "*" not in "".join(parts[:first]):
                    yield from self._matching("/".join(parts))
            elif len(parts) > 1 or (here.parts[:1] == ("molecule",) and here.parts[1:2] != ("virtual_hal",)):
                yield from self.below("/".join(parts))

    def _matching(self, pattern: str) -> Iterator[str]:
        """The files of a glob whose first folder is known."""
        known = pattern.partition("*")[0].rpartition("/")[0]
        if known and known != "molecule":
            whole = re.compile(re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*") + "(?:/.*)?")
            yield from (file for file in self.below(known) if whole.fullmatch(file))

"""The files of declared modules. Same modules, same bytes.

Written for Lmod 8.2.7 and later; its functions are in src/sandbox.lua and src/mrc_sandbox.lua of TACC/Lmod at that tag.
`depends_on` is of Lmod 7.6, `.modulerc.lua` of 7.8, `extensions` of 8.2. Nothing later is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hal_cluster.rules.lmod.declared import Module, label, visible
from hal_cluster.rules.lmod.lua import call, comment, listed, quoted

HEADER = "-- Written by Ansible, role {role}; changes made here are lost."
RC = ".modulerc.lua"

_NO_NAME = re.compile(r"[^A-Za-z0-9]")
# What is checked when a module is loaded, never when it is listed, shown or unloaded.
_LOADING = 'if (mode() == "load") then'


def files(modules: Sequence[Module], tree: str) -> list[dict[str, str]]:
    """Return {path, content} of each modulefile, and of each name's .modulerc.lua, sorted by path.

    `modules` are without faults (`problems`). `tree` is the root of modulefiles, an absolute path.
    `.modulerc.lua` marks the default and hides versions. Module hal_modulefiles takes the result.
    """
    root = tree.rstrip("/")
    written = [{"path": f"{root}/{label(module)}.lua", "content": modulefile(module)} for module in modules]
    for name in dict.fromkeys(module["name"] for module in modules):
        ours = [module for module in modules if module["name"] == name]
        written.append({"path": f"{root}/{name}/{RC}", "content": modulerc(ours)})
    return sorted(written, key=lambda file: file["path"])


def roots(modules: Sequence[Module]) -> list[dict[str, str]]:
    """Return {name, path} of each path that a module which can be loaded needs; `name` is for a report.

    `modules` are without faults. A retired version needs none.
    """
    return [
        {"name": f"{label(module)}: {path}", "path": path}
        for module in modules
        if not module.get("retired")
        for path in [*module.get("roots", []), *filter(None, [module.get("settings_file")])]
    ]


def modulefile(module: Module) -> str:
    """Return the Lua of one version."""
    return "\n".join([HEADER.format(role=module["owner_role"]), *_lines(module)]) + "\n"


def modulerc(ours: Sequence[Module]) -> str:
    """Return the Lua that marks the default and hides versions, for all versions of one name.

    The default is always said: which version Lmod takes otherwise depends on how it compares them.
    """
    lines = [HEADER.format(role=ours[0]["owner_role"])]
    seen = visible(ours)
    chosen = [module for module in seen if module.get("default")] or seen[:1]
    lines += [call("module_version", label(module), "default") for module in chosen]
    hidden = sorted(label(module) for module in ours if module not in seen)
    lines += [call("hide_version", name) for name in hidden]
    return "\n".join(lines) + "\n"


def _lines(module: Module) -> Iterator[str]:
    yield comment(f"Module {label(module)}: {module['title']}")
    title, help_text = module["title"].strip(), module.get("help", "").strip()
    yield call("help", f"{title}\n\n{help_text}\n" if help_text else f"{title}\n")
    yield call("whatis", f"Name: {module['name']}")
    yield call("whatis", f"Version: {module['version']}")
    yield call("whatis", f"Description: {title}")
    if module.get("extensions") and not module.get("retired"):
        # One text: a call of Lua 5.1 takes no more than 250 values. What `module spider` finds beside the module.
        yield call("extensions", ",".join(module["extensions"]))
    yield from _refusals(module)
    if module.get("family"):
        yield call("family", module["family"])
    for other in module.get("conflicts", []):
        yield call("conflict", other)
    for other in module.get("requires", []):
        yield call("depends_on", other)
    yield from _settings(module)


def _refusals(module: Module) -> Iterator[str]:
    """Why a load fails, or what it says. The rest stays, so that what is loaded in a running job can be unloaded."""
    if module.get("retired"):
        yield f"{_LOADING} {call('LmodError', f'{label(module)} is retired: ' + module['retired'].strip())} end"
        return
    wanted = [*module.get("roots", []), *filter(None, [module.get("settings_file")])]
    if wanted:
        words = f"{label(module)} is not usable on this node: "
        yield _LOADING
        yield f"  for _, path in ipairs({listed(wanted)}) do"
        yield "    if not (isDir(path) or isFile(path)) then"
        yield f'      LmodError({quoted(words)} .. path .. " is not there. Please tell the administrators.")'
        yield "    end"
        yield "  end"
        yield "end"
    if module.get("deprecated"):
        words = f"{label(module)} will be removed: {module['deprecated'].strip()}"
        yield f"{_LOADING} {call('LmodMessage', words)} end"


def _settings(module: Module) -> Iterator[str]:
    for variable, value in module.get("set", {}).items():
        yield call("setenv", variable, value)
    for variable, paths in module.get("prepend", {}).items():
        # Each is put in front of what is there, so the last comes first.
        yield from (call("prepend_path", variable, path) for path in reversed(paths))
    for variable, paths in module.get("append", {}).items():
        yield from (call("append_path", variable, path) for path in paths)
    if module.get("settings_file"):
        yield from _settings_file(
            module["settings_file"], quoted(f"HAL_SETTINGS_{_NO_NAME.sub('_', module['name']).upper()}")
        )


def _settings_file(path: str, variable: str) -> Iterator[str]:
    """Run a file when the module is loaded or shown, and what was loaded when it is unloaded.

    Not when the tree is read for lists: the file may be on a shared file system. Its path may go through a link that
    leads elsewhere by the time of an unload, or the version may be retired: `variable` keeps which file was loaded.
    Nothing keeps users from unloading. `abspath` of Lmod follows links; it fails where the current folder is gone.
    """
    yield 'if (mode() ~= "spider") then'
    yield f"  local path = {quoted(path)}"
    yield "  local followed, real = pcall(abspath, path)"
    yield "  path = followed and real or path"
    yield '  if (mode() == "unload") then'
    yield f"    local undo = loadfile(os.getenv({variable}) or path)"
    yield "    if (undo) then pcall(undo) end"
    yield "  elseif (isFile(path)) then"
    yield "    assert(loadfile(path))()"
    yield "  end"
    yield f"  setenv({variable}, path)"
    yield "end"

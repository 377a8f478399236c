"""Plugins find the project's packages by themselves: Ansible loads them also where the project is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
LOAD = """
import importlib, json, runpy, sys
from importlib.util import find_spec
others, shipped, *paths = sys.argv[1:]
own = list(sys.path)
sys.path += json.loads(others)
import ansible.module_utils
ansible.module_utils.__path__.append(shipped)  # by the project's ansible.cfg
wrong = []
for path in paths:
    sys.path[:] = [*own, *json.loads(others)]
    for name in [name for name in sys.modules if name.startswith("hal_")]:
        del sys.modules[name]
    try:
        runpy.run_path(path)
    except ImportError as error:
        wrong.append("%s: %s" % (path, error))
        continue
    importlib.invalidate_caches()
    late = "import_module(" in open(path).read()  # of the project, when it is called
    if late and find_spec("hal_inventory") is None:
        wrong.append("%s: the project is not in sys.path" % path)
print(json.dumps(wrong))
"""


def test_each_plugin_loads_where_the_project_is_not_installed() -> None:
    plugins = [path for path in sorted(PROJECT.glob("plugins/*/*.py")) if "sys.path" in path.read_text()]
    assert len(plugins) > 15
    installed = json.dumps([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    # -S: no .pth file of .venv, which names the project.
    done = subprocess.run(
        [sys.executable, "-S", "-c", LOAD, installed, str(PROJECT / "plugins/module_utils"), *map(str, plugins)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []

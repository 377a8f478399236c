"""Stand-in of the virtual HAL: conda's Python has ensurepip, Ubuntu's has it in a package of its own, without wheels.

Installs the wheels of _bundled with the pip that is in one of them, as "python -m venv" asks for it.
"""

import os
import sys

BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bundled")


def main() -> int:
    """Install them; no setting of the user's pip counts."""
    for name in [variable for variable in os.environ if variable.startswith("PIP_")]:
        del os.environ[name]
    os.environ["PIP_CONFIG_FILE"] = os.devnull
    names = sorted(name for name in os.listdir(BUNDLED) if name.endswith(".whl"))
    sys.path[:0] = [os.path.join(BUNDLED, name) for name in names]
    from pip._internal.cli.main import main as pip

    words = ["install", "--no-cache-dir", "--no-index", "--find-links", BUNDLED]
    words += [word for word in sys.argv[1:] if word in ("--upgrade", "--user")]
    status: int = pip(words + [name.split("-")[0] for name in names])
    return status


if __name__ == "__main__":
    sys.exit(main())

"""``python -m hal_packages`` is ``hal-packages``."""

from __future__ import annotations

import sys

from hal_packages.cli import main

sys.exit(main())

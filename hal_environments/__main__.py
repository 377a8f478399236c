"""``python -m hal_environments`` is ``hal-environments``."""

from __future__ import annotations

import sys

from hal_environments.cli import main

sys.exit(main())

"""``python -m hal_cluster.environments`` is ``hal-environments``."""

from __future__ import annotations

import sys

from hal_cluster.environments.cli import main

sys.exit(main())

"""``python -m hal_cluster.packages`` is ``hal-packages``."""

from __future__ import annotations

import sys

from hal_cluster.packages.cli import main

sys.exit(main())

"""``python -m hal_cluster.rules.cuda table`` and ``check``."""

from __future__ import annotations

import sys

from hal_cluster.rules.cuda.cli import main

sys.exit(main())

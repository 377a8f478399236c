"""``python -m hal_cuda table`` and ``check``."""

from __future__ import annotations

import sys

from hal_cuda.cli import main

sys.exit(main())

"""``python -m hal_provision``."""

import sys

from hal_provision.cli import main

if __name__ == "__main__":
    sys.exit(main())

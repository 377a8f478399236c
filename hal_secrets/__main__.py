"""``python -m hal_secrets``."""

import sys

from hal_secrets.cli import main

if __name__ == "__main__":
    sys.exit(main())

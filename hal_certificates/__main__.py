"""``python -m hal_certificates``."""

import sys

from hal_certificates.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m hal_cluster.certificates``."""

import sys

from hal_cluster.certificates.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m hal_cluster.secrets``."""

import sys

from hal_cluster.secrets.cli import main

if __name__ == "__main__":
    sys.exit(main())

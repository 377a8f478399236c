"""``python -m hal_cluster.provision``."""

import sys

from hal_cluster.provision.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m hal_cluster.inventory``: the program hal-inventory."""

import sys

from hal_cluster.inventory.cli import main

if __name__ == "__main__":
    sys.exit(main())

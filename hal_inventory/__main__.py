"""``python -m hal_inventory``: the program hal-inventory."""

import sys

from hal_inventory.cli import main

if __name__ == "__main__":
    sys.exit(main())

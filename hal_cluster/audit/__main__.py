"""``python -m hal_cluster.audit``."""

from hal_cluster.audit.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

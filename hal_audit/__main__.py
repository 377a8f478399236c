"""``python -m hal_audit``."""

from hal_audit.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

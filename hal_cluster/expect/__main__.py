"""`python -m hal_cluster.expect roles/*/expect.yml`: check files of expectations. Exit status 0 clean, 2 findings.

`python -m hal_cluster.expect --schema` prints the JSON Schema for editors (hal_cluster/expect/expect.schema.json).
"""

from __future__ import annotations

import sys

from hal_cluster.expect import schema
from hal_cluster.expect.files import check_file


def main(paths: list[str]) -> int:
    """Print every fault of the files, one a line. Checking nothing is an error."""
    if not paths:
        print("usage: python -m hal_cluster.expect FILE...   (for example roles/*/expect.yml)", file=sys.stderr)
        return 2
    if paths == ["--schema"]:
        print(schema.text(), end="")
        return 0
    findings = [finding for path in paths for finding in check_file(path)]
    for finding in findings:
        print(finding)
    return 2 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

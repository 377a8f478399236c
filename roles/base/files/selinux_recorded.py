# -*- coding: utf-8 -*-
"""Prints the mode of SELinux that a rollout has left in effect here, as the record of this installation says.

Nothing where it says none or cannot be read: then nobody has set the mode. Read-only.
"""

from __future__ import absolute_import, division, print_function

import io
import json


def main():
    """Print it."""
    try:
        with io.open("/var/lib/hal/record.json", encoding="utf-8") as file:
            record = json.load(file)
        with io.open("/etc/machine-id", encoding="utf-8") as file:
            here = record["machine_id"] == file.read().strip()
        entries = [entry for entry in record["entries"] if here and entry["resource"] == "selinux:mode"]
        modes = [entry["declared"]["mode"] for entry in entries
                 if entry["observed"]["live"] == entry["declared"]["mode"]]
        print("".join(modes[:1]))
    except (EnvironmentError, ValueError, KeyError, TypeError):
        print("")


if __name__ == "__main__":
    main()

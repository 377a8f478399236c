# -*- coding: utf-8 -*-
"""Unpack verified archives and link them into a fresh prefix, with rattler. Needs Python 3.8 and py-rattler.

hal-environment gives it JSON on standard input: prefix, cache, platform, packages (as locked, each with `archive`).
The syntax is that of Python 2.7 as well, so that the wrong interpreter can say what is missing.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import sys

try:
    import asyncio

    from rattler import NoArchType, PackageName, PackageRecord, Platform, RepoDataRecord, install
    MISSING = ""
except Exception as error:  # an extension module for another machine is not an ImportError everywhere
    MISSING = "%s: %s" % (type(error).__name__, error)


def main():
    """Read the request and carry it out; return 0, or 1 after one line that says why."""
    if MISSING:
        sys.stderr.write("%s (Python %s) has no py-rattler: %s\n" % (sys.executable, sys.version.split()[0], MISSING))
        return 1
    request = json.load(getattr(sys.stdin, "buffer", sys.stdin))
    asyncio.run(install([record(package) for package in request["packages"]], request["prefix"],
                        cache_dir=request["cache"], platform=Platform(request["platform"]), show_progress=False,
                        installed_packages=[], execute_link_scripts=False))
    return 0


def record(package):
    """Return a locked package as rattler takes it, with the place of its archive."""
    made = PackageRecord(
        name=PackageName(package["name"]), version=package["version"], build=package["build"],
        build_number=package["build_number"], subdir=package["subdir"], sha256=bytes.fromhex(package["sha256"]),
        size=package["size"], depends=package["depends"], license=package["license"] or None,
        noarch=NoArchType(package["noarch"]) if package["noarch"] else None)
    return RepoDataRecord(package_record=made, file_name=package["file"], url="file://" + package["archive"],
                          channel=package["channel"])


if __name__ == "__main__":
    try:
        STATUS = main()
    except Exception as error:  # rattler's own errors have no common root
        sys.stderr.write("%s\n" % error)
        STATUS = 1
    # rattler's threads may still be there.
    sys.stderr.flush()
    os._exit(STATUS)

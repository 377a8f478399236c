#!/usr/bin/env python
# -*- coding: utf-8 -*-
# mypy: ignore-errors
# Python 2.7 of CentOS 7 runs this: no types, no newer syntax.
"""Read what a machine says about itself, and print it as one JSON document. Read-only; needs no package.

On the machine, as root:     hal-inventory capture --script | ssh hal05 sudo python - >hal05.json
Of a BMC, from anywhere:     python node.py --redfish hal05-bmc --user root --ca-file site-ca.pem >hal05-bmc.json

Nothing is interpreted here: the document has what the tools printed, and `hal-inventory capture` reads that. Python 2.7
or 3, standard library alone.
"""

from __future__ import absolute_import, division, print_function

import base64
import getpass
import glob
import io
import json
import optparse
import os
import socket
import ssl
import subprocess
import sys
import threading
import time

try:
    from urllib.error import URLError
    from urllib.request import Request, urlopen
except ImportError:  # Python 2
    from urllib2 import Request, URLError, urlopen

FORMAT = 1
SECONDS = 60
# Names of the captures, with the command that each one is the output of. They only read, with options of CentOS 7.
COMMANDS = {
    "dmidecode": ["dmidecode", "--type", "1,17"],
    "ibstat": ["ibstat"],
    "ip_link": ["ip", "-o", "link", "show"],
    "ip_address": ["ip", "-o", "-4", "addr", "show"],
    "ipmitool": ["ipmitool", "lan", "print", "1"],
    "lsblk": ["lsblk", "-P", "-b", "-d", "-o", "NAME,SIZE,TYPE,MODEL,SERIAL,WWN,ROTA"],
    "lscpu": ["lscpu"],
    "nvidia_smi": ["nvidia-smi", "-q"],
    "uname": ["uname", "-r"],
}
SECRET = "SNMP Community String"  # a password of the BMC, which ipmitool shows
FILES = (
    "/proc/device-tree/model",
    "/proc/device-tree/system-id",
    "/proc/meminfo",
    "/proc/net/bonding/*",
    "/sys/devices/system/node/node*/cpulist",
    "/sys/devices/system/node/node*/meminfo",
)
# What is asked of a BMC, and which collections and single things below it.
REDFISH = ("Systems", "Managers", "Chassis")
BELOW = ("EthernetInterfaces", "NetworkProtocol")


def text(content):
    """Return bytes as text that JSON can hold; NULs end the properties of a device tree."""
    return content.decode("utf-8", "replace").replace("\0", "")


def without_secrets(said):
    """Return what a program said, less what nobody may read in a file."""
    return "".join(line for line in said.splitlines(True) if not line.startswith(SECRET))


def run(argv):
    """Return {argv, status, stdout, stderr}; the status is None if there is no such program, or it does not end."""
    environment = dict(os.environ, LC_ALL="C", PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")
    try:
        with open(os.devnull, "rb") as nothing:
            process = subprocess.Popen(
                argv, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
            )
    except OSError as error:
        return {"argv": argv, "status": None, "stdout": "", "stderr": os.strerror(error.errno)}
    timer = threading.Timer(SECONDS, process.kill)
    timer.daemon = True
    timer.start()
    try:
        out, err = process.communicate()
    finally:
        timer.cancel()
    if process.returncode == -9:
        return {"argv": argv, "status": None, "stdout": "", "stderr": "no answer within %d s" % SECONDS}
    return {"argv": argv, "status": process.returncode, "stdout": without_secrets(text(out)), "stderr": text(err)}


def read(path):
    """Return a file's content, or None when it cannot be read."""
    try:
        with io.open(path, "rb") as stream:
            return text(stream.read())
    except (IOError, OSError):
        return None


def node():
    """Return the document of this machine."""
    files = dict((path, read(path)) for pattern in FILES for path in sorted(glob.glob(pattern)))
    return {
        "kind": "node",
        "host": socket.gethostname(),
        "outputs": dict((name, run(argv)) for name, argv in COMMANDS.items()),
        "files": dict((path, content) for path, content in files.items() if content is not None),
    }


class Redfish(object):
    """A BMC that is asked over Redfish; its certificate is checked."""

    def __init__(self, address, user, password, ca_file):
        self.root = "https://%s" % address
        login = base64.b64encode(("%s:%s" % (user, password)).encode("utf-8")).decode("ascii")
        self.headers = {"Authorization": "Basic " + login, "Accept": "application/json"}
        self.context = ssl.create_default_context(cafile=ca_file)
        self.resources = {}

    def get(self, path):
        """Return a resource, and keep it."""
        if path not in self.resources:
            answer = urlopen(Request(self.root + path, headers=self.headers), timeout=SECONDS, context=self.context)
            try:
                self.resources[path] = json.loads(answer.read().decode("utf-8"))
            finally:
                answer.close()
        return self.resources[path]

    def walk(self, path, depth):
        """Get a resource, its members and what is asked for below them. 404: the firmware does not have it."""
        try:
            resource = self.get(path)
        except URLError as error:
            if getattr(error, "code", None) == 404:
                return
            raise
        for member in resource.get("Members", []):
            self.walk(member["@odata.id"], depth)
        if depth:
            for name in BELOW:
                if "@odata.id" in (resource.get(name) or {}):
                    self.walk(resource[name]["@odata.id"], depth - 1)


def bmc(address, user, ca_file):
    """Return the document of a BMC."""
    password = os.environ.get("HAL_BMC_PASSWORD") or getpass.getpass("Password of %s at %s: " % (user, address))
    redfish = Redfish(address, user, password, ca_file)
    for name in REDFISH:
        redfish.walk("/redfish/v1/" + name, 1)
    return {"kind": "bmc", "address": address, "resources": redfish.resources}


def main(arguments):
    parser = optparse.OptionParser(
        usage="%prog [--redfish ADDRESS --user USER [--ca-file FILE]]", description=__doc__.splitlines()[0]
    )
    parser.add_option(
        "--redfish",
        metavar="ADDRESS",
        help="ask this BMC instead of reading this machine; password from HAL_BMC_PASSWORD, or asked for",
    )
    parser.add_option("--user", default="root", help="user at the BMC (default: root)")
    parser.add_option("--ca-file", help="certificates that the BMC's is checked with (default: those of the system)")
    options, rest = parser.parse_args(arguments)
    if rest:
        parser.error("takes no arguments")
    try:
        document = bmc(options.redfish, options.user, options.ca_file) if options.redfish else node()
    except (IOError, OSError, ValueError) as error:  # URLError and SSLError are OSErrors, or IOErrors in Python 2
        said = repr(str(getattr(error, "reason", None) or error))[1:-1]  # a BMC chooses its words
        sys.stderr.write("%s: %s\n" % (options.redfish, said))
        return 1
    document["format"] = FORMAT
    document["taken_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    sys.stdout.write(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Let the installed Slurm read a new configuration before it replaces the old one."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_slurm_trial
short_description: Let the installed Slurm read a new configuration before it replaces the old one
description:
  - Puts the texts into a private folder, starts the installed slurmctld there as SlurmUser, and ends it as soon as it
    has read everything. Parameters that would touch anything else are replaced first (controllers, ports, places, the
    database, programs, and addresses of nodes).
  - On a compute node C(slurmd -G) reads the texts, too. That is the part of slurmd that reads gres.conf and
    cgroup.conf. It makes no cgroups and no sockets, and contacts nobody.
  - Fails if Slurm refuses the texts, or would go on with something else than they say. The message has Slurm's own
    line, and the place in the file that would have been written.
  - Fails, too, if slurmctld ends or crashes before it is ready, and names no cause outside the texts.
  - Only warns of what says nothing about the texts (a device that is not there, a daemon that does not end, no space
    for the private folder).
  - Does nothing if the files have these texts already, or if the daemon is not installed.
options:
  daemons:
    description: The daemons of this node that read the files.
    type: list
    elements: str
    choices: [slurmctld, slurmd]
    required: true
  files:
    description: Configuration files with their new texts, all in one directory.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {type: path, required: true, description: Where the file will be.}
      content: {type: str, required: true, description: The whole text.}
  node:
    description: This node's name in slurm.conf. Needed for slurmd.
    type: str
  wait_seconds:
    description: After how many seconds to stop a daemon that is not ready and has not ended.
    type: int
    default: 120
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Does the same. It changes nothing in any mode.}
  diff_mode: {support: none, description: Nothing is changed.}
"""

EXAMPLES = r"""
- name: Have Slurm read the new configuration
  hal_slurm_trial:
    daemons: [slurmctld]
    files:
      - {path: /etc/slurm/slurm.conf, content: "{{ lookup('ansible.builtin.template', 'slurm.conf.j2') }}"}
      - {path: /etc/slurm/gres.conf, content: "{{ lookup('ansible.builtin.template', 'gres.conf.j2') }}"}
"""

RETURN = r"""
judged:
  description: The daemons that read the texts to their end.
  type: list
  elements: str
  returned: always
why:
  description: Why a daemon did not read them to their end, one line for each.
  type: list
  elements: str
  returned: always
log:
  description: The last lines that the daemon wrote.
  type: list
  elements: str
  returned: when the texts are refused
"""

import ctypes
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from ansible.module_utils.common.text.converters import to_bytes, to_native, to_text
from ansible.module_utils.hal_node.files import content_of
from ansible.module_utils.hal_node.printable import shown
from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.private import cgroup_conf, setting, slurm_conf
from ansible.module_utils.hal_node.slurm.said import MOST, NO_DEVICE, READY, foreign, last_words, placed, refusals

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

# Slurm finds other files beside slurm.conf (acct_gather.conf, job_submit.lua): all but the one with a password.
NOT_LINKED = ("slurmdbd.conf",)
PR_SET_PDEATHSIG = 1  # prctl(2)
ENDING_SECONDS = 20
# What the system says no to. What goes wrong between fork and exec is an error of its own in Python 3.
OF_THE_SYSTEM = (EnvironmentError, getattr(subprocess, "SubprocessError", EnvironmentError))
# timeout(1) says that it failed itself, or that there was no program to run. SIGKILL and the others come from outside:
# a machine without memory, or one that goes down.
NOT_SLURMS = frozenset([125, 126, 127, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP])
# As in a first check, before packages are installed.
UNSEEN_YET = re.compile("it is not installed|there is no such user yet")


class Unjudged(Exception):
    """Nothing was learned of the texts; the message says why."""


class Trial(object):
    """Daemons that read the texts, each in a private folder that goes with it."""

    def __init__(self, module, texts):
        # type: (Any, dict[str, str]) -> None
        self.module = module
        self.texts = texts
        self.home = os.path.dirname(module.params["files"][0]["path"])
        self.folder = ""
        self.user = None  # type: Any  # of pwd, before anything is run

    def slurm_user(self):
        # type: () -> pwd.struct_passwd
        """Return the user whom slurm.conf names, as pwd has it. Raises Unjudged where nobody has that name."""
        name = setting(self.texts["slurm.conf"], "SlurmUser") or "root"
        name = re.sub(r"\(.*\)$", "", name)
        try:
            return pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(to_native(name))
        except (KeyError, UnicodeError):
            raise Unjudged("slurm.conf names %s as SlurmUser, and there is no such user yet" % name)

    def prepare(self, release):
        # type: (tuple[int, int]) -> None
        """Make the folder, with the texts for an instance of its own."""
        self.folder = tempfile.mkdtemp(prefix="hal-slurm-trial-")
        own = dict(self.texts)
        own["slurm.conf"] = slurm_conf(own["slurm.conf"], socket.gethostname().split(".")[0], self.folder, free_ports())
        if "cgroup.conf" in own:
            own["cgroup.conf"] = cgroup_conf(own["cgroup.conf"], release)
        for name, text in own.items():
            with open(self.place(name), "wb") as stream:
                stream.write(to_bytes(text))
            os.chmod(self.place(name), 0o644)
        for name in os.listdir(self.home) if os.path.isdir(self.home) else []:
            if name not in own and name not in NOT_LINKED:
                os.symlink(os.path.join(self.home, name), self.place(name))
        for name in ("state", "spool"):
            os.mkdir(self.place(name), 0o700)
        for name in ("state", "spool", "."):
            if os.geteuid() == 0:
                os.chown(self.place(name), self.user.pw_uid, self.user.pw_gid)

    def place(self, name):
        # type: (str) -> str
        """Return the path of a file of the private folder."""
        return os.path.join(self.folder, name)

    def as_user(self):
        # type: () -> None
        """Become SlurmUser, in a session of its own, and end when this module does. Runs in the child."""
        os.setsid()
        if os.geteuid() == 0 and self.user.pw_uid != 0:
            os.initgroups(self.user.pw_name, self.user.pw_gid)
            os.setgid(self.user.pw_gid)
            os.setuid(self.user.pw_uid)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # setuid(2) would clear it

    def run(self, argv, ready):
        # type: (list[str], str | None) -> tuple[str, int | None]
        """Run a daemon until it ends, or says that it is ready and then ends; return (output, exit status).

        The status is 0 for one that was ready, and None for one that had to be stopped: one that waits for a device at
        once. timeout(1) ends it though this module is killed. SIGTERM waits in slurmctld until it has begun all that it
        begins.
        """
        limit = self.module.params["wait_seconds"]
        path = os.path.join(self.folder, "said")
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "SLURM_CONF": self.place("slurm.conf")}
        command = ["timeout", "--foreground", "--kill-after", str(ENDING_SECONDS), str(limit)] + argv
        with open(path, "wb") as stream, open(os.devnull, "rb") as nothing:
            process = subprocess.Popen(command, stdin=nothing, stdout=stream, stderr=subprocess.STDOUT, cwd=self.folder,
                                       env=environment, preexec_fn=self.as_user, close_fds=True)
        was_ready = False
        end = time.time() + limit + 2 * ENDING_SECONDS
        try:
            while process.poll() is None and time.time() < end:
                output = read(path)
                if NO_DEVICE in output:
                    break
                if ready and not was_ready and ready in output:
                    process.send_signal(signal.SIGTERM)
                    was_ready, end = True, time.time() + ENDING_SECONDS
                time.sleep(0.02)
            status = process.poll()
        finally:
            kill_group(process)
        output = read(path)
        if ready and ready in output:
            status = 0
        return output, None if status in (124, 137) else status  # as timeout(1) says it

    def judge(self, name):
        # type: (str) -> None
        """Have a daemon read the texts; end the module if it refuses them. Raises Unjudged."""
        try:
            self.read_by(name)
        except OF_THE_SYSTEM as error:
            raise Unjudged("the trial could not be made: %s" % error)

    def read_by(self, name):
        # type: (str) -> None
        """Do what judge says. Raises Unjudged, and what OF_THE_SYSTEM has."""
        program = self.module.get_bin_path(name)
        if not program:
            raise Unjudged("it is not installed")
        _status, version, _err = self.module.run_command([program, "-V"], handle_exceptions=False)
        release = re.match(r"slurm\S* ((\d+)\.(\d+)\S*)", version)
        if not release:
            raise Unjudged("%s -V does not say its release" % name)
        self.user = self.slurm_user()
        for _again in range(2):
            try:
                self.prepare((int(release.group(2)), int(release.group(3))))
                output, status = self.run(*self.command(name, program))
            finally:
                folder = self.close()
            if "Address already in use" not in output:
                break
        wrong = refusals(output)
        if wrong:
            lines = [line.replace(folder + "/", self.home + "/") for line in placed(wrong, self.texts)]
            self.refuse("%s %s refuses" % (name, release.group(1)), "; ".join(lines[:MOST]), output)
        if NO_DEVICE in output:
            raise Unjudged("a device is not there: %s" % last_words(output))
        if status is None:
            limit = self.module.params["wait_seconds"]
            raise Unjudged("no end in %d s; it said last: %s" % (limit, last_words(output)))
        if status == 0 and (name != "slurmctld" or READY in output):
            return
        how = "exit status %d" % status if status >= 0 else "ended by signal %d" % -status
        if name != "slurmctld" or status == 0 or status in NOT_SLURMS or foreign(output):
            raise Unjudged("%s; it said last: %s" % (how, foreign(output) or last_words(output)))
        last = last_words(output).replace(folder + "/", self.home + "/")
        what = "%s %s does not start with" % (name, release.group(1))
        self.refuse(what, "%s; it said last: %s" % (how, last), output)

    def refuse(self, what, why, output):
        # type: (str, str, str) -> None
        """End the module: no file is replaced."""
        words = "%s the new configuration, and no file was replaced: %s" % (what, why)
        self.module.fail_json(msg=printable(words), log=[printable(line) for line in output.splitlines()[-30:]])

    def command(self, name, program):
        # type: (str, str) -> tuple[list[str], str | None]
        """Return (arguments, what says that it is ready) of a daemon in the foreground."""
        conf = self.place("slurm.conf")
        if name == "slurmctld":
            return [program, "-D", "-c", "-i", "-f", conf], READY
        return [program, "-D", "-G", "-N", self.module.params["node"], "-f", conf], None

    def close(self):
        # type: () -> str
        """Remove the folder, and return where it was."""
        folder, self.folder = self.folder, ""
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        return folder


def printable(text):
    # type: (str) -> str
    """Return a text as one line that drives no terminal."""
    return to_native(shown(to_bytes(text), kept=u"\\"))


def read(path):
    # type: (str) -> str
    """Return the text of a file."""
    with open(path, "rb") as stream:
        return stream.read().decode("utf-8", "replace")


def kill_group(process):
    # type: (subprocess.Popen[bytes]) -> None
    """End what is left of the session of a process."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass
    process.wait()


def free_ports():
    # type: () -> tuple[int, int]
    """Return two ports that nobody has at this moment."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _again in range(2)]
    try:
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return sockets[0].getsockname()[1], sockets[1].getsockname()[1]
    finally:
        for listener in sockets:
            listener.close()


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "daemons": {"type": "list", "elements": "str", "required": True, "choices": ["slurmctld", "slurmd"]},
            "files": {"type": "list", "elements": "dict", "required": True, "options": {
                "path": {"type": "path", "required": True}, "content": {"type": "str", "required": True}}},
            "node": {"type": "str"},
            "wait_seconds": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    files = module.params["files"]
    if "slurmd" in module.params["daemons"] and not module.params["node"]:
        module.fail_json(msg="node is missing: slurmd needs this node's name in slurm.conf")
    judged, why = [], []  # type: list[str], list[str]
    if all(content_of(entry["path"]) == to_bytes(entry["content"]) for entry in files):
        module.exit_json(changed=False, judged=[], why=["the files have these texts already"])
    texts = {os.path.basename(entry["path"]): to_text(entry["content"]) for entry in files}
    trial = Trial(module, texts)
    for name in module.params["daemons"]:
        try:
            trial.judge(name)
            judged.append(name)
        except Unjudged as reason:
            words = printable("%s did not judge the new configuration: %s" % (name, reason.args[0]))
            why.append(words)
            if not UNSEEN_YET.search(words):
                module.warn(words)
    module.exit_json(changed=False, judged=judged, why=why)


if __name__ == "__main__":
    main()

# -*- coding: utf-8 -*-
"""Start a notebook, JupyterLab, TensorBoard or H2O where nobody else listens, and say how to get there.

Runs on nodes: Python 2.7 and 3.

Each listens on 127.0.0.1 unless you give --public, at a port of its own, and asks for a token or a password, except
TensorBoard, which has neither. On a login node only TensorBoard is started unless you give --here: that node has no
GPU, and everybody works on it.
"""

from __future__ import absolute_import, division, print_function

import argparse
import io
import json
import os
import pwd
import re
import socket
import sys
import tempfile

SETTINGS = "/etc/hal/notebooks.json"
LOOPBACK = "127.0.0.1"
# What would let in everybody, or have it listen elsewhere, in notebook 6 (NotebookApp) and jupyter_server (ServerApp,
# IdentityProvider).
OPEN = re.compile(r"--(\w+\.)?(token|password)=?(''|\"\")?$")
LISTEN = re.compile(r"--(\w+\.)?(ip|host|bind_all|web_ip)(=.*)?$|--bind_all$")
# H2O's options have one dash or two, and the last of a name holds (usage text of its program). It is told these here:
# where it listens, with whom it makes a cluster, who gets in.
H2O_LISTENS = re.compile(r"--?(ip|web_ip|network|flatfile|baseport)(=.*)?$|-port(=.*)?$")
H2O_LETS_IN = re.compile(r"--?((hash|ldap|kerberos|pam|spnego)_login|login_conf)(=.*)?$")
# "Port number for this node (note: port+1 is also used)", usage text of H2O.
PORTS = {"h2o": 2}
KINDS = ("notebook", "lab", "tensorboard", "h2o")
NAMES = {"notebook": "Jupyter", "lab": "JupyterLab", "tensorboard": "TensorBoard", "h2o": "H2O"}
MODULES = {"notebook": "jupyter", "lab": "jupyterlab", "tensorboard": "tensorboard", "h2o": "h2o"}


class Problem(Exception):
    """What went wrong, in a line for the user."""


def free_port(first, span, taken_by=None, count=1):
    """Return a port that nobody listens on, near a place of the user's own; Problem if there is none.

    `first`, `span`: the range; `taken_by`: a function that says whether a port is in use (for tests); `count`: so many
    from the one that is returned on are free.
    """
    taken_by = taken_by or _in_use
    start = os.getuid() % span
    for step in range(span):
        port = first + (start + step) % span
        if port + count <= first + span and not any(taken_by(port + more) for more in range(count)):
            return port
    raise Problem("all %d ports from %d on are in use on this node; take another node" % (span, first))


def _in_use(port):
    for address in (LOOPBACK, ""):
        probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            probe.bind((address, port))
        except (OSError, IOError, socket.error):
            return True
        finally:
            probe.close()
    return False


def refused(words, kind="notebook"):
    """Say what of the options would let in everybody; "" when nothing would."""
    for at, word in enumerate(words):
        if kind == "h2o" and H2O_LISTENS.match(word):
            return "%s is set here: say --port PORT, or --public to listen on the node's own address" % word
        if kind == "h2o" and H2O_LETS_IN.match(word):
            return "%s is set here, with a password of its own for each start; leave it out" % word
        if OPEN.match(word) and not (word.endswith(("token", "password")) and words[at + 1:at + 2] not in ([], [""])):
            return "%s lets in everybody who is on this node; leave it out" % word
        if LISTEN.match(word):
            return "%s: say --public to listen on the node's own address" % word
    return ""


def job(kind, settings):
    """Return the line to type on the login node: it is started in a job, and says there how to reach it."""
    return "srun %s --pty bash -lc 'module load %s && hal-%s'" % (settings["job_options"], MODULES[kind], kind)


def not_here(kind, settings):
    """Return why it is not started on a login node, and what to type instead; "" where it may run."""
    # TensorBoard only reads a few files. A login node of a small site may run jobs.
    if not settings["login_node"] or kind == "tensorboard" or os.environ.get("SLURM_JOB_ID"):
        return ""
    return "\n".join([
        "not on the login node: it has no GPU, and everybody shares it. %s belongs in a job. Type:" % NAMES[kind],
        "    " + job(kind, settings),
        "It says then how to reach it from your own computer, and runs until Ctrl-C or the end of the job's time.",
        "For a small thing here: hal-%s --here. More: hal-%s --help" % (kind, kind)])


def epilog(kind, settings):
    """Return the end of the help: where to start it, what else it takes, how it ends."""
    where = "On a login node: %s\n" % job(kind, settings) if settings else ""
    return where + (
        "In a job: module load %s, then hal-%s. It prints the ssh line for your own computer and the address for your\n"
        "browser, and runs until you end it. Other options go to the program itself.\n\n"
        "Exit status: 1 if it was not started (it says why), 2 for an option that cannot be; else the program's own."
        % (MODULES[kind], kind))


def reach(address, port, settings, host):
    """Return the lines that say how to get there from one's own computer."""
    user, login = pwd.getpwuid(os.getuid()).pw_name, settings["login"]
    target = host if address == LOOPBACK else address
    way = "%s@%s" % (user, login) if host.split(".")[0] == login.split(".")[0] else "-J %s@%s %s@%s" % (
        user, login, user, host.split(".")[0])
    there = LOOPBACK if address == LOOPBACK else target
    return ["On your own computer:", "    ssh -N -L %d:%s:%d %s" % (port, there, port, way),
            "and open http://%s:%d/ there, as long as this runs." % (LOOPBACK, port)]


def environment(settings):
    """Return the environment with places of the user's own: nothing of a notebook goes to the system's folders."""
    environ = dict(os.environ)
    home = pwd.getpwuid(os.getuid()).pw_dir
    data = os.path.join(home, ".local", "share", "jupyter")
    environ.setdefault("JUPYTER_CONFIG_DIR", os.path.join(home, ".jupyter"))
    environ.setdefault("JUPYTER_DATA_DIR", data)
    environ.setdefault("JUPYTER_RUNTIME_DIR", os.path.join(data, "runtime"))
    # In a job it often names a folder of the login's session, which is not there.
    if not os.access(environ.get("XDG_RUNTIME_DIR", ""), os.W_OK):
        environ.pop("XDG_RUNTIME_DIR", None)
    paths = [settings["kernels"]] + [folder for folder in environ.get("JUPYTER_PATH", "").split(":") if folder]
    environ["JUPYTER_PATH"] = ":".join(folder for at, folder in enumerate(paths) if folder not in paths[:at])
    return environ


def find(program, path):
    """Return where a program is on a PATH, "" if nowhere."""
    for folder in path.split(":"):
        if folder and os.access(os.path.join(folder, program), os.X_OK):
            return os.path.join(folder, program)
    return ""


def jupyter(kind, address, port, words, given):
    """Return the command of a notebook or of JupyterLab."""
    image, prefix = given.get("HAL_NOTEBOOK_IMAGE", ""), given.get("HAL_NOTEBOOK_PREFIX", "")
    program = "jupyter-" + kind
    options = ["--no-browser", "--ip=" + address, "--port=%d" % port, "--NotebookApp.port_retries=0"]
    if image:
        runner = find("singularity", given["PATH"]) or find("apptainer", given["PATH"])
        if not runner:
            raise Problem("there is no singularity on this node")
        return [runner, "exec", "--nv", image, prefix + "/bin/" + program] + options + words
    path = find(program, given["PATH"])
    if not path:
        raise Problem("there is no %s: module load %s" % (program, MODULES[kind]))
    return [path] + options + words


def tensorboard(address, port, words, given):
    """Return the command of TensorBoard."""
    path = find("tensorboard", given["PATH"])
    if not path:
        raise Problem("there is no tensorboard: module load tensorboard")
    if not any(word.split("=")[0] in ("--logdir", "--version", "--help") for word in words):
        raise Problem("which logs? hal-tensorboard --logdir FOLDER")
    return [path, "--host", address, "--port", str(port)] + words


def h2o(address, port, words, given, settings):
    """Return the command of H2O, with a password that is only in the user's own file and on the user's terminal."""
    java, python = settings["java"], find("python", given["PATH"])
    if not os.access(java, os.X_OK):
        raise Problem("there is no Java at %s; tell the administrators" % java)
    jar = _jar(python)
    if not jar:
        raise Problem("there is no H2O: module load h2o")
    folder = os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".hal-h2o")
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)
    user, password = pwd.getpwuid(os.getuid()).pw_name, os.urandom(12)
    password = "".join("%02x" % byte for byte in bytearray(password))
    handle, path = tempfile.mkstemp(prefix="login-", dir=folder)
    os.write(handle, ("%s: %s\n" % (user, password)).encode("utf-8"))
    os.close(handle)
    # Output that is not a terminal is kept: a job's output is a file that others may be able to read.
    shown = "password %s" % password if sys.stdout.isatty() else "the password is in %s, which is yours alone" % path
    print("User %s, %s" % (user, shown))
    cores = given.get("SLURM_CPUS_ON_NODE", "4")
    of_java = [word for word in words if word.startswith("-X")]  # before the program; the last -Xmx holds
    words = [word for word in words if word not in of_java]
    memory = ["-Xmx%dg" % int(float(settings["h2o_memory_gb"]))] + of_java
    return [java] + memory + ["-jar", jar, "-ip", address, "-web_ip", address, "-port", str(port),
                              "-name", "%s-%d" % (user, port), "-nthreads", cores, "-hash_login", "-login_conf",
                              path] + words


def _jar(python):
    """The archive that comes with the Python package h2o, beside the Python of the environment."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(python))) if python else ""
    library = os.path.join(root, "lib")
    for name in sorted(os.listdir(library)) if os.path.isdir(library) else []:
        path = os.path.join(library, name, "site-packages", "h2o", "backend", "bin", "h2o.jar")
        if name.startswith("python") and os.path.isfile(path):
            return path
    return ""


def _settings_if_there(path):
    """Return the settings for a help that does without them, None."""
    try:
        with io.open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, IOError, ValueError):
        return None


def main():
    """Run the program."""
    kind, words = (sys.argv[1], sys.argv[2:]) if sys.argv[1:2] and sys.argv[1] in KINDS else ("notebook", sys.argv[1:])
    parser = argparse.ArgumentParser(
        prog="hal-" + kind, usage="hal-%s [--port PORT] [--public] [--here] [--show] [OPTION...]" % kind,
        description="Start %s where nobody else listens, and say how to get there." % NAMES[kind],
        formatter_class=argparse.RawDescriptionHelpFormatter, add_help=False)
    parser.add_argument("-h", "--help", action="store_true", help="show this")
    parser.add_argument("--public", action="store_true", help="listen on the node's own address, not only on 127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="listen there; default: a free one")
    parser.add_argument("--here", action="store_true", help="start it here although this is a login node")
    parser.add_argument("--show", action="store_true", help="only say what would be started")
    parser.add_argument("--settings", default=SETTINGS, help=argparse.SUPPRESS)
    try:
        if refused(words, kind):  # first: an option of H2O such as -hash_login would be taken for -h
            raise Problem(refused(words, kind))
        asked, words = parser.parse_known_args(words)
        words = [word for word in words if word != "--"]
        if asked.help:
            parser.epilog = epilog(kind, _settings_if_there(asked.settings))
            parser.print_help()
            return
        if os.getuid() == 0:
            raise Problem("not as root: a notebook lets in anybody who has its token")
        with io.open(asked.settings, encoding="utf-8") as stream:
            settings = json.load(stream)
        if not (asked.here or asked.show) and not_here(kind, settings):
            raise Problem(not_here(kind, settings))
        host = socket.gethostname()
        address = socket.gethostbyname(host) if asked.public else LOOPBACK
        first, span = int(float(settings["first_port"])), int(float(settings["ports"]))
        port = asked.port or free_port(first, span, count=PORTS.get(kind, 1))
        given = environment(settings)
        if kind == "h2o":
            command = h2o(address, port, words, given, settings)
        elif kind == "tensorboard":
            command = tensorboard(address, port, words, given)
            print("TensorBoard does not ask for a password: everybody on this node can read it.")
        else:
            command = jupyter(kind, address, port, words, given)
    except (Problem, OSError, IOError, ValueError, KeyError) as error:
        sys.stderr.write("hal-%s: %s\n" % (kind, error))
        sys.exit(1)
    print("\n".join(reach(address, port, settings, host)))
    sys.stdout.flush()
    if asked.show:
        print(" ".join(command))
        return
    os.execve(command[0], command, given)


if __name__ == "__main__":
    main()

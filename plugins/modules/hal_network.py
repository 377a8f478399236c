#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Write files of network scripts, and put them in force with a way back."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_network
short_description: Write ifcfg files, and put them in force with a timed roll-back
description:
  - An interface is changed only while a timer stands ready to put its files and what the kernel had of it back. Who
    changes it comes in again by a new connection and confirms.
  - With O(phase=write) files are written, and what the kernel has is compared with them. No interface is touched. The
    file of an interface that this connection needs and that is not as declared stays as it is without O(contact_ok),
    because the next boot would be a change without a way back.
  - The file of an interface of IPoIB that is up in another mode, or with another MTU, stays as it is without
    O(ipoib_ok), and so does the interface. Nodes that it speaks with have the same.
  - With O(phase=apply) the timer is started, and a moment later ifdown and ifup are run for the interfaces that differ,
    in a unit of their own, so that this answer gets out.
  - With O(phase=confirm) the timer is stopped if the interfaces are as declared now; if not, they are put back at once.
    The controller asks again and again, each time by a new connection. One that was made when ifup had ended counts.
  - ifup and ifdown are those of EL7's package initscripts. The units hal-network-rollback.service and .timer and the
    program that O(phase=apply) starts come with the role network.
options:
  phase:
    description: What to do.
    type: str
    choices: [write, apply, confirm]
    required: true
  devices:
    description: All interfaces that are declared, as lookup plugin hal_network returns them.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {type: str, required: true, description: The interface.}
      network: {type: str, required: true, description: The network of the model that it is in.}
      path: {type: path, required: true, description: Where its file belongs.}
      text: {type: str, required: true, description: The content of its file.}
      address: {type: str, description: Its address with the prefix; none for a member of a bond.}
      mtu: {type: int, description: Its MTU; any if none is given.}
      mac: {type: str, description: The MAC that it has to have; any if none is given.}
      gateway: {type: str, description: The default route by it; none if none is given.}
      mode: {type: str, description: The mode of IPoIB; any if none is given.}
      master: {type: str, description: The bond that it is a member of.}
      members: {type: list, elements: str, default: [], description: The members of a bond.}
      bond_mode: {type: str, description: The mode of a bond.}
  contact_ok:
    description:
      - Whether the interface that this connection came in by may be changed, with O(phase=apply), and its file, with
        O(phase=write).
    type: bool
    default: false
  ipoib_ok:
    description: Whether an interface of IPoIB that is up may get another mode or MTU, and its file.
    type: bool
    default: false
  no_default_route_ok:
    description: Whether O(phase=write) may write files without a gateway for a node that has a default route.
    type: bool
    default: false
  wait_seconds:
    description: How long the controller goes on asking with O(phase=confirm).
    type: int
    default: 105
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says which files and interfaces would be changed.}
  diff_mode: {support: full, description: Shows files before and after.}
"""

EXAMPLES = r"""
- name: Write the files of interfaces
  hal_network:
    phase: write
    devices: "{{ lookup('hal_network', 'devices', node=hal_node, networks=lookup('hal', 'networks')) }}"
  register: written

- name: Show what is not in force
  ansible.builtin.debug:
    var: written.pending
"""

RETURN = r"""
pending:
  description: What is not in force, by interface; a bond stands for its members.
  type: list
  elements: dict
  returned: when O(phase) is V(write) or V(apply)
  contains:
    name: {type: str, description: The interface that would be taken down and brought up., returned: always}
    why: {type: list, elements: str, description: What differs., returned: always}
    contact: {type: bool, description: "Whether this connection needs it, or that cannot be told.", returned: always}
    ipoib: {type: bool, description: Whether it is up in another mode of IPoIB or with another MTU., returned: always}
held:
  description: Interfaces whose files stay as they are, because O(contact_ok) or O(ipoib_ok) is not set.
  type: list
  elements: str
  returned: when O(phase) is V(write)
withdrawn:
  description: Files that would bring up a declared interface, too, and were taken away.
  type: list
  elements: str
  returned: when O(phase) is V(write)
started:
  description: Interfaces that are being changed now.
  type: list
  elements: str
  returned: when O(phase) is V(apply)
confirmed:
  description: Whether the change is kept.
  type: bool
  returned: when O(phase) is V(confirm)
got_in:
  description: Whether a new connection got in at all.
  type: bool
  returned: when O(phase) is V(confirm) and nothing was kept
server_address:
  description: The address of the node that this connection was made to, if that can be told.
  type: str
  returned: when O(phase) is V(apply)
server_device:
  description: The interface that has this address.
  type: str
  returned: when O(phase) is V(apply)
"""

import os
import shutil

from ansible.module_utils.common.text.converters import to_bytes, to_text
from ansible.module_utils.hal_node.network.files import HEADER, competing, files_of, unshown
from ansible.module_utils.hal_node.network.live import (
    addresses, bond, client_address, default_routes, device_of_route, differences, foreign, head_of, ipoib_differs,
    links, server_address)
from ansible.module_utils.hal_node.files import content_of, replace_content
from ansible.module_utils.hal_node.run_command import AnsibleModule

SCRIPTS = "/etc/sysconfig/network-scripts"
# Forgotten at a boot, as is what the kernel had: files as they were when they were last in force, by interface.
RUN = "/run/hal/network"
SAVED = RUN + "/saved"
LIVE = RUN + "/live"        # what files/rollback.sh makes of the kernel's state
CHANGED = RUN + "/changed"  # names of the interfaces that a change is about
SAID = RUN + "/said"        # what ifdown and ifup have said
DONE = RUN + "/done"        # the same, once they have ended
SEEN = RUN + "/seen"        # a connection has seen that they have ended: the next one was made after that
# Kept over a boot: a node that is switched off before anybody confirms comes up with its old files.
STATE = "/var/lib/hal/network"
ROLLBACK = STATE + "/rollback"
CONFIRMED = STATE + "/rollback.confirmed"
UNDONE = STATE + "/undone"  # files/rollback.sh is at work
# Files that were there before the role's own, for ever.
BEFORE = STATE + "/before"
UNIT = "hal-network-rollback"
CHANGE = "/usr/libexec/hal-network/change"
DEVICE = {
    "name": {"type": "str", "required": True}, "network": {"type": "str", "required": True},
    "path": {"type": "path", "required": True}, "text": {"type": "str", "required": True}, "address": {"type": "str"},
    "mtu": {"type": "int"}, "mac": {"type": "str"}, "gateway": {"type": "str"}, "mode": {"type": "str"},
    "master": {"type": "str"}, "members": {"type": "list", "elements": "str", "default": []},
    "bond_mode": {"type": "str"},
}


def main():
    """Do one phase."""
    module = AnsibleModule(
        argument_spec={
            "phase": {"type": "str", "choices": ["write", "apply", "confirm"], "required": True},
            "devices": {"type": "list", "elements": "dict", "required": True, "options": DEVICE},
            "contact_ok": {"type": "bool", "default": False},
            "ipoib_ok": {"type": "bool", "default": False},
            "no_default_route_ok": {"type": "bool", "default": False},
            "wait_seconds": {"type": "int", "default": 105},  # read by plugins/action/hal_network.py
        },
        supports_check_mode=True,
    )
    result = {"write": write, "apply": apply, "confirm": confirm}[module.params["phase"]](module)
    module.exit_json(**result)


# ---------------------------------------------------------------- files

def write(module):
    """Write what differs, and say what is not in force."""
    devices = module.params["devices"]
    now = look(module)
    wrong = [foreign(device, now["links"].get(device["name"])) for device in devices]
    wrong = [one for one in wrong if one]
    if wrong:
        module.fail_json(msg="%s. ifup would leave it down: nothing was written. Is the cable in another port, or"
                             " the model wrong?" % "; ".join(wrong))
    if not os.path.isdir(SCRIPTS):
        module.fail_json(msg="there is no %s: the package initscripts brings it" % SCRIPTS)
    dropped = sorted(set(now["routes"]) & {device["name"] for device in devices})
    if dropped and not module.params["no_default_route_ok"] and not any(device["gateway"] for device in devices):
        module.fail_json(msg="%s has the default route, and no network of this node has a gateway in the model: after"
                             " the next boot there would be none. Nothing was written. Declare `gateway` of a network"
                             " in cluster.yml, or `network_default_route: []` for a node that needs none"
                             % ", ".join(dropped))
    pending = pending_of(module, now)
    waiting = {one["name"] for one in pending}
    held = {one["name"] for one in pending if not may_change(module, one)}
    heads = {device["name"]: head_of(device) for device in devices}
    diffs = [write_file(module, device, waiting) for device in devices if head_of(device) not in held]
    # A bond's member can be named by a file, too: what it stands for is the bond.
    withdrawn = {name: heads[device] for name, device in competing(files_of(SCRIPTS), devices).items()}
    withdrawn = {name: head for name, head in withdrawn.items() if head not in held}
    diffs += [withdraw(module, name, withdrawn[name], waiting) for name in sorted(withdrawn)]
    diffs = [one for one in diffs if one]
    if not module.check_mode:
        forget(set(heads.values()) - waiting)
        if diffs:
            settle(BEFORE, SCRIPTS)
    return {"changed": bool(diffs), "diff": diffs, "pending": pending, "held": sorted(held),
            "withdrawn": sorted(withdrawn)}


def shown(content):
    """Return bytes of a file, or None, as text."""
    return to_text(content or b"", errors="surrogate_or_replace")


def write_file(module, device, waiting):
    """Write the file of an interface; return the diff, None where nothing differs."""
    path = device["path"]
    before, wanted = content_of(path), to_bytes(device["text"])
    different = before != wanted
    if different and not module.check_mode:
        keep_first(path, before)
        keep(path, before, head_of(device), waiting)
        replace_content(module, path, wanted)
    if os.path.exists(path):
        arguments = {"path": path, "owner": "root", "group": "root", "mode": "0644", "seuser": None, "serole": None,
                     "setype": None, "selevel": None, "unsafe_writes": False, "attributes": None}
        different = module.set_fs_attributes_if_different(module.load_file_common_arguments(arguments), different)
    if not different:
        return None
    return {"before_header": path, "after_header": path, "before": shown(before), "after": device["text"]}


def withdraw(module, name, head, waiting):
    """Take away a file that would bring up a declared interface, too; return the diff."""
    path = SCRIPTS + "/" + name
    before = content_of(path)
    if not module.check_mode:
        keep_first(path, before)
        keep(path, before, head, waiting)
        os.unlink(path)
    return {"before_header": path, "after_header": path, "before": shown(before), "after": ""}


def keep(path, content, head, waiting):
    """Keep a file as it was when it was in force, for the way back; what an earlier run kept is older and stays."""
    folder = SAVED + "/" + head
    copy = folder + "/" + os.path.basename(path)
    if head not in waiting or os.path.exists(copy) or os.path.exists(copy + ".absent"):
        return
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700)
    if content is None:
        put(copy + ".absent", [])
    else:
        shutil.copy2(path, copy)


def keep_first(path, content):
    """Keep what somebody else wrote, for ever: a boot does not ask whether it was in force."""
    copy = BEFORE + "/" + os.path.basename(path)
    if content is None or content.startswith(to_bytes(HEADER)) or os.path.exists(copy):
        return
    if not os.path.isdir(BEFORE):
        os.makedirs(BEFORE, 0o700)
    shutil.copy2(path, copy)


def settle(*folders):
    """Get files to the disk: a power cut soon after leaves empty ones otherwise."""
    for root, _, names in (found for folder in folders for found in os.walk(folder)):
        for path in [root] + [os.path.join(root, name) for name in names]:
            if os.path.isdir(path) or os.path.isfile(path):
                handle = os.open(path, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)


def forget(heads):
    """Forget older files of interfaces that are as their files say."""
    for head in heads:
        shutil.rmtree(SAVED + "/" + head, ignore_errors=True)


# ---------------------------------------------------------------- what is in force

def look(module):
    """Return what the kernel has, in the form that differences() reads."""
    now = {"links": links(run(module, "ip", "-o", "link")),
           "addresses": addresses(run(module, "ip", "-o", "-4", "addr")),
           "routes": default_routes(run(module, "ip", "-4", "route", "show", "default")), "modes": {}, "bonds": {}}
    for name in now["links"]:
        mode = content_of("/sys/class/net/%s/mode" % name)
        if mode is not None:
            now["modes"][name] = to_text(mode).strip()
        members = content_of("/proc/net/bonding/" + name)
        if members is not None:
            now["bonds"][name] = bond(to_text(members))
    return now


def pending_of(module, now, files=True):
    """Return [{name, why, contact, ipoib}] of the interfaces that are not as declared; a bond with its members is one.

    `files`: with what of them changes without the kernel showing it.
    """
    found, ipoib = {}, set()
    for device in module.params["devices"]:
        if ipoib_differs(device, now):
            ipoib.add(head_of(device))
        words = differences(device, now)
        if files and not words:
            keys = unshown(text_in_force(device), to_text(device["text"]))
            words = ["has not read %s of its file" % key for key in keys]
        if words:
            prefix = device["name"] + " " if device["master"] else ""
            found.setdefault(head_of(device), []).extend(prefix + word for word in words)
    needed = contact_heads(module, now)
    return [{"name": name, "why": found[name], "contact": needed is None or name in needed, "ipoib": name in ipoib}
            for name in sorted(found)]


def may_change(module, one):
    """Return whether what of pending_of() this is has the permission that it needs."""
    params = module.params
    return (params["contact_ok"] or not one["contact"]) and (params["ipoib_ok"] or not one["ipoib"])


def text_in_force(device):
    """Return the file of an interface as it was when it was in force."""
    copy = "%s/%s/%s" % (SAVED, head_of(device), os.path.basename(device["path"]))
    if os.path.exists(copy + ".absent"):
        return ""
    return shown(content_of(copy if os.path.exists(copy) else device["path"]))


def contact_heads(module, now):
    """Return what this connection needs: the interface that it came in by, and that of the answers; None if unknown.

    Where answers go by a gateway, what would change the default route is needed, too.
    """
    connection = ssh_connection()
    server, client = server_address(connection), client_address(connection)
    if not server:
        return None
    route = run(module, "ip", "-o", "route", "get", client, check_rc=False)
    needed = set(devices_with(server, now))
    needed.add(device_of_route(route))
    needed.discard(None)
    if not needed:
        return None
    if "via" in route.split():
        needed.update(device["name"] for device in module.params["devices"]
                      if device.get("gateway") and now["routes"].get(device["name"]) != [device["gateway"]])
    heads = {device["name"]: head_of(device) for device in module.params["devices"]}
    return {heads.get(name, name) for name in needed}


def devices_with(address, now):
    """Return the interfaces that have an address."""
    return sorted(name for name, listed in now["addresses"].items()
                  if address in [one["address"].partition("/")[0] for one in listed])


def ssh_connection():
    """Return SSH_CONNECTION of this process or of the nearest above it: sudo does not hand it on."""
    pid = os.getpid()
    while pid > 1:
        try:
            with open("/proc/%d/environ" % pid, "rb") as stream:
                for entry in stream.read().split(b"\0"):
                    if entry.startswith(b"SSH_CONNECTION="):
                        return to_text(entry.partition(b"=")[2])
            with open("/proc/%d/stat" % pid, "rb") as stream:
                pid = int(stream.read().rpartition(b")")[2].split()[1])
        except (IOError, OSError, ValueError):
            return None
    return None


# ---------------------------------------------------------------- a change

def apply(module):
    """Start the timer that puts everything back, then the change of what is permitted."""
    now = look(module)
    pending = pending_of(module, now)
    started = [one["name"] for one in pending if may_change(module, one) and can_start(module, one["name"], now)]
    server = server_address(ssh_connection())
    result = {"changed": bool(started), "started": started, "server_address": server,
              "server_device": next(iter(devices_with(server, now)), None),
              "pending": [one for one in pending if one["name"] not in started]}
    if not started or module.check_mode:
        return result
    for folder in (ROLLBACK, UNDONE):
        if os.path.isdir(folder):
            module.fail_json(msg="%s is there: an earlier change was neither confirmed nor put back. `systemctl start"
                                 " %s.service` puts it back" % (folder, UNIT))
    for folder in (ROLLBACK + ".new", CONFIRMED):  # a run was cut short
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(ROLLBACK + ".new/files", 0o700)
    if not os.path.isdir(RUN):
        os.makedirs(RUN, 0o700)
    for path in (SAID, DONE, SEEN, LIVE):
        if os.path.exists(path):
            os.unlink(path)
    absent = []
    for head in started:
        folder = SAVED + "/" + head
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if name.endswith(".absent"):
                absent.append(name[:-len(".absent")])
            else:
                shutil.copy2(folder + "/" + name, ROLLBACK + ".new/files/")
    put(ROLLBACK + ".new/absent", absent)
    put(LIVE, live(module, now, started))
    put(CHANGED, started)
    os.rename(ROLLBACK + ".new", ROLLBACK)
    settle(STATE)
    run(module, "systemctl", "restart", UNIT + ".timer")
    # A unit of an earlier change that failed would keep its name.
    run(module, "systemctl", "reset-failed", "hal-network-change.service", check_rc=False)
    run(module, "systemd-run", "--quiet", "--unit=hal-network-change", "/bin/sh", CHANGE, *started)
    return result


def can_start(module, head, now):
    """Return whether there is what ifup needs: the interface, or the members of a bond, which ifup makes."""
    members = [device["name"] for device in module.params["devices"] if device["master"] == head]
    return all(name in now["links"] for name in members or [head])


def live(module, now, heads):
    """Return what the kernel has of interfaces, as commands of files/rollback.sh in the order in which they work."""
    names = [device["name"] for device in module.params["devices"] if head_of(device) in heads]
    there = [name for name in names if name in now["links"]]
    lines = ["%s absent" % name for name in names if name not in there]
    lines += ["%s mode %s" % (name, now["modes"][name]) for name in there if name in now["modes"]]
    lines += ["%s alone" % name for name in there if not now["links"][name]["master"]]
    for name in there:
        if name in now["bonds"]:
            lines.append("%s bond %s" % (name, " ".join([now["bonds"][name]["mode"]] + now["bonds"][name]["members"])))
    for name in there:
        lines.append("%s flush" % name)
        lines.append("%s mtu %d" % (name, now["links"][name]["mtu"]))
        lines.append("%s %s" % (name, "up" if now["links"][name]["up"] else "down"))
        for one in now["addresses"].get(name, []):
            broadcast = " brd " + one["broadcast"] if one["broadcast"] else ""
            lines.append("%s addr %s%s" % (name, one["address"], broadcast))
    # -o: a route with several gateways is several lines. What the kernel says of a route is no word that it takes.
    for name in there:
        lines += ["route %s dev %s" % (route, name) for route in routes(module, "dev", name)
                  if "proto kernel" not in route and not route.startswith("default")]
    # Whatever interface they are of: ifup replaces the one that there is.
    lines += ["route " + route for route in routes(module, "default")]
    firewall = module.get_bin_path("firewall-cmd")
    if firewall and module.run_command([firewall, "--state"])[0] == 0:
        for name in there:
            code, zone, _ = module.run_command([firewall, "--get-zone-of-interface=" + name])
            lines.append(("%s zone %s" % (name, zone if code == 0 else "")).strip())  # without one it is the default
    return lines


def routes(module, *which):
    """Return the routes of `ip route show` as ip takes them."""
    shown_lines = run(module, "ip", "-o", "-4", "route", "show", *which).splitlines()
    return [" ".join(word for word in line.replace("\\", " ").split() if word not in ("linkdown", "dead", "offload"))
            for line in shown_lines]


def confirm(module):
    """Keep what is in force, if that is what was declared; put it back at once if not.

    Nobody has come in by what was changed as long as ifup is at work, or while it ended: then the answer is "not yet",
    and the next connection confirms.
    """
    if module.check_mode:
        return {"changed": False, "confirmed": False}
    started = to_text(content_of(CHANGED) or b"").split()
    if not os.path.isdir(ROLLBACK):
        too_late(module, started)
    if not os.path.exists(DONE):
        return {"changed": False, "confirmed": False}
    pending = [one for one in pending_of(module, look(module), files=False) if one["name"] in started]
    if pending:
        run(module, "systemctl", "start", "--no-block", UNIT + ".service")
        why = "; ".join("%s %s" % (one["name"], ", ".join(one["why"])) for one in pending)
        module.fail_json(msg="%s: files and interfaces are put back as they were. ifdown and ifup said: %s"
                             % (why, words_of(DONE)))
    if not os.path.exists(SEEN):
        put(SEEN, [])
        return {"changed": False, "confirmed": False}
    try:
        os.rename(ROLLBACK, CONFIRMED)  # whoever renames it first has it: this, or the timer
    except OSError as error:
        if not os.path.isdir(ROLLBACK):
            too_late(module, started)
        module.fail_json(msg="%s cannot be confirmed: %s" % (" and ".join(started), to_text(error)))
    run(module, "systemctl", "stop", UNIT + ".timer")
    shutil.rmtree(CONFIRMED)
    forget(started)
    return {"changed": True, "confirmed": True}


def too_late(module, started):
    """Say that the timer was first."""
    module.fail_json(msg="too late: %s as before, since nobody confirmed in time. ifdown and ifup said: %s"
                     % (" and ".join(started) + " was put back" if started else "nothing was begun, all is",
                        words_of(DONE, SAID)))


def words_of(*paths):
    """Return what the first of these files says that is there."""
    return next((shown(content_of(path)).strip() for path in paths if os.path.exists(path)), "") or "nothing"


def run(module, *argv, **more):
    """Output of a program, which has to succeed unless check_rc is False; PATH may lack sbin."""
    program = module.get_bin_path(argv[0], required=True)
    return module.run_command([program] + list(argv[1:]), check_rc=more.get("check_rc", True),
                              environ_update={"LC_ALL": "C"})[1]


def put(path, lines):
    """Write lines."""
    with open(path, "wb") as stream:
        stream.write(to_bytes("".join(line + "\n" for line in lines)))


if __name__ == "__main__":
    main()

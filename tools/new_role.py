"""Write a role of the shape that the contract tests ask for, with its scenario: make new-role NAME=x.

It works as it is: it writes /etc/hal/NAME.conf, promises that, and breaks it in its faults. Replace that by what your
role does. What only you can decide is printed at the end.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from hal_inventory.compiled import Compiled
from hal_inventory.packed import group_members
from hal_inventory.script import source_of

PROJECT = Path(__file__).resolve().parents[1]
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
NETWORK = re.compile(r"\b10\.6[5-7]\.(\d+)\.0/24")

FILES = {
    "roles/@/README.md": """
        # @

        Writes `/etc/hal/@.conf`. Say here what the role is for, and what you have to declare.

        ```yaml
        # inventory/<site>/group_vars/all/@.yml
        @_greeting: hello
        ```

        It will not touch what others wrote elsewhere. Say here what it never does, and why.

        All variables: `meta/argument_specs.yml`; their values with reasons: `defaults/main.yml`.
        """,
    "roles/@/defaults/main.yml": """
        ---
        # Packages that the role needs. None: what it writes needs no program.
        @_packages: []

        # What the file says. Give each variable its reason here.
        @_greeting: hello
        """,
    "roles/@/meta/main.yml": """
        ---
        galaxy_info:
          standalone: false
          description: >-
            The file /etc/hal/@.conf
        dependencies: []
        """,
    "roles/@/meta/argument_specs.yml": """
        ---
        argument_specs:
          main:
            short_description: Write /etc/hal/@.conf
            options:
              @_packages:
                type: list
                elements: str
                default: []
                description: Packages that the role needs.
              @_greeting:
                type: str
                default: hello
                description: What the file says.
        """,
    "roles/@/tasks/main.yml": """
        ---
        - name: Validate
          hal_validate:
          run_once: "{{ ansible_role_name in hal_validated.asked | default({}) }}"
          any_errors_fatal: true
        - name: Install
          ansible.builtin.import_tasks: install.yml
        - name: Configure
          ansible.builtin.import_tasks: configure.yml
        - name: Verify
          ansible.builtin.import_tasks: verify.yml
        """,
    "roles/@/tasks/validate.yml": """
        ---
        - name: Refuse a file that says nothing
          ansible.builtin.assert:
            that: "@_greeting | trim | length > 0"
            fail_msg: "@_greeting is empty; write what the file says, or take the group @ from the node"
            quiet: true
        """,
    "roles/@/tasks/install.yml": """
        ---
        - name: Install the packages of @
          ansible.builtin.package:
            name: "{{ @_packages }}"
            state: present
          when: not repositories_pending | default(false)  # check mode on a fresh node
        """,
    "roles/@/tasks/configure.yml": """
        ---
        - name: Write the configuration of @
          hal_files:
            directories:
              - {path: /etc/hal, mode: "0755"}
            files:
              - path: /etc/hal/@.conf
                content: |
                  # Written by the role "@"
                  {{ @_greeting }}
        """,
    "roles/@/tasks/verify.yml": """
        ---
        - name: Check what this role promises
          hal_expect:
          when: not ansible_check_mode  # nothing was changed, so nothing new can be there
        """,
    "roles/@/expect.yml": """
        ---
        - id: configuration of @ is as declared
          file: {path: /etc/hal/@.conf, read: lines}
          equal: ['# Written by the role "@"', "{{ @_greeting }}"]
          why: say here what goes wrong on a node where this does not hold
        """,
    "molecule/@/molecule.yml": """
        ---
        scenario:
          name: @
        """,
    "molecule/@/hal.yml": """
        # Say here why these nodes. The fewer, the quicker.
        plugin: hal
        base: ../../inventory/virtual/hal.yml
        only: hal01
        networks: {management: 10.65.%.0/24, ipoib: 10.66.%.0/24}
        """,
    "molecule/@/prepare.yml": """
        ---
        - name: Plant what the role has to put right
          hosts: hal01
          gather_facts: false
          tasks:
            - name: A folder for it
              ansible.builtin.file:
                path: /etc/hal
                state: directory
                mode: "0755"

            - name: A file of somebody else
              ansible.builtin.copy:
                dest: /etc/hal/@.conf
                content: "something else\\n"
                mode: "0644"
        """,
    "molecule/@/converge.yml": """
        ---
        - name: Count
          hosts: localhost
          gather_facts: false
          tasks:
            - name: Check that the scenario has its node
              ansible.builtin.assert:
                that: groups['all'] | length == 1
                quiet: true

        - name: The role
          hosts: @
          gather_facts: false
          module_defaults:
            ansible.builtin.package: {use: "{{ hal_package_manager }}"}
          roles:
            - role: @
        """,
    "molecule/@/tests/faults.yml": """
        # What breaks each promise of the role: molecule/virtual_hal/testing/faults.py
        - promise: configuration of @ is as declared
          node: hal01
          keep: [/etc/hal/@.conf]
          plant: echo something else >>/etc/hal/@.conf
        """,
    "molecule/@/tests/test_@.py": '''
        """Say here what the running system shows; this does not read expect.yml."""

        from __future__ import annotations

        from collections.abc import Callable

        from testinfra.host import Host

        Node = Callable[[str], Host]


        def test_the_file_says_what_is_declared(node: Node) -> None:
            assert node("hal01").check_output("cat /etc/hal/@.conf") == '# Written by the role "@"\\nhello'
        ''',
    "tests/contract/refused/@.yml": """
        ---
        - given: {@_greeting: " "}
          says: "@_greeting is empty"
        - given: {@_greeting: h}
        """,
    "tests/contract/otherwise/@.yml": """
        ---
        - given: {@_greeting: good morning}
        """,
}

GROUP = """
  @: hal01
"""
PLAY = """
- name: Say what it is for
  hosts: @
  gather_facts: false
  module_defaults:
    ansible.builtin.package: {use: "{{ hal_package_manager }}"}
  roles:
    - {role: @, tags: [@]}
"""
REST = """
What you decide now:

1. Which nodes get it. In inventory/hal/cluster.yml, under groups:
{}
2. When it runs. In a file of playbooks/layers/, behind what it needs:
{}
Then `make written`, `python -m pytest -q tests/contract -k @`, `make molecule ROLE=@`, a row for its scenario in
molecule/virtual_hal/README.md, and CHANGELOG.md.
The recipe "Add a role" in CONTRIBUTING.md says the rest: packages, a port, who reads a file, an order between roles.
"""


def refusal(root: Path, name: str) -> str:
    """Why a role cannot have this name in the project at `root`; empty if it can."""
    if not NAME.fullmatch(name):
        return f"{name!r} is not a name of a role: small letters, digits and _ between them, a letter first"
    if name in names_taken(root):
        return f"{name} is a group or a node already, and a role runs on the group with its name; choose another name"
    there = [path for path in (f"roles/{name}", f"molecule/{name}") if (root / path).exists()]
    return f"{there[0]} exists; choose another name" if there else ""


def names_taken(root: Path) -> set[str]:
    """What Ansible and the example's model call a group or a node."""
    source = root / "inventory/hal/hal.yml"
    packed = Compiled(source_of([str(source)])).inventory() if source.is_file() else None
    model = {*(host[0] for host in packed["hosts"]), *group_members(packed)} if packed else set()
    return {"all", "ungrouped", "localhost"} | model


def free_network(root: Path) -> int:
    """The third number of networks that no scenario has."""
    taken = {int(number) for path in root.glob("molecule/*/hal.yml") for number in NETWORK.findall(path.read_text())}
    return next(number for number in range(1, 255) if number not in taken)


def write(root: Path, name: str) -> list[str]:
    """Write the role and its scenario; return the paths, below `root`."""
    network = str(free_network(root))
    paths = []
    for place, text in FILES.items():
        path = root / place.replace("@", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.strip("\n").split("\n")
        margin = len(lines[0]) - len(lines[0].lstrip())
        whole = "\n".join(line[margin:] for line in lines[:-1]) + "\n"
        path.write_text(whole.replace("@", name).replace("%", network))
        paths.append(str(path.relative_to(root)))
    return paths


def decisions(name: str) -> tuple[str, str]:
    """What only the user can decide, as it would be for one node: the group and the play."""
    return GROUP.replace("@", name), PLAY.replace("@", name)


def main(argv: list[str] | None = None, root: Path = PROJECT) -> int:
    """Exit status: 0 written, 2 refused."""
    parser = argparse.ArgumentParser(prog="make new-role", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("name")
    name = parser.parse_args(argv).name
    if wrong := refusal(root, name):
        print(f"new-role: {wrong}", file=sys.stderr)
        return 2
    for path in write(root, name):
        print(path)
    print(REST.replace("@", name).format(*decisions(name)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Which packages roles install on which node, as Ansible would: groups, variables, loops, conditions, blocks."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import yaml

from hal_cluster.packages.declared import Repository, Site, declared
from hal_cluster.packages.errors import HalPackagesError

KEY = "0123 4567 89ab cdef 0123 4567 89ab cdef 0123 4567"
REPOSITORIES = f"""
repositories_arch: x86_64
repositories_keys: {{site: {{fingerprint: {KEY}}}}}
__repositories_used:
  - key: extra
    value: {{baseurl: "http://x/extra", signed_by: [site, lost], options: {{exclude: "slurm*, munge*"}}}}
  - key: base
    value: {{baseurl: "http://x/base"}}
"""
GROUPS = {"repositories": ["n1", "n2", "n3"], "tool": ["n1", "n2"], "other": ["n3", "n4"]}


class Project:
    """A project in a folder: roles repositories and tool, nodes n1 to n4, of which n4 has no repositories."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.groups(**GROUPS)
        self.write("roles/repositories/tasks/main.yml", "[]")
        self.write("roles/repositories/defaults/main.yml", REPOSITORIES)
        self.tasks("")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def groups(self, **groups: list[str]) -> None:
        """Write the inventory."""
        self.write("hosts.yml", yaml.safe_dump({name: {"hosts": dict.fromkeys(of)} for name, of in groups.items()}))

    def tasks(self, text: str, role: str = "tool") -> None:
        self.write(f"roles/{role}/tasks/main.yml", "---\n" + textwrap.dedent(text).lstrip("\n"))

    def site(self) -> Site:
        return declared([str(self.folder / "hosts.yml")], self.folder)

    def names(self, node: str = "n1") -> dict[str, list[str]]:
        """The names that a node gets, and where they are declared."""
        (one,) = [one for one in self.site().nodes if node in one.members]
        return {name: [str(origin) for origin in origins] for name, origins in one.names.items()}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr("ansible.constants.INVENTORY_ENABLED", ["yaml"])  # ansible.cfg has the site's own alone
    return Project(tmp_path)


def test_nodes_with_the_same_packages_and_repositories_are_one_line(project: Project) -> None:
    project.tasks("- ansible.builtin.package: {name: tool}")
    site = project.site()
    assert [(one.nodeset, list(one.names)) for one in site.nodes] == [("n[1-2]", ["tool"]), ("n3", [])]
    assert site.lock_file is None
    extra = Repository(
        "extra", "http://x/extra", (("site", KEY.replace(" ", "").upper()), ("lost", "")), ("slurm*", "munge*")
    )
    assert site.nodes[0].repositories == (Repository("base", "http://x/base", (), ()), extra)
    assert site.nodes[0].arch == "x86_64"


def test_names_come_from_every_form_of_a_task(project: Project) -> None:
    project.write("roles/tool/defaults/main.yml", "tool_names: [d, e]\n")
    project.tasks("""
        - ansible.builtin.package: {name: a}
        - ansible.builtin.yum: {name: "b, c,", state: latest}
        - ansible.builtin.dnf: {pkg: "{{ tool_names }}"}
        - ansible.builtin.package: {name: "{{ item }}-devel"}
          loop: "{{ tool_names }}"
        - ansible.builtin.package: {name: a}
        - ansible.builtin.command: {argv: [name]}
        - community.general.npm: {name: not-a-package}
    """)
    at = "roles/tool/tasks/main.yml"
    assert project.names() == {
        "a": [f"{at}:2", f"{at}:7"],
        **{name: [f"{at}:3"] for name in ("b", "c")},
        **{name: [f"{at}:4"] for name in ("d", "e")},
        **{f"{name}-devel": [f"{at}:5"] for name in ("d", "e")},
    }


def test_what_is_removed_or_not_for_this_node_is_not_installed(project: Project) -> None:
    project.write("roles/tool/defaults/main.yml", "tool_wanted: true\ntool_state: absent\n")
    project.write("host_vars/n2.yml", "tool_wanted: false\ntool_state: present\n")
    project.tasks("""
        - ansible.builtin.package: {name: gone, state: "{{ tool_state }}"}
        - ansible.builtin.package: {name: removed, state: removed}
        - ansible.builtin.package: {name: never}
          when: false
        - ansible.builtin.package: {name: wanted}
          when: tool_wanted
        - ansible.builtin.package: {name: both}
          when: [tool_wanted, inventory_hostname == "n2"]
        - ansible.builtin.package: {name: may be}
          when: __tool_seen.rc == 0
        - ansible.builtin.package: {name: "{{ item }}"}
          loop: [one, two]
          when: item != "one"
    """)
    assert list(project.names("n1")) == ["may be", "two", "wanted"]
    assert list(project.names("n2")) == ["gone", "may be", "two"]


def test_blocks_hand_their_conditions_and_variables_on(project: Project) -> None:
    project.tasks("""
        - when: inventory_hostname == "n1"
          vars: {outer: x, inner: y}
          block:
            - ansible.builtin.package: {name: "{{ outer }}{{ inner }}{{ own }}"}
              vars: {inner: z, own: w}
          rescue:
            - ansible.builtin.package: {name: rescued}
          always:
            - ansible.builtin.package: {name: always}
              when: [true]
    """)
    assert list(project.names("n1")) == ["always", "rescued", "xzw"]
    assert project.names("n2") == {}


def test_what_images_have_is_installed_from_the_same_mirror(project: Project) -> None:
    project.tasks("- ansible.builtin.package: {name: bash}")
    project.write("group_vars/tool.yml", 'image_packages: [bash, "@core"]\nimage_kernel_packages: ["{{ kernel }}"]\n')
    project.write("host_vars/n1.yml", "kernel: kernel-4\n")
    project.write("host_vars/n2.yml", "kernel: kernel-5\n")
    image = "playbooks/image.yml:1"
    assert project.names() == {"@core": [image], "bash": [image, "roles/tool/tasks/main.yml:2"], "kernel-4": [image]}
    assert "kernel-5" in project.names("n2")


def test_packages_of_an_image_that_cannot_be_told_are_refused(project: Project) -> None:
    project.write("group_vars/tool.yml", 'image_kernel_packages: ["{{ kernel }}"]\n')
    with pytest.raises(HalPackagesError, match=r"^image_kernel_packages cannot be told: .*'kernel' is undefined"):
        project.site()


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ('ansible.builtin.package: {name: "{{ nobody }}"}', "name cannot be told before the role runs: "),
        ('{ansible.builtin.package: {name: x}, loop: "{{ nobody }}"}', "loop cannot be told before the role runs: "),
    ],
)
def test_what_only_a_run_knows_is_refused_with_its_place(project: Project, task: str, words: str) -> None:
    project.tasks(f"- {task}")
    with pytest.raises(HalPackagesError) as refused:
        project.site()
    assert str(refused.value).startswith(f"roles/tool/tasks/main.yml:2: {words}")
    assert "'nobody' is undefined" in str(refused.value)


def test_the_lock_file_is_the_mirror_s(project: Project) -> None:
    project.tasks("[]", role="mirror")
    project.write("roles/mirror/defaults/main.yml", 'mirror_lock_file: "/locks/{{ inventory_hostname }}.yml"\n')
    assert project.site().lock_file is None
    project.groups(**GROUPS, mirror=["n2"])
    assert project.site().lock_file == Path("/locks/n2.yml")


def test_a_site_without_repositories_is_refused(project: Project) -> None:
    project.groups(tool=["n1"])
    with pytest.raises(HalPackagesError, match=r"hosts\.yml: no node has the role repositories$"):
        project.site()

"""Directives that CentOS 7's daemons do not know: planted in roles, and in a text of each kind.

The captures are what CentOS 7's packages put into /etc, without comments: of a machine with CentOS 7.7.1908
(github.com/sas1m1/kagoya-etc, commit cc89ced948704dd43e3244d2b0348e6a73d12d5f; journald's are the values that the
comments of its file say), chrony.conf and the zone of one with 7.9 (github.com/igoodful/centos-etc).
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from hal_cluster.rules.slurm import settings
from tests.contract import project
from tests.contract.el7.daemons.formats import UNKNOWN, formats
from tests.contract.el7.daemons.samples import SAMPLES
from tests.contract.planting import Planted
from tests.contract.project import PROJECT
from tests.contract.rendering import every_branch
from tests.contract.rules import daemons

CAPTURES = Path(__file__).resolve().parent / "el7" / "daemons" / "captures"
FORMATS = {one.name: one for one in formats()}
OTHERS = "tests/contract/el7/other_templates.yml"

PLANTED = (
    Planted(
        daemons.every_template_is_claimed,
        {
            "roles/time/templates/chrony.conf.j2": "rtcsync\n",
            "roles/time/templates/hal-clock.service.j2": "[Unit]\n",
            "roles/time/templates/server.conf.j2": "rtcsync\n",
            "roles/time/templates/odd.conf.j2": "rtcsync\n",
            "roles/time/tasks/main.yml": """
                - name: Known by where it goes
                  ansible.builtin.template: {src: server.conf.j2, dest: "/etc/chrony.d/{{ 'local' }}.conf"}
                """,
            OTHERS: """
                "*/templates/*.service.j2": units are another guard's
                time/templates/gone.j2: it was there once
                """,
        },
        [
            "roles/time/templates/odd.conf.j2:1: no list of tests/contract/el7/daemons claims it; "
            f"add a list, or a reason to {OTHERS}",
            f"{OTHERS}:2: there is no roles/time/templates/gone.j2",
        ],
    ),
    Planted(
        daemons.every_directive_is_known,
        {
            "roles/ssh/defaults/main.yml": """
                ssh_ciphers: [aes256-ctr, aes512-gcm@openssh.com]
                ssh_more: {LogVerbose: all}
                """,
            "roles/ssh/templates/sshd_config.j2": """
                Port 22
                Ciphers {{ ssh_ciphers | join(',') }}
                Include /etc/ssh/sshd_config.d/*.conf
                {% if false %}
                SetEnv A=B
                {% endif %}
                {% for name, value in ssh_more.items() %}
                {{ name }} {{ value }}
                {% endfor %}
                RequiredRSASize 2048 {# contract: shown here that a reason excuses it #}
                """,
            "roles/time/templates/chrony.conf.j2": """
                {% for server in ['a', 'b'] %}
                server {{ server }}.{{ hal_node.fqdn }} iburst nts
                {% endfor %}
                {{ __time_nowhere }}
                """,
            "roles/time/templates/rsyslog.conf.j2": 'include(file="/etc/{{ item }}")\n',
            "roles/time/tasks/main.yml": """
                - name: In a loop
                  ansible.builtin.template: {src: rsyslog.conf.j2, dest: "/etc/rsyslog.d/{{ item }}"}
                  loop: [one.conf, two.conf]
                - name: As a text
                  ansible.builtin.copy:
                    content: |
                      [sssd]
                      services = nss, {{ ssh_word | default('pan') }}
                    dest: /etc/sssd/sssd.conf
                """,
            "roles/slurm/defaults/main.yml": "slurm_version: 20.02.7\n",
            "roles/slurm/templates/slurm.conf.j2": """
                AccountingStoreFlags=job_comment
                PrologFlags=Contain,DeferBatch
                """,
            "roles/slurm/vars/main.yml": """
                __slurm_name: hal
                __slurm_files:
                  - {path: "/etc/logrotate.d/{{ __slurm_name }}", content: "/var/log/x {\\n  minage 3\\n}\\n"}
                  - {path: /etc/slurm/slurm.conf, content: "{{ lookup('ansible.builtin.template', 'slurm.conf.j2') }}"}
                """,
            "roles/slurm/files/logrotate-slurm": "/var/log/slurm/*.log {\n  createolddir 0755 root root\n}\n",
        },
        [
            "roles/slurm/files/logrotate-slurm:2: createolddir: logrotate 3.8 does not know it (it came with 3.8.9)",
            "roles/slurm/templates/slurm.conf.j2:1: AccountingStoreFlags job_comment: Slurm 20.02 does not know it "
            "(it came with 21.08); as hal-login of HAL gets it",
            "roles/slurm/templates/slurm.conf.j2:1: AccountingStoreFlags: Slurm 20.02 does not know it "
            "(it came with 21.08); as hal-login of HAL gets it",
            "roles/slurm/templates/slurm.conf.j2:2: PrologFlags DeferBatch: Slurm 20.02 does not know it "
            "(it came with 22.05); as hal-login of HAL gets it",
            "roles/slurm/vars/main.yml:3: minage: logrotate 3.8 does not know it (it came with 3.11.0); "
            "as hal-login of HAL gets it",
            "roles/ssh/templates/sshd_config.j2:1: LogVerbose: OpenSSH 7.4 does not know it (it came with 8.5); "
            "as hal-data of HAL gets it",
            "roles/ssh/templates/sshd_config.j2:2: Ciphers aes512-gcm@openssh.com: OpenSSH 7.4 does not know it; "
            "as hal-data of HAL gets it",
            "roles/ssh/templates/sshd_config.j2:3: Include: OpenSSH 7.4 does not know it (it came with 8.2); "
            "as hal-data of HAL gets it",
            "roles/ssh/templates/sshd_config.j2:5: SetEnv: OpenSSH 7.4 does not know it (it came with 7.8); "
            "in a branch that no host took",
            "roles/time/tasks/main.yml:8: services pan: SSSD 1.16 does not know it; as hal-data of HAL gets it",
            "roles/time/templates/chrony.conf.j2:1: it was rendered for no host, so nothing was checked: "
            "'__time_nowhere' is undefined. '__time_nowhere' is undefined",
            "roles/time/templates/rsyslog.conf.j2:1: include: rsyslog 8.24 does not know it (it came with 8.33); "
            "as hal-data of HAL gets it",
        ],
    ),
    Planted(
        daemons.a_configuration_is_written_whole,
        {
            "roles/time/tasks/main.yml": """
                - name: One line of many
                  ansible.builtin.lineinfile: {path: /etc/chrony.conf, line: rtcsync}
                - name: Nobody's list
                  ansible.builtin.lineinfile: {path: /etc/sysconfig/chronyd, line: OPTIONS=""}
                """,
        },
        [
            "roles/time/tasks/main.yml:1: lineinfile changes a part of /etc/chrony.conf; "
            "write it whole, for chrony 3.4's list"
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_each_list_finds_what_its_release_does_not_have(name: str) -> None:
    release, text, expected = SAMPLES[name]
    found = [problem for _, problem in FORMATS[name].problems(textwrap.dedent(text), release)]
    assert len(found) == len(expected), found
    assert [problem for problem, start in zip(found, expected, strict=True) if not problem.startswith(start)] == []


@pytest.mark.parametrize("path", sorted(CAPTURES.iterdir()), ids=lambda path: str(path.name))
def test_what_centos_installs_is_known(path: Path) -> None:
    claims = [one for one in formats() if one.claims(path.name)]
    assert len(claims) == 1
    assert claims[0].problems(path.read_text()) == []


def test_a_release_without_a_list_is_not_passed() -> None:
    found = FORMATS["slurm"].problems("ClusterName=hal\n", "23.11.1")
    assert [problem for _, problem in found] == [
        "there is no list for Slurm 23.11, only for 19.05, 20.02, 20.11, 21.08, 22.05"
    ]


@pytest.mark.parametrize("release", ["19.05.8", "20.02.7", "20.11.9", "21.08.8", "22.05.8"])
def test_a_parameter_is_known_in_its_releases_only(release: str) -> None:
    found = [problem for _, problem in FORMATS["slurm"].problems("NodeSet=a Nodes=b\nMaxNodeCount=9\n", release)]
    assert (["NodeSet" in problem for problem in found].count(True) > 0) == (release < "20.02")
    assert any("MaxNodeCount" in problem for problem in found) == (release < "22.05")


@pytest.mark.parametrize("release", ["19.05.8", "20.02.7", "20.11.9", "21.08.8", "22.05.8"])
def test_the_roles_own_settings_are_known_to_each_release(release: str) -> None:
    """The filters choose names by release; the lists come from Slurm's source, so neither is made after the other."""
    given = project.load_map(PROJECT / "roles" / "slurm" / "defaults" / "main.yml")
    overlay = project.load_map(PROJECT / "inventory" / "virtual" / "group_vars" / "all" / "slurm.yml")
    for name, chosen in (
        ("slurm", settings.settings([given["slurm_settings"], overlay["slurm_settings_overlay"]], release)),
        ("slurm", settings.settings([given["slurm_settings"]], release)),
        ("cgroup", settings.cgroup_settings([given["slurm_cgroup_settings"]], release)),
    ):
        text = "".join(f"{one['key']}={one['value'].replace('{{ slurm_log_dir }}', '/log')}\n" for one in chosen)
        assert len(chosen) > 3
        assert FORMATS[name].problems(text, release) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("slurm", "NodeName=a,\n=b\n"),
        ("firewalld_zone", "<zone>"),
        ("rsyslog", 'action(type="omfile"'),
        ("rsyslog", "if $msg"),
    ],
)
def test_a_text_that_cannot_be_read_is_not_passed(name: str, text: str) -> None:
    assert FORMATS[name].problems(text, "20.02.7") != []


def test_every_branch_keeps_what_rendering_leaves_out() -> None:
    text = "A 1\n{% if never %}\nB {{ x }}\n{% else %}\nC\n{% endif %}\n{# D #}{{ y }} E\n"
    assert every_branch(text, UNKNOWN) == f"A 1\nB {UNKNOWN}\nC\n{UNKNOWN} E\n"


def test_the_rules_saw_the_project() -> None:
    """Nothing found in nothing is not green."""
    kinds = {one.name for _place, one, _texts in daemons._claimed(PROJECT)}
    assert {
        "sshd_config",
        "chrony",
        "slurm",
        "slurmdbd",
        "gres",
        "cgroup",
        "mariadb",
        "journald",
        "yum_repository",
    } <= kinds
    texts = daemons.texts_of(PROJECT)
    slurm = texts[PROJECT / "roles/slurm/templates/slurm.conf.j2", 1]
    assert {text.variables["slurm_version"] for text in slurm} == {"20.02.7", "22.05.8"}
    assert {text.host for text in slurm} >= {"hal-login", "hal-mgmt1", "hal01"}
    assert all("SelectType=select/cons_tres" in text.text for text in slurm)

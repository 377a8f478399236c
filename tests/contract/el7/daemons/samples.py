"""A text of each kind: what is right in it is passed over, what came later or never was is named."""

from __future__ import annotations

#: kind: (release, text, how the findings begin)
SAMPLES: dict[str, tuple[str, str, list[str]]] = {
    "cgroup": (
        "20.02.7",
        "CgroupAutomount=yes\nCgroupPlugin=cgroup/v1\nTaskAffinity=yes\n",
        ["CgroupPlugin: cgroup.conf of Slurm 20.02", "CgroupPlugin cgroup/v1: cgroup.conf of Slurm 20.02"],
    ),
    "chrony": (
        "",
        """
        server a iburst minpoll 4 nts
        allow
        ! comment
        local stratum 8 orphan activate 1
        sourcedir /etc/chrony/sources.d
        """,
        [
            "server nts: chrony 3.4 does not know it (it came with 4.0)",
            "local activate: chrony 3.4 does not know it",
            "sourcedir: chrony 3.4 does not know it (it came with 4.0)",
        ],
    ),
    "dhcpd": (
        "",
        """
        option arch code 93 = unsigned integer 16;  # not; a statement
        authoritative;
        subnet 10.64.0.0 netmask 255.255.0.0 {
          option routers 10.64.0.1; option arch 3; option captive-portal "http://x;y";
          if option arch = 00:07 { filename "a"; } else { filename "b"; }
          ping-timeout-ms 20;
          pool { allow unknown-clients; range 10.64.9.1 10.64.9.9; }
        }
        host hal01 { hardware ethernet 02:48:41:4c:00:10; fixed-address 10.64.0.101; }
        """,
        [
            "captive-portal in option: dhcpd 4.2 does not know it",
            "ping-timeout-ms: dhcpd 4.2 does not know it (it came with 4.4)",
        ],
    ),
    "firewalld_conf": (
        "",
        "DefaultZone=drop\nLogDenied=some\nFirewallBackend=nftables\nAllowZoneDrifting=no\n",
        [
            "LogDenied some: firewalld",
            "FirewallBackend: firewalld",
            "AllowZoneDrifting: firewalld 0.6 does not know it (it came with CentOS 7.8)",
        ],
    ),
    "firewalld_direct": (
        "",
        '<direct><rule ipv="ipv4" table="filter" chain="INPUT" priority="0" zone="x">-j DROP</rule><policy/></direct>',
        ["zone in rule: firewalld", "policy: firewalld"],
    ),
    "firewalld_icmptype": ("", "<icmptype><short>x</short><policy/></icmptype>", ["policy: firewalld"]),
    "firewalld_ipset": (
        "",
        '<ipset type="hash:net"><entry>10.0.0.0/8</entry><forward/></ipset>',
        ["forward: firewalld"],
    ),
    "firewalld_service": (
        "",
        '<service><port protocol="tcp" port="6817-6818"/><helper name="ftp"/><include service="ssh"/></service>',
        ["helper: firewalld", "firewalld 0.6 has no helper", "include: firewalld", "firewalld 0.6 has no include"],
    ),
    "firewalld_zone": (
        "",
        '<zone target="DROP" ingress-priority="1"><source address="10.0.0.0/8"/><service name="ssh"/><forward/></zone>',
        ["ingress-priority in zone: firewalld", "forward: firewalld 0.6 does not know it"],
    ),
    "gres": (
        "20.02.7",
        "NodeName=hal01 Name=gpu Type=v100 File=/dev/nvidia0 Cores=0-79 MultipleFiles=/dev/x\n",
        ["MultipleFiles in NodeName: gres.conf of Slurm 20.02"],
    ),
    "httpd": (
        "",
        """
        <VirtualHost *:443>
          SSLProtocol all -SSLv3 +TLSv1.3
          Protocols h2 \\
            http/1.1
          <IfModule mod_ssl.c>
            SSLEngine on
          </IfModule>
          <IfFile /etc/x>
          </IfFile>
        </VirtualHost>
        """,
        [
            "SSLProtocol TLSv1.3: httpd 2.4.6",
            "Protocols: httpd 2.4.6 does not know it (it came with 2.4.17)",
            "<IfFile: httpd",
        ],
    ),
    "journald": (
        "",
        "[Journal]\nStorage=persistent\nRateLimitIntervalSec=30s\nSystemMaxFiles=9\n",
        ["RateLimitIntervalSec in Journal", "SystemMaxFiles in Journal"],
    ),
    "limits": (
        "",
        "# who  type  item  value\n*  -  memlock  unlimited\n@a  mild  nofile  9\nroot  hard  nonewprivs  1\n",
        [
            "mild in type: pam_limits 1.1 does not know it",
            "nonewprivs in item: pam_limits 1.1 does not know it (it came with 1.5)",
        ],
    ),
    "logind": ("", "[Login]\nKillUserProcesses=no\nSessionsMax=9\n", ["SessionsMax in Login"]),
    "logrotate": (
        "",
        """
        /var/log/a
        /var/log/b {
          weekly
          minage 3
          size=5M
          postrotate
            nonsense here
          endscript
        }
        """,
        ["minage: logrotate 3.8 does not know it (it came with 3.11.0)"],
    ),
    "mariadb": (
        "",
        """
        [mysqld]
        innodb_buffer_pool_size = 1G
        skip-name-resolve
        loose_anything = 1
        innodb_buffer_pool_dump_pct = 9
        [client]
        x = y
        """,
        ["innodb_buffer_pool_dump_pct in mysqld: MariaDB 5.5"],
    ),
    "rsyslog": (
        "",
        """
        module(load="imjournal" StateFile="x" fsync="on")  # comment (
        $WorkDirectory /var/lib/rsyslog
        $Nonsense 1
        *.info;mail.none;cron.none  -/var/log/messages
        :msg, contains, "a {b" stop
        if $msg contains ") then" then {
            action(type="omfwd" target="x" queue.type="LinkedList" compression.mode="none" TLS="on")
        }
        auth.* action(type="omhttp")
        & stop
        """,
        [
            "fsync in module imjournal: rsyslog 8.24",
            "Nonsense: rsyslog 8.24",
            "TLS in action omfwd: rsyslog 8.24",
            "rsyslog 8.24 has no action omhttp",
        ],
    ),
    "slurm": (
        "20.02.7",
        """
        SlurmctldHost=hal-mgmt1(10.64.0.11)
        SelectType=select/cons_tres
        TaskPlugin=task/affinity,task/cgroup
        FastSchedule=2
        SchedulerParameters=bf_window=10080,bf_licenses
        SlurmctldParameters=enable_configless,node_reg_mem_percent=90
        SwitchType=switch/hpe_slingshot
        NodeName=DEFAULT CPUs=160 Memory=1
        NodeName=hal[01-16] Gres=gpu:v100:4
        PartitionName=gpu Nodes=hal[01-16] SuspendTime=60
        """,
        [
            "FastSchedule: Slurm 20.02 does not know it (its last release with it is 19.05)",
            "SchedulerParameters bf_licenses: Slurm 20.02 does not know it (it came with 22.05)",
            "SlurmctldParameters node_reg_mem_percent: Slurm 20.02 does not know it (it came with 21.08)",
            "SwitchType switch/hpe_slingshot: Slurm 20.02 does not know it (it came with 22.05)",
            "Memory in NodeName: Slurm 20.02 does not know it",
            "SuspendTime in PartitionName: Slurm 20.02 does not know it (it came with 21.08)",
        ],
    ),
    "slurmdbd": (
        "20.02.7",
        "StorageType=accounting_storage/mysql\nAllowNoDefAcct=yes\n",
        ["AllowNoDefAcct: slurmdbd.conf of Slurm 20.02"],
    ),
    "ssh_config": (
        "",
        "Include /etc/ssh/ssh_config.d/*\nHost *\n  KnownHostsCommand /bin/x\n",
        ["KnownHostsCommand in Host: the client of OpenSSH 7.4"],
    ),
    "sshd_config": (
        "",
        """
        Port=22
        UsePrivilegeSeparation sandbox # a remark
        PermitRootLogin maybe
        CASignatureAlgorithms ssh-rsa
        Match User root
          MaxAuthTries 3
          Port 23
        """,
        [
            "PermitRootLogin maybe",
            "CASignatureAlgorithms: OpenSSH 7.4 does not know it (it came with 7.9)",
            "Port in Match: OpenSSH 7.4",
        ],
    ),
    "sssd": (
        "",
        """
        [sssd]
        services = nss, pam
        [domain/hal]
        id_provider = ldap
        ldap_library_debug_level = 0
        [domain/hal/sub]
        ad_server = x
        [kerberos]
        x = 1
        """,
        ["ldap_library_debug_level in domain/hal: SSSD 1.16", "SSSD 1.16 has no kerberos"],
    ),
    "systemd_system": (
        "",
        "[Manager]\nDefaultLimitNOFILE=9\nDefaultIOAccounting=yes\n",
        ["DefaultIOAccounting in Manager"],
    ),
    "topology": (
        "20.02.7",
        "SwitchName=leaf1 Nodes=hal[01-08]\nBlockName=b1 Nodes=hal01\n",
        ["BlockName: topology.conf"],
    ),
    "yum_repository": (
        "",
        "[base]\nbaseurl=http://a/\n  http://b/\nmodule_hotfixes=1\ngpgcheck=1\n",
        ["module_hotfixes in base: yum 3.4"],
    ),
}

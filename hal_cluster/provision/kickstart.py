"""Kickstart files for Anaconda of CentOS 7: one node, one disk, one token.

Words: Red Hat Enterprise Linux 7 Installation Guide, 27.3; pykickstart's handler RHEL7 reads what is written here.
PReP as in xCAT's partition scripts: "PPC PReP Boot", 8 MB, first; firmware of POWER finds the boot loader there, and
petitboot the configuration in /boot. x86_64 gets what its firmware needs by ``reqpart``: BIOS or UEFI is not declared.

What protects other disks: ``ignoredisk --only-use`` leaves all others out of Anaconda's sight, and every line that
writes names the declared disk by its world-wide name. %pre refuses a machine without that disk, and an image that is
not the signed one, before anything is written. Then it tells the server that the installation begins: who was disarmed
meanwhile, or cannot reach the server over TLS, stops there. From that word on the server has the node boot its disk, so
that an installation that breaks off is not begun again by each boot. Only then are other disks wiped, those that were
asked for by their world-wide names and no other: Anaconda sees none of them.

Why it stops, the installer tells the server, as long as that can be reached: what a script refuses in %pre and %post,
and in %onerror an exception of Anaconda itself. What it only shows on its screen is not told: an image that cannot be
had, partitions that cannot be made, a disk that breaks (pyanaconda/errors.py, exception.py of its rhel7-branch).
Anaconda of RHEL 7.3 and before does not know that section.

No secret but the token is in it: it opens this node's first secrets once, from this node's address, for some hours.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.images import Manifest
from hal_cluster.provision.nodes import POWER, BootNode
from hal_cluster.provision.petitboot import url_problem
from hal_cluster.provision.tokens import Token
from hal_inventory.derive.slices import disk_path
from hal_inventory.names import is_wwn

_KERNEL = re.compile(r"[0-9][0-9A-Za-z.]*-[0-9][0-9A-Za-z._]*")
BOOT_MB = 1024
SWAP_MB = 8192


@dataclass(frozen=True, slots=True)
class Source:
    """What is installed: a signed image, and the URL of its folder."""

    image: Manifest
    image_url: str

    @property
    def url(self) -> str:
        """The URL of the image's root file system."""
        return f"{self.image_url}/{self.image.file}"


@dataclass(frozen=True, slots=True)
class Server:
    """The server of first secrets, https://ADDRESS:PORT, and the certificate (PEM) of the site's authority."""

    url: str
    authority: str


@dataclass(frozen=True, slots=True)
class Place:
    """The network by which the node installs."""

    network: str
    netmask: str
    gateway: str | None = None


def disk_of(node: BootNode, *, virtual: bool = False) -> str:
    """Return the link of the declared system disk, below /dev; ProvisionError without one, or with a placeholder."""
    if not node.disk:
        raise ProvisionError(
            f"{node.name}: no system disk is declared; put its world-wide name into cluster.yml, nodes.{node.name}."
            "disks.system: lsblk -o NAME,WWN,SERIAL on the node shows it. No disk is ever chosen by its place"
        )
    wwn = node.disk.lower()
    if not is_wwn(wwn):
        raise ProvisionError(f"{node.name}: disks.system is {node.disk}, no world-wide name such as 0x5000c500a1b2c3d4")
    if node.placeholders and not virtual:
        raise ProvisionError(
            f"{node.name}: {', '.join(sorted(node.placeholders))} in cluster.yml "
            f"{'is a placeholder' if len(node.placeholders) == 1 else 'are placeholders'}: put the machine's own there"
        )
    return _link(wwn)


def _link(wwn: str) -> str:
    """Return the link that udev makes for a disk, below /dev."""
    return disk_path(wwn).removeprefix("/dev/")


def wipeable(node: BootNode) -> dict[str, str]:
    """Return the other disks of a node that may be wiped in an installation: world-wide names by name.

    Those that the model names for it under ``disks``, without the system disk under whatever name.
    """
    system = {(wwn or "").lower() for wwn in (node.disk, node.disks.get("system"))}
    return {
        name: wwn.lower()
        for name, wwn in node.disks.items()
        if name != "system" and wwn.lower() not in system and is_wwn(wwn)
    }


def _wiped(node: BootNode, wipe: Iterable[str]) -> dict[str, str]:
    """Return the disks that are wiped, by name; ProvisionError for one that may not be."""
    may = {wwn: name for name, wwn in wipeable(node).items()}
    wiped = {}
    for wwn in wipe:
        if (name := may.get(wwn.lower())) is None:
            those = ", ".join(f"{name} {wwn}" for wwn, name in may.items()) or "none"
            raise ProvisionError(f"{node.name}: {wwn} may not be wiped; of its declared disks may be: {those}")
        wiped[name] = wwn.lower()
    return wiped


def kickstart(
    node: BootNode,
    place: Place,
    source: Source,
    server: Server,
    token: Token,
    *,
    wipe: Sequence[str] = (),
    virtual: bool = False,
) -> str:
    """Return the kickstart of one node; ProvisionError says what is missing in the model, or cannot be meant.

    ``wipe``: world-wide names of other disks that are emptied, each one that ``wipeable`` names.
    """
    node.check_reimage()
    disk = disk_of(node, virtual=virtual)
    wiped = _wiped(node, wipe)
    if not node.kernel or not _KERNEL.fullmatch(node.kernel):
        raise ProvisionError(f"{node.name}: its profile declares no kernel ({node.kernel}), as 4.18.0-80.7.2.el7")
    _refuse(node, source, server)
    address, netmask = node.address(place.network), place.netmask
    if place.gateway and ipaddress.ip_address(place.gateway) not in ipaddress.ip_network(f"{address}/{netmask}", False):
        raise ProvisionError(f"{node.name}: gateway {place.gateway} is not in its network {place.network}")
    lines = [
        f"# {node.name}: written by the toolkit for one installation. The token in it works once, for this node alone.",
        "install",
        "text",
        f"liveimg --url={source.url} --checksum={source.image.sha256}",
        "lang en_US.UTF-8",
        "keyboard us",
        "timezone Etc/UTC --utc",
        "auth --enableshadow --passalgo=sha512",
        "# Who may come in, comes with a certificate of the site's authority.",
        "rootpw --lock",
        "selinux --enforcing",
        "firewall --enabled --ssh",
        "firstboot --disable",
        "skipx",
        # The MAC names the interface: what the kernel calls it is found out later.
        f"network --device={node.mac(place.network)} --bootproto=static --ip={address} --netmask={netmask}"
        f"{f' --gateway={place.gateway}' if place.gateway else ''} --noipv6 --onboot=yes --activate"
        f" --hostname={node.fqdn}",
        "",
        f"# The declared disk and no other: {node.disk}",
        f"ignoredisk --only-use={disk}",
        "zerombr",
        f"clearpart --all --initlabel --drives={disk}",
        f"bootloader --boot-drive={disk}",
        *_partitions(node, disk),
        "",
        "# petitboot, or iPXE, then finds no entry, and the disk is booted.",
        "reboot",
        "",
        *_pre(node, disk, wiped, source, server, token),
        "",
        *_post(node, server, token),
        "",
        *_on_error(node, server, token),
    ]
    return "\n".join([*lines, ""])


def _refuse(node: BootNode, source: Source, server: Server) -> None:
    name, image = node.name, source.image
    if image.arch != node.arch:
        raise ProvisionError(f"{name}: image {image.folder} is for {image.arch}, not {node.arch}")
    if image.kernel != node.kernel:
        raise ProvisionError(f"{name}: image {image.folder} has kernel {image.kernel}, not {node.kernel}")
    if problem := url_problem(source.url):
        raise ProvisionError(f"{name}: image {source.image_url}: {problem}")
    if not server.url.startswith("https://") or url_problem(f"{server.url}/node"):
        raise ProvisionError(f"{name}: first secrets come from {server.url}; write https://ADDRESS:PORT")
    if not server.authority.startswith("-----BEGIN CERTIFICATE-----") or "PRIVATE" in server.authority:
        raise ProvisionError(f"{name}: the authority's certificate is no PEM, or there is a private key in it")


def _partitions(node: BootNode, disk: str) -> list[str]:
    first = (
        f'part prepboot --fstype="PPC PReP Boot" --size=8 --asprimary --ondisk={disk}'
        if node.arch == POWER
        else "reqpart"
    )
    return [
        first,
        f"part /boot --fstype=xfs --size={BOOT_MB} --ondisk={disk}",
        f"part pv.01 --size=1 --grow --ondisk={disk}",
        "volgroup system pv.01",
        f"logvol swap --vgname=system --name=swap --fstype=swap --size={SWAP_MB}",
        "logvol / --vgname=system --name=root --fstype=xfs --size=1 --grow",
    ]


def _tools(node: BootNode, server: Server, token: Token) -> list[str]:
    """Functions of the shell's, the same in both scripts: `fail` REASON and `ask` PATH OPTION..."""
    return [
        "set -u",
        "umask 077",
        # The reason on the console, where somebody looks for it, and to the server.
        "fail() {",
        f'  echo "{node.name}: NOT INSTALLED: $*" | tee /dev/console',
        '  ask stop --max-time 30 --data "$*" || echo "the server was not told"',
        "  exit 1",
        "}",
        "cat > /run/hal-authority.pem <<'HAL_END'",
        *server.authority.strip().splitlines(),
        "HAL_END",
        f"token='{token.words}'",
        # The header goes to curl through a pipe: what is on its command line every process can read. curl 7.29 of
        # CentOS 7.
        "ask() {",
        '  path=$1; shift; printf \'header = "X-HAL-Token: %s"\\n\' "$token" \\',
        "    | curl --fail --silent --show-error --cacert /run/hal-authority.pem --config - --request POST \\",
        f'      "$@" {server.url}/node/{node.name}/$path',
        "}",
    ]


def _there(node: BootNode, disk: str, wiped: Mapping[str, str]) -> list[str]:
    """Say that disks which are to be wiped are in the machine, and are not the system disk by another name."""
    lines = []
    for name, wwn in wiped.items():
        link, what = _link(wwn), f"disk {name} ({wwn}), which is to be wiped,"
        lines += [
            f'[ -b /dev/{link} ] || fail "{what} is not in this machine; no disk was touched"',
            f'[ "$(readlink -f /dev/{link})" != "$(readlink -f /dev/{disk})" ] \\',
            f'  || fail "{what} is the system disk by another name; no disk was touched"',
        ]
    return lines


# What holds a disk is stopped first, the topmost first. Anaconda's udev leaves md alone, and LVM is started by blivet
# after %pre; so there is something only where a script or somebody at the console started it. By sysfs, and not by
# lsblk: which programs of util-linux the installer has, differs from release to release.
# Signatures of partitions, then of the disk: a file system would be found again by whoever makes the same partitions.
# Then the first and the last MiB: role local_storage takes no other disk for an empty one.
_WIPE = """\
release() {
  for held in "/sys/class/block/$1/holders"/*; do
    [ -e "$held" ] || continue
    (release "${held##*/}") || return 1
    case ${held##*/} in
      md*) mdadm --stop "/dev/${held##*/}" ;;
      *) dmsetup remove "$(cat "$held/dm/name")" ;;
    esac || return 1
  done
}
wipe() {
  disk=$(readlink -f "/dev/$1"); set --
  for part in "/sys/class/block/${disk##*/}/${disk##*/}"*; do
    [ ! -e "$part/partition" ] || set -- "$@" "/dev/${part##*/}"
  done
  for one in "$@" "$disk"; do
    release "${one##*/}" && wipefs --all --force "$one" || return 1
  done
  sectors=$(blockdev --getsz "$disk") || return 1
  for at in 0 $((sectors - 2048)); do
    dd if=/dev/zero of="$disk" bs=512 seek=$at count=2048 conv=notrunc,fsync || return 1
  done
}"""


def _wipe(wiped: Mapping[str, str]) -> list[str]:
    """Empty the other disks that are to be; a stop here leaves the system disk as it was."""
    if not wiped:
        return []
    said = "could not be wiped: /tmp/hal-pre.log says why; the system disk is as it was"
    return [
        *_WIPE.splitlines(),
        *(f'wipe {_link(wwn)} || fail "disk {name} ({wwn}) {said}"' for name, wwn in wiped.items()),
    ]


def _pre(
    node: BootNode, disk: str, wiped: Mapping[str, str], source: Source, server: Server, token: Token
) -> list[str]:
    return [
        "%pre --erroronfail --log=/tmp/hal-pre.log",
        *_tools(node, server, token),
        f'[ "$(uname -m)" = {node.arch} ] || fail "this machine is $(uname -m), and {node.arch} is declared"',
        f'[ -b /dev/{disk} ] || fail "disk {node.disk} is not in this machine; is it the right one?"',
        *_there(node, disk, wiped),
        "# All of it is read before a disk is touched; Anaconda reads it again, and compares the same sum.",
        f'sum=$(curl --fail --silent --show-error "{source.url}" | sha256sum)',
        f'[ "${{sum%% *}}" = {source.image.sha256} ] \\',
        f'  || fail "{source.image.folder} cannot be fetched or is not what was signed; the disk is as it was"',
        "# The last word before the disk is erased. From here on the node boots its disk, whatever becomes of this.",
        'ask begin || fail "the server does not want this to begin, or cannot be reached: hal-provision status there,'
        ' and its journal, say why; the disk is as it was"',
        *_wipe(wiped),
        "%end",
    ]


def _post(node: BootNode, server: Server, token: Token) -> list[str]:
    return [
        "%post --erroronfail --log=/root/hal-install.log",
        *_tools(node, server, token),
        f'rpm -q kernel-{node.kernel} || fail "kernel {node.kernel} is declared, and is not what was installed"',
        f'grubby --set-default=/boot/vmlinuz-{node.kernel}.{node.arch} || fail "kernel {node.kernel} cannot be booted"',
        "# First secrets: the host's key and certificate, and what it trusts. Handed out once.",
        "fetched=/run/hal-secrets.tar",
        'ask secrets --output "$fetched" \\',
        '  || fail "no first secrets; hal-provision status on the server, and its journal, say why"',
        'tar --extract --file "$fetched" --directory / --no-overwrite-dir || fail "first secrets are no archive"',
        'rm -f "$fetched"',
        "restorecon -R /etc/ssh || true",
        f'ask call-home --data "installed=$(rpm -q kernel-{node.kernel})" \\',
        '  || fail "the call home was refused; hal-provision status on the server, and its journal, say why"',
        "rm -f /run/hal-authority.pem",
        "%end",
    ]


def _on_error(node: BootNode, server: Server, token: Token) -> list[str]:
    """Tell the server what Anaconda's own exception was: python-meh writes it to a file before %onerror is run.

    Below "Traceback" are frames, indented, then the exception, an empty line, and variables.
    """
    return [
        "%onerror --log=/tmp/hal-onerror.log",
        *_tools(node, server, token),
        "newest=$(ls -t /tmp/anaconda-tb-* 2>/dev/null | head -n 1)",
        '[ -z "$newest" ] || why=$(sed -n "/^Traceback/,/^$/p" "$newest" \\',
        '  | grep --text -v -e "^Traceback" -e "^ " -e "^$" | head -n 1)',
        'fail "Anaconda stopped: ${why:-/tmp/anaconda.log there says why}"',
        "%end",
    ]

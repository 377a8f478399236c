"""The program ``hal-inventory``: reads arguments, calls one function a command, prints, and sets the exit status.

Exit status: 0 done, 2 something is wrong with the arguments, a source or a model (said on standard error, one line a
finding, no traceback), 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hal_cluster import completion
from hal_inventory.errors import HalError, HalInventoryError
from hal_inventory.printable import complain
from hal_inventory.script import host_text, list_text, source_of
from hal_inventory.settings import configured_sources

if TYPE_CHECKING:
    from hal_inventory.model import Site
    from hal_inventory.output import Answer

OK, FAULT, INTERRUPTED = 0, 2, 130
KINDS = (
    *("node", "profile", "network", "service", "group", "partition"),
    *("array", "file-system", "raid-set", "external"),
)
SHOWN = "[KIND] [NAME]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    try:
        parser = _parser()
        completion.answer(parser, {SHOWN: lambda options: [*KINDS, *completion.names(options)]})
        options = parser.parse_args(arguments)
        status = _run(options)
        sys.stdout.flush()
    except HalError as error:
        complain(error)
        return FAULT
    except BrokenPipeError:
        # Whoever read has had enough (head, less): not a fault, and nothing more may be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "-i",
        "--inventory",
        dest="sources",
        metavar="SOURCE",
        action="append",
        help="inventory source, as Ansible's; repeatable, the last decides (default: as ansible.cfg says)",
    )
    common.add_argument("--json", dest="as_json", action="store_true", help="print JSON")
    parser = argparse.ArgumentParser(
        prog="hal-inventory",
        description="The site model: what exists, who is who, and what Ansible sees.",
        parents=[common],
    )
    parser.add_argument("--list", dest="script_list", action="store_true", help="the whole inventory, for programs")
    parser.add_argument("--host", metavar="NODE", help="the variables of one node, for programs")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")

    def command(name: str, does: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=does, description=does[:1].upper() + does[1:] + ".", parents=[common])

    show = command("show", "show the site, the things of a kind, or one thing")
    show.add_argument("words", nargs="*", metavar=SHOWN, help=f"kinds: {', '.join(KINDS)}")
    listing = command("list", "list nodes in a table")
    listing.add_argument("expression", nargs="?", default="all", metavar="EXPRESSION", help="which (default: all)")
    graph = command("graph", "show groups and their nodes")
    graph.add_argument("group", nargs="?", metavar="GROUP", help="only this one")
    nodes = command("nodes", "print the nodes that an expression selects, as a range")
    nodes.add_argument(
        "expression", nargs="?", default="all", metavar="EXPRESSION", help="such as 'gpu and not hal05' (default: all)"
    )
    nodes.add_argument("--expand", action="store_true", help="one name a line")
    config = command("ssh-config", "print a configuration for ssh, rsync, clush and testinfra")
    config.add_argument("expression", nargs="?", default="all", metavar="EXPRESSION", help="which nodes (default: all)")
    config.add_argument("--write", metavar="FILE", dest="write_to", help="write it there, for you alone (0600)")
    command("names", "print the names that an expression may use, one a line")
    validate = command("validate", "check sources, models, and what roles would refuse; findings, then a summary")
    validate.add_argument("files", nargs="*", metavar="FILE", help="a cluster.yml or a source (default: the sources)")
    validate.add_argument("--placeholders", action="store_true", help="list the placeholders")
    validate.add_argument("--model", action="store_true", help="only files; roles are not asked what they refuse")
    capture = command("capture", "propose what machines say about themselves for cluster.yml, as a diff")
    capture.add_argument(
        "files", nargs="*", metavar="FILE", help="what the script printed on a machine; - is standard input"
    )
    capture.add_argument("--script", action="store_true", help="print the script that machines run (Python 2.7 or 3)")
    capture.add_argument(
        "--node", metavar="NODE", help="the node that a single FILE is of (default: by name or address)"
    )
    capture.add_argument("--bmc", metavar="EXPRESSION", help="ask the BMCs of these nodes, all at once")
    _bmc_options(capture, "with --bmc: ")
    adopt = command("adopt", "put the serial number, MACs and disks of replaced hardware into cluster.yml, of one node")
    adopt.add_argument("node", metavar="NODE", help="the node; its BMC is asked")
    adopt.add_argument("--write", action="store_true", help="write cluster.yml (default: show what would be written)")
    adopt.add_argument(
        "--disk",
        metavar="[NAME=]WWN",
        dest="disks",
        action="append",
        default=[],
        help="a disk that was replaced, by world-wide name; NAME as under disks (default: system); repeatable",
    )
    adopt.add_argument(
        "--mac",
        metavar="NETWORK=MAC",
        dest="macs",
        action="append",
        default=[],
        help="the MAC of another port than the BMC's, which no BMC tells; repeatable",
    )
    adopt.add_argument(
        "--bmc-file", metavar="FILE", help="what a BMC said (capture --script, with --redfish) instead of asking it"
    )
    _bmc_options(adopt, "")
    command("schema", "print the JSON Schema of cluster.yml")
    tab = command("completion", "print a completion script")
    tab.add_argument("shell", choices=completion.SHELLS)
    return parser


def _bmc_options(parser: argparse.ArgumentParser, when: str) -> None:
    """Add how BMCs are asked; ``when`` begins the help."""
    parser.add_argument("--user", help=f"{when}the account (default: what each kind comes with)")
    parser.add_argument("--ca-file", metavar="FILE", help=f"{when}the authority of their certificates (PEM)")
    parser.add_argument(
        "--pin",
        metavar="NODE=FINGERPRINT",
        action="append",
        default=[],
        help=f"{when}believe a BMC by its certificate's SHA-256 fingerprint; repeatable",
    )


def _run(options: argparse.Namespace) -> int:
    sources: list[str] = getattr(options, "sources", None) or configured_sources()
    if options.script_list:
        sys.stdout.write(list_text(source_of(sources)))
        return OK
    if options.host is not None:
        sys.stdout.write(host_text(source_of(sources), options.host))
        return OK
    if options.command is None:
        _parser().print_help()
        return FAULT
    return _COMMANDS[options.command](options, sources)


def _site(sources: Sequence[str]) -> Site:
    from hal_inventory.compiled import Compiled

    return Compiled(source_of(sources)).site()


def _print(answer: Answer, options: argparse.Namespace) -> int:
    from hal_inventory import output

    output.show(answer, as_json=getattr(options, "as_json", False))
    return OK


def _show(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_cluster.inventory.show import show

    if len(options.words) > 2:
        raise HalInventoryError("show takes a kind and a name at most")
    return _print(show(_site(sources), options.words), options)


def _list(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_cluster.inventory.show import KINDS as collected
    from hal_cluster.inventory.show import node_table
    from hal_inventory.output import Answer
    from hal_inventory.restrict import select

    site = _site(sources)
    names = select(site, options.expression)
    nodes = collected["node"](site)
    return _print(Answer([nodes[name] for name in names], [node_table(site, names)]), options)


def _graph(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_inventory.errors import UnknownNameError
    from hal_inventory.output import Answer, Tree
    from hal_inventory.ranges import fold
    from hal_inventory.suggest import did_you_mean

    site = _site(sources)
    groups = {name: site.members[name] for name in sorted(site.members)}
    if options.group is not None:
        if options.group not in groups:
            hint = did_you_mean(options.group, groups, kind="groups")
            raise UnknownNameError(f'unknown group "{options.group}"{hint}')
        groups = {options.group: groups[options.group]}
    data = {name: list(nodes) for name, nodes in groups.items()}
    trees = [Tree(name, [Tree(fold(nodes))] if nodes else []) for name, nodes in groups.items()]
    if options.group is None:
        return _print(Answer(data, [Tree("all", trees)]), options)
    return _print(Answer(data, trees), options)


def _nodes(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_inventory.compiled import Compiled
    from hal_inventory.output import Answer
    from hal_inventory.ranges import fold

    names: list[str] = Compiled(source_of(sources)).slice("nodes", {"where": options.expression})
    text = "\n".join(names) if options.expand else fold(names)
    return _print(Answer({"nodes": names, "nodeset": fold(names)}, [text] if text else []), options)


def _ssh_config(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_cluster.inventory.ssh_config import write
    from hal_inventory.connection import ssh_config_of

    text = ssh_config_of(source_of(sources), options.expression)
    if options.write_to is None:
        sys.stdout.write(text)
    else:
        write(options.write_to, text)
    return OK


def _names(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_inventory.compiled import Compiled
    from hal_inventory.output import Answer
    from hal_inventory.packed import group_members

    packed = Compiled(source_of(sources)).inventory()
    names = [*(host[0] for host in packed["hosts"]), *group_members(packed)]
    return _print(Answer(names, ["\n".join(names)]), options)


def _validate(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_cluster.inventory.validate import validate

    verdict = validate(options.files or sources, list_placeholders=options.placeholders, model_only=options.model)
    _print(verdict.answer, options)
    return verdict.status


def _capture(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_cluster.inventory.capture import capture, script

    if options.script:
        sys.stdout.write(script())
        return OK
    if options.bmc is not None:
        from hal_cluster.inventory.capture_bmc import capture_bmcs

        if options.files or options.node:
            raise HalInventoryError("--bmc asks the BMCs itself: give it without FILE and --node")
        verdict = capture_bmcs(source_of(sources), options.bmc, options.user, options.ca_file, options.pin)
    else:
        verdict = capture(source_of(sources), options.files, node=options.node)
    if getattr(options, "as_json", False):
        _print(verdict.answer, options)
    else:
        sys.stdout.write(verdict.diff)
        sys.stderr.write(verdict.remarks)
    return verdict.status


def _adopt(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_cluster.inventory.adopt import run

    done = run(
        source_of(sources),
        options.node,
        file=options.bmc_file,
        user=options.user,
        ca_file=options.ca_file,
        pins=options.pin,
        disks=options.disks,
        macs=options.macs,
        write=options.write,
    )
    _print(done.answer, options)
    sys.stderr.write(done.remarks)
    return done.status


def _schema(options: argparse.Namespace, sources: Sequence[str]) -> int:
    from hal_inventory.declared import ClusterFile

    sys.stdout.write(json.dumps(ClusterFile.model_json_schema(), indent=2, sort_keys=True) + "\n")
    return OK


def _completion(options: argparse.Namespace, sources: Sequence[str]) -> int:
    sys.stdout.write(completion.script(options.shell))
    return OK


_COMMANDS: dict[str, Callable[[argparse.Namespace, Sequence[str]], int]] = {
    "show": _show,
    "list": _list,
    "graph": _graph,
    "nodes": _nodes,
    "names": _names,
    "ssh-config": _ssh_config,
    "validate": _validate,
    "capture": _capture,
    "adopt": _adopt,
    "schema": _schema,
    "completion": _completion,
}

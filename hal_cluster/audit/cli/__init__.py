"""The program ``hal-audit``: reads arguments, calls one function a command, prints, and sets the exit status.

Exit status of ``run`` and ``takeover``: 0 clean, 1 error, 2 drift, 3 not everything could be seen. Of others 0 or 1.
130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from hal_cluster import completion
from hal_cluster.audit import roles
from hal_cluster.audit.cli import arguments as takes
from hal_inventory.errors import HalError
from hal_inventory.printable import one_line

CLEAN, ERROR, INTERRUPTED = 0, 1, 130


class Parser(argparse.ArgumentParser):
    """Refuses in one line, with the exit status of an error: 2 would say drift.

    What is behind -- is another program's: argparse would take its first word for a name.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the options, and no others; so do the commands' own parsers, which get what is before the mark."""
        own, rest = list(sys.argv[1:] if args is None else args), []
        if "--" in own:
            cut = own.index("--")
            own, rest = own[:cut], own[cut + 1 :]
        options, others = super().parse_known_args(own, namespace)
        if unknown := getattr(options, "rest", rest):
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        if rest:
            options.rest = rest
        return options, others

    def error(self, message: str) -> NoReturn:
        """End with what is wrong."""
        self.exit(ERROR, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    try:
        parser = _parser()
        completion.answer(parser, {"ROLE": lambda _: roles.names()})
        options = parser.parse_args(arguments)
        if options.command is None:
            parser.print_help()
            return ERROR
        status = _COMMANDS[options.command](options)
        sys.stdout.flush()
    except HalError as error:
        print(one_line(str(error)), file=sys.stderr)
        return ERROR
    except BrokenPipeError:
        # Whoever read has had enough (head, less): not a fault, and nothing more may be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLEAN
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _parser() -> Parser:
    common = Parser(add_help=False)
    common.add_argument(
        "-i",
        "--inventory",
        dest="sources",
        metavar="SOURCE",
        action="append",
        default=[],
        help="inventory source, as Ansible's; repeatable (default: as ansible.cfg says)",
    )
    common.add_argument("--json", dest="as_json", action="store_true", help="print JSON")
    parser = Parser(prog="hal-audit", description="Is every node still what was declared, and if not, what changed?")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, does: str) -> Parser:
        return commands.add_parser(name, help=does, description=does[:1].upper() + does[1:] + ".", parents=[common])

    run = command("run", "compare nodes with what was declared; one call a node, nothing is changed")
    run.add_argument("--limit", metavar="PATTERN", default="", help="only these nodes")
    run.add_argument("--role", metavar="ROLE", dest="roles", action="append", default=[], help="only this; repeatable")
    run.add_argument("--forks", type=int, metavar="N", default=0, help="nodes at once (default: as ansible.cfg says)")
    run.add_argument("--deep", action="store_true", help="verify all files of all packages, too; takes long")
    takes.takeover(look := command("takeover", "say what a rollout would change on nodes that run already"))
    show = command("show", "show the record of a node as the controller has it")
    show.add_argument("node", metavar="NODE")
    show.add_argument("--role", metavar="ROLE", dest="roles", action="append", default=[], help="only this; repeatable")
    originals = command(
        "originals", "list what nodes keep from before roles changed it; playbooks/giveback.yml puts it back"
    )
    originals.add_argument("nodes", metavar="NODES", nargs="?", default="", help="only these, as hal[05-06]")
    originals.add_argument(
        "--role", metavar="ROLE", dest="roles", action="append", default=[], help="only this; repeatable"
    )
    takes.history(command("history", "show what became of the audits so far, the newest last"))
    adopt = command("adopt", "propose records for nodes that this toolkit never rolled out")
    adopt.add_argument("--limit", metavar="PATTERN", default="", help="only these nodes")
    adopt.add_argument("--accept", action="store_true", help="record on the nodes what was proposed last")
    for caller in (run, look, adopt, originals):
        caller.add_argument("rest", nargs="*", metavar="-- OPTION", help="options for ansible-playbook, after --")
    takes.accept(command("accept", "say why what the last audit found is right, and until when"))
    takes.timer(command("timer", "audit in depth each night, by systemd on this controller"))
    tab = command("completion", "print a completion script")
    tab.add_argument("shell", choices=completion.SHELLS)
    return parser


def _run(options: argparse.Namespace) -> int:
    from hal_cluster.audit.cli.run import run

    return run(options)


def _takeover(options: argparse.Namespace) -> int:
    from hal_cluster.audit.cli.run import takeover

    return takeover(options)


def _show(options: argparse.Namespace) -> int:
    from hal_cluster.audit.cli.show import show

    return show(options)


def _originals(options: argparse.Namespace) -> int:
    from hal_cluster.audit.cli.originals import originals

    return originals(options)


def _history(options: argparse.Namespace) -> int:
    from hal_cluster.audit.cli.history import history

    return history(options)


def _adopt(options: argparse.Namespace) -> int:
    from hal_cluster.audit.cli.adopt import adopt

    return adopt(options)


def _accept(options: argparse.Namespace) -> int:
    from hal_cluster.audit.cli.accept import accept

    return accept(options)


def _timer(options: argparse.Namespace) -> int:
    from hal_cluster.audit.cli.timer import timer

    return timer(options)


def _completion(options: argparse.Namespace) -> int:
    sys.stdout.write(completion.script(options.shell))
    return CLEAN


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "takeover": _takeover,
    "show": _show,
    "originals": _originals,
    "history": _history,
    "adopt": _adopt,
    "accept": _accept,
    "timer": _timer,
    "completion": _completion,
}

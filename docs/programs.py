"""Makes the reference of commands, processes and their options, from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from socket import gethostname
from typing import Final

from admission.__main__ import _parser as admission_parser
from certs.__main__ import _parser as certs_parser
from cli.__main__ import parser as cli_parser
from cli.command_tree import actions, subcommands
from deviceplugin.arguments import add_arguments as add_agent_arguments
from docs.tables import cell, code, table
from extender.__main__ import _parser as extender_parser
from quota.__main__ import _parser as quota_parser

_HEAD: Final = ("option", "value", "meaning")
_THIS_MACHINE: Final = "the machine's name"


def command_names() -> list[str]:
    """The commands of `halfcard`, in the order of its help."""
    return [*subcommands(cli_parser())]


def commands() -> str:
    return "\n\n".join(_described(parser) for parser in leaves(cli_parser()))


def processes() -> str:
    return "\n\n".join(_described(parser) for root in process_parsers().values() for parser in leaves(root))


def process_parsers() -> Mapping[str, argparse.ArgumentParser]:
    """Returns the parser of each process, by its name in the values of the chart."""
    agent = argparse.ArgumentParser(prog="python -m deviceplugin")
    add_agent_arguments(agent)
    return {
        "admission": admission_parser(),
        "extender": extender_parser(),
        "quota": quota_parser(),
        "certs": certs_parser(),
        "agent": agent,
    }


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    below = subcommands(parser)
    if not below:
        yield parser
    for each in below.values():
        yield from leaves(each)


def _described(parser: argparse.ArgumentParser) -> str:
    rows = [_row(action) for action in actions(parser) if action.dest != "help"]
    said = f"{parser.description.splitlines()[0]}\n\n" if parser.description else ""
    return f"### {parser.prog}\n\n{said}{table(_HEAD, rows)}"


def _row(action: argparse.Action) -> tuple[str, str, str]:
    values = "" if action.nargs == 0 else ", ".join(map(code, _values(action)))
    return ", ".join(map(code, action.option_strings)), values, cell(_meaning(action))


def _values(action: argparse.Action) -> list[str]:
    return [str(each) for each in action.choices or [action.metavar or action.dest.upper()]]


def _meaning(action: argparse.Action) -> str:
    said = action.help or ""
    default = _THIS_MACHINE if action.default == gethostname() else action.default
    return said % {"default": default} if "%(" in said else said

"""Makes the reference of commands, processes and their options, from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from socket import gethostname
from typing import Final

from admission.__main__ import _parser as admission_parser
from certs.__main__ import _parser as certs_parser
from cli.__main__ import parser as cli_parser
from deviceplugin.arguments import add_arguments as add_agent_arguments
from docs.tables import cell, code, table
from extender.__main__ import _parser as extender_parser
from quota.__main__ import _parser as quota_parser

_HEAD: Final = ("option", "value", "meaning")
_THIS_MACHINE: Final = "the machine's name"


def command_names() -> list[str]:
    """The commands of `halfcard`, in the order of its help."""
    (subcommands,) = (action.choices for action in cli_parser()._actions if isinstance(action.choices, dict))  # noqa: SLF001 - argparse has no public way
    return [*subcommands]


def commands() -> str:
    return "\n\n".join(_described(parser) for parser in _leaves(cli_parser()))


def processes() -> str:
    agent = argparse.ArgumentParser(prog="python -m deviceplugin")
    add_agent_arguments(agent)
    roots = (admission_parser(), extender_parser(), quota_parser(), certs_parser(), agent)
    return "\n\n".join(_described(parser) for root in roots for parser in _leaves(root))


def _leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    below = [each for action in parser._actions for each in _choices(action)]  # noqa: SLF001 - argparse has no public way
    if not below:
        yield parser
    for each in below:
        yield from _leaves(each)


def _choices(action: argparse.Action) -> list[argparse.ArgumentParser]:
    return [*action.choices.values()] if isinstance(action, argparse._SubParsersAction) else []  # noqa: SLF001 - as above


def _described(parser: argparse.ArgumentParser) -> str:
    rows = [_row(action) for action in parser._actions if action.dest != "help"]  # noqa: SLF001 - as above
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

"""The commands and options of a parser, and which of them a misspelled one means.

argparse has no public way to read a parser: this module is the only one that reads its private fields.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches


def subcommands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    below = _subparsers(parser)
    return {} if below is None else below.choices


def summaries(parser: argparse.ArgumentParser) -> Mapping[str, str]:
    """Returns what the help says of each subcommand."""
    below = _subparsers(parser)
    return {} if below is None else {each.dest: each.help or "" for each in below._choices_actions}  # noqa: SLF001


def options(parser: argparse.ArgumentParser) -> Mapping[str, argparse.Action]:
    return {word: action for action in actions(parser) for word in action.option_strings}


def actions(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    return parser._actions  # noqa: SLF001


def _subparsers(parser: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    return next((each for each in actions(parser) if isinstance(each, argparse._SubParsersAction)), None)  # noqa: SLF001


def refuse_misspelled_command(parser: argparse.ArgumentParser, typed: Sequence[str]) -> None:
    """Ends the program with the usage of the deepest command that was meant, if the next one does not exist."""
    for word in typed:
        below = subcommands(parser)
        if not below or word.startswith("-"):
            return
        if word not in below:
            parser.error(f'unknown command "{word}"{_did_you_mean(word, below) or "; --help lists them"}')
        parser = below[word]


def meant(parser: argparse.ArgumentParser, typed: Sequence[str]) -> argparse.ArgumentParser:
    """Returns the parser of the deepest command that was typed."""
    for word in typed:
        parser = subcommands(parser).get(word, parser)
    return parser


def refuse_unknown(parser: argparse.ArgumentParser, typed: Sequence[str], unknown: Sequence[str]) -> None:
    """Ends the program with the usage of the command that was meant."""
    parser = meant(parser, typed)
    first = unknown[0].partition("=")[0]
    parser.error(f"unrecognized arguments: {' '.join(unknown)}{_did_you_mean(first, options(parser))}")


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f'; did you mean "{close[0]}"?' if close else ""

"""The `halfcard` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import halfcard
from halfcard.exit_codes import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, UnreadableError, UnusableInputError

from . import completion
from .command_tree import meant, refuse_misspelled_command, refuse_unknown
from .output.roles import role_advice

_PROGRAM: Final = "halfcard"

_SUMMARIES: Final[Mapping[str, str]] = {
    "review": "judge manifests offline, as the webhook would",
    "serve": "run webhook and extender with a folder of manifests instead of an API server",
    "webhooks": "print the configuration that makes an API server call Halfcard",
    "inspect": "show the cards of the cluster, and which pods use them",
    "explain": "explain why a pod is on its node, or why it is pending",
    "top": "show the current usage of cards, as the nodes' agents measure it",
    "doctor": "find out what is wrong with an installation, and how to fix it",
    "quota": "show the quotas of a namespace: what is allowed, what is used, and by which pods",
    "scheduler-config": "print the configuration with which kube-scheduler calls Halfcard's extender",
    "certs": "show the installation's certificates, or request new ones",
    "simulate": "replay a workload with the same placement, and show the result",
    "demo": "see the real service judge good and bad manifests (under 20 seconds)",
    "version": "show the version of this command, and what runs in the cluster",
    "completion": "print what bash, zsh or fish needs to complete commands and options",
    "dev": "start a real Kubernetes with Halfcard on this machine, from a checkout",
}
"""What each command does; its module in this package has its name, with _ for a dash."""


def parser(program: str = _PROGRAM, only: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser of all commands; with `only`, the others lack their arguments and are not imported.

    An import of all commands costs three times as much CPU as `halfcard --version`.
    """
    halfcard_parser = argparse.ArgumentParser(
        prog=program,
        description="GPUs on Kubernetes, shared in fractions of a card.",
        epilog="Exit codes: 0 success, 1 the answer is no, 2 unusable input, 3 cannot start.",
    )
    halfcard_parser.add_argument("--version", action="version", version=f"halfcard {halfcard.__version__}")
    commands = halfcard_parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, summary in _SUMMARIES.items():
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if only in (None, name):
            _add_arguments(command, name)
    return halfcard_parser


def _add_arguments(command: argparse.ArgumentParser, name: str) -> None:
    module = import_module(f"{__package__}.{name.replace('-', '_')}")
    module.add_arguments(command)
    command.set_defaults(run=module.run, title=f"{_PROGRAM} {name}")


def _called_as(program: str) -> str:
    """Names the command as it was typed: kubectl runs its plugins under names with a dash."""
    return f"kubectl {_PROGRAM}" if Path(program).name == f"kubectl-{_PROGRAM}" else _PROGRAM


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return _run(sys.argv[1:] if argv is None else [*argv])
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _run(argv: Sequence[str]) -> int:
    if argv[:1] == [completion.HIDDEN]:
        return _complete(argv[1:])
    halfcard_parser = parser(_called_as(sys.argv[0]), only=next(iter(argv), ""))
    refuse_misspelled_command(halfcard_parser, argv)
    arguments, unknown = halfcard_parser.parse_known_args(argv)
    if unknown:
        refuse_unknown(halfcard_parser, argv, unknown)
    try:
        code: int = arguments.run(arguments)
    except (UnusableInputError, UnreadableError) as error:
        print(f"{arguments.title}: {error}", file=sys.stderr)
        command = meant(halfcard_parser, argv).prog.removeprefix(f"{halfcard_parser.prog} ")
        if advice := role_advice(command, str(error)):
            print(f"{arguments.title}: {advice}", file=sys.stderr)
        return EXIT_USAGE
    return code


def _complete(words: Sequence[str]) -> int:
    return completion.print_candidates(parser(only=next(iter(words), "")), words)


def complete() -> int:
    """Completes `kubectl halfcard`, as kubectl asks its plugins."""
    return completion.print_for_kubectl(parser(only=next(iter(sys.argv[1:]), "")), sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

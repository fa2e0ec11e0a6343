"""The `halfcard` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import halfcard
from halfcard.exit_codes import EXIT_OK

from . import certs, demo, dev, doctor, explain, inspect, quota, review, serve, simulate, top, webhooks

_PROGRAM: Final = "halfcard"


def parser(program: str = _PROGRAM) -> argparse.ArgumentParser:
    halfcard_parser = argparse.ArgumentParser(
        prog=program,
        description="GPUs on Kubernetes, shared in fractions of a card.",
        epilog="Exit codes: 0 done and allowed, 1 something was refused, 2 unusable input, 3 could not start.",
    )
    halfcard_parser.add_argument("--version", action="version", version=f"halfcard {halfcard.__version__}")
    commands = halfcard_parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, module, summary in (
        ("review", review, "judge manifests offline, as the webhook would"),
        ("serve", serve, "run the webhook beside a folder of manifests, without an API server"),
        ("webhooks", webhooks, "print the configuration that makes an API server ask Halfcard"),
        ("inspect", inspect, "show which cards are there, what is given away of them, and to whom"),
        ("explain", explain, "say why a pod is where it is, or what is in its way"),
        ("top", top, "show who uses what of the cards now, as the nodes' agents see it"),
        ("doctor", doctor, "find out what is wrong with an installation, and how to mend it"),
        ("quota", quota, "show what a namespace may have of cards, what it has, and who holds it"),
        ("certs", certs, "show the installation's certificates and who trusts them, or ask for new ones"),
        ("simulate", simulate, "replay a workload through the same placement, and see what it comes to"),
        ("demo", demo, "see the real service judge good and bad manifests (under 20 seconds)"),
        ("dev", dev, "have a real Kubernetes with Halfcard in it, on this machine, from a checkout"),
    ):
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return halfcard_parser


def _called_as(program: str) -> str:
    """Names the command as it was typed: kubectl runs its plugins under names with a dash."""
    return f"kubectl {_PROGRAM}" if Path(program).name == f"kubectl-{_PROGRAM}" else _PROGRAM


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser(_called_as(sys.argv[0])).parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    return code


if __name__ == "__main__":
    sys.exit(main())

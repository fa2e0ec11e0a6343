"""The `halfcard` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import halfcard
from certs.server_names import InvalidServerName
from certs.store import StoreError
from halfcard.exit_codes import EXIT_OK, EXIT_USAGE, UnusableInputError
from kube.api.calls import NoAnswerError
from kube.api.list_watch import ApiError
from kube.manifests.manifest_error import ManifestError
from kube.quota.native_quota_source import ReadError

from . import certs, demo, dev, doctor, explain, inspect, quota, review, serve, simulate, top, webhooks

_PROGRAM: Final = "halfcard"
_UNUSABLE: Final = (
    *(UnusableInputError, ManifestError, InvalidServerName),
    *(ApiError, NoAnswerError, ReadError, StoreError),
)
"""What a command raises when its input or the cluster cannot be read."""


def parser(program: str = _PROGRAM) -> argparse.ArgumentParser:
    halfcard_parser = argparse.ArgumentParser(
        prog=program,
        description="GPUs on Kubernetes, shared in fractions of a card.",
        epilog="Exit codes: 0 success, 1 the answer is no, 2 unusable input, 3 cannot start.",
    )
    halfcard_parser.add_argument("--version", action="version", version=f"halfcard {halfcard.__version__}")
    commands = halfcard_parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, module, summary in (
        ("review", review, "judge manifests offline, as the webhook would"),
        ("serve", serve, "run the webhook with a folder of manifests instead of an API server"),
        ("webhooks", webhooks, "print the configuration that makes an API server call Halfcard"),
        ("inspect", inspect, "show the cards of the cluster, and which pods use them"),
        ("explain", explain, "explain why a pod is on its node, or why it is pending"),
        ("top", top, "show the current usage of cards, as the nodes' agents measure it"),
        ("doctor", doctor, "find out what is wrong with an installation, and how to fix it"),
        ("quota", quota, "show the quotas of a namespace: what is allowed, what is used, and by which pods"),
        ("certs", certs, "show the installation's certificates, or request new ones"),
        ("simulate", simulate, "replay a workload with the same placement, and show the result"),
        ("demo", demo, "see the real service judge good and bad manifests (under 20 seconds)"),
        ("dev", dev, "start a real Kubernetes with Halfcard on this machine, from a checkout"),
    ):
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        module.add_arguments(command)
        command.set_defaults(run=module.run, title=f"{_PROGRAM} {name}")
    return halfcard_parser


def _called_as(program: str) -> str:
    """Names the command as it was typed: kubectl runs its plugins under names with a dash."""
    return f"kubectl {_PROGRAM}" if Path(program).name == f"kubectl-{_PROGRAM}" else _PROGRAM


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser(_called_as(sys.argv[0])).parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except _UNUSABLE as error:
        print(f"{arguments.title}: {error}", file=sys.stderr)
        return EXIT_USAGE
    return code


if __name__ == "__main__":
    sys.exit(main())

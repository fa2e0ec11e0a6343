"""`python -m certs ensure DIR --name NAME…`: makes or renews the certificates of a folder.

Exit codes: 0 done, 2 bad arguments, 3 the folder cannot be kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from certs.folder import CertificateFolderError, ensure
from certs.server_names import InvalidServerName, server_names

DONE: Final = 0
BAD_ARGUMENTS: Final = 2
CANNOT_KEEP: Final = 3


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    try:
        names = server_names(asked.name)
        outcome = ensure(asked.folder, names=names, now=datetime.now(UTC))
    except InvalidServerName as error:
        print(f"certs: {error}", file=sys.stderr)
        return BAD_ARGUMENTS
    except CertificateFolderError as error:
        print(f"certs: {error}", file=sys.stderr)
        return CANNOT_KEEP
    print(f"{asked.folder}: {'renewed' if outcome.changed else 'kept'}: {outcome.reason}")
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m certs", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "ensure",
        help="make or renew ca.crt, ca.key, tls.crt and tls.key",
        epilog="Exit codes: 0 done, 2 bad arguments, 3 the folder cannot be kept.",
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="made with mode 0700 where it is missing")
    command.add_argument(
        "--name",
        action="append",
        required=True,
        help="a DNS name or an IP address that the server is called by; may be given several times",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

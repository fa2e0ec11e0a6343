"""Arguments that every way of starting the webhook shares."""

from __future__ import annotations

import argparse

from serving.address import argument
from serving.process_arguments import add_grace, add_process_arguments


def add_common(parser: argparse.ArgumentParser, *, admission: str, status: str) -> None:
    """`admission` and `status` are the default addresses."""
    parser.add_argument(
        "--admission",
        type=argument,
        default=admission,
        metavar="ADDRESS",
        help="where the webhook listens, over TLS (default %(default)s; port 0: any free one)",
    )
    add_process_arguments(parser, status=status)
    add_grace(parser)

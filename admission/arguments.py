"""Arguments that every way of starting the webhook shares."""

from __future__ import annotations

import argparse
from pathlib import Path

from halfcard import names
from serving.address import argument
from serving.listener import Stopping
from serving.log import LogForm


def add_common(parser: argparse.ArgumentParser, *, admission: str, status: str) -> None:
    """`admission` and `status` are the default addresses."""
    parser.add_argument(
        "--admission",
        type=argument,
        default=admission,
        metavar="ADDRESS",
        help="where the webhook listens, over TLS (default %(default)s; port 0: any free one)",
    )
    parser.add_argument(
        "--status",
        type=argument,
        default=status,
        metavar="ADDRESS",
        help=f"{names.HEALTH_PATH}, {names.READY_PATH} and {names.METRICS_PATH}, without TLS (default %(default)s)",
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")
    parser.add_argument(
        "--grace",
        type=float,
        default=Stopping().grace_s,
        metavar="SECONDS",
        help="how long to serve on as before after SIGTERM (default %(default)s)",
    )
    parser.add_argument("--log", type=LogForm, choices=list(LogForm), default=LogForm.JSON, help="form of log lines")

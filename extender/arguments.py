"""Arguments that all commands that start the extender share."""

from __future__ import annotations

import argparse
from pathlib import Path
from urllib.parse import urlsplit

from halfcard import names
from serving.address import argument
from serving.process_arguments import add_client_ca, add_grace, add_process_arguments


def add_arguments(parser: argparse.ArgumentParser, *, extender: str, status: str) -> None:
    """`extender` and `status` are the default addresses."""
    add_extender_address(parser, extender=extender)
    parser.add_argument(
        "--tls-dir",
        type=Path,
        metavar="DIR",
        help="folder with tls.crt and tls.key; without it the extender serves plain HTTP",
    )
    add_client_ca(parser, otherwise="without it binds are accepted from this machine only")
    parser.add_argument(
        "--advertise",
        type=_url,
        metavar="URL",
        help="URL at which other replicas reach this one (default: the address it listens on)",
    )
    add_process_arguments(parser, status=status)
    add_grace(parser)


def add_extender_address(parser: argparse.ArgumentParser, *, extender: str) -> None:
    parser.add_argument(
        "--extender",
        type=argument,
        default=extender,
        metavar="ADDRESS",
        help="address for calls of kube-scheduler (default %(default)s; port 0: any free port)",
    )


def _url(text: str) -> str:
    """Checks the address for the Lease; a mistake there would fail the first bind that another replica forwards."""
    try:
        url = urlsplit(text)
        complete = url.scheme in ("http", "https") and url.hostname and url.port and not url.path.strip("/")
    except ValueError:  # the port is no number
        complete = False
    if not complete:
        example = f"https://10.0.0.7:{names.EXTENDER_PORT}"
        raise argparse.ArgumentTypeError(f'got "{text}"; a URL with a port and no path, such as {example}')
    return text

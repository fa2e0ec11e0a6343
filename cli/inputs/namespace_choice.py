"""The options by which kubectl users choose one namespace or all of them."""

from __future__ import annotations

import argparse


def add_namespace_arguments(parser: argparse.ArgumentParser, default: str, *, positional: bool = False) -> None:
    """Adds -n and -A, and with `positional` also the bare name; at most one of them is accepted."""
    group = parser.add_mutually_exclusive_group()
    if positional:
        group.add_argument("namespace", nargs="?", metavar="NAMESPACE", default=argparse.SUPPRESS, help=default)
    group.add_argument("-n", "--namespace", metavar="NAME", help=default)
    group.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")

"""Arguments of processes with listeners."""

from __future__ import annotations

import argparse
from pathlib import Path

from halfcard import names

from .address import argument
from .listener import StopTimings
from .log import LogForm


def add_process_arguments(parser: argparse.ArgumentParser, *, status: str) -> None:
    """Adds --status, with the default address `status`, --settings and --log."""
    parser.add_argument(
        "--status",
        type=argument,
        default=status,
        metavar="ADDRESS",
        help=f"{names.HEALTH_PATH}, {names.READY_PATH} and {names.METRICS_PATH}, without TLS (default %(default)s)",
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")
    parser.add_argument("--log", type=LogForm, choices=list(LogForm), default=LogForm.JSON, help="form of log lines")


def add_cluster_arguments(parser: argparse.ArgumentParser, *, in_namespace: str) -> None:
    """Adds --kubeconfig and --namespace; `in_namespace` names what is in that namespace."""
    where = f"where {in_namespace} (default %(default)s)"
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: the pod's service account")
    parser.add_argument("--namespace", default=names.NAMESPACE, metavar="NAME", help=where)


def add_client_ca(parser: argparse.ArgumentParser, *, otherwise: str) -> None:
    """Adds --client-ca, for a process whose callers can show certificates."""
    parser.add_argument(
        "--client-ca", type=Path, metavar="FILE", help=f"callers need a certificate of this CA; {otherwise}"
    )


def add_grace(parser: argparse.ArgumentParser) -> None:
    """Adds --grace, for a process with callers."""
    parser.add_argument(
        "--grace",
        type=float,
        default=StopTimings().grace_s,
        metavar="SECONDS",
        help="how long to serve normally after SIGTERM (default %(default)s)",
    )

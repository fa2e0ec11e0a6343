"""`python -m extender`: runs the scheduler extender for a real API server.

Exit codes: 0 stopped as asked, 2 bad arguments or settings, 3 could not start.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from halfcard import names
from kube.api.access import from_service_account
from kube.api.kubeconfig import from_kubeconfig
from serving.address import Address
from serving.lifecycle import Lifecycle, Main, start
from serving.listener import StopTimings
from serving.log import Log
from serving.process_arguments import add_cluster_arguments
from serving.tls import ReloadingContext, TlsFiles
from settings.settings_file import load_settings

from .arguments import add_arguments
from .malloc import keep_freed_memory
from .options import ReplicaOptions, extender_options
from .process import Extender


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.client_ca is not None and arguments.tls_dir is None:
        parser.error("argument --client-ca: callers show certificates within TLS; add --tls-dir DIR")
    log = Log(form=arguments.log)
    return start(lambda: _extender(arguments, log), log=log)


def _extender(arguments: argparse.Namespace, log: Log) -> Main:
    settings = load_settings(arguments.settings)
    access = from_kubeconfig(arguments.kubeconfig) if arguments.kubeconfig else from_service_account()
    place = replica_options(arguments)
    keep_freed_memory()

    async def serve(lifecycle: Lifecycle) -> None:
        extender = Extender(
            access,
            extender_options(settings),
            place,
            instance=arguments.instance,
            namespace=arguments.namespace,
            log=log,
        )
        await extender.run(lifecycle, StopTimings(grace_s=arguments.grace))

    return serve


def replica_options(arguments: argparse.Namespace) -> ReplicaOptions:
    pair: Path | None = arguments.tls_dir
    tls = None
    if pair is not None:
        tls = ReloadingContext(TlsFiles(pair / "tls.crt", pair / "tls.key", arguments.client_ca))
    advertised = arguments.advertise or _own_address(arguments.extender, is_tls=tls is not None)
    return ReplicaOptions(arguments.extender, arguments.status, advertised, tls, arguments.client_ca, pair)


def _own_address(listening: Address, *, is_tls: bool) -> str:
    """How another replica on this network reaches us."""
    host = listening.host if listening.host not in ("", "0.0.0.0", "::") else _host_address()  # noqa: S104 - compared
    return f"{'https' if is_tls else 'http'}://{Address(host, listening.port)}"


def _host_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m extender", description=__doc__)
    add_arguments(parser, extender=f":{names.EXTENDER_PORT}", status=f":{names.STATUS_PORT}")
    add_cluster_arguments(parser, in_namespace="the Lease of the replica that leads is")
    parser.add_argument(
        "--instance", default=socket.gethostname(), metavar="NAME", help="this replica's name (default %(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""`python -m quota`: runs the quota service for a real API server.

Exit codes: 0 stopped as asked, 2 bad arguments or settings, 3 could not start.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence

from halfcard import names
from halfcard.quota.derived_resources import DerivedSettings
from kube.api.access import from_service_account
from kube.api.kubeconfig import from_kubeconfig
from serving.lifecycle import Lifecycle, Main, start
from serving.log import Log
from serving.process_arguments import add_cluster_arguments, add_process_arguments
from settings.settings_file import load_settings

from .process import QuotaOptions, QuotaService


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    log = Log(form=arguments.log)
    return start(lambda: _service(arguments, log), log=log)


def _service(arguments: argparse.Namespace, log: Log) -> Main:
    settings = load_settings(arguments.settings)
    access = from_kubeconfig(arguments.kubeconfig) if arguments.kubeconfig else from_service_account()

    async def serve(lifecycle: Lifecycle) -> None:
        service = QuotaService(
            access,
            QuotaOptions(
                settings.enabled_dialects(),
                settings.capacity_rules(),
                settings.repair_quotas_at_start,
                settings.derived_settings() or DerivedSettings(),
            ),
            arguments.status,
            instance=arguments.instance,
            namespace=arguments.namespace,
            log=log,
        )
        await service.run(lifecycle)

    return serve


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m quota", description=__doc__)
    add_cluster_arguments(parser, in_namespace="the Lease and the ledgers are")
    parser.add_argument(
        "--instance", default=socket.gethostname(), metavar="NAME", help="this replica's name (default %(default)s)"
    )
    add_process_arguments(parser, status=f":{names.STATUS_PORT}")
    return parser


if __name__ == "__main__":
    sys.exit(main())

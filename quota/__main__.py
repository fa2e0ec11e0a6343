"""`python -m quota`: runs the quota service for a real API server.

Exit codes: 0 stopped as asked, 2 bad arguments or settings, 3 could not start.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from halfcard import names
from halfcard.exit_codes import EXIT_USAGE
from halfcard.quota.derived_resources import DerivedSettings
from kube.api.access import AccessError, from_kubeconfig, from_service_account
from serving.lifecycle import Lifecycle, run
from serving.log import Log
from serving.process_arguments import add_process_arguments
from settings.installation import SettingsError
from settings.settings_file import load_settings

from .process import QuotaOptions, QuotaService


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    log = Log(form=arguments.log)
    try:
        settings = load_settings(arguments.settings)
        access = from_kubeconfig(arguments.kubeconfig) if arguments.kubeconfig else from_service_account()
    except (SettingsError, AccessError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the sentence says it; a trace would hide it
        return EXIT_USAGE

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

    return run(serve, log=log)


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m quota", description=__doc__)
    found.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: the pod's service account")
    found.add_argument(
        "--instance", default=socket.gethostname(), metavar="NAME", help="this replica's name (default %(default)s)"
    )
    found.add_argument(
        "--namespace",
        default=names.NAMESPACE,
        metavar="NAME",
        help="where the Lease and the ledgers are (default %(default)s)",
    )
    add_process_arguments(found, status=f":{names.STATUS_PORT}")
    return found


if __name__ == "__main__":
    sys.exit(main())

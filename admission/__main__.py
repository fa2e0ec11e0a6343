"""`python -m admission`: runs the webhook for a real API server.

Exit codes: 0 stopped as asked, 2 bad arguments or settings, 3 could not start.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from halfcard import names
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_USAGE
from kube.api.access import AccessError, from_kubeconfig, from_service_account
from kube.node_source import NodeSource
from serving.errors import CannotServeError
from serving.lifecycle import run
from serving.listener import StopTimings
from serving.log import Log
from serving.tls import ReloadingContext, TlsFiles
from settings.installation import SettingsError
from settings.settings_file import load_settings

from .arguments import add_common
from .policy_settings import policy_of
from .process import QuotaParts, Webhook, WebhookAddresses


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    log = Log(form=arguments.log)
    try:
        webhook = _webhook(arguments, log)
    except (SettingsError, AccessError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the sentence says it; a trace would hide it
        return EXIT_USAGE
    except CannotServeError as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - as above
        return EXIT_CANNOT_START
    return run(webhook.run, log=log)


def _webhook(arguments: argparse.Namespace, log: Log) -> Webhook:
    settings = load_settings(arguments.settings)
    access = from_kubeconfig(arguments.kubeconfig) if arguments.kubeconfig else from_service_account()
    policy, source = policy_of(settings), NodeSource(access, settings.capacity_rules())
    return Webhook(
        policy,
        source,
        ReloadingContext(TlsFiles(arguments.tls_dir / "tls.crt", arguments.tls_dir / "tls.key")),
        WebhookAddresses(arguments.admission, arguments.status),
        StopTimings(grace_s=arguments.grace),
        log,
        QuotaParts.of(access, arguments.namespace, policy, source.view, log),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m admission", description=__doc__)
    parser.add_argument(
        "--tls-dir", type=Path, required=True, metavar="DIR", help="holds tls.crt and tls.key; followed as they change"
    )
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: the pod's service account")
    parser.add_argument(
        "--namespace", default=names.NAMESPACE, metavar="NAME", help="where the ledgers are (default %(default)s)"
    )
    add_common(parser, admission=f":{names.ADMISSION_PORT}", status=f":{names.STATUS_PORT}")
    return parser


if __name__ == "__main__":
    sys.exit(main())

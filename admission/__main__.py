"""`python -m admission`: runs the webhook for a real API server.

Exit codes: 0 stopped as asked, 2 bad arguments or settings, 3 could not start.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from halfcard import names
from kube.api.access import from_service_account
from kube.api.kubeconfig import from_kubeconfig
from kube.node_source import NodeSource
from serving.lifecycle import start
from serving.listener import StopTimings
from serving.log import Log
from serving.process_arguments import add_client_ca, add_cluster_arguments
from serving.tls import ReloadingContext, TlsFiles
from settings.settings_file import load_settings

from .arguments import add_common
from .entry.callers import TokenFile
from .policy_settings import policy_of
from .process import QuotaParts, Webhook, WebhookAddresses


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.caller_tokens is None and arguments.client_ca is None:
        parser.error("callers must prove that they are the API server: add --caller-tokens FILE, or --client-ca FILE")
    log = Log(form=arguments.log)
    return start(lambda: _webhook(arguments, log).run, log=log)


def _webhook(arguments: argparse.Namespace, log: Log) -> Webhook:
    settings = load_settings(arguments.settings)
    access = from_kubeconfig(arguments.kubeconfig) if arguments.kubeconfig else from_service_account()
    policy, source = policy_of(settings), NodeSource(access, settings.capacity_rules())
    return Webhook(
        policy,
        source,
        ReloadingContext(TlsFiles(arguments.tls_dir / "tls.crt", arguments.tls_dir / "tls.key", arguments.client_ca)),
        WebhookAddresses(arguments.admission, arguments.status),
        StopTimings(grace_s=arguments.grace),
        log,
        TokenFile(arguments.caller_tokens) if arguments.caller_tokens is not None else None,
        QuotaParts(access, arguments.namespace, policy, source.view, log),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m admission", description=__doc__)
    parser.add_argument(
        "--tls-dir", type=Path, required=True, metavar="DIR", help="holds tls.crt and tls.key; followed as they change"
    )
    parser.add_argument(
        "--caller-tokens",
        type=Path,
        metavar="FILE",
        help="callers need one of these tokens in the path; followed as it changes",
    )
    add_client_ca(parser, otherwise="with --caller-tokens the token is enough")
    add_cluster_arguments(parser, in_namespace="the ledgers are")
    add_common(parser, admission=f":{names.ADMISSION_PORT}", status=f":{names.STATUS_PORT}")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""`python -m certs keep`: keeps an installation's certificates and webhooks; `ensure`: renews those in a folder, once.

Exit codes: 0 done or stopped as asked, 2 bad arguments or settings, 3 could not start, or the folder cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from certs.chains import chains
from certs.folder.certificate_folder import CertificateFolderError, ensure
from certs.process import CertificateService
from certs.server_names import InvalidServerName, server_names
from certs.webhooks.registration import RegisteredWebhooks
from certs.webhooks.registration_plan import wanted_webhooks
from halfcard import names
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK, EXIT_USAGE
from kube.api.access import from_service_account
from kube.api.kubeconfig import from_kubeconfig
from serving.lifecycle import Lifecycle, Main, start
from serving.log import Log
from serving.process_arguments import add_cluster_arguments, add_process_arguments
from settings.settings_file import load_settings

_OWN: Final = "halfcard"


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    code: int = asked.run(asked)
    return code


def _keep(asked: argparse.Namespace) -> int:
    log = Log(form=asked.log)
    return start(lambda: _service(asked, log), log=log)


def _service(asked: argparse.Namespace, log: Log) -> Main:
    webhooks = wanted_webhooks(load_settings(asked.settings), fails=asked.failure_policy)
    access = from_kubeconfig(asked.kubeconfig) if asked.kubeconfig else from_service_account()
    kept = chains(asked.namespace)
    registered = RegisteredWebhooks(webhooks, asked.namespace, kept[0].leaves[0])

    async def serve(lifecycle: Lifecycle) -> None:
        own = kept if asked.issuer == _OWN else ()
        await CertificateService(access, asked.status, own, log, registered=registered).run(lifecycle)

    return serve


def _ensure(asked: argparse.Namespace) -> int:
    try:
        outcome = ensure(asked.folder, names=server_names(asked.name), now=datetime.now(UTC))
    except InvalidServerName as error:
        print(f"certs: {error}", file=sys.stderr)
        return EXIT_USAGE
    except CertificateFolderError as error:
        print(f"certs: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    print(f"{asked.folder}: {'renewed' if outcome.changed else 'kept'}: {outcome.reason}")
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m certs", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_keep(
        commands.add_parser(
            "keep",
            help="renew the Secrets of an installation and keep its webhooks registered, until it is stopped",
            epilog="Exit codes: 0 stopped as asked, 2 bad arguments or settings, 3 could not start.",
        )
    )
    _add_ensure(
        commands.add_parser(
            "ensure",
            help="create or renew ca.crt, ca.key, tls.crt and tls.key of a folder",
            epilog="Exit codes: 0 done, 2 bad arguments, 3 the folder cannot be used.",
        )
    )
    return parser


def _add_keep(command: argparse.ArgumentParser) -> None:
    add_cluster_arguments(command, in_namespace="the Secrets are")
    command.add_argument(
        "--issuer",
        choices=(_OWN, "cert-manager"),
        default=_OWN,
        help="who makes the certificates; with cert-manager, only the webhooks are registered (default %(default)s)",
    )
    command.add_argument(
        "--failure-policy",
        choices=("Fail", "Ignore"),
        default="Fail",
        help="what happens to pods that request GPUs while the webhook is down (default %(default)s)",
    )
    add_process_arguments(command, status=f":{names.STATUS_PORT}")
    command.set_defaults(run=_keep)


def _add_ensure(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="created with mode 0700 if it is missing")
    command.add_argument(
        "--name",
        action="append",
        required=True,
        help="a DNS name or an IP address of the server; may be repeated",
    )
    command.set_defaults(run=_ensure)


if __name__ == "__main__":
    sys.exit(main())

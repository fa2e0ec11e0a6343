"""`halfcard serve`: runs webhook and extender with a folder of manifests instead of an API server.

Same code, same decisions.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from admission.arguments import add_common
from admission.entry.callers import TokenFile
from admission.policy_settings import policy_of
from admission.process import ADMISSION, STATUS, Webhook, WebhookAddresses
from certs.folder.certificate_folder import CertificateFiles, CertificateFolderError, ensure
from certs.folder.folder_renewal import FolderRenewal
from certs.server_names import ServerNames, server_names
from extender.arguments import add_extender_address
from extender.folder.folder_extender import FolderExtender
from extender.options import extender_options
from extender.process import EXTENDER
from halfcard import names
from halfcard.caller_tokens import path_with, written_tokens
from halfcard.exit_codes import EXIT_CANNOT_START
from kube.manifests.folder_source import FolderSource
from serving.address import Address
from serving.background_jobs import report_problems
from serving.errors import CannotServeError
from serving.lifecycle import Lifecycle
from serving.lifecycle import run as run_process
from serving.listener import Listener, StopTimings
from serving.log import Log
from serving.tls import ReloadingContext, TlsFiles
from settings.settings_file import load_settings

_LOCAL: Final = ("127.0.0.1", "::1", "localhost")
_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - what an address is compared with, not where we listen
_SERVICE: Final = f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", type=Path, required=True, metavar="DIR", help="manifests of the cluster; followed for changes"
    )
    parser.add_argument(
        "--tls-dir", type=Path, metavar="DIR", help="the folder of CA and certificate (default STATE/.tls)"
    )
    add_extender_address(parser, extender=f"127.0.0.1:{names.EXTENDER_PORT}")
    add_common(parser, admission=f"127.0.0.1:{names.ADMISSION_PORT}", status=f"127.0.0.1:{names.STATUS_PORT}")


def run(arguments: argparse.Namespace) -> int:
    log = Log(form=arguments.log)
    try:
        settings = load_settings(arguments.settings)
        source = FolderSource(arguments.state, settings.capacity_rules())
        extender = FolderExtender(source, extender_options(settings), log)
        files, wanted = _certificates(arguments)
        tls = ReloadingContext(TlsFiles(files.certificate, files.key))
        tokens = TokenFile(_token_file(arguments.state))
    except (CertificateFolderError, CannotServeError) as error:
        print(f"halfcard serve: {error}", file=sys.stderr)
        return EXIT_CANNOT_START

    async def serve(lifecycle: Lifecycle) -> None:
        where: Address = arguments.extender
        webhook = Webhook(
            policy_of(settings),
            source,
            tls,
            WebhookAddresses(arguments.admission, arguments.status),
            StopTimings(grace_s=arguments.grace),
            log,
            tokens,
            beside=[Listener(EXTENDER, where.host, where.port, extender, tls)],
        )
        keeper = FolderRenewal(files.folder, wanted, log=log)
        await webhook.run(
            lifecycle,
            on_ready=lambda found: announce(found, tokens.accepted[0], files.ca),
            jobs=[("renew certificates", keeper.run), report_problems(extender.problems, log)],
        )

    return run_process(serve, log=log)


def _certificates(arguments: argparse.Namespace) -> tuple[CertificateFiles, ServerNames]:
    hosts = {arguments.admission.host, arguments.extender.host}.difference(_EVERYWHERE)
    wanted = server_names({*_LOCAL, _SERVICE, f"{_SERVICE}.svc", *hosts})
    folder = arguments.tls_dir or arguments.state / ".tls"
    return ensure(folder, names=wanted, now=datetime.now(UTC)).files, wanted


def _token_file(state: Path) -> Path:
    """Returns the file of caller tokens; made at the first start, for its owner alone."""
    file = state / ".caller-tokens"
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file
    except OSError as error:
        raise CannotServeError(f"caller tokens: {error}") from error
    with open(descriptor, "wb") as made:  # noqa: PTH123 - a descriptor has no path
        made.write(written_tokens([secrets.token_hex(32)]))
    return file


def announce(addresses: Mapping[str, Address], token: str, ca: Path) -> None:
    """Prints one line for the calling program to standard output; everything else goes to the log."""
    extender = {"extender": f"https://{addresses[EXTENDER]}"} if EXTENDER in addresses else {}
    ready = {
        "ready": True,
        "admission": f"https://{addresses[ADMISSION]}{path_with(token, '')}",
        **extender,
        "status": f"http://{addresses[STATUS]}",
        "ca": str(ca.resolve()),
    }
    print(json.dumps(ready), flush=True)

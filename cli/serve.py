"""`halfcard serve`: the webhook beside a folder of manifests instead of an API server. Same code, same decisions."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from admission.policy import Policy
from admission.process import ADMISSION, STATUS, Addresses, listeners
from admission.settings import SettingsError
from certs.folder import CertificateFiles, CertificateFolderError, ensure
from certs.keeper import Keeper
from certs.server_names import InvalidServerName, ServerNames, server_names
from halfcard import names
from kube.folder import FolderSource
from kube.manifest_error import ManifestError
from serving.address import Address, parse_address
from serving.lifecycle import Lifecycle
from serving.lifecycle import run as run_process
from serving.listener import Stopping, serve
from serving.log import Log, LogForm
from serving.tls import ReloadingContext, TlsFiles

from .exits import EXIT_CANNOT_START, EXIT_OK, EXIT_USAGE
from .settings_file import settings_from

_REPORT_EVERY_S: Final = 1.0
_LOCAL: Final = ("127.0.0.1", "::1", "localhost")
_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - what it is compared with, not where we listen
_SERVICE: Final = f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    address = parse_address_argument
    parser.add_argument("--state", type=Path, required=True, metavar="DIR", help="manifests of the cluster; watched")
    parser.add_argument(
        "--admission",
        type=address,
        default=f"127.0.0.1:{names.ADMISSION_PORT}",
        metavar="ADDRESS",
        help="where the webhook listens, over TLS (default %(default)s; port 0: any free one)",
    )
    parser.add_argument(
        "--status",
        type=address,
        default=f"127.0.0.1:{names.STATUS_PORT}",
        metavar="ADDRESS",
        help="/healthz, /readyz and /metrics, without TLS (default %(default)s)",
    )
    parser.add_argument("--tls-dir", type=Path, metavar="DIR", help="keeps CA and certificate (default STATE/.tls)")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")
    parser.add_argument(
        "--grace",
        type=float,
        default=Stopping().grace_s,
        metavar="SECONDS",
        help="how long to serve on after SIGTERM (default %(default)s)",
    )
    parser.add_argument("--log", type=LogForm, choices=list(LogForm), default=LogForm.JSON, help="form of log lines")


def parse_address_argument(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Setup:
    """All that a running service was made from."""

    policy: Policy
    source: FolderSource
    files: CertificateFiles
    server_names: ServerNames
    addresses: Addresses
    stopping: Stopping
    log: Log


def run(arguments: argparse.Namespace) -> int:
    log = Log(form=arguments.log)
    try:
        setup = _setup(arguments, log)
    except (ManifestError, SettingsError, InvalidServerName) as error:
        return _failed(error, EXIT_USAGE)
    except (CertificateFolderError, OSError) as error:
        return _failed(error, EXIT_CANNOT_START)
    code = run_process(lambda lifecycle: _serve(setup, lifecycle), log=log)
    return EXIT_OK if code == 0 else EXIT_CANNOT_START


def _failed(error: Exception, code: int) -> int:
    print(f"halfcard serve: {error}", file=sys.stderr)
    return code


def _setup(arguments: argparse.Namespace, log: Log) -> Setup:
    settings = settings_from(arguments.settings)
    source = FolderSource(arguments.state, settings.dealings())
    folder = arguments.tls_dir or arguments.state / ".tls"
    wanted = server_names({*_LOCAL, _SERVICE, f"{_SERVICE}.svc", *_callable(arguments.admission.host)})
    outcome = ensure(folder, names=wanted, now=datetime.now(UTC))
    addresses = Addresses(arguments.admission, arguments.status)
    stopping = Stopping(grace_s=arguments.grace)
    return Setup(settings.policy(), source, outcome.files, wanted, addresses, stopping, log)


def _callable(host: str) -> tuple[str, ...]:
    """An address to listen on is one to be called by, unless it stands for all of them."""
    return () if host in _EVERYWHERE else (host,)


async def _serve(setup: Setup, lifecycle: Lifecycle) -> None:
    tls = ReloadingContext(TlsFiles(setup.files.certificate, setup.files.key))
    open_listeners = listeners(
        setup.policy,
        setup.source.view,
        tls,
        addresses=setup.addresses,
        checks={"state": lambda: None if setup.source.ready() else "the cluster has not been seen yet"},
        lifecycle=lifecycle,
        log=setup.log,
    )
    async with _in_background(setup):
        await serve(
            open_listeners,
            lifecycle=lifecycle,
            log=setup.log,
            stopping=setup.stopping,
            on_ready=lambda found: announce(found, setup.files.ca),
        )


@contextlib.asynccontextmanager
async def _in_background(setup: Setup) -> AsyncIterator[None]:
    """The folder is watched and the certificates are kept for as long as the service runs."""
    keeper = Keeper(setup.files.folder, setup.server_names, log=setup.log)
    jobs = (setup.source.watch(), keeper.run(), _report(setup.source, setup.log))
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _report(source: FolderSource, log: Log) -> None:
    """Each problem with the folder is said once, and once more when it comes back."""
    said: tuple[str, ...] = ()
    while True:
        problems = source.problems()
        for problem in problems:
            if problem not in said:
                log.warning("state", problem=problem)
        said = problems
        await asyncio.sleep(_REPORT_EVERY_S)


def announce(addresses: Mapping[str, Address], ca: Path) -> None:
    """One line for whoever started us, on standard output; everything else goes to the log."""
    ready = {
        "ready": True,
        "admission": f"https://{addresses[ADMISSION]}",
        "status": f"http://{addresses[STATUS]}",
        "ca": str(ca.resolve()),
    }
    print(json.dumps(ready), flush=True)

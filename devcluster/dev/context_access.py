"""Access to an existing cluster: the user's, the webhook's, and the address at which its API server reaches this
machine.
"""

from __future__ import annotations

import ipaddress
import json
import secrets
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from halfcard import names
from halfcard.caller_tokens import read_tokens, written_tokens

from ..build.binaries import program_path
from ..control_plane.network import free_port
from ..control_plane.pki import ClusterAuthority
from ..errors import CannotStartError
from .state import DevFolder

_COMMAND_TIMEOUT_S: Final = 90.0


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """The options of `up --context`; `advertise` is empty if our address towards the cluster is to be used."""

    context: str
    advertise: str = ""


@dataclass(frozen=True, slots=True)
class ContextInstallation:
    """What `up` created in an existing cluster: the mark of our objects, and where its API server reaches us."""

    context: str
    mark: str
    host: str
    listen: str
    port: int

    @staticmethod
    def of(folder: DevFolder) -> ContextInstallation:
        return ContextInstallation(**json.loads(folder.borrowed.read_text()))

    @property
    def url(self) -> str:
        return f"https://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def kubectl(folder: DevFolder, *arguments: str, stdin: str = "") -> str:
    """Runs kubectl as the user, whose environment may be needed to log in.

    Raises:
        CannotStartError: it failed, with kubectl's message.
    """
    command = [str(folder.programs / "kubectl"), f"--kubeconfig={folder.kubeconfig}", *arguments]
    return _run(command, stdin)


def _run(command: Sequence[str], stdin: str = "") -> str:
    said = f"`{' '.join(command)}`"
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CannotStartError(f"{said} had not ended after {_COMMAND_TIMEOUT_S:g} s") from error
    if done.returncode:
        raise CannotStartError(f"{said} failed: {done.stderr.strip()}")
    return done.stdout


def copy_access(folder: DevFolder, context: str) -> str:
    """Copies the user's access, so that later changes of the user's files have no effect; returns the API server's
    URL.
    """
    program = shutil.which("kubectl") or str(program_path("kubectl"))
    folder.programs.mkdir()
    (folder.programs / "kubectl").symlink_to(program)
    command = [program, "config", "view", "--minify", "--flatten", "--raw", "--output=json", f"--context={context}"]
    try:
        access = _run(command)
    except CannotStartError as error:
        raise CannotStartError(f'the kubeconfig has no usable context "{context}": {error}') from error
    folder.kubeconfig.touch(mode=0o600)
    folder.kubeconfig.write_text(access)
    return str(json.loads(access)["clusters"][0]["cluster"]["server"])


def agree(folder: DevFolder, wanted: ContextOptions, server: str) -> ContextInstallation:
    host = wanted.advertise or _address_towards(server)
    listen = "" if wanted.advertise else host  # it may be an address of something in between
    loan = ContextInstallation(
        wanted.context, secrets.token_hex(8), host, listen, free_port("" if ":" in listen else listen)
    )
    folder.borrowed.write_text(json.dumps(asdict(loan)))
    folder.cluster.mkdir()
    authority = ClusterAuthority(folder.cluster / "pki")
    addresses, hosts = ([host], []) if _is_address(host) else ([], [host])
    pair = authority.server("tls", addresses, names=hosts)
    shutil.copy(authority.certificate, folder.authority)
    assert (pair.certificate.name, pair.key.name) == ("tls.crt", "tls.key")  # what `--tls-dir` looks for
    return loan


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _address_towards(server: str) -> str:
    """Returns the address from which the kernel would send a packet to the server; sends none."""
    where = urlsplit(server)
    try:
        found = socket.getaddrinfo(where.hostname, where.port or 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(found[0], socket.SOCK_DGRAM) as probe:
            probe.connect(found[4])
            return str(probe.getsockname()[0])
    except OSError as error:
        raise CannotStartError(f"no way to the API server {server}: {error}; is the cluster running?") from error


def access_of_account(folder: DevFolder, token: Path) -> str:
    """Returns the webhook's kubeconfig: the user's cluster, and a token that is renewed in its file."""
    cluster = json.loads(folder.kubeconfig.read_text())["clusters"][0]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": "webhook", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "webhook", "context": {"cluster": cluster["name"], "user": "webhook"}}],
        "current-context": "webhook",
    }
    return json.dumps(config)


def renew_token(folder: DevFolder, token: Path) -> None:
    made = kubectl(
        folder, "create", "token", names.ADMISSION_SERVICE, f"--namespace={names.NAMESPACE}", "--duration=2h"
    )
    draft = token.with_suffix(".draft")
    draft.touch(mode=0o600)
    draft.write_text(made)
    draft.replace(token)


def caller_tokens(folder: DevFolder) -> Path:
    """Returns the file with the token that proves that the caller is that cluster's API server."""
    file = folder.cluster / "caller-tokens"
    if not file.exists():
        file.write_bytes(written_tokens([secrets.token_hex(32)]))
    return file


def caller_token(folder: DevFolder) -> str:
    return read_tokens(caller_tokens(folder).read_bytes())[0]

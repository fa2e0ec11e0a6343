"""The program with which a user of a kubeconfig logs in (`exec`): what it reads and what it prints, as plain data.

The protocol is client.authentication.k8s.io, v1 and v1beta1; kubectl 1.24 removed the versions before them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

_GROUP: Final = "client.authentication.k8s.io"
_CLUSTER_SETTINGS: Final = f"{_GROUP}/exec"
"""The name of the extension of a cluster that is the program's configuration."""
_NEVER_ENDS: Final = datetime.max.replace(tzinfo=UTC)
_MARGIN: Final = timedelta(seconds=30)
_MARGIN_SHARE: Final = 10
"""A credential that lives for seconds is renewed only in the last tenth of its life."""


class _Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    value: str = ""


class ExecProgram(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The field `exec` of a user; equal ones share a login."""

    api_version: Literal["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]
    command: str
    args: tuple[str, ...] = ()
    env: tuple[_Variable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: Literal["Never", "IfAvailable", "Always", ""] = ""

    def variables(self) -> dict[str, str]:
        return {each.name: each.value for each in self.env}


def read_program(written: Mapping[str, Any]) -> ExecProgram:
    """Raises ValueError for what kubectl would refuse or ignore."""
    program = msgspec.convert({name: value for name, value in written.items() if value is not None}, ExecProgram)
    if not program.command:
        raise ValueError("command is empty")
    if not program.interactive_mode and program.api_version == f"{_GROUP}/v1":
        raise ValueError(f"{program.api_version} requires interactiveMode: Never, IfAvailable or Always")
    return program


def cluster_info(cluster: Mapping[str, Any], authority: str | None) -> str:
    """Returns what a program with `provideClusterInfo` reads about its cluster, as JSON; the CA is base64 already."""
    kept = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
    info = {name: cluster[name] for name in kept if cluster.get(name)}
    settings = [each.get("extension") for each in cluster.get("extensions") or () if _is_for_programs(each)]
    authorities = {"certificate-authority-data": authority} if authority else {}
    return json.dumps({**info, **authorities, **({"config": settings[0]} if settings else {})})


def _is_for_programs(extension: Any) -> bool:
    return isinstance(extension, dict) and extension.get("name") == _CLUSTER_SETTINGS


def exec_info(program: ExecProgram, cluster: str, *, interactive: bool) -> str:
    """Returns the value of KUBERNETES_EXEC_INFO."""
    about = {"cluster": json.loads(cluster)} if program.provide_cluster_info else {}
    spec = {"interactive": interactive, **about}
    return json.dumps({"apiVersion": program.api_version, "kind": "ExecCredential", "spec": spec})


# --- the output ------------------------------------------------------------------------------------------------------


class Credential(NamedTuple):
    """A token, a certificate with its key, or both; `renew_at` is shortly before the end."""

    token: str
    certificate: str
    key: str
    renew_at: datetime


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _Printed(msgspec.Struct, rename="camel"):
    api_version: str
    kind: Literal["ExecCredential"]
    status: _Status


_PRINTED: Final = msgspec.json.Decoder(_Printed)


def read_credential(program: ExecProgram, printed: bytes, now: datetime) -> Credential:
    """Raises ValueError, whose text never has the credential."""
    found = _PRINTED.decode(printed)
    if found.api_version != program.api_version:
        raise ValueError(f"its apiVersion is {found.api_version}, and the kubeconfig requires {program.api_version}")
    status = found.status
    token, certificate, key = status.token or "", status.client_certificate_data or "", status.client_key_data or ""
    if not token and not certificate:
        raise ValueError("it has neither a token nor a client certificate")
    if bool(certificate) != bool(key):
        raise ValueError("it has a client certificate or a key, not both")
    if not (token.isascii() and token.isprintable()):
        raise ValueError("its token has characters that cannot be in a header")
    return Credential(token, certificate, key, _renew_at(status.expiration_timestamp, now))


def _renew_at(end: datetime | None, now: datetime) -> datetime:
    return _NEVER_ENDS if end is None else end - min(_MARGIN, max(end - now, timedelta()) / _MARGIN_SHARE)

"""Reads the kubeconfig that kubectl uses.

Invariant: what would be ignored is refused. A command that ignored `as:` would act as the administrator where kubectl
acts as somebody else, and one that ignored `proxy-url` would talk to another server.
"""

from __future__ import annotations

import base64
import os
import shlex
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ..manifests.manifest_error import ManifestError
from ..manifests.yaml_documents import parse_yaml
from .access import Access, AccessError, load_pair, read_text, tls_context
from .environment_proxy import environment_proxy
from .kubeconfig_fields import refused_field

_DEFAULT_PORT: Final = {"https": 443, "http": 80}
_WAY_OUT: Final = (
    "run `kubectl proxy --port=8001 --kubeconfig={file}{context}` in another terminal, and repeat the command with"
    " --server http://127.0.0.1:8001"
)


def from_server(url: str) -> Access:
    """Returns the access to `kubectl proxy`, which adds the credentials.

    Raises:
        AccessError: the URL is of another kind.
    """
    server = urlsplit(url)
    if server.scheme != "http" or not server.hostname:
        raise AccessError(f'--server: got "{url}"; it is the address of `kubectl proxy`, such as http://127.0.0.1:8001')
    return Access(server.hostname, server.port or _DEFAULT_PORT["http"], prefix=server.path.rstrip("/"))


def from_kubeconfig(path: Path, context: str | None = None) -> Access:
    """Reads the access that kubectl would use for a context, or for the current one.

    Raises:
        AccessError: the file has no such access, or a kind that is not supported.
    """
    config = _Kubeconfig(path, _document(path), context)
    chosen = config.entry("contexts", config.context_name)
    access = config.access(config.entry("clusters", chosen.get("cluster")), config.entry("users", chosen.get("user")))
    return replace(access, namespace=str(chosen.get("namespace") or ""))


@dataclass(frozen=True, slots=True)
class _Kubeconfig:
    path: Path
    content: Mapping[str, Any]
    asked_context: str | None

    @property
    def context_name(self) -> str:
        return self.asked_context or str(self.content.get("current-context") or "")

    def entry(self, section: str, name: object) -> Mapping[str, Any]:
        for item in self.content.get(section) or ():
            if isinstance(item, dict) and item.get("name") == name:
                found = item.get(section.removesuffix("s"))
                return self._understood(section, name, found if isinstance(found, dict) else {})
        items = [item for item in self.content.get(section) or () if isinstance(item, dict)]
        known = ", ".join(str(item.get("name")) for item in items) or "an empty list"
        raise AccessError(f'{self.path}: {section} has no "{name}", only {known}; add it, or choose another context')

    def _understood(self, section: str, name: object, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        if field := refused_field(section, entry):
            raise self._only_kubectl(
                f'{section.removesuffix("s")} "{name}" has the field {field}, which Halfcard cannot do;'
            )
        return entry

    def _only_kubectl(self, why: str) -> AccessError:
        context = f" --context={shlex.quote(self.asked_context)}" if self.asked_context else ""
        way_out = _WAY_OUT.format(file=shlex.quote(str(self.path)), context=context)
        return AccessError(f"{self.path}: {why} {way_out}")

    def access(self, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Access:
        server = urlsplit(str(cluster.get("server") or ""))
        if server.scheme not in _DEFAULT_PORT or not server.hostname:
            raise AccessError(
                f'{self.path}: got server "{cluster.get("server")}"; it is a URL such as https://HOST:6443'
            )
        if proxy := environment_proxy(server.scheme, server.hostname, os.environ):
            raise self._only_kubectl(
                f"{proxy} is set, and Halfcard uses no proxy; add {server.hostname} to NO_PROXY to call it directly, or"
            )
        return Access(
            server.hostname,
            server.port or _DEFAULT_PORT[server.scheme],
            prefix=server.path.rstrip("/"),
            tls=(lambda: self._tls(cluster, user)) if server.scheme == "https" else None,
            token=self._token(user),
        )

    def _token(self, user: Mapping[str, Any]) -> Callable[[], str] | None:
        if file := user.get("tokenFile"):
            return lambda: read_text(self._beside(file)).strip()
        token = user.get("token")
        return (lambda: str(token)) if token else None

    def _tls(self, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
        context = tls_context(self._pem(cluster, "certificate-authority"))
        if cluster.get("insecure-skip-tls-verify") is True:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        certificate, key = self._pem(user, "client-certificate"), self._pem(user, "client-key")
        if bool(certificate) != bool(key):
            raise AccessError(
                f"{self.path}: the user has a client certificate or a key, not both; copy the missing one"
            )
        if certificate and key:
            load_pair(context, certificate, key)
        return context

    def _pem(self, entry: Mapping[str, Any], name: str) -> str | None:
        """Returns a certificate, which is in the file itself or in a file next to it."""
        if data := entry.get(f"{name}-data"):
            try:
                return base64.b64decode(data, validate=True).decode()
            except ValueError:
                raise AccessError(f"{self.path}: {name}-data is no base64; copy it again") from None
        return read_text(self._beside(entry[name])) if entry.get(name) else None

    def _beside(self, file: object) -> Path:
        return self.path.parent / str(file)


def _document(path: Path) -> Mapping[str, Any]:
    try:
        content = next((parsed.value for parsed in parse_yaml(read_text(path), str(path))), None)
    except ManifestError as error:
        raise AccessError(str(error)) from None
    if not isinstance(content, dict):
        raise AccessError(f"{path}: is no kubeconfig; name another file")
    return content

"""Finds the address of an API server and the credentials: a pod's service account, or a kubeconfig.

Invariant: everything that can be renewed on disk (the token, the CA) is read again for every connection.
"""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from halfcard.exit_codes import UnusableInputError

from ..manifests.manifest_error import ManifestError
from ..manifests.yaml_documents import parse_yaml

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DEFAULT_PORT: Final = {"https": 443, "http": 80}


class AccessError(UnusableInputError):
    """The API server cannot be reached with this configuration; the text says why, and what to change."""


@dataclass(frozen=True, slots=True)
class Access:
    """The address and the credentials.

    Attributes:
        prefix: a path that is put before every path, for servers behind a proxy.
        tls: makes the TLS context of one connection; None for plain HTTP.
        token: reads the bearer token for one request; None for none.
    """

    host: str
    port: int
    prefix: str = ""
    tls: Callable[[], ssl.SSLContext] | None = None
    token: Callable[[], str] | None = None

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=self.tls())

    def headers(self) -> dict[str, str]:
        accepted = {"Accept": "application/json", "User-Agent": "halfcard"}
        return accepted if self.token is None else {**accepted, "Authorization": f"Bearer {self.token()}"}


def from_service_account(folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ) -> Access:
    """Reads the access of a pod's service account.

    Raises:
        AccessError: the process does not run in a pod, or the pod has no service account.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    authorities, token = folder / "ca.crt", folder / "token"
    if not host or not port:
        raise AccessError(
            "KUBERNETES_SERVICE_HOST is not set: the process does not run in a pod; name a kubeconfig instead"
        )
    if not token.exists():
        raise AccessError(f"{token} does not exist; set automountServiceAccountToken: true on the pod")
    return Access(host, int(port), tls=lambda: _context(_text(authorities)), token=lambda: _text(token).strip())


def from_kubeconfig(path: Path, context: str | None = None) -> Access:
    """Reads the access that kubectl would use for a context, or for the current one.

    Raises:
        AccessError: the file has no such access, or a kind that is not supported.
    """
    config = _Kubeconfig(path, _document(path))
    chosen = config.entry("contexts", context or str(config.content.get("current-context") or ""))
    return config.access(config.entry("clusters", chosen.get("cluster")), config.entry("users", chosen.get("user")))


@dataclass(frozen=True, slots=True)
class _Kubeconfig:
    path: Path
    content: Mapping[str, Any]

    def entry(self, section: str, name: object) -> Mapping[str, Any]:
        for item in self.content.get(section) or ():
            if isinstance(item, dict) and item.get("name") == name:
                found = item.get(section.removesuffix("s"))
                return found if isinstance(found, dict) else {}
        raise AccessError(f'{self.path}: {section} has no "{name}"; add it, or choose another context')

    def access(self, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Access:
        if "exec" in user or "auth-provider" in user:
            raise AccessError(f"{self.path}: the user logs in by running a program; use a token or a certificate")
        server = urlsplit(str(cluster.get("server") or ""))
        if server.scheme not in _DEFAULT_PORT or not server.hostname:
            raise AccessError(
                f'{self.path}: got server "{cluster.get("server")}"; it is a URL such as https://HOST:6443'
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
            return lambda: _text(self._beside(file)).strip()
        token = user.get("token")
        return (lambda: str(token)) if token else None

    def _tls(self, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
        context = _context(self._pem(cluster, "certificate-authority"))
        if cluster.get("insecure-skip-tls-verify") is True:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        certificate, key = self._pem(user, "client-certificate"), self._pem(user, "client-key")
        if certificate and key:
            _load_pair(context, certificate, key)
        return context

    def _pem(self, entry: Mapping[str, Any], name: str) -> str | None:
        """Returns a certificate, which is in the file itself or in a file next to it."""
        if data := entry.get(f"{name}-data"):
            try:
                return base64.b64decode(data, validate=True).decode()
            except ValueError:
                raise AccessError(f"{self.path}: {name}-data is no base64; copy it again") from None
        return _text(self._beside(entry[name])) if entry.get(name) else None

    def _beside(self, file: object) -> Path:
        return self.path.parent / str(file)


def _document(path: Path) -> Mapping[str, Any]:
    try:
        content = next((parsed.value for parsed in parse_yaml(_text(path), str(path))), None)
    except ManifestError as error:
        raise AccessError(str(error)) from None
    if not isinstance(content, dict):
        raise AccessError(f"{path}: is no kubeconfig; name another file")
    return content


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(f"{path}: cannot be read: {error}; check the path and its permissions") from None


def _context(authorities: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=authorities)
    except ssl.SSLError as error:
        raise AccessError(f"the certificate authority is no PEM certificate: {error}; copy it again") from None


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Loads a client certificate; OpenSSL reads it from files only, so they are private and deleted at once."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
        pair.write(f"{certificate}\n{key}\n")
        pair.flush()
        try:
            context.load_cert_chain(pair.name)
        except ssl.SSLError as error:
            raise AccessError(f"the client certificate and its key are no pair: {error}; copy them again") from None

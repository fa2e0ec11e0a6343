"""Reads the kubeconfig that kubectl uses.

Invariant: what would be ignored is refused. A command that ignored `as:` would act as the administrator where kubectl
acts as another user, and one that ignored `proxy-url` would talk to another server.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from .access import Access, AccessError, tls_context
from .impersonation import Header, Impersonation
from .kubeconfig_files import Kubeconfig, KubeconfigEntry, read_kubeconfigs
from .kubeconfig_user import KubeconfigUser, acting_as, password_header, read_user
from .proxy_choice import Proxy, environment_proxy, read_proxy

_NOBODY: Final = Impersonation()
_DEFAULT_PORT: Final = {"https": 443, "http": 80}


def from_server(url: str, *, impersonation: Impersonation = _NOBODY) -> Access:
    """Returns the access to `kubectl proxy`, which adds the credentials.

    Raises:
        AccessError: the URL is of another kind.
    """
    server = urlsplit(url)
    if server.scheme != "http" or not server.hostname:
        raise AccessError(f'--server: got "{url}"; it is the address of `kubectl proxy`, such as http://127.0.0.1:8001')
    return Access(
        server.hostname,
        server.port or _DEFAULT_PORT["http"],
        prefix=server.path.rstrip("/"),
        more_headers=_asked_headers(impersonation),
    )


def _asked_headers(impersonation: Impersonation) -> tuple[Header, ...]:
    try:
        return impersonation.headers()
    except ValueError as error:
        raise AccessError(f"--as: {error}") from None


def from_kubeconfig(path: Path, context: str | None = None) -> Access:
    """Like `from_kubeconfigs`, for one file."""
    return from_kubeconfigs([path], context)


def from_kubeconfigs(
    files: Sequence[Path], context: str | None = None, *, impersonation: Impersonation = _NOBODY
) -> Access:
    """Reads the access that kubectl would use for a context, or for the current one.

    Raises:
        AccessError: the files have no such access, or a kind that is not supported.
    """
    config = read_kubeconfigs(files, context)
    chosen = config.chosen()
    cluster = config.entry("clusters", chosen.fields.get("cluster"))
    user = read_user(config.entry("users", chosen.fields.get("user")), cluster)
    return replace(
        _access(config, cluster, user),
        more_headers=(*password_header(user.entry), *acting_as(user.entry, impersonation)),
        namespace=chosen.text("namespace"),
    )


def _access(config: Kubeconfig, cluster: KubeconfigEntry, user: KubeconfigUser) -> Access:
    server = urlsplit(cluster.text("server"))
    if server.scheme not in _DEFAULT_PORT or not server.hostname:
        raise cluster.error(f'got server "{cluster.text("server")}"; it is a URL such as https://HOST:6443')
    port = server.port or _DEFAULT_PORT[server.scheme]
    return Access(
        server.hostname,
        port,
        prefix=server.path.rstrip("/"),
        tls=(lambda: _tls(cluster, user)) if server.scheme == "https" else None,
        token=user.token,
        forget_login=user.login.forget if user.login else None,
        proxy=_proxy(config, cluster, server.scheme, server.hostname, port),
        server_name=cluster.text("tls-server-name"),
    )


def _proxy(config: Kubeconfig, cluster: KubeconfigEntry, scheme: str, host: str, port: int) -> Proxy | None:
    """Returns the proxy of the kubeconfig, for which NO_PROXY does not count, or that of the environment."""
    url = cluster.text("proxy-url")
    named = ("proxy-url", url) if url else environment_proxy(scheme, host, port, os.environ)
    if named is None:
        return None
    direct = "" if url else f" add {host} to NO_PROXY to call it directly, or"
    if scheme == "http":
        raise config.only_kubectl(cluster, f"{named[0]} is set, and Halfcard uses no proxy for http://;{direct}")
    try:
        return read_proxy(named[1])
    except ValueError as error:
        raise config.only_kubectl(cluster, f"{named[0]}: {error};{direct}") from None


def _tls(cluster: KubeconfigEntry, user: KubeconfigUser) -> ssl.SSLContext:
    context = tls_context(cluster.pem("certificate-authority"))
    if cluster.fields.get("insecure-skip-tls-verify") is True:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    user.add_certificate(context)
    return context

"""Users of the API server, by client certificate or by token, each with a kubeconfig."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from pathlib import Path

from .pki import ClusterAuthority, KeyFiles


@dataclass(frozen=True, slots=True)
class User:
    """One user; `kubeconfig` works for kubectl and any client library, `name` is how the API server calls the user."""

    name: str
    kubeconfig: Path
    pair: KeyFiles | None = None
    token: str = ""

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def tls(self, authority: Path) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(authority))
        if self.pair:
            context.load_cert_chain(self.pair.certificate, self.pair.key)
        return context


def _kubeconfig(*, server: str, authority: Path, credentials: dict[str, str]) -> str:
    """Writes JSON, which is YAML, so no YAML library is needed."""
    context = {"name": "cluster", "context": {"cluster": "cluster", "user": "user"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "user", "user": credentials}],
        "contexts": [context],
        "current-context": "cluster",
    }
    return json.dumps(config, indent=1)


class Users:
    """Makes users of one cluster; a second call with the same name (and node) renews that user's credential."""

    def __init__(self, *, folder: Path, server: str, authority: ClusterAuthority) -> None:
        folder.mkdir()
        self._folder = folder
        self._server = server
        self._authority = authority

    def _write(self, file: str, credentials: dict[str, str]) -> Path:
        path = self._folder / f"{file}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(
            _kubeconfig(server=self._server, authority=self._authority.certificate, credentials=credentials)
        )
        return path

    def by_certificate(self, name: str, *groups: str) -> User:
        file = name.replace(":", "-")
        pair = self._authority.client(file, name=name, groups=groups)
        credentials = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        return User(name, self._write(file, credentials), pair=pair)

    def by_token(self, name: str, token: str, *, node: str = "") -> User:
        """Makes a user by token; a name that is used on several nodes has a kubeconfig for each."""
        file = "-".join(filter(None, [*name.split(":"), node]))
        return User(name, self._write(file, {"token": token}), token=token)

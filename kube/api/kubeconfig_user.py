"""The credentials of a user of a kubeconfig: a token, a certificate, or a program that returns them."""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from .access import load_pair, read_text
from .exec_login import ExecLogin, login_with
from .exec_program import ExecProgram, cluster_info, read_program
from .impersonation import Header, Impersonation, read_impersonation
from .kubeconfig_files import KubeconfigEntry

_LOGINS: Final = (("token", "tokenFile"), ("username", "password"), ("exec",))


@dataclass(frozen=True, slots=True)
class KubeconfigUser:
    """What the user shows: `login` is that of a program, `token` reads the current token."""

    entry: KubeconfigEntry
    token: Callable[[], str] | None
    login: ExecLogin | None

    def add_certificate(self, context: ssl.SSLContext) -> None:
        """Loads the client certificate, if there is one."""
        certificate, key = self.entry.pem("client-certificate"), self.entry.pem("client-key")
        if bool(certificate) != bool(key):
            raise self.entry.error("there is a client certificate or a key, not both; copy the missing one")
        if certificate is None and self.login is not None:
            _, certificate, key, _ = self.login.credential()
        if certificate and key:
            load_pair(context, certificate, key)


def read_user(user: KubeconfigEntry, cluster: KubeconfigEntry) -> KubeconfigUser:
    """Raises AccessError for credentials that contradict each other."""
    found = [[name for name in names if user.text(name)] for names in _LOGINS]
    if len(several := [names[0] for names in found if names]) > 1:
        raise user.error(f"there are {' and '.join(several)}, which exclude each other; remove all but one")
    login = _exec_login(user, cluster) if user.fields.get("exec") else None
    return KubeconfigUser(user, login.token if login else _token(user), login)


def password_header(user: KubeconfigEntry) -> tuple[Header, ...]:
    pair = f"{user.text('username')}:{user.text('password')}"
    return () if pair == ":" else (("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),)


def acting_as(user: KubeconfigEntry, asked: Impersonation) -> tuple[Header, ...]:
    """Returns the headers of the user as whom the commands act; the options come before the file."""
    try:
        return asked.over(read_impersonation(user.fields)).headers()
    except ValueError as error:
        raise user.error(f"cannot act as another user: {error}") from None


def _token(user: KubeconfigEntry) -> Callable[[], str] | None:
    if file := user.text("tokenFile"):
        return lambda: read_text(user.beside(file)).strip()
    token = user.text("token")
    return (lambda: token) if token else None


def _exec_login(user: KubeconfigEntry, cluster: KubeconfigEntry) -> ExecLogin:
    try:
        program = read_program(user.fields["exec"])
    except ValueError as error:
        raise user.error(f"exec cannot be used: {error}; write the kubeconfig again with its own command") from None
    return login_with(_located(program, user), _info(cluster) if program.provide_cluster_info else "", user.place)


def _located(program: ExecProgram, user: KubeconfigEntry) -> ExecProgram:
    """A name is looked up in PATH; a relative path begins at the kubeconfig."""
    if os.sep not in program.command:
        return program
    return msgspec.structs.replace(program, command=str(user.beside(program.command)))


def _info(cluster: KubeconfigEntry) -> str:
    authority = cluster.pem("certificate-authority")
    return cluster_info(cluster.fields, base64.b64encode(authority.encode()).decode() if authority else None)

"""Which role allows what each command reads, and the words that name it after a refusal of the API server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from halfcard import names

_REFUSED: Final = re.compile(r'User \\*"(?P<user>[^"\\]+)\\*" cannot ')


class NeededRole(NamedTuple):
    """A ClusterRole, and the namespace in which its users need it; empty for the whole cluster."""

    name: str
    namespace: str = ""


_INSPECT: Final = NeededRole("halfcard-inspect")
_ADMIN: Final = NeededRole("cluster-admin")
THE_NAMESPACE: Final = "NAMESPACE"
"""Stands for the namespace that a command is asked about."""

ROLES: Final[Mapping[str, NeededRole]] = {
    "inspect": _INSPECT,
    "explain": _INSPECT,
    "quota report": _INSPECT,
    "version": _INSPECT,
    "review": NeededRole("view"),
    "top": NeededRole(names.TOP, names.NAMESPACE),
    "scheduler-config": NeededRole("view", names.NAMESPACE),
    "quota explain": NeededRole("view", THE_NAMESPACE),
    "quota import": NeededRole("view", THE_NAMESPACE),
    "quota repair": NeededRole("admin", THE_NAMESPACE),
    "quota revert": NeededRole("admin", THE_NAMESPACE),
    "doctor": _ADMIN,
    "certs status": _ADMIN,
    "certs rotate": _ADMIN,
}
"""The role for each command that asks an API server; those that start with halfcard- come with the chart."""


def role_advice(command: str, error: str) -> str:
    """Returns how an administrator grants what a command was refused; empty if the error is no such refusal."""
    refused, role = _REFUSED.search(error), ROLES.get(command)
    if refused is None or role is None:
        return ""
    kind = "rolebinding" if role.namespace else "clusterrolebinding"
    space = f" -n {role.namespace}" if role.namespace else ""
    grant = f"kubectl create {kind} NAME{space} --clusterrole={role.name} --user={refused['user']}"
    return f"ask an administrator for the ClusterRole {role.name}: {grant}"

"""Which role allows what each command reads, and the words that name it after a refusal of the API server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_REFUSED: Final = re.compile(r'User \\*"(?P<user>[^"\\]+)\\*" cannot ')


class NeededRole(NamedTuple):
    """A ClusterRole, and whether its users need it in the whole cluster or in the namespace that they ask about."""

    name: str
    in_namespace: bool = False


_INSPECT: Final = NeededRole("halfcard-inspect")
_ADMIN: Final = NeededRole("cluster-admin")

ROLES: Final[Mapping[str, NeededRole]] = {
    "inspect": _INSPECT,
    "explain": _INSPECT,
    "quota report": _INSPECT,
    "version": _INSPECT,
    "review": NeededRole("view"),
    "top": NeededRole("halfcard-top"),
    "quota explain": NeededRole("view", in_namespace=True),
    "quota import": NeededRole("view", in_namespace=True),
    "quota repair": NeededRole("admin", in_namespace=True),
    "quota revert": NeededRole("admin", in_namespace=True),
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
    kind = "rolebinding" if role.in_namespace else "clusterrolebinding"
    space = " -n NAMESPACE" if role.in_namespace else ""
    grant = f"kubectl create {kind} NAME{space} --clusterrole={role.name} --user={refused['user']}"
    return f"ask an administrator for the ClusterRole {role.name}: {grant}"

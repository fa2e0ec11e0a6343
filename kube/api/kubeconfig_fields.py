"""The fields of a kubeconfig that are understood; the others are refused.

kubectl may read in them who asks, or where.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_UNDERSTOOD: Final[Mapping[str, frozenset[str]]] = {
    "contexts": frozenset({"cluster", "user", "namespace", "extensions"}),
    "clusters": frozenset(
        {
            *("server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify"),
            *("tls-server-name", "proxy-url", "disable-compression", "extensions"),
        }
    ),
    "users": frozenset(
        {
            *("token", "tokenFile", "client-certificate", "client-certificate-data"),
            *("client-key", "client-key-data", "username", "password", "exec", "extensions"),
            *("as", "as-uid", "as-groups", "as-user-extra"),
        }
    ),
}

REMOVED: Final = "auth-provider"


def refused_field(section: str, entry: Mapping[str, Any]) -> str | None:
    """Names a field that this command does not understand; None where all are."""
    for field, value in entry.items():
        if value not in (None, "", [], {}) and field not in _UNDERSTOOD[section]:
            return f"{field} (a field that this version does not know)"
    return None

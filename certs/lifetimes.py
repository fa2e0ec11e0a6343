"""How long certificates are valid, and the rules for those of one CA."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from certs.certificate_checks import SERVER, Uses
from certs.server_names import ServerNames

AUTHORITY_LIFE: Final = timedelta(days=3650)
"""Long: every client must be given each new CA."""

LONG_AUTHORITY_LIFE: Final = 3 * AUTHORITY_LIFE
"""The life of a CA that is replaced only on request: after ten years the request would be forgotten."""

LEAF_LIFE: Final = timedelta(days=90)
"""Short: a stolen key is worth little for long, and renewal is practised four times a year."""

COPIED_LEAF_LIFE: Final = timedelta(days=3650)
"""Long: administrators copy this leaf to kube-scheduler's machines by hand. A short life would protect nothing, because
a stolen key is revoked by a new CA, and wherever this key is, one that can do more is beside it: that of the CA in the
API server, that of kubeadm's cluster CA (ten years, too) on a control plane node."""

KNOWN_AFTER: Final = timedelta(minutes=5)
"""When every verifier has read a new CA, after it was added to all copies of the bundle: kubelet updates a Secret in
its pods within two minutes, and an API server that is further behind has lost its store and admits nothing."""

RETIREMENT: Final = timedelta(hours=1)
"""How long an old CA stays trusted after its last leaf was replaced: other replicas may still serve one. A node that
is disconnected for a minute is removed from every Service."""

LAST_CALL: Final = timedelta(days=7)
"""How long before its end a leaf of an old CA is replaced in any case."""


@dataclass(frozen=True, slots=True)
class LeafRules:
    """The rules for a leaf.

    Attributes:
        outlives_ca: whether a leaf of an old CA stays in use as long as possible, because administrators copy the CA to
            the clients.
        life: for how long it is valid; it ends with its CA at the latest.
    """

    names: ServerNames
    uses: Uses = SERVER
    outlives_ca: bool = False
    life: timedelta = LEAF_LIFE


@dataclass(frozen=True, slots=True)
class ChainRules:
    """The rules of a chain; a long-lived CA is replaced on request or when it is unusable, not because of its age."""

    leaves: tuple[LeafRules, ...]
    is_long_lived: bool = False
    known_after: timedelta = KNOWN_AFTER
    retired_after: timedelta = RETIREMENT


def folder_rules(names: ServerNames) -> ChainRules:
    return ChainRules((LeafRules(names, outlives_ca=True),))

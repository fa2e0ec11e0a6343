"""How long certificates live, and what those of one CA are to be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from certs.certificate_checks import SERVER, Uses
from certs.server_names import ServerNames

AUTHORITY_LIFE: Final = timedelta(days=3650)
"""Long: whoever trusts our CA has to learn each new one."""

LASTING_LIFE: Final = 3 * AUTHORITY_LIFE
"""Of a CA that is replaced only when somebody asks: nobody would remember in ten years."""

LEAF_LIFE: Final = timedelta(days=90)
"""Short: a stolen key is worth little for long, and renewal is practised four times a year."""

KNOWN_AFTER: Final = timedelta(minutes=5)
"""After a new CA was added to all copies of the bundle: an API server that has not heard of it by then has lost its
store, and admits nothing; kubelet brings a Secret to its pods in two minutes."""

RETIREMENT: Final = timedelta(hours=1)
"""How long an old CA stays trusted after its last leaf was replaced: other replicas may still show one. A node that
hears nothing for a minute is out of every Service."""

LAST_CALL: Final = timedelta(days=7)
"""Before its end, a leaf that stays is replaced after all."""


@dataclass(frozen=True, slots=True)
class LeafRules:
    """The rules for a leaf.

    Attributes:
        stays: the leaf is kept as long as possible when the CA changes, because people copy the CA to its clients.
    """

    names: ServerNames
    uses: Uses = SERVER
    stays: bool = False


@dataclass(frozen=True, slots=True)
class ChainRules:
    """The rules of a chain; `lasting`: the CA is replaced on request or when it is unusable, and not because of its
    age.
    """

    leaves: tuple[LeafRules, ...]
    lasting: bool = False
    known_after: timedelta = KNOWN_AFTER
    retired_after: timedelta = RETIREMENT


def folder_rules(names: ServerNames) -> ChainRules:
    return ChainRules((LeafRules(names, stays=True),))

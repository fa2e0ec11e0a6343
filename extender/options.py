"""The options of an extender: those of the installation, and those of this replica."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from serving.address import Address
from serving.tls import ReloadingContext
from settings.installation import Settings


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """The settings of the installation that concern the extender.

    Attributes:
        packing: the policy for pods that name none.
        strengths: those of card models that the settings give.
        evicts: whether pods are evicted for pods of higher priority that find no card.
        evicts_misuse: whether pods are evicted that use of a card what they were not granted.
        exempt: the namespaces whose pods are not.
        schedulers: those that call the extender.
    """

    dialects: Dialects
    capacity_rules: CapacityRules
    packing: str
    strengths: tuple[tuple[str, float], ...]
    evicts: bool
    evicts_misuse: bool
    exempt: frozenset[str]
    schedulers: frozenset[str]


def extender_options(settings: Settings) -> ExtenderOptions:
    return ExtenderOptions(
        settings.enabled_dialects(),
        settings.capacity_rules(),
        settings.packing,
        settings.strengths(),
        settings.evict_for_cards,
        settings.evict_for_misuse,
        settings.unchecked_namespaces(),
        settings.served_schedulers(),
    )


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    """Where this replica listens, and where other replicas reach it; `tls` is None for plain HTTP.

    Attributes:
        replica_ca: the CA of the replicas' certificates, which are also their client certificates.
        pair: the folder with tls.crt and tls.key.
    """

    extender: Address
    status: Address
    advertised: str
    tls: ReloadingContext | None = None
    replica_ca: Path | None = None
    pair: Path | None = None

    def replica_context(self) -> ssl.SSLContext:
        """Verifies other replicas by CA and not by name: they reach each other by address."""
        context = ssl.create_default_context(cafile=str(self.replica_ca) if self.replica_ca else None)
        context.check_hostname = False
        if self.pair is not None:
            context.load_cert_chain(self.pair / "tls.crt", self.pair / "tls.key")
        return context

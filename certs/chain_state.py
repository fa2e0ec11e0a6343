"""The objects of a chain as they were read, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from certs import objects
from certs.certificate_checks import certificates, pem
from certs.chains import Chain, ObjectPath
from certs.objects import CA_CRT, CA_KEY, TLS_CRT, TLS_KEY, Object, entry
from certs.plan import plan
from certs.steps import ChainContents, Plan, StoredLeaf
from halfcard import names


@dataclass(frozen=True, slots=True)
class ChainState:
    """The objects of a chain; None for a missing one."""

    chain: Chain
    items: Mapping[ObjectPath, Object | None]

    @property
    def copies(self) -> tuple[ObjectPath, ...]:
        """Returns the copies of the bundle; those that API servers trust come first, because API servers read them
        last.
        """
        return (*self.chain.configurations, *self.chain.leaves)

    def contents(self) -> ChainContents:
        authority = self.items[self.chain.authority]
        leaves = [self.items[place] for place in self.chain.leaves]
        return ChainContents(
            entry(authority, CA_CRT),
            entry(authority, CA_KEY),
            tuple(map(_held_leaf, leaves)),
            tuple(self._bundles(place) for place in self.copies),
            elsewhere=pem(
                each for place in self.copies for found in self._bundles(place) for each in certificates(found)
            ),
            known_since=objects.time_of(authority, names.KNOWN_SINCE),
            asked=max(filter(None, (objects.time_of(leaf, names.NEW_CA_ASKED) for leaf in leaves)), default=None),
        )

    def plan(self, now: datetime) -> Plan:
        return plan(self.contents(), self.chain.rules, now)

    def unmanaged(self) -> tuple[str, ...]:
        """Returns the objects that Halfcard does not manage, and why."""
        found = ((place, objects.why_unmanaged(self.items[place])) for place in self.chain.configurations)
        return tuple(f"{kind_of(place)} {place.name} is not managed: {why}" for place, why in found if why)

    def _bundles(self, place: ObjectPath) -> tuple[bytes, ...]:
        item = self.items[place]
        if place in self.chain.configurations:
            return objects.bundles(item)
        return () if item is None else (entry(item, CA_CRT) or b"",)


def kind_of(place: ObjectPath) -> str:
    return place.collection.rpartition("/")[2].removesuffix("s")


def object_paths(chain: Chain) -> tuple[ObjectPath, ...]:
    """Returns the objects in the order in which they must be read."""
    return (*chain.configurations, *chain.leaves, chain.authority)


def _held_leaf(secret: Object | None) -> StoredLeaf:
    return StoredLeaf(entry(secret, TLS_CRT), entry(secret, TLS_KEY), objects.time_of(secret, names.NEW_LEAF_ASKED))

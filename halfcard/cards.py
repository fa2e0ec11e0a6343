"""Cards and the nodes that have them, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec


@dataclass(frozen=True, slots=True)
class Card:
    """One physical card; `memory_mib` is None and `model` is empty where the node does not publish them.

    Attributes:
        uuid: empty where only the node's capacity is known.
        numa: the NUMA node of the card, None where it is unknown.
        links: by the index of another card, how well the two are connected; higher is better.
        replicas: the number of time slices of the card.
        why_not: why nothing new may be placed on it; empty for a healthy card.
        not_held: why no new shares may be placed on it: they must be held and cannot be; empty otherwise.
    """

    index: int
    model: str
    memory_mib: int | None
    uuid: str = ""
    numa: int | None = None
    links: tuple[tuple[int, int], ...] = ()
    replicas: int = 1
    why_not: str = ""
    not_held: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A node and its cards.

    Attributes:
        slices: the resource name of its time slices; empty for none.
        pool: the group of nodes that it belongs to, by its label.
        cpu_milli: what pods may request of it, as is `memory_mib`.
        published: the names of the extended resources in its capacity, for reports.
        withdrawn: those of them that no pod gets now: kubelet withdraws the resources of a device plugin that is gone.
    """

    name: str
    cards: tuple[Card, ...] = ()
    slices: str = ""
    pool: str = ""
    address: str = ""
    cpu_milli: int = 0
    memory_mib: int = 0
    published: frozenset[str] = field(default=frozenset(), compare=False)
    withdrawn: frozenset[str] = field(default=frozenset(), compare=False)


class CardLimit(msgspec.Struct, frozen=True):
    """What one container may use of one card; None is no limit.

    Attributes:
        cores_limit_pct: the core limit, which is more than `cores_pct` where the container may burst.
    """

    index: int
    uuid: str
    cores_pct: int | None
    cores_limit_pct: int | None
    memory_mib: int | None

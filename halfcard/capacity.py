"""Reads how many cards a node has and how large they are from what each system publishes in `status.capacity`.

Invariant: capacity is written by other programs. An impossible number is refused with a sentence and never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from . import names
from .claims import UNIT_MIB, WHOLE_CARD
from .problems import printable
from .quantity import Quantity

MAX_CARDS: Final = 1024
"""An upper bound on the cards of a node, also when an unlabelled node replicates every card a hundred times."""

MAX_CARD_MIB: Final = 16 * 2**20
"""16 TiB: a unit was mistaken rather than a card built."""

MOST_REPLICAS: Final = 1024
"""Time slices of one card."""

_GOT_CHARS: Final = 40


class ImplausibleError(ValueError):
    """A node publishes an impossible value; the text says where, got, rule."""


@dataclass(frozen=True, slots=True)
class CapacityRules:
    """Settings that are needed to read capacity.

    Attributes:
        vcuda_prefixes: domains under which gpu-manager's resources are published.
        aliyun_unit_mib: the MiB of one aliyun.com/gpu-mem.
    """

    vcuda_prefixes: tuple[str, ...] = (names.TENCENT, names.TUYA)
    aliyun_unit_mib: int = 1024


@dataclass(frozen=True, slots=True)
class CardStock:
    """Cards that are all alike; memory is that of one card, None where it is unknown.

    Attributes:
        replicas: the number of time slices of each card.
    """

    cards: int
    memory_mib: int | None
    replicas: int = 1


NO_CARDS: Final = CardStock(0, None)


@dataclass(frozen=True, slots=True)
class PublishedCapacity:
    """The capacity and labels of one node; each number is checked when it is read."""

    capacity: Mapping[str, Any]
    labels: Mapping[str, Any]

    def amount(self, resource: str) -> int:
        """Returns the total of a resource; 0 where it is absent, like Kubernetes."""
        return _whole(self.capacity.get(resource, 0), _path(resource))

    def label(self, name: str) -> int:
        return _whole(self.labels.get(name, 0), f'metadata.labels["{name}"]')

    def labelled_memory_mib(self) -> int | None:
        return self.label(names.NVIDIA_LABEL_MEMORY) or None


def card_stock(published: PublishedCapacity, rules: CapacityRules) -> CardStock:
    """Returns the cards of a node, by the first system that publishes any.

    Raises:
        ImplausibleError: a number is not what its system could publish.
    """
    for read in _readers(rules):
        found = read(published)
        if found.cards:
            return _believable(found)
    return NO_CARDS


def _readers(rules: CapacityRules) -> list[Callable[[PublishedCapacity], CardStock]]:
    """Returns the readers, the most exact first: NVIDIA's resource names appear together with most of the others."""
    by_prefix = [lambda node, prefix=prefix: _vcuda(node, prefix) for prefix in rules.vcuda_prefixes]
    return [*by_prefix, lambda node: _aliyun(node, rules.aliyun_unit_mib), _volcano, _nvidia]


def _vcuda(node: PublishedCapacity, prefix: str) -> CardStock:
    core, units = prefix + names.VCUDA_CORE_SUFFIX, node.amount(prefix + names.VCUDA_MEMORY_SUFFIX)
    cores = node.amount(core)
    cards, rest = divmod(cores, WHOLE_CARD)
    if rest:
        raise implausible(_path(core), cores, f"a node has {WHOLE_CARD} for each card")
    if not cards:
        return _mixed(node, prefix, units) if units else NO_CARDS
    return CardStock(cards, units // cards * UNIT_MIB or node.labelled_memory_mib())


def _mixed(node: PublishedCapacity, prefix: str, units: int) -> CardStock:
    """Reads nodes that publish memory without cores, together with whole and half cards.

    Each card is offered under all these names while it is free. Once a card is locked to one of them it is missing from
    the others, so the size of a card cannot be computed from the totals.
    """
    whole, halves = node.amount(names.NVIDIA_GPU), node.amount(names.TUYA_SGPU)
    cards = node.label(names.NVIDIA_LABEL_COUNT) or max(whole, -(-halves // 2))
    if not cards:
        memory = prefix + names.VCUDA_MEMORY_SUFFIX
        raise implausible(_path(memory), units, "it stands beside the number of cards")
    all_free = whole == cards and halves in (0, 2 * cards) and units % cards == 0
    return CardStock(cards, units // cards * UNIT_MIB if all_free else node.labelled_memory_mib())


def _aliyun(node: PublishedCapacity, unit_mib: int) -> CardStock:
    return _counted(node, names.ALIYUN_GPU_MEM, names.ALIYUN_GPU_COUNT, unit_mib)


def _volcano(node: PublishedCapacity) -> CardStock:
    return _counted(node, names.VOLCANO_GPU_MEMORY, names.VOLCANO_GPU_NUMBER, 1)


def _counted(node: PublishedCapacity, memory: str, count: str, unit_mib: int) -> CardStock:
    """Divides a total of memory by a number of cards."""
    total, cards = node.amount(memory), node.amount(count)
    if total and not cards:
        raise implausible(_path(memory), total, f"it stands beside {count}, which is missing")
    return CardStock(cards, total // cards * unit_mib or node.labelled_memory_mib()) if cards else NO_CARDS


def _nvidia(node: PublishedCapacity) -> CardStock:
    """Reads NVIDIA's resources; time-slicing publishes every card several times, so labels give the number of cards."""
    slots = node.amount(names.NVIDIA_GPU) or node.amount(names.NVIDIA_GPU_SHARED)
    if not slots:
        return NO_CARDS
    replicas = max(1, node.label(names.NVIDIA_LABEL_REPLICAS))
    cards = node.label(names.NVIDIA_LABEL_COUNT) or -(-slots // replicas)
    return CardStock(cards, node.labelled_memory_mib(), max(1, slots // cards))


def _believable(found: CardStock) -> CardStock:
    if found.cards > MAX_CARDS:
        raise implausible("number of cards", found.cards, f"a node has at most {MAX_CARDS}")
    if (found.memory_mib or 0) > MAX_CARD_MIB:
        raise implausible("memory of one card, in MiB", found.memory_mib, f"it is at most {MAX_CARD_MIB}")
    if found.replicas > MOST_REPLICAS:
        raise implausible("time slices of one card", found.replicas, f"they are at most {MOST_REPLICAS}")
    return found


def _whole(value: Any, where: str) -> int:
    number = _integer(value)
    if number is None or number < 0:
        raise implausible(where, value, "it is a whole number, not negative")
    return number


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return Quantity.parse(str(value)).as_int()
    except ValueError:  # no quantity, or a number too long for Python to spell
        return None


def _path(resource: str) -> str:
    return f'status.capacity["{resource}"]'


def implausible(where: str, value: object, rule: str) -> ImplausibleError:
    """Makes the error of an impossible value."""
    return ImplausibleError(f'{where}: got "{_spelled(value)}"; {rule}')


def _spelled(value: object) -> str:
    try:
        return printable(str(value), _GOT_CHARS)
    except ValueError:
        return "a number of thousands of digits"
    except RecursionError:
        return "lists in lists"

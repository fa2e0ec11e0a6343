"""Usage in Prometheus' text format: gpu-manager's four gauges exactly as it writes them, and ours.

Invariant: the four keep their names, labels, order and number format, so that dashboards and scripts keep working. The
text is written here because prometheus_client writes 0 as 0.0, and takes longer than the rest of a scrape.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from .usage_report import AccountUsage, CardUsage, ContainerUsage, NodeUsageReport, PartUsage

Sample = int | str
Row = tuple[tuple[str, ...], Sample]
"""The values of the labels, and the sample."""
_TOTAL: Final = "total"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Family(NamedTuple):
    """A gauge; its labels are in alphabetical order, like Prometheus' own."""

    name: str
    help: str
    labels: tuple[str, ...]
    rows: Callable[[NodeUsageReport], Iterator[Row]]


def write(usage: NodeUsageReport) -> str:
    escaped = _Escaped()
    return "".join([line for family in FAMILIES for line in _lines(family, usage, escaped)])


class _Escaped(dict[str, str]):
    """Escapes the values of labels, which recur in thousands of lines."""

    def __missing__(self, value: str) -> str:
        self[value] = value.translate(_ESCAPES)
        return self[value]


def _lines(family: Family, usage: NodeUsageReport, escaped: _Escaped) -> Iterator[str]:
    name = family.name
    yield f"# HELP {name} {family.help}\n# TYPE {name} gauge\n"
    line = name + "{" + ",".join([f'{label}="%s"' for label in family.labels]) + "} %s\n"
    escape = escaped.__getitem__
    for values, sample in family.rows(usage):
        yield line % (*map(escape, values), sample)


# --- gpu-manager's ---------------------------------------------------------------------------------------------------


def _by_gpu(of: Callable[[PartUsage], int]) -> Callable[[NodeUsageReport], Iterator[Row]]:
    def rows(usage: NodeUsageReport) -> Iterator[Row]:
        for each in usage.containers:
            values = [(f"gpu{part.card}", of(part)) for part in each.cards]
            for gpu, value in (*values, (_TOTAL, sum(value for _, value in values))):
                yield (each.container, gpu, each.namespace, usage.node, each.pod), value

    return rows


def _requested(of: Callable[[ContainerUsage], Sample]) -> Callable[[NodeUsageReport], Iterator[Row]]:
    def rows(usage: NodeUsageReport) -> Iterator[Row]:
        for each in usage.containers:
            yield (each.container, each.namespace, usage.node, each.pod, _TOTAL), of(each)

    return rows


def _requested_cards(container: ContainerUsage) -> str:
    """Formats the requested cards in single precision, like Go."""
    cards = sum(part.cores for part in container.cards) / 100
    single: float = struct.unpack("f", struct.pack("f", cards))[0]
    return f"{single:.0f}" if single.is_integer() else repr(single)


_GPU_MANAGERS: Final = (
    Family(
        "container_gpu_memory_total",
        "gpu memory usage in MiB",
        ("container_name", "gpu_memory", "namespace", "node", "pod_name"),
        _by_gpu(lambda part: part.used_mib),
    ),
    Family(
        "container_gpu_utilization",
        "gpu utilization",
        ("container_name", "gpu", "namespace", "node", "pod_name"),
        _by_gpu(lambda part: part.used_cores),
    ),
    Family(
        "container_request_gpu_memory",
        "request of gpu memory in MiB",
        ("container_name", "namespace", "node", "pod_name", "req_of_gpu_memory"),
        _requested(lambda container: container.asked_mib),
    ),
    Family(
        "container_request_gpu_utilization",
        "request of gpu utilization",
        ("container_name", "namespace", "node", "pod_name", "req_of_gpu"),
        _requested(_requested_cards),
    ),
)


# --- ours ------------------------------------------------------------------------------------------------------------


def _of_card(name: str, help_text: str, value: Callable[[CardUsage], int | None], *labels: str) -> Family:
    """`labels` are further attributes of a card; a card of which the value is not known has no row."""
    every = tuple(sorted(("card", "node", "uuid", *labels)))

    def rows(usage: NodeUsageReport) -> Iterator[Row]:
        for card in usage.cards:
            if (sample := value(card)) is not None:
                known = {"card": str(card.index), "node": usage.node, "uuid": card.uuid}
                yield tuple(known.get(label) or str(getattr(card, label)) for label in every), sample

    return Family(f"halfcard_card_{name}", help_text, every, rows)


def _of_part(name: str, help_text: str, value: Callable[[PartUsage], int | None]) -> Family:
    """A container of which the value is not known has no row."""

    def rows(usage: NodeUsageReport) -> Iterator[Row]:
        for each in usage.containers:
            for part in each.cards:
                if (sample := value(part)) is not None:
                    yield (str(part.card), each.container, each.namespace, usage.node, each.pod), sample

    return Family(f"halfcard_container_{name}", help_text, ("card", "container", "namespace", "node", "pod"), rows)


def _of_account(name: str, help_text: str, value: Callable[[AccountUsage], int]) -> Family:
    return _of_part(name, help_text, lambda part: None if part.account is None else value(part.account))


def _holds(usage: NodeUsageReport) -> Iterator[Row]:
    yield (str(usage.isolation.mode), usage.node), int(usage.isolation.holds)


_OURS: Final = (
    Family(
        "halfcard_shares_held",
        "1 where containers of shares that start now are held to them; mode is the isolation of the node.",
        ("mode", "node"),
        _holds,
    ),
    _of_card("info", "A card and its model; always 1.", lambda _: 1, "model"),
    _of_card("mode", "How the card is used now; always 1.", lambda _: 1, "mode"),
    _of_card("healthy", "1 for a card that new pods can get.", lambda card: int(not card.why_not)),
    _of_card("memory_mib", "Memory of the card.", lambda card: card.total_mib),
    _of_card("allocated_memory_mib", "Memory of the card that is allocated to pods.", lambda card: card.memory_mib),
    _of_card("allocated_cores_percent", "Cores of the card that are allocated to pods.", lambda card: card.cores),
    _of_card("used_memory_mib", "Memory of the card in use by all processes.", lambda card: card.used_mib),
    _of_card("used_cores_percent", "Cores of the card in use by all processes.", lambda card: card.used_cores),
    _of_card(
        "strangers", "Processes on the card whose container was not granted it.", lambda card: len(card.strangers)
    ),
    _of_part("limit_memory_mib", "Memory of the card that the container was granted.", lambda part: part.memory_mib),
    _of_part(
        "limit_cores_percent",
        "Cores of the card that the container may use; 0 for no limit.",
        lambda part: part.cores,
    ),
    _of_part("used_memory_mib", "Memory of the card that the container uses.", lambda part: part.used_mib),
    _of_part(
        "excess_memory_mib",
        "Memory of the card that the container uses beyond its limit; 0 within 5 % and 256 MiB, or without a limit.",
        lambda part: part.excess_mib,
    ),
    _of_part("used_cores_percent", "Cores of the card that the container uses.", lambda part: part.used_cores),
    _of_account(
        "account_memory_mib",
        "Memory of the card in the account of a container that the isolation libraries hold.",
        lambda account: account.memory_mib,
    ),
    _of_account(
        "refused_allocations",
        "Allocations of its running processes that the isolation libraries refused.",
        lambda account: account.refused,
    ),
    _of_account(
        "throttled_ms",
        "How long launches of its running processes waited for the container's share of the cores.",
        lambda account: account.throttled_ms,
    ),
    _of_part("processes", "Processes of the container on the card.", lambda part: len(part.pids)),
)

FAMILIES: Final = (*_GPU_MANAGERS, *_OURS)

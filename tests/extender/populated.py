"""A state with nodes and pods in it, written as short as can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from extender.bind.quota_reservations import QuotaReservations
from extender.state import State
from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.cards import Card
from halfcard.dialects import Dialects
from halfcard.inventory import write_inventory
from halfcard.pod.stored_pod import StoredPod
from halfcard.quota.budgets import Budget, read_budget
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import LedgerStore
from tests.builders import PodBuilder

CARD_MIB: Final = 16384
SEED_RESOURCES: Final = (names.NVIDIA_GPU, names.TUYA_SGPU, names.TUYA + names.VCUDA_MEMORY_SUFFIX)


def node(
    name: str = "gpu1",
    cards: int = 1,
    mib: int | None = CARD_MIB,
    *,
    capacity: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    address: str = "",
) -> dict[str, Any]:
    """Its cards are in its inventory, with uuids such as gpu1-0."""
    inventory = write_inventory(Card(index, "T4", mib, uuid=f"{name}-{index}") for index in range(cards))
    return {
        "metadata": {"name": name, "annotations": {names.INVENTORY: inventory, **(annotations or {})}},
        "status": {
            "capacity": dict(capacity or {}),
            "addresses": [{"type": "InternalIP", "address": address}] if address else [],
        },
    }


def stored(
    pod: PodBuilder,
    *,
    on: str = "",
    cards: Sequence[str] | None = None,
    priority: int = 0,
    record: Mapping[str, str] | None = None,
    phase: str = "Pending",
) -> StoredPod:
    """`cards` are those of its record; None where it has none."""
    name = pod.metadata["name"]
    bound = pod.annotated(record or {}).specified(priority=priority).on(on, cards)
    return bound.created(pod.metadata.get("namespace", "ns"), uid=name).in_phase(phase).stored


def no_budgets() -> QuotaReservations:
    return QuotaReservations(
        lambda _namespace: (), LedgerStore(ApiCalls(Access("127.0.0.1", 1)), names.NAMESPACE), lambda: 0.0
    )


def uncounted() -> QuotaReservations:
    """Of a quota for a model whose usage is not initialised yet."""
    quota = read_budget({"metadata": {"name": "gpu", "namespace": "ns", "uid": "u"}, "spec": {"byModel": {"T4": {}}}})
    assert isinstance(quota, Budget)
    return QuotaReservations(
        lambda _: (quota,), LedgerStore(ApiCalls(Access("127.0.0.1", 1)), names.NAMESPACE), lambda: 0.0
    )


def state_of(nodes: Iterable[Mapping[str, Any]], pods: Iterable[StoredPod] = ()) -> State:
    state = State(Dialects(), CapacityRules())
    state.replace_nodes(nodes)
    state.replace_pods(pods)
    return state

"""The caps of a ledger; its other rules are in `stories/ledger.story`."""

from __future__ import annotations

import pytest

from halfcard.quota.ledger import (
    MAX_LABEL_VALUES,
    MAX_RESERVATIONS,
    MAX_RESERVATIONS_OF_NAMESPACE,
    Busy,
    Entry,
    Ledger,
    StoredPods,
    commit,
    reserve,
)

READY = commit(Ledger({"cores": 100, "cards": 2}), 0, StoredPods({}, {}))


def entry(namespace: str = "team", **cost: int) -> Entry:
    return Entry(namespace, "pod", cost)


def test_one_namespace_cannot_use_up_a_shared_budget_with_reservations() -> None:
    open_of_one = {f"u{at}": entry(cores=0) for at in range(MAX_RESERVATIONS_OF_NAMESPACE)}
    crowded = READY._replace(reservations=open_of_one)
    with pytest.raises(Busy, match=f"{MAX_RESERVATIONS_OF_NAMESPACE} pods of namespace team"):
        reserve(crowded, "v", entry(cores=1))
    assert "v" in reserve(crowded, "v", entry("other", cores=1)).reservations
    everywhere = {f"u{at}": entry(f"team-{at}") for at in range(MAX_RESERVATIONS)}
    with pytest.raises(Busy, match=f"{MAX_RESERVATIONS} pods"):
        reserve(READY._replace(reservations=everywhere), "v", entry(cores=1))


def test_label_values_cannot_make_a_ledger_too_large_to_write() -> None:
    committed = {f"{key} per user={at}": 1 for at in range(MAX_LABEL_VALUES) for key in ("cores", "shares")}
    crowded = READY._replace(committed=committed)
    with pytest.raises(Busy, match=f"{MAX_LABEL_VALUES} values of its label"):
        reserve(crowded, "v", Entry("team", "pod", {"cores per user=new": 1}))
    assert "v" in reserve(crowded, "v", Entry("team", "pod", {"cores per user=7": 1})).reservations
    nearly = READY._replace(committed={f"cores per user={at}": 1 for at in range(MAX_LABEL_VALUES - 1)})
    last = reserve(nearly, "v", Entry("team", "pod", {"cores per user=": 1}))
    with pytest.raises(Busy):
        reserve(last, "w", Entry("team", "pod", {"cores per user=new": 1}))

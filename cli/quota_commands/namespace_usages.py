"""Reads what a namespace may use of quotas that its members cannot read: the GpuQuotaUsages of the namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from halfcard import names
from halfcard.quota.amount_key import AmountKey
from halfcard.quota.budgets import Budget
from halfcard.quota.charge import COUNTED
from halfcard.quota.gpu_quota import Namespaces, read_amounts
from halfcard.quota.ledger import Amounts

_UNLIMITED: Final = "-"

Object = Mapping[str, Any]


def budget_of(usage: Object) -> Budget:
    """Returns the quota as far as the usage tells it: its name, what it allows now, and whether pods wait for it."""
    status, namespace = usage["status"], usage["metadata"]["namespace"]
    quota = status["quota"]
    is_alone = status["counts"] == "Namespace"
    return Budget(
        namespace if is_alone else "",
        quota["name"].rpartition("/")[2],
        usage["metadata"]["uid"],
        dict(_limits(status)),
        "",
        Namespaces(),
        is_mapped=quota["kind"] != names.CLUSTER_GPU_QUOTA,
        gates=status["onExceeded"] == "Gate",
        is_default=is_alone and quota["kind"] == names.CLUSTER_GPU_QUOTA,
    )


def _limits(status: Object) -> Iterator[tuple[str, int]]:
    yield from _allowed(status).items()
    for each in status.get("places") or ():
        yield from ((str(AmountKey.at(key, each["place"])), hard) for key, hard in _allowed(each).items())


def _allowed(written: Object) -> Amounts:
    """Parses the second part of each `used/allowed`."""
    limits = {key: str(written[key]).partition("/")[2] for key in COUNTED if key in written}
    return read_amounts({key: limit for key, limit in limits.items() if limit not in ("", _UNLIMITED)})

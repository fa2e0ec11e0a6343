"""A node object as kubelet writes it, and what an agent would publish in it."""

from __future__ import annotations

from typing import Any, Final

from deviceplugin.advertise.announcement import Announcement, announcement
from halfcard import names
from halfcard.cards import Card

NOW: Final = "2026-11-21T12:00:00Z"
GOOD: Final = Card(0, "Tesla T4", 15109, "GPU-0")
SICK: Final = Card(1, "Tesla T4", 15109, "GPU-1", why_not="Xid 79: it has fallen off the bus")
MIB: Final = names.VOLCANO_GPU_MEMORY


def node(
    *, labels: dict[str, str] | None = None, capacity: dict[str, str] | None = None, annotations: Any = None
) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return {
        "metadata": {
            "name": "n1",
            "uid": "u1",
            "resourceVersion": "1",
            "labels": {"kubernetes.io/hostname": "n1", **(labels or {})},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0", **(annotations or {})},
        },
        "status": {
            "capacity": {"cpu": "8", **(capacity or {})},
            "allocatable": {"cpu": "8", **(capacity or {})},
            "conditions": [ready],
        },
    }


def announcement_of(*cards: Card, total: int | None = 15109, **words: Any) -> Announcement:
    return announcement(cards or (GOOD,), {} if total is None else {MIB: total}, **words)

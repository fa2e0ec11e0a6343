"""Do pods carry records that they can have, and does what they hold fit on the cards?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .finding import Check, FindingSeverity, FoundFault
from .snapshot import Snapshot


def _forged(snapshot: Snapshot) -> Iterator[FoundFault]:
    for pod in snapshot.pods:
        if pod.forged:
            namespace, _, name = pod.title.partition("/")
            got = f"has no node, and {', '.join(pod.forged)}"
            fix = "delete the pod, so that it is created anew without them: filter and bind refuse it as it is"
            yield FoundFault(f"pod {pod.title}", got, fix, f"kubectl -n {namespace} delete pod {name}")


def _doubtful(snapshot: Snapshot) -> Iterator[FoundFault]:
    for where, why in _pods(snapshot.doubts):
        if " on node " in where:
            title = where.removeprefix("pod ").partition(" on node ")[0]
            fix = "delete one of the pods of that card, so that it is placed anew"
            yield FoundFault(where, why, fix, f"halfcard explain pod/{title}")


def _unplaceable(snapshot: Snapshot) -> Iterator[FoundFault]:
    for where, why in _pods(snapshot.doubts):
        if " on node " not in where:
            yield FoundFault(where, why, "it came past the webhook: delete it, and write what it asks for anew")


def _pods(doubts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for doubt in doubts:
        where, _, why = doubt.partition(": ")
        if where.startswith("pod "):
            yield where, why


_BROKEN, _WARNING = FindingSeverity.BROKEN, FindingSeverity.WARNING

CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "record-forged",
        _BROKEN,
        "a pod without a node has no record of cards",
        "A Binding would keep it: it would take a neighbour's card or hide the pod from the count. So the extender"
        " refuses the pod.",
        _forged,
    ),
    Check(
        "record-doubtful",
        _BROKEN,
        "the record of a pod names cards that the node has, and what is held on a card fits on it",
        "The extender counts such a pod by what it asks for, and gives nothing more away there. Its reasons are those"
        " of `halfcard inspect`.",
        _doubtful,
    ),
    Check(
        "pod-unplaceable",
        _WARNING,
        "a pod asks for amounts that a card can give",
        "Nobody places it; if it is bound all the same, it counts by what can be understood of it.",
        _unplaceable,
    ),
)

"""Checks that records of pods are possible, and that the pods of a card fit on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .finding import BROKEN, WARNING, Check, FoundFault
from .snapshot import Snapshot


def _forged(snapshot: Snapshot) -> Iterator[FoundFault]:
    for pod in snapshot.pods:
        if pod.forged:
            namespace, _, name = pod.title.partition("/")
            got = f"has no node, but {', '.join(pod.forged)}"
            fix = "delete the pod, so that it is created again without them: filter and bind refuse this one"
            yield FoundFault(f"pod {pod.title}", got, fix, f"kubectl -n {namespace} delete pod {name}")


def _doubtful(snapshot: Snapshot) -> Iterator[FoundFault]:
    for where, why in _pods(snapshot.doubts):
        if " on node " in where:
            title = where.removeprefix("pod ").partition(" on node ")[0]
            fix = "delete one of the pods on that card, so that its replacement is placed elsewhere"
            yield FoundFault(where, why, fix, f"halfcard explain pod/{title}")


def _unplaceable(snapshot: Snapshot) -> Iterator[FoundFault]:
    for where, why in _pods(snapshot.doubts):
        if " on node " not in where:
            yield FoundFault(
                where, why, "it bypassed the webhook: delete it, correct its requests, and create it again"
            )


def _pods(doubts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for doubt in doubts:
        where, _, why = doubt.partition(": ")
        if where.startswith("pod "):
            yield where, why


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "record-forged",
        BROKEN,
        "a pod without a node has no record of cards",
        "A forged record could take a neighbour's card, or hide the pod from the count, so the extender refuses the"
        " pod.",
        _forged,
    ),
    Check(
        "record-doubtful",
        BROKEN,
        "the record of a pod names cards that the node has, and the pods of a card fit on it",
        "The extender counts such a pod with what it requests, and places no more pods there. `halfcard inspect` shows"
        " the same reasons.",
        _doubtful,
        unless=("scheduler-past-extender",),
    ),
    Check(
        "pod-unplaceable",
        WARNING,
        "a pod requests amounts that a card can provide",
        "Otherwise it is not placed; if it is bound anyway, it counts with the amounts that can be read.",
        _unplaceable,
    ),
)

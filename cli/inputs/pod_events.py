"""Reads what Halfcard's own processes said about a pod, in Events that members of its namespace may read."""

from __future__ import annotations

from typing import Final

from extender.explain.explanation import PodEvent
from halfcard import names
from halfcard.pod.reported_pod import ReportedPod
from halfcard.problems import printable
from kube.api.calls import ApiCalls

from .events import events, last_seen

_OURS: Final = (names.ADMISSION_SERVICE, names.EXTENDER_SERVICE, names.QUOTA_SERVICE, names.AGENT)
_WORDS_CHARS: Final = 1000


async def halfcards_events(calls: ApiCalls, pod: ReportedPod) -> tuple[PodEvent, ...]:
    """Returns the newest Event of each reason; none where the user may not read them."""
    found = await events(calls, {"involvedObject.uid": pod.meta.uid}, pod.meta.namespace or "") or ()
    newest: dict[str, PodEvent] = {}
    for each in found:
        reason = str(each.get("reason"))
        if (each.get("source") or {}).get("component") in _OURS:
            words = printable(str(each.get("message")), _WORDS_CHARS)
            newest.setdefault(reason, PodEvent(reason, words, last_seen(each)))
    return tuple(newest.values())

"""Decisions about new pods, remembered: pods come by the hundred from one template.

A `Pod` holds what rules can look at and nothing else, so its text, with whom it is from and where it goes, is all that
a decision depends on while policy and cluster stay. Looking it up costs a fifth of deciding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from halfcard.cluster_view import ClusterView
from halfcard.pod.spec import Pod

from .policy import AdmissionPolicy
from .rules.subject import ReviewContext
from .verdict import Verdict

_MOST: Final = 1000
_LONGEST: Final = 8192
"""Bytes of a question that is kept: callers choose how long theirs are."""

_encode = msgspec.json.Encoder(enc_hook=repr).encode  # numbers of manifests are a type of their own


class VerdictCache:
    def __init__(self, decide: Callable[[Pod, ReviewContext], Verdict]) -> None:
        self._decide = decide
        self._hold_for: tuple[AdmissionPolicy, ClusterView] | None = None
        self.known: dict[bytes, Verdict] = {}

    def __call__(self, pod: Pod, context: ReviewContext) -> Verdict:
        text = _encode((pod, context.namespace, context.user))
        if len(text) > _LONGEST:
            return self._decide(pod, context)
        self._forget_unless_valid(context)
        known = self.known.get(text)
        if known is not None:
            return known
        verdict = self._decide(pod, context)
        if verdict.allowed:  # problems are long, and nobody creates hundreds of pods that are refused
            self.known[text] = verdict
        return verdict

    def _forget_unless_valid(self, context: ReviewContext) -> None:
        """All of them, when they hold no longer or become too many."""
        now = self._hold_for
        same = now is not None and now[0] is context.policy and now[1] is context.cluster
        if not same or len(self.known) >= _MOST:
            self._hold_for = context.policy, context.cluster
            self.known.clear()

"""Remembers verdicts on new pods: a controller creates hundreds of pods from one template.

A `Pod` has all that rules can look at and nothing else. While policy and cluster stay the same, a verdict depends
only on the pod's text, its namespace and its user. A look-up costs a fifth of a decision.
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

_MOST_VERDICTS: Final = 1000
_MAX_KEY_BYTES: Final = 8192
"""Pods of any size come in; only keys up to this size are remembered."""

_encode = msgspec.json.Encoder(enc_hook=repr).encode  # numbers of manifests are a type of their own


class VerdictCache:
    def __init__(self, decide: Callable[[Pod, ReviewContext], Verdict]) -> None:
        self._decide = decide
        self._valid_for: tuple[AdmissionPolicy, ClusterView] | None = None
        self.known: dict[bytes, Verdict] = {}

    def __call__(self, pod: Pod, context: ReviewContext) -> Verdict:
        text = _encode((pod, context.namespace, context.user))
        if len(text) > _MAX_KEY_BYTES:
            return self._decide(pod, context)
        self._drop_invalid(context)
        known = self.known.get(text)
        if known is not None:
            return known
        verdict = self._decide(pod, context)
        if verdict.allowed:  # a refusal has a long text, and refused pods seldom come by the hundred
            self.known[text] = verdict
        return verdict

    def _drop_invalid(self, context: ReviewContext) -> None:
        """Forgets all verdicts when policy or cluster has changed, or when there are too many."""
        valid_for = self._valid_for
        same = valid_for is not None and valid_for[0] is context.policy and valid_for[1] is context.cluster
        if not same or len(self.known) >= _MOST_VERDICTS:
            self._valid_for = context.policy, context.cluster
            self.known.clear()

"""Looks for ResourceQuotas whose `used` differs from the sum of their pods, and reports them; run by the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kube.api.calls import ApiCalls, NoAnswerError
from kube.quota.native_drift import Found, lasting, look
from kube.quota.native_quota_source import NativeQuotas, ReadError
from serving.log import utc_now

_BETWEEN_S: Final = 1.0
"""One namespace after the other: however many there are, the API server reads for three lists a second."""

_REST_S: Final = 60.0
"""The least time between two looks at one namespace."""


class DriftCheck:
    """
    Attributes:
        found: by the title of the quota.
        trouble: what went wrong last, in one sentence.
    """

    def __init__(
        self,
        calls: ApiCalls,
        known: NativeQuotas,
        may_decide: Callable[[], bool],
    ) -> None:
        self.found: Found = {}
        self.trouble = ""
        self._calls = calls
        self._known = known
        self._may_decide = may_decide
        self._before: dict[str, Found] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_REST_S)
            if self._may_decide():
                await self._pass()
            else:
                self.found, self._before = {}, {}

    async def _pass(self) -> None:
        self.trouble = ""
        there = sorted(self._known.namespaces())
        self._before = {each: self._before.get(each, {}) for each in there}
        found: dict[str, Found] = {}
        for namespace in there:
            found[namespace] = await self._look(namespace)
            await asyncio.sleep(_BETWEEN_S)
        self.found = {title: drift for each in found.values() for title, drift in each.items()}

    async def _look(self, namespace: str) -> Found:
        try:
            seen = await look(self._calls, namespace, self._known.counted, utc_now().timestamp())
        except (ReadError, NoAnswerError) as error:
            self.trouble = str(error)
            return {}
        before, self._before[namespace] = self._before[namespace], seen
        return lasting(before, seen)

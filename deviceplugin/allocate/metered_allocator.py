"""Measures kubelet's calls, and logs refusals and bugs."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from serving.log import Log

from ..kubelet.messages import AllocationHandler, Granted, RefusedError
from ..metrics import AgentMetrics


@dataclass(frozen=True, slots=True)
class MeteredAllocator:
    """Measures and logs the calls of another allocator."""

    allocator: AllocationHandler
    metrics: AgentMetrics
    log: Log

    def allocate(self, resource: str, ids: Sequence[str]) -> Granted:
        with self._metered("allocate", resource):
            return self.allocator.allocate(resource, ids)

    async def prestart(self, resource: str, ids: Sequence[str]) -> None:
        with self._metered("prestart", resource):
            await self.allocator.prestart(resource, ids)

    @contextmanager
    def _metered(self, call: str, resource: str) -> Iterator[None]:
        begin, outcome = time.perf_counter(), "bug"
        try:
            yield
            outcome = "ok"
        except RefusedError as refusal:
            outcome = "refused"
            self.log.warning("refused", call=call, resource=resource, why=str(refusal))
            raise
        except Exception:
            self.log.error("bug", call=call, resource=resource, trace=traceback.format_exc())  # noqa: TRY400 - a field
            raise
        finally:
            self.metrics.count_call(call, outcome, time.perf_counter() - begin)

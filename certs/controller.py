"""Reconciles all chains until the process ends; a failure is logged once, and tried again.

The pauses are short and the wall clock decides, since a sleep does not advance while a machine is suspended.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from certs.chain_state import kind_of
from certs.chains import Chain
from certs.metrics import CertificateMetrics
from certs.reconcile import CompletedStep, ReconcileResult, reconcile
from certs.steps import Note, Refuse
from certs.store import Store, StoreError
from kube.api.calls import NoAnswerError
from serving.log import Log, utc_now

EVERY_S: Final = 30.0
_REST_S: Final = 1.0
"""The shortest time between two passes, also when another program changes an object after every write."""
_STALE: Final = timedelta(minutes=3)

OnChange = Callable[[Chain, CompletedStep, datetime], Awaitable[None]]


@dataclass(slots=True, eq=False)
class ChainsController:
    """Reconciles all chains, then calls `after`; `on_change` receives each change, and `wake` starts a pass at once."""

    store: Store
    chains: Sequence[Chain]
    metrics: CertificateMetrics
    on_change: OnChange
    log: Log
    clock: Callable[[], datetime] = utc_now
    every_s: float = EVERY_S
    after: Callable[[], Awaitable[None]] | None = None
    _logged: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)
    _checked: dict[str, datetime] = field(default_factory=dict, init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def wake(self) -> None:
        self._wake.set()

    def why_not_ready(self) -> str | None:
        late = [each.title for each in self.chains if self._is_late(each)]
        return (
            f"the certificates of {', '.join(late)} were not checked in the last 3 minutes; the log says why"
            if late
            else None
        )

    def _is_late(self, chain: Chain) -> bool:
        checked = self._checked.get(chain.title)
        return checked is None or self.clock() - checked > _STALE

    async def run(self) -> None:
        while True:
            self._wake.clear()
            for chain in self.chains:
                await self.reconcile_chain(chain)
            if self.after is not None:
                await self.after()
            await asyncio.sleep(_REST_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.every_s):
                    await self._wake.wait()

    async def reconcile_chain(self, chain: Chain) -> None:
        done: list[CompletedStep] = []
        try:
            self._note(chain, await reconcile(self.store, chain, self.clock, done.append))
        except (StoreError, NoAnswerError) as error:
            self._log_failure(chain, str(error))
        except Exception:  # noqa: BLE001 - a bug with one object must not stop the renewal of others
            self._log_failure(chain, f"this is a bug, please report it: {traceback.format_exc()}")
        for each in done:
            await self._report(chain, each)

    def _note(self, chain: Chain, looked: ReconcileResult) -> None:
        if looked.last is None:
            raise StoreError("another program writes them faster than they can be read; see managedFields")
        self._checked[chain.title] = self.clock()
        self.metrics.record_check(looked)
        refused = (looked.last.reason,) if isinstance(looked.last, Refuse) else ()
        for reason in self._new_reasons(chain, (*refused, *looked.state.unmanaged())):
            self.log.warning("certificates not managed", chain=chain.title, reason=reason)

    def _log_failure(self, chain: Chain, reason: str) -> None:
        for each in self._new_reasons(chain, (reason,)):
            self.log.error("certificates not renewed", chain=chain.title, reason=each)

    def _new_reasons(self, chain: Chain, reasons: tuple[str, ...]) -> list[str]:
        """Returns the reasons that were not logged in the last pass."""
        logged = self._logged.get(chain.title, ())
        self._logged[chain.title] = reasons
        return [reason for reason in reasons if reason not in logged]

    async def _report(self, chain: Chain, done: CompletedStep) -> None:
        self.metrics.record_change(done.place)
        self.log.event(
            "certificates written", object=f"{kind_of(done.place)} {done.place.name}", reason=done.step.reason
        )
        if not isinstance(done.step, Note):
            await self.on_change(chain, done, self.clock())

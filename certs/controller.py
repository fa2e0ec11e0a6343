"""All chains looked at again and again, for as long as the process runs; what goes wrong is said once, and tried again.

A sleeper's clock stands still while a machine is suspended: short naps, and the wall clock decides.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from certs.chains import Chain
from certs.metrics import CertificateMetrics
from certs.reconcile import CompletedStep, ReconcileResult, kind_of, look
from certs.steps import Note, Refuse
from certs.store import Store, StoreError
from kube.api.calls import NoAnswerError
from serving.log import Log, utc_now

EVERY_S: Final = 30.0
_REST_S: Final = 1.0
"""Between two looks, also where somebody else changes what we write as soon as it is written."""
_STALE: Final = timedelta(minutes=3)

Tell = Callable[[Chain, CompletedStep, datetime], Awaitable[None]]


class ChainsController:
    """Reconciles all chains; `tell` receives each change, and `wake` starts a pass at once."""

    def __init__(
        self,
        store: Store,
        chains: Sequence[Chain],
        metrics: CertificateMetrics,
        tell: Tell,
        log: Log,
        *,
        clock: Callable[[], datetime] = utc_now,
        every_s: float = EVERY_S,
    ) -> None:
        self._store = store
        self._chains = chains
        self._metrics = metrics
        self._tell = tell
        self._log = log
        self._clock = clock
        self._every_s = every_s
        self._said: dict[str, tuple[str, ...]] = {}
        self._looked: dict[str, datetime] = {}
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    def why_not_ready(self) -> str | None:
        late = [each.title for each in self._chains if self._is_late(each)]
        return (
            f"the certificates of {', '.join(late)} could not be looked at lately; the log says why" if late else None
        )

    def _is_late(self, chain: Chain) -> bool:
        looked = self._looked.get(chain.title)
        return looked is None or self._clock() - looked > _STALE

    async def run(self) -> None:
        while True:
            self._news.clear()
            for chain in self._chains:
                await self.look(chain)
            await asyncio.sleep(_REST_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._news.wait()

    async def look(self, chain: Chain) -> None:
        done: list[CompletedStep] = []
        try:
            self._note(chain, await look(self._store, chain, self._clock, done.append))
        except (StoreError, NoAnswerError) as error:
            self._complain(chain, str(error))
        except Exception:  # noqa: BLE001 - what we do not understand in one object must not end the keeping of others
            self._complain(chain, f"this is a bug, please report it: {traceback.format_exc()}")
        for each in done:
            await self._report(chain, each)

    def _note(self, chain: Chain, looked: ReconcileResult) -> None:
        if looked.last is None:
            raise StoreError("somebody else writes them faster than they can be read; managedFields say who")
        self._looked[chain.title] = self._clock()
        self._metrics.looked(looked)
        refused = (looked.last.reason,) if isinstance(looked.last, Refuse) else ()
        for reason in self._unsaid(chain, (*refused, *looked.seen.remarks())):
            self._log.warning("certificates not managed", chain=chain.title, reason=reason)

    def _complain(self, chain: Chain, reason: str) -> None:
        for each in self._unsaid(chain, (reason,)):
            self._log.error("certificates not renewed", chain=chain.title, reason=each)

    def _unsaid(self, chain: Chain, reasons: tuple[str, ...]) -> list[str]:
        """Returns the reasons that were not logged in the last pass."""
        said = self._said.get(chain.title, ())
        self._said[chain.title] = reasons
        return [reason for reason in reasons if reason not in said]

    async def _report(self, chain: Chain, done: CompletedStep) -> None:
        self._metrics.changed(done.place)
        self._log.event(
            "certificates written", object=f"{kind_of(done.place)} {done.place.name}", reason=done.step.reason
        )
        if not isinstance(done.step, Note):
            await self._tell(chain, done, self._clock())

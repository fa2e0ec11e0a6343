"""The quota service looks at one namespace after the other, and believes what it finds twice."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.quota.derived_resources import DerivedSettings
from halfcard.quota.native_usage import Drift
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.quota.native_quota_source import NativeQuotas
from quota.native import drift_check
from quota.native.drift_check import DriftCheck
from tests.halfcard.native import quota
from tests.kube.node_server import serving
from tests.waiting import until

CORES: Final = f"requests.{names.VCUDA_CORE}"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift_check, "_REST_S", 0.01)
    monkeypatch.setattr(drift_check, "_BETWEEN_S", 0.01)


async def test_a_drift_is_shown_until_it_ends_or_another_replica_leads() -> None:
    with serving() as server:  # gives the same everywhere: read as a pod, a quota asks for nothing
        access = Access("127.0.0.1", server.port)
        calls, leads = ApiCalls(access), True
        known = NativeQuotas(access, Dialects().resources)
        drift = DriftCheck(calls, known, lambda: leads)
        jobs = [asyncio.create_task(job) for job in (known.informer.run(), drift.run())]
        server.put(quota({CORES: "100"}, {CORES: "30"}))
        await until(lambda: drift.found == {"team-a/gpu": (Drift(CORES, "30", "0"),)})
        server.put(quota({CORES: "100"}, {CORES: "0"}))
        await until(lambda: not drift.found)
        server.put(quota({CORES: "100"}, {CORES: "30"}))
        await until(lambda: bool(drift.found))
        server.refusal = (403, "no")
        await until(lambda: "answered 403" in drift.trouble and not drift.found)  # it is not known any more
        server.refusal = None
        await until(lambda: bool(drift.found))
        leads = False
        await until(lambda: not drift.found)
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)
        calls.close()
        await asyncio.sleep(0)  # the loop closes what has been asked to


async def test_added_resources_are_compared_too() -> None:
    cards = f"requests.{names.DERIVED_CARDS}"
    with serving() as server:
        access = Access("127.0.0.1", server.port)
        calls = ApiCalls(access)
        known = NativeQuotas(access, Dialects().resources, DerivedSettings().resources)
        drift = DriftCheck(calls, known, lambda: True)
        jobs = [asyncio.create_task(job) for job in (known.informer.run(), drift.run())]
        server.put(quota({cards: "4"}, {cards: "3"}))
        await until(lambda: drift.found == {"team-a/gpu": (Drift(cards, "3", "0"),)})
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)
        calls.close()

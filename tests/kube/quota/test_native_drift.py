"""What a quota says is used is compared with what its pods come to, and believed to be wrong only when it lasts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.quota.native_usage import Drift
from kube.quota.native_drift import Found, lasting, look
from kube.quota.native_quota_source import ReadError
from tests.builders import pod
from tests.halfcard.native import quota

from ..calling import asked
from ..object_server import ObjectServer, serving_objects

CORES: Final = f"requests.{names.VCUDA_CORE}"
QUOTAS: Final = "/api/v1/namespaces/team-a/resourcequotas?limit=500"
PODS: Final = "/api/v1/namespaces/team-a/pods?limit=500"


def page(items: Iterable[Any]) -> dict[str, Any]:
    return {"metadata": {}, "items": [*items]}


def seen(server: ObjectServer) -> Found:
    return asked(server.port, lambda calls: look(calls, "team-a", Dialects().resources, 0))


def test_a_difference_to_the_sum_of_the_pods_is_found() -> None:
    with serving_objects() as server:
        server.put(
            QUOTAS, page([quota({CORES: "100"}, {CORES: "90"}), quota({CORES: "9"}, {CORES: "60"}, name="right")])
        )
        server.put(PODS, page(pod(name).asks(core=30).manifest for name in "ab"))
        assert seen(server) == {"team-a/gpu": (Drift(CORES, "90", "60"),)}


def test_a_quota_that_changes_during_the_comparison_is_skipped() -> None:
    with serving_objects() as server:
        server.put(QUOTAS, page([quota({CORES: "100"}, {CORES: "90"})]))
        server.put(PODS, page([]))
        found = server.carry_out

        def changing(call: Any) -> Any:
            answer = found(call)
            server.put(QUOTAS, page([quota({CORES: "100"}, {CORES: "60"})]))
            return answer

        server.carry_out = changing  # type: ignore[method-assign]
        assert seen(server) == {}


def test_a_refusal_is_reported() -> None:
    with serving_objects() as server, pytest.raises(ReadError, match="answered 404 to GET /api/v1/namespaces/team-a"):
        seen(server)


def test_an_answer_that_is_no_list_is_reported() -> None:
    with serving_objects() as server:
        server.put(QUOTAS, {"metadata": {}, "items": 7})
        with pytest.raises(ReadError, match="cannot be read"):
            seen(server)


ONE, OTHER = Drift("a", "2", "1"), Drift("b", "2", "1")


def test_a_confirmed_drift_has_the_amounts_of_the_second_comparison() -> None:
    later = ONE._replace(used="3")
    assert lasting({"q": (ONE, OTHER), "gone": (ONE,)}, {"q": (later,), "new": (ONE,)}) == {"q": (later,)}
    assert lasting({}, {"q": (ONE,)}) == {}

"""Single calls to something that speaks as an API server; what only a real one knows is in tests/cluster."""

from __future__ import annotations

import pytest

from certs.chains import ObjectPath
from certs.objects import Object, new_secret
from certs.store import ApiStore, StoreError
from kube.api.calls import NoAnswerError
from tests.kube.calling import asked
from tests.kube.object_server import serving_objects

PLACE = ObjectPath("/api/v1/namespaces/ns/secrets", "s")


def test_a_second_create_and_a_late_write_return_false() -> None:
    secret = new_secret(PLACE, "Opaque")
    with serving_objects() as server:

        def create(item: Object) -> bool:
            return asked(server.port, lambda calls: ApiStore(calls).create(PLACE, item))

        def replace(item: Object) -> bool:
            return asked(server.port, lambda calls: ApiStore(calls).replace(PLACE, item))

        def read() -> Object | None:
            return asked(server.port, lambda calls: ApiStore(calls).read(PLACE))

        assert read() is None
        assert not replace({**secret, "metadata": {**secret["metadata"], "resourceVersion": "1"}})
        assert [create(secret), create(secret)] == [True, False]
        first = read()
        assert first is not None
        assert [replace({**first, "data": {"a": "YQ=="}}), replace({**first, "data": {}})] == [True, False]
        assert (read() or {})["data"] == {"a": "YQ=="}


def test_a_refusal_has_the_servers_message_and_a_lost_answer_its_own_error() -> None:
    with serving_objects() as server:
        server.faults = ["refused"]
        with pytest.raises(StoreError, match=r"reading s: the API server answered 500: no leader"):
            asked(server.port, lambda calls: ApiStore(calls).read(PLACE))
        server.faults = ["unanswered"]
        with pytest.raises(NoAnswerError):
            asked(server.port, lambda calls: ApiStore(calls).create(PLACE, new_secret(PLACE, "Opaque")))

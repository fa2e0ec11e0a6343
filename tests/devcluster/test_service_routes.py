"""Where Services lead in a development cluster, and what its names are answered with."""

from __future__ import annotations

import struct
from typing import Any

from devcluster.nodes.service_routes import addresses, answer, routes
from devcluster.objects import Object


def service(name: str, address: str = "10.96.0.7", **spec: Any) -> Object:
    ports = [{"name": "https", "port": 443}]
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"clusterIP": address, "selector": {"a": "b"}, "ports": ports, **spec},
    }


def endpoints(of: str, *, namespace: str = "team", port: str = "https") -> Object:
    found = [
        {"addresses": ["10.244.0.1"], "conditions": {"ready": True}},
        {"addresses": ["10.244.0.2"], "conditions": {"ready": False}},
        {"addresses": ["10.244.0.3"]},
    ]
    labels = {"kubernetes.io/service-name": of}
    return {
        "metadata": {"namespace": namespace, "labels": labels},
        "ports": [{"name": port, "port": 3456}],
        "endpoints": found,
    }


def test_a_port_leads_to_the_endpoints_that_are_not_unready() -> None:
    slices = [endpoints("s"), endpoints("other"), endpoints("s", namespace="else"), endpoints("s", port="metrics")]
    assert routes([service("s")], slices) == {("10.96.0.7", 443): [("10.244.0.1", 3456), ("10.244.0.3", 3456)]}


def test_services_without_an_address_or_without_pods_lead_nowhere() -> None:
    assert routes([service("headless", "None"), service("kubernetes", selector=None)], []) == {}


KNOWN = addresses([service("s"), service("headless", "None")])


def query(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(each)]) + each.encode() for each in name.split("."))
    return struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def test_a_name_is_answered_with_the_address_of_its_service() -> None:
    said = answer(query("S.team.svc.cluster.local"), KNOWN)
    assert struct.unpack_from("!HHHHHH", said) == (7, 0x8180, 1, 1, 0, 0)
    assert said.endswith(bytes([10, 96, 0, 7]))


def test_an_unknown_name_does_not_exist_and_a_known_one_has_no_other_record() -> None:
    assert struct.unpack_from("!HHHHHH", answer(query("x.team.svc.cluster.local"), KNOWN))[1] == 0x8183
    assert struct.unpack_from("!HHHHHH", answer(query("s.team.svc.cluster.local", 28), KNOWN))[1:4] == (0x8180, 1, 0)

"""Reads which device classes a ResourceClaim, or the template of one, requests: Dynamic Resource Allocation.

Fields that are not read are skipped. A request names its class itself, as one of several, or as before
`resource.k8s.io/v1` directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec


class _Record(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


class _OneRequest(_Record, frozen=True):
    device_class_name: str | None = None


class _Request(_OneRequest, frozen=True):
    exactly: _OneRequest | None = None
    first_available: list[_OneRequest] | None = None


class _Devices(_Record, frozen=True):
    requests: list[_Request] | None = None


class _Spec(_Record, frozen=True):
    devices: _Devices | None = None


class ResourceClaim(_Record, frozen=True):
    spec: _Spec | None = None


class ResourceClaimTemplate(_Record, frozen=True):
    spec: ResourceClaim | None = None


CLAIM_GROUP: Final = "resource.k8s.io"
CLAIM_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate")


def requested_classes(kind: str, obj: Any) -> list[tuple[str, str]]:
    """Returns the device classes, each with its field.

    Raises:
        msgspec.ValidationError: the object does not have the shape of its kind.
    """
    if kind == "ResourceClaim":
        return list(_classes("spec", msgspec.convert(obj, ResourceClaim)))
    inner = msgspec.convert(obj, ResourceClaimTemplate).spec
    return [] if inner is None else list(_classes("spec.spec", inner))


def _classes(root: str, claim: ResourceClaim) -> Iterator[tuple[str, str]]:
    devices = claim.spec and claim.spec.devices
    for number, request in enumerate((devices and devices.requests) or ()):
        where = f"{root}.devices.requests[{number}]"
        several = request.first_available or ()
        options = [(f"{where}.firstAvailable[{at}]", each) for at, each in enumerate(several)]
        found = [(where, request), (f"{where}.exactly", request.exactly), *options]
        for field, each in found:
            if each is not None and each.device_class_name:
                yield f"{field}.deviceClassName", each.device_class_name

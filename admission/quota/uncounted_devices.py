"""Finds devices of Dynamic Resource Allocation that a pod asks for and that no GpuQuota can count."""

from __future__ import annotations

from collections.abc import Iterator

from halfcard import names
from halfcard.pod.spec import Pod, places
from halfcard.problems import DEVICE_CLASS, Severity

from ..policy import AdmissionPolicy


def uncounted_devices(pod: Pod, policy: AdmissionPolicy) -> str:
    """Returns the first field that may bring GPUs; empty for none.

    Where HC017 denies, GPUs have no claims, and the claims of a pod are for other devices.
    """
    if policy.severities.get(DEVICE_CLASS.code, DEVICE_CLASS.severity) is Severity.DENY:
        return ""
    if pod.spec is not None and pod.spec.resource_claims:
        return "spec.resourceClaims"
    return next(_of_classes(pod, policy.device_classes), "")


def _of_classes(pod: Pod, classes: frozenset[str]) -> Iterator[str]:
    gpus = {names.DEVICE_CLASS_PREFIX + each for each in classes}
    for place in places(pod):
        for resource in gpus & {*place.container.limits, *place.container.requests}:
            yield f"{place.where}.resources: {resource}"

"""Checks that the API server gets answers from Halfcard's webhooks, and the right ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.caller_tokens import without_tokens
from halfcard.problems import printable

from .finding import BROKEN, NOTE, WARNING, Check, FoundFault
from .snapshot import ABSENT, Probe, Snapshot
from .webhook_registration import REGISTER, SERVICE, registered

_DENIED: Final = re.compile(
    rf'admission webhook "(?P<webhook>[^"]*\.{re.escape(names.OWN_DOMAIN)})" denied the request: '
)
_FAILED: Final = re.compile(
    rf'failed calling webhook "(?P<webhook>[^"]*\.{re.escape(names.OWN_DOMAIN)})": (?P<why>.*)', re.DOTALL
)
_CODE: Final = re.compile(r"\[HC\d{3}\]")
_WHY_CHARS: Final = 240


# --- the Service -----------------------------------------------------------------------------------------------------


def _by_service(snapshot: Snapshot) -> bool:
    return any("service" in each.client for each in registered(snapshot).values())


def _no_service(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.services.get(names.ADMISSION_SERVICE) == ABSENT and _by_service(snapshot):
        yield FoundFault(
            f"Service {SERVICE}", "it does not exist", "create it: its port 443 leads to the webhook's replicas"
        )


def _no_endpoints(snapshot: Snapshot) -> Iterator[FoundFault]:
    for name in (names.ADMISSION_SERVICE, names.EXTENDER_SERVICE):
        there = snapshot.services.get(name)
        if there and snapshot.endpoints is not None and not snapshot.endpoints.get(name):
            fix = "check why its pods are not ready"
            command = f"kubectl -n {names.NAMESPACE} get pods,endpointslices -o wide"
            yield FoundFault(f"Service {names.NAMESPACE}/{name}", "no replica behind it is ready", fix, command)


# --- answers ---------------------------------------------------------------------------------------------------------


def _probes(snapshot: Snapshot) -> list[Probe]:
    return [probe for probe in (snapshot.bad, snapshot.good) if probe is not None]


def _failures(snapshot: Snapshot) -> dict[str, str]:
    """Returns the webhooks that the API server could not call, with its reason."""
    found = [_FAILED.search(probe.message) for probe in _probes(snapshot)]
    return {each["webhook"]: printable(without_tokens(each["why"]), _WHY_CHARS) for each in found if each}


def _distrusted(snapshot: Snapshot) -> Iterator[FoundFault]:
    for webhook, why in _failures(snapshot).items():
        if "x509:" in why:
            fix = "put the CA that signed the served certificate into caBundle"
            yield FoundFault(f"webhook {webhook}", why, fix, REGISTER)


def _unreachable(snapshot: Snapshot) -> Iterator[FoundFault]:
    for webhook, why in _failures(snapshot).items():
        if "x509:" not in why:
            fix = "read the logs of its replicas, and check that the API server's network reaches them"
            yield FoundFault(
                f"webhook {webhook}", why, fix, f"kubectl -n {names.NAMESPACE} get pods,endpointslices -o wide"
            )


def _lets_pass(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.bad is not None and snapshot.bad.status < 300:
        got = "the API server would have stored it"
        fix = "check whether the namespace is exempt, and whether the webhook's settings switch its rules off"
        yield FoundFault("a pod with a forged record and access to every card", got, fix)


def _mute(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks that pods are repaired: mutating fails open, so only owners of unrepaired pods would notice."""
    denied = _DENIED.search(snapshot.bad.message) if snapshot.bad is not None else None
    mutating = names.webhook_name(names.MUTATE_PODS_PATH)
    if denied and denied["webhook"] != mutating:
        got = f"{denied['webhook']} refused what {mutating} should have refused before"
        fix = "check that its caBundle and its Service are those of the validating webhook"
        yield FoundFault(f"webhook {mutating}", got, fix, REGISTER)


def _others_refuse(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Reports that another webhook refuses the test pod, so that Halfcard's answer is unknown."""
    for what, probe in (("a bad pod", snapshot.bad), ("a good pod", snapshot.good)):
        if probe is None or probe.status < 300 or _FAILED.search(probe.message):
            continue
        ours = _DENIED.search(probe.message) and _CODE.search(probe.message)
        if not ours:
            fix = "choose a namespace that admits pods, with --namespace"
            yield FoundFault(f"{what}, as a dry run", printable(probe.message, _WHY_CHARS), fix)


_REGISTRATION: Final = ("webhook-missing", "webhook-elsewhere", "webhook-unproven", "webhook-blind")
_CERTIFICATE: Final = ("ca-bundle-empty", "ca-bundle-garbage", "ca-bundle-expired", "certificate-mismatch")
_CAUSES: Final = (*_REGISTRATION, *_CERTIFICATE, "service-missing", "service-empty", "certificate-expired")

CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "service-missing",
        BROKEN,
        "the webhooks' Service exists",
        "Without it, GPU pods are refused.",
        _no_service,
    ),
    Check(
        "service-empty",
        BROKEN,
        "a Service of Halfcard has a ready replica",
        "Without one, GPU pods are refused, or wait.",
        _no_endpoints,
    ),
    Check(
        "webhook-distrusted",
        BROKEN,
        "the API server trusts the certificate that the webhook serves",
        "Otherwise GPU pods are refused.",
        _distrusted,
        unless=_CAUSES,
    ),
    Check(
        "webhook-unreachable",
        BROKEN,
        "the API server reaches the webhook",
        "Otherwise GPU pods are refused.",
        _unreachable,
        unless=_CAUSES,
    ),
    Check(
        "webhook-lets-pass",
        BROKEN,
        "a bad pod is refused with the code of a problem",
        "The pod is sent to the API server as a dry run: nothing is stored.",
        _lets_pass,
        unless=_CAUSES,
    ),
    Check(
        "webhook-mute",
        WARNING,
        "the mutating webhook answers before the validating one",
        "It fails open: pods are no longer repaired, and pods that need a repair are refused.",
        _mute,
        unless=_CAUSES,
    ),
    Check(
        "webhook-not-asked",
        NOTE,
        "Halfcard checks the pods of the dry run",
        "Another webhook or the API server refused them first, so Halfcard's answer is unknown.",
        _others_refuse,
        unless=_CAUSES,
    ),
)

"""Does the API server get answers of Halfcard's, and those that Halfcard would give?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.problems import printable

from .finding import Check, FindingSeverity, FoundFault
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
            f"Service {SERVICE}", "it is not there", "make it: port 443 of it leads to the webhook's replicas"
        )


def _no_endpoints(snapshot: Snapshot) -> Iterator[FoundFault]:
    for name in (names.ADMISSION_SERVICE, names.EXTENDER_SERVICE):
        there = snapshot.services.get(name)
        if there and snapshot.endpoints is not None and not snapshot.endpoints.get(name):
            fix = "see why its pods are not ready"
            command = f"kubectl -n {names.NAMESPACE} get pods,endpointslices -o wide"
            yield FoundFault(f"Service {names.NAMESPACE}/{name}", "no replica behind it is ready", fix, command)


# --- answers ---------------------------------------------------------------------------------------------------------


def _probes(snapshot: Snapshot) -> list[Probe]:
    return [probe for probe in (snapshot.bad, snapshot.good) if probe is not None]


def _failures(snapshot: Snapshot) -> dict[str, str]:
    """Returns the webhooks that the API server could not call, with its reason."""
    found = [_FAILED.search(probe.message) for probe in _probes(snapshot)]
    return {each["webhook"]: printable(each["why"], _WHY_CHARS) for each in found if each}


def _distrusted(snapshot: Snapshot) -> Iterator[FoundFault]:
    for webhook, why in _failures(snapshot).items():
        if "x509:" in why:
            fix = "put the CA that signed the served certificate into caBundle"
            yield FoundFault(f"webhook {webhook}", why, fix, REGISTER)


def _unreachable(snapshot: Snapshot) -> Iterator[FoundFault]:
    for webhook, why in _failures(snapshot).items():
        if "x509:" not in why:
            fix = "see its replicas' logs, and whether the API server's network reaches them"
            yield FoundFault(
                f"webhook {webhook}", why, fix, f"kubectl -n {names.NAMESPACE} get pods,endpointslices -o wide"
            )


def _lets_pass(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.bad is not None and snapshot.bad.status < 300:
        got = "the API server would have stored it"
        fix = "see whether the namespace is exempt, and whether the webhook's settings switch its rules off"
        yield FoundFault("a pod with a forged record that wants to see every card", got, fix)


def _mute(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks that pods are repaired: mutating fails open, so only owners of unrepaired pods would notice."""
    denied = _DENIED.search(snapshot.bad.message) if snapshot.bad is not None else None
    mutating = names.webhook_name(names.MUTATE_PODS_PATH)
    if denied and denied["webhook"] != mutating:
        got = f"{denied['webhook']} refused what {mutating} should have refused before"
        fix = "see whether its caBundle and its Service are those of the validating webhook"
        yield FoundFault(f"webhook {mutating}", got, fix, REGISTER)


def _others_refuse(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Reports that another webhook refuses the test pod, so that Halfcard's answer is unknown."""
    for what, probe in (("a bad pod", snapshot.bad), ("a good pod", snapshot.good)):
        if probe is None or probe.status < 300 or _FAILED.search(probe.message):
            continue
        ours = _DENIED.search(probe.message) and _CODE.search(probe.message)
        if not ours:
            fix = "ask in a namespace that takes pods, with --namespace"
            yield FoundFault(f"{what}, for show", printable(probe.message, _WHY_CHARS), fix)


_BROKEN, _WARNING, _NOTE = FindingSeverity.BROKEN, FindingSeverity.WARNING, FindingSeverity.NOTE
_REGISTRATION: Final = ("webhook-missing", "webhook-elsewhere", "webhook-blind")
_CERTIFICATE: Final = ("ca-bundle-empty", "ca-bundle-garbage", "ca-bundle-expired", "certificate-mismatch")
_CAUSES: Final = (*_REGISTRATION, *_CERTIFICATE, "service-missing", "service-empty", "certificate-expired")

CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "service-missing",
        _BROKEN,
        "the webhooks' Service exists",
        "GPU pods are refused while it is away.",
        _no_service,
    ),
    Check(
        "service-empty",
        _BROKEN,
        "a Service of Halfcard's has a replica that is ready",
        "GPU pods are refused, or wait, while nobody answers.",
        _no_endpoints,
    ),
    Check(
        "webhook-distrusted",
        _BROKEN,
        "the API server trusts the certificate that the webhook shows",
        "GPU pods are refused while it does not.",
        _distrusted,
        unless=_CAUSES,
    ),
    Check(
        "webhook-unreachable",
        _BROKEN,
        "the API server reaches the webhook",
        "GPU pods are refused while it does not.",
        _unreachable,
        unless=_CAUSES,
    ),
    Check(
        "webhook-lets-pass",
        _BROKEN,
        "a bad pod is refused with the code of a problem",
        "Asked of the API server for show (`--dry-run=server`): nothing is stored.",
        _lets_pass,
        unless=_CAUSES,
    ),
    Check(
        "webhook-mute",
        _WARNING,
        "the mutating webhook answers before the validating one",
        "It fails open: pods are no longer repaired, and those that needed it are refused.",
        _mute,
        unless=_CAUSES,
    ),
    Check(
        "webhook-not-asked",
        _NOTE,
        "the pods that are tried for show are judged by Halfcard",
        "Somebody else refused them first, so that nothing is known of Halfcard.",
        _others_refuse,
        unless=_CAUSES,
    ),
)

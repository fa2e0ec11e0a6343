"""Checks that the API server gets answers from Halfcard's webhooks, and the right ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.caller_tokens import without_tokens
from halfcard.problems import printable

from ..causes import NOT_WORKING
from ..finding import BROKEN, NOTE, WARNING, Check, FoundFault
from ..presence import INSTALL
from ..snapshot import Probe, Snapshot
from .registered_webhooks import KEEPERS, SERVICE, register, repair

_DENIED: Final = re.compile(
    rf'admission webhook "(?P<webhook>[^"]*\.{re.escape(names.OWN_DOMAIN)})" denied the request: '
)
_FAILED: Final = re.compile(
    rf'failed calling webhook "(?P<webhook>[^"]*\.{re.escape(names.OWN_DOMAIN)})": (?P<why>.*)', re.DOTALL
)
_CODE: Final = re.compile(r"\[HC\d{3}\]")
_WHY_CHARS: Final = 240
_LOGS: Final = f"kubectl -n {names.NAMESPACE} logs -l {names.NAME_LABEL}={names.ADMISSION_SERVICE} --prefix"
_NO_PORT: Final = "no service port"
_RESTORE_PORT: Final = f"restore the ports of Service {SERVICE}: 443 leads to the port https of the replicas"
_SERVERS: Final = (names.ADMISSION_SERVICE, *KEEPERS)
"""The processes without which the API server gets no answer that it trusts."""


def _probes(snapshot: Snapshot) -> list[Probe]:
    return [probe for probe in (snapshot.bad, snapshot.good) if probe is not None]


def _failures(snapshot: Snapshot) -> dict[str, str]:
    """Returns the webhooks that the API server could not call, with its reason."""
    found = [_FAILED.search(probe.message) for probe in _probes(snapshot)]
    return {each["webhook"]: printable(without_tokens(each["why"]), _WHY_CHARS) for each in found if each}


def _distrusted(snapshot: Snapshot) -> Iterator[FoundFault]:
    for webhook, why in _failures(snapshot).items():
        if "x509:" in why:
            fix, command = "put the CA that signed the served certificate into caBundle", register(snapshot)
            yield FoundFault(f"webhook {webhook}", why, fix, command, names.ADMISSION_SERVICE, _SERVERS)


def _unreachable(snapshot: Snapshot) -> Iterator[FoundFault]:
    for webhook, why in _failures(snapshot).items():
        if "x509:" not in why:
            fix = "read the logs of its replicas, and check that the API server's network reaches them"
            if _NO_PORT in why:
                yield FoundFault(f"webhook {webhook}", why, _RESTORE_PORT, INSTALL, names.ADMISSION_SERVICE, _SERVERS)
            else:
                yield FoundFault(f"webhook {webhook}", why, fix, _LOGS, names.ADMISSION_SERVICE, _SERVERS)


def _lets_pass(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.bad is not None and snapshot.bad.status < 300:
        got = "the API server would have stored it"
        fix = "check whether the namespace is exempt, and whether the webhook's settings switch its rules off"
        where = "a pod with a forged record and access to every card"
        yield FoundFault(where, got, fix, about=names.ADMISSION_SERVICE, by=_SERVERS)


def _mute(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks that pods are repaired: mutating fails open, so only owners of unrepaired pods would notice."""
    denied = _DENIED.search(snapshot.bad.message) if snapshot.bad is not None else None
    mutating = names.webhook_name(names.MUTATE_PODS_PATH)
    if denied and denied["webhook"] != mutating:
        got = f"{denied['webhook']} refused what {mutating} should have refused before"
        fix = "check that its caBundle and its Service are those of the validating webhook"
        command = repair(snapshot).command
        yield FoundFault(f"webhook {mutating}", got, fix, command, names.ADMISSION_SERVICE, _SERVERS)


def _others_refuse(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Reports that another webhook refuses the test pod, so that Halfcard's answer is unknown."""
    for what, probe in (("a bad pod", snapshot.bad), ("a good pod", snapshot.good)):
        if probe is None or probe.status < 300 or _FAILED.search(probe.message):
            continue
        ours = _DENIED.search(probe.message) and _CODE.search(probe.message)
        if not ours:
            fix = "choose a namespace that admits pods, with --namespace"
            got = printable(probe.message, _WHY_CHARS)
            yield FoundFault(f"{what}, as a dry run", got, fix, about=names.ADMISSION_SERVICE, by=_SERVERS)


_REGISTRATION: Final = ("webhook-missing", "webhook-elsewhere", "webhook-unproven", "webhook-blind")
_CERTIFICATE: Final = ("ca-bundle-empty", "ca-bundle-garbage", "ca-bundle-expired", "certificate-mismatch")
_CAUSES: Final = (
    *NOT_WORKING,
    *_REGISTRATION,
    *_CERTIFICATE,
    "service-missing",
    "service-empty",
    "certificates-due",
    "certificate-expired",
)

CHECKS: Final[tuple[Check, ...]] = (
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

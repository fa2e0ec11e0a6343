"""Checks that the scheduler's calls reach the extender, by what the scheduler and the extender say of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from certs.certificate_checks import certificates
from extender.scheduler_api.call_errors import CLOSED, COPY, FIX_BY_FAILURE, LOGS, ExtenderError, read_error
from extender.scheduler_api.scheduler_contact import (
    CallerCertificate,
    HandshakeFailure,
    SchedulerContact,
    contact_on,
)
from halfcard import names
from halfcard.problems import printable

from ..finding import BROKEN, NOTE, WARNING, Check, FoundFault, several
from ..snapshot import ABSENT, Snapshot

_WORDS_CHARS: Final = 300
_SOON: Final = timedelta(days=30)
_RECENT: Final = timedelta(hours=1)
_OF_COPIES: Final = frozenset({HandshakeFailure.EXPIRED, HandshakeFailure.UNTRUSTED, HandshakeFailure.DISTRUSTED})
_PORT: Final = f"Service {names.NAMESPACE}/{names.EXTENDER_SERVICE}"


def copy_faults(snapshot: Snapshot) -> list[FoundFault]:
    """Returns what is wrong with the certificates that schedulers show, for `halfcard certs status`."""
    refused = [_handshake(reason, address) for reason, address in _recent_failures(snapshot) if reason in _OF_COPIES]
    return [*refused, *_ended(snapshot), *_stale(snapshot)]


def _contact(snapshot: Snapshot) -> SchedulerContact:
    return contact_on(snapshot.leases.get(names.SCHEDULER_CONTACT) or ABSENT)


def _recent_failures(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Returns reason and address of handshakes that failed within the hour and after the last call, newest first."""
    contact = _contact(snapshot)
    since = max(contact.asked or snapshot.now - _RECENT, snapshot.now - _RECENT)
    found = sorted(contact.failed.items(), key=lambda item: item[1].last, reverse=True)
    return [(reason, each.address) for reason, each in found if each.last > since]


def _failing(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Reports pods with the same error together."""
    waiting: dict[ExtenderError, list[str]] = {}
    for pod in snapshot.pods:
        if pod.asks and (error := read_error(pod.message)) is not None:
            waiting.setdefault(error, []).append(pod.title)
    for error, titles in waiting.items():
        said, fix = _explained(error, _recent_failures(snapshot))
        got = f"the scheduler's call of {error.url} fails: {error.why}{said}"
        yield FoundFault(several(titles, "waiting pod"), printable(got, _WORDS_CHARS), fix)


def _explained(error: ExtenderError, failures: list[tuple[str, str]]) -> tuple[str, str]:
    """Adds what the extender saw, where the scheduler does not know why a call got no answer."""
    if error.fix not in (CLOSED, LOGS) or not failures:
        return "", error.fix
    reason, address = failures[0]
    return f"; the extender refused {address}: {reason}", FIX_BY_FAILURE.get(reason, error.fix)


def _handshakes(snapshot: Snapshot) -> Iterator[FoundFault]:
    return (_handshake(reason, address) for reason, address in _recent_failures(snapshot))


def _handshake(reason: str, address: str) -> FoundFault:
    fix = FIX_BY_FAILURE.get(reason, "find the program at this address; if it is the scheduler, read its log")
    return FoundFault(_PORT, f"no handshake with {address}: {reason}", fix)


# --- certificates ----------------------------------------------------------------------------------------------------


def _ended(snapshot: Snapshot) -> Iterator[FoundFault]:
    for address, caller in _contact(snapshot).callers.items():
        if caller.ends <= snapshot.now:
            yield FoundFault(f"scheduler at {address}", f"its client certificate ended at {_time(caller.ends)}", COPY)


def _stale(snapshot: Snapshot) -> Iterator[FoundFault]:
    for address, caller in _contact(snapshot).callers.items():
        if caller.ends > snapshot.now and (why := _age(snapshot, caller)):
            yield FoundFault(f"scheduler at {address}", why, f"{COPY}, and daily from now on: docs/certificates.md")


def _age(snapshot: Snapshot, caller: CallerCertificate) -> str:
    """Explains what is old about a valid certificate; a certificate of another subject is no copy of the Secret's."""
    if caller.ends - snapshot.now < _SOON:
        return f"its client certificate ends at {_time(caller.ends)}"
    kept = certificates((snapshot.secrets.get(names.SCHEDULER_TLS) or {}).get("tls.crt", b""))[:1]
    if kept and kept[0].subject.rfc4514_string() == caller.subject and kept[0].not_valid_after_utc > caller.ends:
        now = _time(kept[0].not_valid_after_utc)
        return f"its client certificate ends at {_time(caller.ends)}, that of the Secret at {now}"
    return ""


def _time(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


# --- calls -----------------------------------------------------------------------------------------------------------


def _never(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.leases.get(names.SCHEDULER_CONTACT) and _contact(snapshot).asked is None:
        fix = "configure the scheduler (docs/scheduler.md), and create a pod that requests a card: then it calls"
        yield FoundFault(_PORT, "no scheduler has called it yet", fix)


_CAUSES: Final = ("extender-not-led", "service-empty")

CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "scheduler-cannot-call",
        BROKEN,
        "the scheduler's calls reach the extender",
        "Otherwise pods that request cards wait. The scheduler says why in the condition `PodScheduled` of each.",
        _failing,
        unless=_CAUSES,
    ),
    Check(
        "scheduler-certificate-expired",
        BROKEN,
        "the copy of the client certificate on a scheduler's machine is valid",
        "The extender refuses an expired certificate, and pods that request cards wait. Copies of the last seven days"
        " are known.",
        _ended,
        unless=("scheduler-cannot-call",),
    ),
    Check(
        "scheduler-certificate-old",
        WARNING,
        "that copy is the certificate of the Secret, and valid for 30 days",
        "A copy that is not renewed expires one day. Alert: HalfcardSchedulerCertificateExpires.",
        _stale,
    ),
    Check(
        "scheduler-handshake",
        WARNING,
        "TLS handshakes on the extender's port succeed",
        "A handshake that failed within the hour, and no call since: the scheduler, or another program that tries the"
        " port. Alert: HalfcardExtenderHandshakesFail.",
        _handshakes,
        unless=(*_CAUSES, "scheduler-cannot-call", "scheduler-certificate-expired"),
    ),
    Check(
        "scheduler-never-called",
        NOTE,
        "a scheduler has called the extender",
        "It calls for pods that request cards; before the first one, it is unknown whether it is configured.",
        _never,
        unless=(
            *_CAUSES,
            "scheduler-cannot-call",
            "scheduler-without-extender",
            "scheduler-past-extender",
            "scheduler-handshake",
        ),
    ),
)

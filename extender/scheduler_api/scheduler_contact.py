"""When schedulers last called, with which certificates, and which handshakes failed: as each replica has seen it, and
joined for `halfcard doctor`. Pure.

Law: `joined` is associative, commutative and idempotent, so replicas may publish in any order and repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

import msgspec

from halfcard import names

Moment = Annotated[datetime, msgspec.Meta(tz=True)]

_PUBLISHED_EVERY: Final = timedelta(minutes=1)
_SEEN_EVERY: Final = timedelta(hours=1)
_RECENT: Final = timedelta(days=7)
_MOST_CALLERS: Final = 8


class HandshakeFailure(StrEnum):
    """Why a handshake failed; the values are those of a metric's label."""

    EXPIRED = "client certificate expired"
    UNTRUSTED = "client certificate of another CA"
    MISSING = "no client certificate"
    DISTRUSTED = "client refused our certificate"
    PLAIN = "no TLS"
    TIMEOUT = "timeout"
    OTHER = "other"


class CallerCertificate(msgspec.Struct, frozen=True, order=True):
    """The certificate that a caller showed; `seen` is when it last opened a connection."""

    seen: Moment
    ends: Moment
    subject: str
    serial: str


class FailedHandshake(msgspec.Struct, frozen=True, order=True):
    """The last handshake that failed for one reason, and the client's address."""

    last: Moment
    address: str


class SchedulerContact(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of schedulers.

    Attributes:
        asked: the last filter call of a caller that may bind.
        bound: the last bind call.
        callers: by IP address; those of the last seven days, at most eight.
        failed: by the reason, a `HandshakeFailure`.
    """

    asked: Moment | None = None
    bound: Moment | None = None
    callers: Mapping[str, CallerCertificate] = {}
    failed: Mapping[str, FailedHandshake] = {}

    @property
    def first_end(self) -> datetime | None:
        """Returns when the first of the callers' certificates ends; None without a certificate."""
        return min((each.ends for each in self.callers.values()), default=None)


NO_CONTACT: Final = SchedulerContact()
_READ: Final = msgspec.json.Decoder(SchedulerContact)
_Entry = TypeVar("_Entry", CallerCertificate, FailedHandshake)


def read_contact(text: str) -> SchedulerContact:
    """Reads what `write_contact` wrote; no contact where another writer has spoiled it."""
    try:
        return _READ.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return NO_CONTACT


def contact_on(lease: Mapping[str, Any]) -> SchedulerContact:
    """Reads the annotation of the Lease; no contact where nothing was published."""
    return read_contact(str(((lease.get("metadata") or {}).get("annotations") or {}).get(names.CONTACT, "")))


def write_contact(contact: SchedulerContact) -> str:
    return msgspec.json.encode(contact).decode()


def joined(one: SchedulerContact, other: SchedulerContact) -> SchedulerContact:
    return SchedulerContact(
        _latest(one.asked, other.asked),
        _latest(one.bound, other.bound),
        _recent(_merged(one.callers, other.callers)),
        _merged(one.failed, other.failed),
    )


def _latest(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _merged(one: Mapping[str, _Entry], other: Mapping[str, _Entry]) -> dict[str, _Entry]:
    return {key: max(each[key] for each in (one, other) if key in each) for key in one.keys() | other.keys()}


def _recent(callers: Mapping[str, CallerCertificate]) -> dict[str, CallerCertificate]:
    newest = sorted(callers.items(), key=lambda item: (item[1], item[0]), reverse=True)[:_MOST_CALLERS]
    return {address: each for address, each in newest if newest[0][1].seen - each.seen <= _RECENT}


def is_news(published: SchedulerContact, current: SchedulerContact) -> bool:
    """Returns whether `current` is worth a write: what only repeats is written once a minute, certificates hourly."""
    return (
        _is_later(published.asked, current.asked)
        or _succeeds_again(published, current)
        or _is_later(published.bound, current.bound)
        or _has_news(published.failed, current.failed, lambda old, new: new.last - old.last >= _PUBLISHED_EVERY)
        or _has_news(published.callers, current.callers, _is_another_caller)
    )


def _is_later(published: datetime | None, current: datetime | None) -> bool:
    return current is not None and (published is None or current - published >= _PUBLISHED_EVERY)


def _succeeds_again(published: SchedulerContact, current: SchedulerContact) -> bool:
    """Returns whether the first call after a published failure has arrived."""
    failure = max((each.last for each in published.failed.values()), default=None)
    if failure is None or current.asked is None or current.asked < failure:
        return False
    return published.asked is None or published.asked < failure


def _is_another_caller(old: CallerCertificate, new: CallerCertificate) -> bool:
    return new.serial != old.serial or new.seen - old.seen >= _SEEN_EVERY


def _has_news(
    published: Mapping[str, _Entry], current: Mapping[str, _Entry], differs: Callable[[_Entry, _Entry], bool]
) -> bool:
    return any(key not in published or differs(published[key], each) for key, each in current.items())

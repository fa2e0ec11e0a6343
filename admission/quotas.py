"""ResourceQuota objects: what people write is made to count.

The API server accepts `limits.X` and a bare `X` for an extended resource and never counts either; only `requests.X`
holds. So each gets that twin. A twin of ours follows its source; the annotation says which are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from halfcard import names
from halfcard.dialects import Dialects, Reading, read_text
from halfcard.patches import Change
from halfcard.pods import Metadata
from halfcard.problems import Problem
from halfcard.quantity import Quantity

from .policy import Policy
from .repairs import Repairs, set_annotations
from .review import Verdict, verdict

REQUESTS, LIMITS, BARE = "requests.", "limits.", ""
_HARD: Final = ("spec", "hard")


class QuotaSpec(msgspec.Struct, frozen=True):
    hard: dict[str, str | int | float] | None = None


class Quota(msgspec.Struct, frozen=True):
    metadata: Metadata | None = None
    spec: QuotaSpec | None = None

    @property
    def hard(self) -> Mapping[str, str]:
        return {key: str(text) for key, text in ((self.spec and self.spec.hard) or {}).items()}

    @property
    def annotations(self) -> Mapping[str, str]:
        return (self.metadata and self.metadata.annotations) or {}


@dataclass(frozen=True, slots=True)
class Twin:
    """What one resource's budget comes to: the keys that people wrote, and the one that counts."""

    key: str
    present: str | None
    ours: bool
    sources: Mapping[str, int]

    @property
    def wanted(self) -> int | None:
        """The smallest of what people wrote; None where nobody wrote anything any more."""
        written = [*self.sources.values()]
        if self.present is not None and not self.ours:
            written.append(_amount(self.present))
        return min(written, default=None)


def mutate_quota(quota: Quota, policy: Policy, *, old: Quota | None = None) -> Verdict:
    """Respell amounts, add and follow twins; refuse amounts that mean nothing and did not stand there before."""
    readings, problems = _read(quota.hard, policy.dialects)
    if problems:
        known = _read(old.hard, policy.dialects)[1] if old else []
        return verdict([problem for problem in problems if problem not in known], policy)
    respelled = {key: str(reading.amount) for key, reading in readings.items() if _foreign(quota.hard[key], reading)}
    hard = {**quota.hard, **respelled}
    twins = list(_twins(quota, hard, readings, policy.dialects))
    changes = [Change("replace", (*_HARD, key), text) for key, text in respelled.items() if _kept(key, twins)]
    changes += [change for twin in twins for change in _follow(twin)]
    changes += _mark(quota, twins)
    notes = [f"{key}: {reading.note}" for key, reading in readings.items() if reading.note]
    notes += [note for twin in twins for note in _notes(twin)]
    return verdict([], policy, Repairs(tuple(changes), tuple(notes)))


def _read(hard: Mapping[str, str], dialects: Dialects) -> tuple[dict[str, Reading], list[Problem]]:
    readings: dict[str, Reading] = {}
    problems: list[Problem] = []
    for key, text in hard.items():
        dialect = dialects.by_resource.get(_resource(key))
        if dialect is None:
            continue
        reading = read_text(dialect.read_total, _resource(key), text)
        if isinstance(reading, Reading):
            readings[key] = reading
        else:
            problems.append(reading.rule.broken(f'spec.hard["{key}"]', text, reading.fix))
    return readings, problems


def _resource(key: str) -> str:
    return key.removeprefix(REQUESTS).removeprefix(LIMITS)


def _foreign(text: str, reading: Reading) -> bool:
    return Quantity.parse(text).as_int() != reading.amount


def _amount(text: str) -> int:
    return Quantity.parse(text).as_int() or 0


def _twins(
    quota: Quota, hard: Mapping[str, str], readings: Mapping[str, Reading], dialects: Dialects
) -> Iterator[Twin]:
    marks = read_marks(quota.annotations.get(names.QUOTA_TWINS, ""))
    for resource in dict.fromkeys(_resource(key) for key in (*readings, *marks)):
        if resource not in dialects.resources:
            continue
        key = REQUESTS + resource
        sources = {
            side + resource: readings[side + resource].amount for side in (LIMITS, BARE) if side + resource in hard
        }
        present = hard.get(key)
        ours = present is not None and marks.get(key) == str(_amount(present))
        yield Twin(key, present, ours, sources)


def _kept(key: str, twins: list[Twin]) -> bool:
    """A requests key that is about to follow its source is written once, by that."""
    return all(twin.key != key or twin.wanted == _amount(twin.present or "0") for twin in twins)


def _follow(twin: Twin) -> Iterator[Change]:
    wanted, pointer = twin.wanted, (*_HARD, twin.key)
    if wanted is None:
        if twin.present is not None:
            yield Change("remove", pointer)
    elif twin.present is None:
        yield Change("add", pointer, str(wanted))
    elif _amount(twin.present) != wanted:
        yield Change("replace", pointer, str(wanted))


def _notes(twin: Twin) -> Iterator[str]:
    wanted = twin.wanted
    if wanted is None and twin.present is not None:
        yield f"{twin.key}={twin.present} was removed with the key that it followed"
    if wanted is None or not twin.sources:
        return
    if twin.present is None:
        yield f"{twin.key}={wanted} was added: Kubernetes counts only this key"
    elif _amount(twin.present) != wanted:
        yield f"{twin.key} is now {wanted} (was {twin.present}): the smallest of what is written counts"


def read_marks(text: str) -> dict[str, str]:
    """Which twins are ours, and the value we gave them."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {key: value for key, _, value in pairs}


def _mark(quota: Quota, twins: list[Twin]) -> Iterator[Change]:
    ours = {twin.key: twin.wanted for twin in twins if twin.sources and (twin.ours or twin.present is None)}
    text = ",".join(f"{key}={amount}" for key, amount in sorted(ours.items()))
    yield from set_annotations(quota, {names.QUOTA_TWINS: text or None})

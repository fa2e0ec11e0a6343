"""Makes ResourceQuota objects count what people write.

The API server accepts `limits.X` and a bare `X` for an extended resource and never counts either; only `requests.X` is
enforced. So each of them gets that twin. Our twins follow their source; an annotation lists the ones that are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from .. import names
from ..dialects import Dialects, ParsedAmount, read_text
from ..patches import PatchOperation
from ..problems import Problem
from ..quantity import Quantity
from .native_quota import COUNTED, UNCOUNTED, ResourceQuota, resource_of

_HARD: Final = ("spec", "hard")


@dataclass(frozen=True, slots=True)
class Twin:
    """The budget of one resource: the keys that people wrote, and the key that counts."""

    key: str
    present: str | None
    ours: bool
    sources: Mapping[str, int]

    @property
    def written(self) -> list[int]:
        """Returns the amounts that people wrote."""
        theirs = [_amount(self.present)] if self.present is not None and not self.ours else []
        return [*self.sources.values(), *theirs]

    @property
    def wanted(self) -> int | None:
        """Returns the smallest of the written amounts; None where none is left."""
        return min(self.written, default=None)

    @property
    def differs(self) -> bool:
        return len(set(self.written)) > 1


class TwinnedQuota(NamedTuple):
    """The changes that make a quota count.

    Attributes:
        changes: operations on `spec.hard`.
        marks: the annotation that lists our twins; None for none.
        notes: the changes in words.
    """

    changes: tuple[PatchOperation, ...]
    marks: str | None
    notes: tuple[str, ...]


def unreadable(quota: ResourceQuota, dialects: Dialects) -> list[Problem]:
    """Returns the problems of invalid amounts; a quota that has one is not changed."""
    return _read(quota.hard, dialects)[1]


def settle(quota: ResourceQuota, dialects: Dialects) -> TwinnedQuota:
    """Respell amounts, add and follow twins."""
    readings = _read(quota.hard, dialects)[0]
    respelled = {key: str(reading.amount) for key, reading in readings.items() if _foreign(quota.hard[key], reading)}
    twins = list(_twins(quota, {**quota.hard, **respelled}, readings, dialects))
    changes = [PatchOperation("replace", (*_HARD, key), text) for key, text in respelled.items() if _kept(key, twins)]
    changes += [change for twin in twins for change in _follow(twin)]
    notes = [f"{key}: {reading.note}" for key, reading in readings.items() if reading.note]
    notes += [note for twin in twins for note in _notes(twin)]
    notes += _per_card(readings, dialects)
    return TwinnedQuota(tuple(changes), _marks(twins), tuple(notes))


def reverted(quota: ResourceQuota) -> TwinnedQuota:
    """Removes our twins; a twin that someone else changed since is kept."""
    marks, hard = read_marks(quota.annotations.get(names.QUOTA_TWINS, "")), quota.hard
    ours = [key for key, amount in marks.items() if key in hard and amount == str(_amount(hard[key]))]
    changes = tuple(PatchOperation("remove", (*_HARD, key)) for key in ours)
    return TwinnedQuota(changes, None, tuple(f"{key}={hard[key]} was removed: Halfcard had added it" for key in ours))


def _read(hard: Mapping[str, str], dialects: Dialects) -> tuple[dict[str, ParsedAmount], list[Problem]]:
    readings: dict[str, ParsedAmount] = {}
    problems: list[Problem] = []
    for key, text in hard.items():
        dialect = dialects.by_resource.get(resource_of(key))
        if dialect is None:
            continue
        reading = read_text(dialect.read_total, resource_of(key), text)
        if isinstance(reading, ParsedAmount):
            readings[key] = reading
        else:
            problems.append(reading.rule.broken(f'spec.hard["{key}"]', text, reading.fix))
    return readings, problems


def _foreign(text: str, reading: ParsedAmount) -> bool:
    return Quantity.parse(text).as_int() != reading.amount


def _amount(text: str) -> int:
    return Quantity.parse(text).as_int() or 0


def _twins(
    quota: ResourceQuota, hard: Mapping[str, str], readings: Mapping[str, ParsedAmount], dialects: Dialects
) -> Iterator[Twin]:
    marks = read_marks(quota.annotations.get(names.QUOTA_TWINS, ""))
    for resource in dict.fromkeys(resource_of(key) for key in (*readings, *marks)):
        if resource not in dialects.resources:
            continue
        key = COUNTED + resource
        sources = {side + resource: readings[side + resource].amount for side in UNCOUNTED if side + resource in hard}
        present = hard.get(key)
        ours = present is not None and marks.get(key) == str(_amount(present))
        yield Twin(key, present, ours, sources)


def _kept(key: str, twins: list[Twin]) -> bool:
    """Returns whether a key is respelled alone; a requests key that follows its source is written with that change."""
    return all(twin.key != key or twin.wanted == _amount(twin.present or "0") for twin in twins)


def _follow(twin: Twin) -> Iterator[PatchOperation]:
    wanted, pointer = twin.wanted, (*_HARD, twin.key)
    if wanted is None:
        if twin.present is not None:
            yield PatchOperation("remove", pointer)
    elif twin.present is None:
        yield PatchOperation("add", pointer, str(wanted))
    elif _amount(twin.present) != wanted:
        yield PatchOperation("replace", pointer, str(wanted))


def _notes(twin: Twin) -> Iterator[str]:
    wanted, present = twin.wanted, twin.present
    if wanted is None and present is not None:
        yield f"{twin.key}={present} was removed with the key that it followed"
    if wanted is None or not twin.sources:
        return
    if present is None:
        smallest = ", the smallest of what is written," if twin.differs else ""
        yield f"{twin.key}={wanted}{smallest} was added: Kubernetes counts only this key"
    elif _amount(present) != wanted:
        yield f"{twin.key} is now {wanted} (was {present}): the smallest of what is written counts"
    elif twin.differs:
        yield f"{twin.key}={wanted} counts, the smallest of what is written"


def _per_card(keys: Iterable[str], dialects: Dialects) -> Iterator[str]:
    """Yields a warning for amounts per card, which Kubernetes adds up without a look at the number of cards."""
    for key in keys:
        resource = resource_of(key)
        if resource in dialects.by_resource[resource].per_card:
            yield f"{key}: Kubernetes does not multiply it by a pod's cards; a {names.GPU_QUOTA} does"


def read_marks(text: str) -> dict[str, str]:
    """Reads our twins and the values that we gave them."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {key: value for key, _, value in pairs}


def _marks(twins: list[Twin]) -> str | None:
    ours = {twin.key: twin.wanted for twin in twins if twin.sources and (twin.ours or twin.present is None)}
    return ",".join(f"{key}={amount}" for key, amount in sorted(ours.items())) or None

"""Reads a pod's GPU requests: each resource of each container as written and as understood, and the claims they
make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

from ..claims import Claim
from ..dialects import INCOMPATIBLE, AmountRefusal, Dialect, Dialects, ParsedAmount, read_text
from ..problems import CORES, MEMORY_UNITS, MIXED_CONTAINER, MIXED_POD, NOT_EQUAL, QUANTITY, SMALL_CORES, Problem
from ..quantity import NANOS, Quantity
from .misspellings import respelled
from .spec import Amounts, ContainerPath, Pod, places

LIMITS, REQUESTS = "limits", "requests"

Written = tuple[tuple[str, str], ...]
"""GPU resources and their spellings, in the order of the manifest."""

_UNREAD: Final = frozenset({QUANTITY.code, CORES.code, MEMORY_UNITS.code})

_LONGEST_REMEMBERED: Final = 40
"""Texts of tenants are kept in memory only while they are as short as honest ones."""


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """One resource of one container.

    Attributes:
        amount: the amount in the resource's own unit.
        limits: the text under limits; None where it is missing.
        requests: the text under requests; None where it is missing.
        note: how the amount was rounded; empty where it was not.
        hint: what people often mean by such an amount; empty for none.
    """

    resource: str
    amount: int
    limits: str | None = None
    requests: str | None = None
    note: str = ""
    hint: str = ""

    def written(self, side: str) -> str | None:
        return self.limits if side == LIMITS else self.requests

    def needs_respelling(self, side: str) -> bool:
        text = self.written(side)
        return text is not None and Quantity.parse(text).as_int() != self.amount

    @property
    def is_settled(self) -> bool:
        """Returns whether the amount is on both sides and in the resource's own unit."""
        missing = self.limits is None or self.requests is None
        return not (missing or self.needs_respelling(LIMITS) or self.needs_respelling(REQUESTS))


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """All GPU requests of one container, independent of its place; fields of problems begin at `resources`.

    Attributes:
        implied: resources that the container does not list and that the others require.
        claim: None where nothing is requested, or nothing that can be understood.
        is_settled: whether there is nothing to repair; computed here, so that it is remembered.
    """

    asks: tuple[ResourceRequest, ...] = ()
    problems: tuple[Problem, ...] = ()
    implied: tuple[ResourceRequest, ...] = ()
    dialect: Dialect | None = None
    claim: Claim | None = None
    is_settled: bool = field(init=False)

    def __post_init__(self) -> None:
        settled = not self.implied and all(ask.is_settled for ask in self.asks)
        object.__setattr__(self, "is_settled", settled)

    @property
    def is_read(self) -> bool:
        """Returns False where an amount could not be read: then it is unknown whether the rest is a share."""
        return _all_read(self.problems)


NOTHING: Final = ContainerRequest()


class RequestingContainer(NamedTuple):
    """A container and its GPU requests."""

    place: ContainerPath
    request: ContainerRequest

    @property
    def claim(self) -> Claim | None:
        return self.request.claim

    def amounts(self, side: str) -> Amounts:
        """Returns all amounts as written, also those of other resources."""
        container = self.place.container
        return container.limits if side == LIMITS else container.requests

    def field(self, side: str, resource: str) -> str:
        return f"{self.place.where}.{_field(side, resource)}"


def read_pod(pod: Pod, dialects: Dialects) -> tuple[RequestingContainer, ...]:
    return tuple([RequestingContainer(place, read_request(place, dialects)) for place in places(pod)])


def read_request(place: ContainerPath, dialects: Dialects) -> ContainerRequest:
    """Reads the requests of one container; results are remembered, since thousands of pods request the same."""
    limits, requests = place.container.limits, place.container.requests
    if dialects.resources.isdisjoint(limits) and dialects.resources.isdisjoint(requests):
        return NOTHING
    written = _written(limits, dialects), _written(requests, dialects)
    longest = max([len(text) for side in written for _, text in side])
    return (_remembered_request if longest <= _LONGEST_REMEMBERED else _read_request)(*written, dialects)


def _written(amounts: Amounts, dialects: Dialects) -> Written:
    """Returns the GPU resources and their texts, without spaces around them, which the API server ignores, too."""
    known = dialects.resources
    return tuple([(resource, str(text).strip()) for resource, text in amounts.items() if resource in known])


def claims(asked: tuple[RequestingContainer, ...]) -> tuple[Claim, ...]:
    return tuple([request.claim for _, request in asked if request.claim is not None])


def shape_problems(asked: tuple[RequestingContainer, ...]) -> Iterator[Problem]:
    """Yields the problems of the amounts, container by container, then between containers."""
    for each in asked:
        for problem in each.request.problems:
            asked_for = {ask.resource for ask in each.request.asks}
            others = [name for side in (LIMITS, REQUESTS) for name in each.amounts(side) if name not in asked_for]
            yield replace(respelled(problem, others), where=f"{each.place.where}.{problem.where}")
    spoken = {request.claim.dialect for _, request in asked if request.claim}
    for pair in INCOMPATIBLE:
        if pair <= spoken:
            first, second = sorted(pair)
            fix = f"use the resources of {first} in all containers, or two pods"
            yield MIXED_POD.broken("spec.containers", f"{first} and {second}", fix)


def hints(asked: tuple[RequestingContainer, ...]) -> Iterator[Problem]:
    """Yields warnings about valid amounts that are often mistakes."""
    for each in asked:
        for ask in each.request.asks:
            if ask.hint:
                side = LIMITS if ask.limits is not None else REQUESTS
                yield SMALL_CORES.broken(each.field(side, ask.resource), ask.written(side), ask.hint)


def _field(side: str, resource: str) -> str:
    return f'resources.{side}["{resource}"]'


def _read_request(limits: Written, requests: Written, dialects: Dialects) -> ContainerRequest:
    sides = {LIMITS: dict(limits), REQUESTS: dict(requests)}
    asks: list[ResourceRequest] = []
    problems: list[Problem] = []
    for resource in dict.fromkeys(resource for resource, _ in limits + requests):
        spellings = {side: amounts[resource] for side, amounts in sides.items() if resource in amounts}
        ask, broken = _read_resource(resource, spellings, dialects.by_resource[resource])
        asks += [ask] if ask else []
        problems += broken
    return _understood(tuple(asks), tuple(problems), dialects)


_remembered_request = lru_cache(maxsize=1024)(_read_request)


def _read_resource(
    resource: str, spellings: Mapping[str, str], dialect: Dialect
) -> tuple[ResourceRequest | None, list[Problem]]:
    """Reads one resource from limits and requests; a missing side equals the other."""
    readings = {side: read_text(dialect.read, resource, text) for side, text in spellings.items()}
    refused = [
        reading.rule.broken(_field(side, resource), _as_people_write(spellings[side]), reading.fix)
        for side, reading in readings.items()
        if isinstance(reading, AmountRefusal)
    ]
    if refused:
        return None, _told_once(refused, spellings)
    understood = [reading for reading in readings.values() if isinstance(reading, ParsedAmount)]
    problems = _unequal(resource, spellings, [reading.amount for reading in understood])
    note = next((reading.note for reading in understood if reading.note), "")
    first = understood[0]
    ask = ResourceRequest(resource, first.amount, spellings.get(LIMITS), spellings.get(REQUESTS), note, first.hint)
    return ask, problems


def _as_people_write(text: str) -> str:
    """Returns 0.5 for 500m, which the API server makes of it."""
    if not text.removesuffix("m").isdecimal() or not text.endswith("m"):
        return text
    whole, rest = divmod(Quantity.parse(text).nanos, NANOS)
    return f"{whole}.{rest:09}".rstrip("0").rstrip(".")


def _told_once(problems: list[Problem], spellings: Mapping[str, str]) -> list[Problem]:
    """Drops repeated problems: the API server copies limits into requests, so one mistake appears twice."""
    same = len(problems) == 2 and len(set(spellings.values())) == 1
    return problems[:1] if same else problems


def _unequal(resource: str, spellings: Mapping[str, str], amounts: list[int]) -> list[Problem]:
    if len(set(amounts)) < 2:
        return []
    fix = "write the same in both, or leave requests out"
    return [NOT_EQUAL.broken(_field(REQUESTS, resource), spellings[REQUESTS], fix)]


def _understood(
    asks: tuple[ResourceRequest, ...], problems: tuple[Problem, ...], dialects: Dialects
) -> ContainerRequest:
    """Makes the claim if all resources are of one dialect; an amount of 0 requests nothing."""
    positive = {ask.resource: ask.amount for ask in asks if ask.amount}
    speakers = dialects.speakers(positive)
    if not speakers:
        return ContainerRequest(asks, problems)
    if len(speakers) > 1:
        return ContainerRequest(asks, (*problems, _mixed(speakers)))
    dialect = speakers[0]
    amounts = {ask.resource: ask.amount for ask in asks}
    implied = dialect.implied(amounts)
    return ContainerRequest(
        asks,
        (*problems, *dialect.check(amounts, "resources")) if _all_read(problems) else problems,
        tuple(ResourceRequest(resource, amount) for resource, amount in implied.items()),
        dialect,
        dialect.claim(positive | dict(implied)),
    )


def _all_read(problems: tuple[Problem, ...]) -> bool:
    return all(problem.code not in _UNREAD for problem in problems)


def _mixed(speakers: tuple[Dialect, ...]) -> Problem:
    found = " and ".join(dialect.name for dialect in speakers)
    fix = f"keep the resources of {speakers[0].name} or of {speakers[1].name}"
    return MIXED_CONTAINER.broken("resources", found, fix)

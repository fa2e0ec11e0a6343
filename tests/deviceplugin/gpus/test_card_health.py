"""Which cards get no new pods: examples, and the laws behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.gpus.card_health import (
    IGNORED,
    LONGEST_QUIET_S,
    QUIET_S,
    CardHealth,
    after_failure,
    after_incident,
    after_read,
    why_not,
)
from deviceplugin.gpus.interface import Gpu, Incident

A: Final = Gpu(0, "GPU-a", "Tesla T4", 15109)
B: Final = Gpu(1, "GPU-b", "Tesla T4", 15109)
BOTH: Final = (A, B)
LINK_FAILED: Final = 74
OFF_THE_BUS: Final = 79


def ill(xid: int = LINK_FAILED, at: float = 0.0) -> CardHealth:
    return after_incident(after_read(CardHealth(), BOTH, at), Incident(A.uuid, xid), at)


def test_healthy_cards_have_no_reason() -> None:
    health = after_read(CardHealth(), BOTH, 0)
    assert health.gpus == BOTH and why_not(health) == {}


@pytest.mark.parametrize("xid", [*sorted(IGNORED), 154])
def test_an_error_of_a_program_does_not_make_its_card_unhealthy(xid: int) -> None:
    assert why_not(ill(xid)) == {}


def test_errors_on_nvidias_list_are_ignored() -> None:
    assert {13, 31, 43, 45, 68, 109} == IGNORED


SAID: Final = {
    LINK_FAILED: "Xid 74, an NVLink failed",
    OFF_THE_BUS: "Xid 79, it fell off the bus: reset the card",
    9999: "Xid 9999, a critical error",
}


@pytest.mark.parametrize(("xid", "said"), SAID.items())
def test_a_critical_error_makes_only_its_card_unhealthy(xid: int, said: str) -> None:
    assert why_not(ill(xid)) == {A.uuid: said}


def test_an_error_without_a_card_makes_every_card_unhealthy() -> None:
    health = after_incident(after_read(CardHealth(), BOTH, 0), Incident("", LINK_FAILED), 0)
    assert why_not(health).keys() == {A.uuid, B.uuid}


def test_a_card_recovers_after_a_quiet_time() -> None:
    health = after_read(ill(), BOTH, QUIET_S - 1)
    assert A.uuid in why_not(health)
    assert why_not(after_read(health, BOTH, QUIET_S)) == {}


def test_another_error_restarts_the_quiet_time() -> None:
    health = after_incident(ill(), Incident(A.uuid, 63), QUIET_S - 1)
    health = after_read(health, BOTH, QUIET_S)
    assert why_not(health) == {A.uuid: "Xid 63, a row of its memory was replaced"}
    assert why_not(after_read(health, BOTH, 2 * QUIET_S)) == {}


def test_each_new_error_doubles_the_quiet_time_up_to_a_day() -> None:
    health, now, times = CardHealth(gpus=BOTH), 0.0, []
    for _ in range(12):
        began = now = now + 1
        health = after_incident(health, Incident(A.uuid, LINK_FAILED), began)
        while why_not(health):
            now += QUIET_S
            health = after_read(health, BOTH, now)
        times.append(now - began)
    assert times == [min(QUIET_S * 2**spell, LONGEST_QUIET_S) for spell in range(12)]


def test_an_old_error_is_forgotten() -> None:
    health = after_read(ill(), BOTH, QUIET_S)
    later = QUIET_S + 25 * 3600
    health = after_read(after_incident(health, Incident(A.uuid, LINK_FAILED), later), BOTH, later + QUIET_S)
    assert why_not(health) == {}


def test_an_error_that_needs_a_reset_stays_and_is_not_hidden_by_a_lesser_one() -> None:
    health = after_incident(ill(OFF_THE_BUS), Incident(A.uuid, LINK_FAILED), 1)
    assert why_not(after_read(health, BOTH, 100 * LONGEST_QUIET_S)) == {A.uuid: SAID[OFF_THE_BUS]}


LOST: Final = "the driver has lost it or does not list it any more"
ABSENCES: Final[dict[str, tuple[Callable[[CardHealth], CardHealth], str]]] = {
    "lost": (lambda health: after_read(health, [B], 1), LOST),
    "no driver": (lambda health: after_failure(health, "it is being installed"), "it is being installed"),
}


@pytest.mark.parametrize(("absent", "why"), ABSENCES.values(), ids=ABSENCES)
def test_a_card_that_was_missing_and_returns_has_recovered(
    absent: Callable[[CardHealth], CardHealth], why: str
) -> None:
    health = absent(ill(OFF_THE_BUS))
    assert why_not(health)[A.uuid] == f"{why}; {SAID[OFF_THE_BUS]}"
    assert A in health.gpus
    assert why_not(after_read(health, BOTH, 2)) == {}


def test_a_card_that_returns_with_an_error_has_not_recovered() -> None:
    troubled = A._replace(trouble="the driver asks for a reset of the card")
    health = after_read(after_read(ill(), [B], 1), [troubled, B], QUIET_S)
    assert why_not(health) == {A.uuid: f"{troubled.trouble}; {SAID[LINK_FAILED]}"}


def test_an_error_lasts_as_long_as_the_driver_reports_it() -> None:
    health = after_read(CardHealth(), [A._replace(trouble="hot"), B], 0)
    assert why_not(health) == {A.uuid: "hot"}
    assert why_not(after_read(health, BOTH, 1)) == {}


def test_listed_cards_come_before_missing_ones() -> None:
    assert after_read(after_read(CardHealth(), BOTH, 0), [B], 1).gpus == (B, A)


uuids = st.sampled_from(["GPU-a", "GPU-b", "GPU-c"])
shown = st.lists(
    st.builds(Gpu, st.integers(0, 3), uuids, st.just("T4"), st.just(1), trouble=st.sampled_from(["", "hot"])),
    unique_by=lambda gpu: gpu.uuid,
    max_size=3,
)
happenings = st.lists(
    st.one_of(shown, st.builds(Incident, uuids, st.sampled_from([13, 48, 74, 79])), st.just("no answer")), max_size=30
)


Happening = list[Gpu] | Incident | str


def health_after(story: list[Happening]) -> tuple[CardHealth, float]:
    health, now = CardHealth(), 0.0
    for happening in story:
        now += QUIET_S
        if isinstance(happening, Incident):
            health = after_incident(health, happening, now)
        elif isinstance(happening, str):
            health = after_failure(health, happening)
        else:
            health = after_read(health, happening, now)
    return health, now


@given(happenings)
def test_a_card_that_was_listed_once_stays_known(story: list[Happening]) -> None:
    ever = {gpu.uuid for happening in story if isinstance(happening, list) for gpu in happening}
    known = [gpu.uuid for gpu in health_after(story)[0].gpus]
    assert set(known) == ever and len(known) == len(ever)


@given(happenings)
def test_every_card_recovers_after_any_history(story: list[Happening]) -> None:
    health, now = health_after(story)
    in_order = [gpu._replace(trouble="") for gpu in health.gpus]
    assert why_not(after_read(after_read(health, (), now), in_order, now)) == {}


@given(happenings, uuids)
def test_the_health_of_a_card_does_not_depend_on_others(story: list[Happening], uuid: str) -> None:
    alone = [_about(happening, uuid) for happening in story]
    assert why_not(health_after(alone)[0]).get(uuid) == why_not(health_after(story)[0]).get(uuid)


def _about(happening: Happening, uuid: str) -> Happening:
    """The same story for one card: errors of other cards become ignored ones, and other cards are not listed."""
    if isinstance(happening, list):
        return [gpu for gpu in happening if gpu.uuid == uuid]
    return Incident(uuid, 13) if isinstance(happening, Incident) and happening.uuid != uuid else happening

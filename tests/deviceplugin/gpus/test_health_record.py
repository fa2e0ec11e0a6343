"""The health of cards survives a restart of the agent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.gpus.card_health import QUIET_S, CardHealth, after_failure, after_incident, after_read, why_not
from deviceplugin.gpus.health_record import decode_health, encode_health
from deviceplugin.gpus.interface import Incident

from .test_card_health import BOTH, LINK_FAILED, OFF_THE_BUS, SAID, A, B, Happening, happenings, health_after, ill

BOOT = "5a3c7e0e-29a6-4b8e-9d0e-0f1a9f525c3e"


def restarted(health: CardHealth) -> CardHealth:
    return decode_health(encode_health(health, BOOT), BOOT)


def test_a_card_that_needs_a_reset_does_not_recover_by_a_restart_of_the_agent() -> None:
    assert why_not(after_read(restarted(ill(OFF_THE_BUS)), BOTH, 1)) == {A.uuid: SAID[OFF_THE_BUS]}


def test_the_quiet_time_continues_after_a_restart() -> None:
    health = after_read(restarted(ill(LINK_FAILED, at=5)), BOTH, 5 + QUIET_S - 1)
    assert why_not(health) == {A.uuid: SAID[LINK_FAILED]}
    assert why_not(after_read(health, BOTH, 5 + QUIET_S)) == {}


def test_a_card_that_was_missing_before_a_restart_and_is_back_has_recovered() -> None:
    away = after_read(ill(OFF_THE_BUS), [B], 1)
    assert A in after_read(restarted(away), [B], 2).gpus
    assert why_not(after_read(restarted(away), BOTH, 2)) == {}
    assert why_not(after_read(after_read(restarted(away), [B], 2), BOTH, 3)) == {}


def test_healthy_cards_are_not_stored() -> None:
    for health in (
        after_read(CardHealth(), BOTH, 0),
        after_failure(after_read(CardHealth(), BOTH, 0), "no driver"),
        CardHealth(),
    ):
        assert restarted(health) == CardHealth()


def test_a_reboot_resets_every_card() -> None:
    assert decode_health(encode_health(ill(OFF_THE_BUS), BOOT), "another boot") == CardHealth()


@pytest.mark.parametrize("content", [b"", b"{}", b"[1", b"\xff", b"[" * 100_000, b'{"boot":"x","ill":[[]]}'])
def test_an_invalid_file_is_ignored(content: bytes) -> None:
    assert decode_health(content, "x") == CardHealth()


@given(happenings, st.floats(0, 1e6))
def test_after_a_restart_the_same_cards_are_unhealthy(story: list[Happening], later: float) -> None:
    health, now = health_after(story)
    gpus = [gpu for gpu in health.gpus if gpu.uuid not in health.absent]
    went_on = why_not(after_read(health, gpus, now + later))
    restart = why_not(after_read(restarted(health), gpus, now + later))
    shown = {gpu.uuid for gpu in gpus}
    assert restart.items() <= went_on.items()
    assert {uuid for uuid in went_on if uuid in shown} <= restart.keys()


def test_a_record_that_was_read_can_be_written_unchanged() -> None:
    content = encode_health(after_incident(ill(OFF_THE_BUS), Incident(B.uuid, LINK_FAILED), 3.5), BOOT)
    assert encode_health(decode_health(content, BOOT), BOOT) == content

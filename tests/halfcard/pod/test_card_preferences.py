from __future__ import annotations

from typing import Final

import pytest

from halfcard import names
from halfcard.cards import Card
from halfcard.pod.card_preferences import NOTHING_WANTED, CardPreferences, read_preferences

READ: Final[dict[str, tuple[dict[str, str], CardPreferences]]] = {
    "nothing": ({"team": "a"}, NOTHING_WANTED),
    "a policy": ({names.ASK_POLICY: "spread"}, CardPreferences(policy="spread")),
    "an unknown policy": ({names.ASK_POLICY: "chess"}, CardPreferences()),
    "models, in any case and order": ({names.ASK_MODEL: " T4, a10 ,,"}, CardPreferences(models=("a10", "t4"))),
    "HAMi's words": (
        {
            names.HAMI_USE_MODEL: "A10",
            names.HAMI_AVOID_MODEL: "T4",
            names.HAMI_USE_UUID: "GPU-b,GPU-a",
            names.HAMI_AVOID_UUID: "GPU-c",
        },
        CardPreferences(models=("a10",), not_models=("t4",), uuids=("GPU-a", "GPU-b"), not_uuids=("GPU-c",)),
    ),
    "both systems' words": (
        {names.ASK_UUID: "GPU-a", names.HAMI_USE_UUID: "GPU-b"},
        CardPreferences(uuids=("GPU-a", "GPU-b")),
    ),
    "a list of nothing": ({names.ASK_MODEL: " , "}, CardPreferences()),
}


@pytest.mark.parametrize(("annotations", "wanted"), READ.values(), ids=READ)
def test_card_preferences_are_read_from_annotations(annotations: dict[str, str], wanted: CardPreferences) -> None:
    assert read_preferences(annotations) == wanted


def test_a_preference_is_shown_on_one_short_line() -> None:
    text = read_preferences({names.ASK_MODEL: "a\n" * 1000}).text
    assert text.startswith("ask.halfcard.dev/model=a") and text.isprintable() and len(text) <= 80


def test_equal_preferences_are_equal_in_any_spelling() -> None:
    one, other = read_preferences({names.ASK_MODEL: "T4,A10"}), read_preferences({names.ASK_MODEL: "a10, t4"})
    assert one == other and hash(one) == hash(other) and one.text != other.text


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        (NOTHING_WANTED, True),
        (CardPreferences(models=("a10",)), True),
        (CardPreferences(models=("t4",)), False),
        (CardPreferences(not_models=("nvidia",)), False),
        (CardPreferences(uuids=("GPU-a",)), True),
        (CardPreferences(uuids=("GPU-b",)), False),
        (CardPreferences(not_uuids=("GPU-a",)), False),
        (CardPreferences(uuids=("GPU-a",), not_uuids=("GPU-a",)), False),
        (CardPreferences(models=("a10",), uuids=("GPU-b",)), False),
    ],
)
def test_a_card_is_allowed_unless_a_preference_excludes_it(wanted: CardPreferences, allowed: bool) -> None:  # noqa: FBT001
    assert wanted.allows(Card(0, "NVIDIA A10", 1, "GPU-a")) is allowed
    assert wanted.narrows or wanted == NOTHING_WANTED

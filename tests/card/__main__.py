"""Runs all tries and prints a table; exits with 1 where one failed. Without a card it says what was not tried."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from .node import CardNode, RealCard, found_card
from .tries import TRIES
from .verdicts import Verdict

FOLDER: Final = Path(__file__).parents[2] / "build" / "test-card"


def not_tried(why: str) -> str:
    return f"test-card: no NVIDIA card can be used here ({why}), so these were not tried: {', '.join(TRIES)}."


def judged(attempt: Callable[[CardNode], Verdict], node: CardNode) -> Verdict:
    """Goes on where an attempt ends by an error: the others may tell why."""
    try:
        return attempt(node)
    except Exception as error:  # noqa: BLE001 - whatever a program on the card does
        return Verdict(passed=False, figures=f"{type(error).__name__}: {error}")


def lines(card: RealCard, found: Mapping[str, Verdict]) -> list[str]:
    head = f"{card.name}, driver {card.driver}, {card.memory_mib} MiB"
    return [head, *(f"{'ok' if each.passed else 'FAILED':8}{name:40}{each.figures}" for name, each in found.items())]


def main() -> int:
    card = found_card()
    if isinstance(card, str):
        sys.stdout.write(not_tried(card) + "\n")
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    node = CardNode(FOLDER, card)
    found = {name: judged(attempt, node) for name, attempt in TRIES.items()}
    sys.stdout.write("\n".join(lines(card, found)) + "\n")
    return 0 if all(each.passed for each in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

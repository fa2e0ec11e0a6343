"""Whether containers of shares are held to them, as the installation says and a node may say otherwise."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class IsolationMode(StrEnum):
    """What happens to the container of a share."""

    ENFORCE = "enforce"
    """It is held, or it does not start."""

    WARN = "warn"
    """It is held where that is possible; where it is not, the node says why, and the container starts."""

    OFF = "off"
    """It is not held."""


IS_OFF: Final = f"isolation is {IsolationMode.OFF}"
"""Why a container is not held where nothing is to hold it."""


class ChosenMode(NamedTuple):
    mode: IsolationMode
    problem: str


def chosen_mode(setting: IsolationMode, label: str) -> ChosenMode:
    """Returns the mode of a node; a label that means nothing leaves that of the installation."""
    if not label:
        return ChosenMode(setting, "")
    try:
        return ChosenMode(IsolationMode(label), "")
    except ValueError:
        return ChosenMode(setting, f'got "{label}"; use {", ".join(IsolationMode)}; {setting} holds meanwhile')

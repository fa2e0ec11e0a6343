"""The isolation of a node: what its label says, else what the installation says."""

from __future__ import annotations

import pytest

from halfcard.isolation.mode import IsolationMode, chosen_mode


@pytest.mark.parametrize(
    ("setting", "label", "mode"),
    [
        (IsolationMode.OFF, "", IsolationMode.OFF),
        (IsolationMode.OFF, "enforce", IsolationMode.ENFORCE),
        (IsolationMode.ENFORCE, "off", IsolationMode.OFF),
        (IsolationMode.WARN, "warn", IsolationMode.WARN),
    ],
)
def test_the_label_of_a_node_counts_before_the_setting(setting: IsolationMode, label: str, mode: IsolationMode) -> None:
    assert chosen_mode(setting, label) == (mode, "")


def test_a_label_that_means_nothing_changes_nothing_and_is_reported() -> None:
    mode, problem = chosen_mode(IsolationMode.ENFORCE, "on")
    assert mode is IsolationMode.ENFORCE
    assert problem == 'got "on"; use enforce, warn, off; enforce holds meanwhile'

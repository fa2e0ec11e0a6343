"""Breaks rules on purpose, to check that a law notices it."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

_ONCE: Final = settings(
    max_examples=2000,  # it ends at the first; which comes first depends on what else has been imported
    stateful_step_count=50,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
    derandomize=True,
    database=None,
    print_blob=False,
)


def assert_is_found(broken: type[RuleBasedStateMachine]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(broken, settings=_ONCE)

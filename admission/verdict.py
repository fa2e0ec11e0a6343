"""The verdict on one object: admitted, perhaps with a patch and warnings, or refused, with all problems at once."""

from __future__ import annotations

from typing import Final, NamedTuple

from halfcard.patches import PatchOperation
from halfcard.problems import Problem, message
from halfcard.quota.budgets import Budget


class NoRoom(NamedTuple):
    """A refusal of a valid object for which a budget has no room.

    Attributes:
        retry_s: the seconds after which a retry may succeed; 0 where a retry changes nothing.
        budget: the exceeded budget; None where none is known.
    """

    message: str
    retry_s: int = 0
    budget: Budget | None = None

    @property
    def code(self) -> str:
        """For metrics and logs."""
        return "busy" if self.retry_s else "quota"


class Verdict(NamedTuple):
    """The answer to the API server.

    Attributes:
        problems: why the object is refused; empty where it is admitted.
        warnings: lines for people, each at most 120 characters.
        changes: the patch; empty where the object is refused.
        no_room: why an object without problems is refused.
    """

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    changes: tuple[PatchOperation, ...] = ()
    no_room: NoRoom | None = None

    @property
    def allowed(self) -> bool:
        return not self.problems and self.no_room is None

    @property
    def message(self) -> str:
        return self.no_room.message if self.no_room is not None else message(self.problems)

    @property
    def codes(self) -> list[str]:
        own = [] if self.no_room is None else [self.no_room.code]
        return [problem.code for problem in self.problems] + own


ALLOWED: Final = Verdict()

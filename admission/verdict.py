"""The verdict on one object: admitted, perhaps with a patch and warnings, or refused, with all problems at once."""

from __future__ import annotations

from typing import Final, NamedTuple

from halfcard.patches import PatchOperation
from halfcard.problems import Problem, message
from halfcard.quota.budgets import Budget


class NoRoom(NamedTuple):
    """A refusal of a valid object for which a budget has no room."""

    message: str
    retry_s: int = 0
    """Seconds after which a retry may succeed; 0 where a retry cannot succeed."""
    budget: Budget | None = None
    """The exceeded budget; None where none is known."""

    @property
    def code(self) -> str:
        """The code for metrics and logs."""
        return "busy" if self.retry_s else "quota"


class Verdict(NamedTuple):
    """The answer to the API server."""

    problems: tuple[Problem, ...] = ()
    """Why the object is refused; empty where it is admitted."""
    warnings: tuple[str, ...] = ()
    """Lines for the user, each at most 120 characters."""
    changes: tuple[PatchOperation, ...] = ()
    """The patch; empty where the object is refused."""
    no_room: NoRoom | None = None
    """Why an object without problems is refused."""

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

    @property
    def warned(self) -> list[str]:
        """The codes of rules that are broken, but only warn; each once."""
        return sorted({line[1:6] for line in self.warnings if line.startswith("[HC")})


ALLOWED: Final = Verdict()

"""The calls of the soak, and the judgement of their answers.

The rule: nothing wrong is ever stored. A good pod may be refused only if no process could answer, and only during a
fault that explains this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from devcluster.control_plane.client import ApiResponse
from devcluster.objects import Object
from halfcard import names

from .manifests import bad, plain, resources, share


class Kind(StrEnum):
    GOOD = "good"
    BAD = "bad"
    NO_GPU = "no GPU"


class Down(StrEnum):
    """The processes that cannot answer during a fault."""

    API_SERVER = "API server"
    REPLICA = "a replica"
    ALL_REPLICAS = "all replicas"


class Judgement(StrEnum):
    RIGHT = "right"
    EXCUSED = "excused"
    WRONG = "wrong"


PODS: Final[Mapping[Kind, Callable[[str], Object]]] = {Kind.GOOD: share, Kind.BAD: bad, Kind.NO_GPU: plain}
NO_ANSWER: Final = ApiResponse(0, {})

_REPAIRED: Final = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}
_OUR_REFUSAL: Final = "[HC002]"
_WITHOUT_HALFCARD: Final = ("failed calling webhook", "must be an integer")
"""The validating webhook fails closed; where the mutating one was down, Kubernetes refuses 0.3 itself."""


@dataclass(frozen=True, slots=True)
class Call:
    kind: Kind
    dry_run: bool
    begin: float
    end: float
    answer: ApiResponse

    @property
    def message(self) -> str:
        return str(self.answer.body.get("message", "")) if isinstance(self.answer.body, dict) else ""


@dataclass(frozen=True, slots=True)
class Window:
    """From the beginning of a fault until its last effect."""

    down: Down
    begin: float
    end: float

    def overlaps(self, call: Call) -> bool:
        return call.begin <= self.end and call.end >= self.begin


def judge(call: Call, windows: Iterable[Window]) -> Judgement:
    if _is_right(call):
        return Judgement.RIGHT
    if call.answer.ok:
        return Judgement.WRONG  # a bad or unrepaired pod was stored: no fault excuses that
    down = {window.down for window in windows if window.overlaps(call)}
    return Judgement.EXCUSED if _is_excused(call, down) else Judgement.WRONG


def _is_right(call: Call) -> bool:
    answer = call.answer
    match call.kind:
        case Kind.GOOD:
            return answer.ok and resources(answer.body)["limits"] == _REPAIRED
        case Kind.BAD:
            return 400 <= answer.status < 500 and _OUR_REFUSAL in call.message
        case Kind.NO_GPU:
            return answer.ok


def _is_excused(call: Call, down: set[Down]) -> bool:
    if Down.API_SERVER in down and (call.answer is NO_ANSWER or call.answer.status >= 500):
        return True
    without_halfcard = any(words in call.message for words in _WITHOUT_HALFCARD)
    return without_halfcard and call.kind is not Kind.NO_GPU and bool(down)

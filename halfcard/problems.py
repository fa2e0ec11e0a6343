"""Problems of a request in one vocabulary: where, got, rule, fix, and a stable code.

The table at the end is the only list of rules; docs/problems.md is generated from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from . import names

MOST_ANNOTATED: Final = 256 * 1024
"""Bytes of all annotations of one object: the API server takes no more."""

MAX_MESSAGE_BYTES: Final = 900
"""A denial is copied into events and conditions, where longer texts are cut without a word."""

MAX_WARNING_CHARS: Final = 120
"""What the API server advises; more than 4096 in all would be cut."""

_MESSAGE_BUDGET: Final = MAX_MESSAGE_BYTES - len(" (and 9999999 more)")
_MAX_GOT_CHARS: Final = 64
_MAX_WHERE_CHARS: Final = 160
_MAX_FIX_CHARS: Final = 240


class Severity(StrEnum):
    DENY = "deny"
    WARN = "warn"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Problem:
    """One rule broken in one place."""

    code: str
    where: str
    got: str
    rule: str
    fix: str

    def __str__(self) -> str:
        where = printable(self.where, _MAX_WHERE_CHARS)
        got = printable(self.got, _MAX_GOT_CHARS).replace('"', r"\"")
        fix = printable(self.fix, _MAX_FIX_CHARS)
        return f'{where}: got "{got}"; {self.rule}; {fix} [{self.code}]'


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    Attributes:
        code: stable for ever, so that people can search for it.
        severity: what happens by default; a setting changes it.
        text: the rule in one clause, as it stands in every message.
        why: the reason, for the docs.
    """

    code: str
    severity: Severity
    text: str
    why: str

    def broken(self, where: str, got: object, fix: str) -> Problem:
        return Problem(self.code, where, str(got), self.text, fix)


def printable(text: str, limit: int) -> str:
    """Text from users, safe in a header, a log line and a terminal: one line, nothing that steers, bounded."""
    head = text[: limit + 1]
    safe = head if head.isprintable() else "".join(_escaped(char) for char in head)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def _escaped(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode("ascii")


def message(problems: Iterable[Problem]) -> str:
    """All problems in one line that fits a Kubernetes status; the table's order is the order of importance."""
    ranked = sorted(problems, key=lambda problem: problem.code)
    texts = [str(problem) for problem in ranked]
    kept = _fitting(texts, _MESSAGE_BUDGET)
    left = len(texts) - len(kept)
    return " | ".join(kept) + (f" (and {left} more)" if left else "")


def _fitting(texts: list[str], budget: int) -> list[str]:
    kept: list[str] = []
    for text in texts:
        budget -= len(text.encode("utf-8", "replace")) + len(" | ")
        if budget < 0 and kept:
            break
        kept.append(text if budget >= 0 else clipped(text, _MESSAGE_BUDGET))
    return kept


def clipped(text: str, limit: int) -> str:
    """Cuts the text to `limit` bytes of UTF-8, between characters."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else raw[: limit - 3].decode("utf-8", "ignore") + "…"


def warning(text: str) -> str:
    """A line for the `Warning:` header of the API server."""
    return printable(text, MAX_WARNING_CHARS)


def as_warning(problem: Problem) -> str:
    """A problem whose severity is `warn`, short enough to be read: the place goes first when all does not fit."""
    got = printable(problem.got, 24)
    full = f'[{problem.code}] {problem.where}: got "{got}"; {problem.rule}; {problem.fix}'
    return warning(full if len(full) <= MAX_WARNING_CHARS else f"[{problem.code}] {problem.rule}; {problem.fix}")


_DENY, _WARN = Severity.DENY, Severity.WARN

QUANTITY = Rule(
    "HC001",
    _DENY,
    "this resource is counted in whole numbers from 0 to 2147483647",
    "Device counts are whole; larger numbers wrap in node agents that keep 32 bits, and no node has that many.",
)
CORES = Rule(
    "HC002",
    _DENY,
    "cores must be 1-99 for a share of one card, or a multiple of 100 for whole cards",
    "A share lies on one card. One and a half cards would need two cards of which one is shared: ask for two"
    " containers, or for two cards.",
)
MEMORY_UNITS = Rule(
    "HC003",
    _DENY,
    "memory must be a whole number of 256 MiB units below 1048576, or bytes with a binary suffix such as 5Gi",
    "The node agents count 256 MiB units. From 1 MiB on a number can only be meant as bytes, and is converted.",
)
NOT_EQUAL = Rule(
    "HC004",
    _DENY,
    "requests and limits of a GPU resource must be equal",
    "Kubernetes has no overcommit for extended resources. Halfcard fills in the missing side, but does not guess"
    " which of two different numbers was meant.",
)
UNREPAIRED = Rule(
    "HC005",
    _DENY,
    "the amount must be written in the resource's own unit",
    "The mutating webhook converts such amounts. Where it was not reached they are refused, because 5Gi would be"
    " read as five thousand million units.",
)
SHARE_NEEDS_MEMORY = Rule(
    "HC006",
    _DENY,
    "a share of a card must say how much memory it needs",
    "Without a limit on memory one container can take what its neighbours on the card were given.",
)
MEMORY_ALONE = Rule(
    "HC007",
    _DENY,
    "memory of a card must come with a share of its cores",
    "gpu-manager's agent places by cores; a pod with memory alone waits for ever. Systems that share by memory"
    " (tuya, aliyun, volcano) are not concerned.",
)
MEMORY_TOO_LARGE = Rule(
    "HC008",
    _DENY,
    "the memory of a share must fit on one card of this cluster",
    "A share lies on one card, so no node could ever run the pod.",
)
CORE_LIMIT = Rule(
    "HC009",
    _DENY,
    "the core limit must be a whole number from the largest share of the pod to 100",
    "It is the ceiling to which a share may burst: below the share it would take away what was asked for.",
)
MIXED_CONTAINER = Rule(
    "HC010",
    _DENY,
    "a container must ask for GPU in the words of one system",
    "Two systems in one container would count one card twice.",
)
MIXED_POD = Rule(
    "HC011",
    _DENY,
    "these two kinds of claim cannot live in one pod",
    "No node offers both: they give one resource name two meanings, or exclude each other on a node.",
)
ONE_KIND = Rule(
    "HC012",
    _DENY,
    "this excludes another resource of the same container",
    "Whole cards and shares, or MiB and per cent, contradict each other.",
)
PER_CENT = Rule(
    "HC013",
    _DENY,
    "a percentage of a card must be 1-100",
    "A share of one card cannot exceed the card.",
)
POLICY = Rule(
    "HC014",
    _DENY,
    "the policy must be one by which Halfcard chooses cards",
    "A misspelled policy would be left out without a word, and the cards chosen in another way than was asked for.",
)
SLOTS = Rule(
    "HC015",
    _DENY,
    f"the number of {names.SLOT} is Halfcard's to say",
    "Resources that are counted in MiB have too many units for device ids of their own. By these ids the node agent"
    " knows which container is starting: without them it would start without its card, and with as many as another"
    " container of its pod has, with the other's.",
)
DERIVED = Rule(
    "HC016",
    _DENY,
    f"amounts of {names.DERIVED_GROUP} are Halfcard's to say",
    "By them native ResourceQuotas count whole cards and shares of cards (`derived_resources`). A pod without them"
    " would be charged nothing, and one with others would be charged what it does not take.",
)
OWNED = Rule(
    "HC020",
    _DENY,
    "only Halfcard and the node agents may write this",
    "It records which card was given. A forged record takes a neighbour's card or hides a pod from the count.",
)
ENV_WIDENS = Rule(
    "HC021",
    _DENY,
    "a variable may not choose which GPUs a container sees",
    "NVIDIA's runtime obeys this variable without asking anybody: a pod that asks for nothing would see every card.",
)
ENV_LOOSENS = Rule(
    "HC022",
    _DENY,
    "a container with a share may not set a variable that could loosen its limits",
    "They replace or switch off the library that keeps a container within its share.",
)
ENV_FROM = Rule(
    "HC023",
    _DENY,
    "envFrom may not bring in a variable that chooses GPUs or loosens limits",
    "A ConfigMap or a prefix can spell the same variables that are refused when written out.",
)
HOST_PATH = Rule(
    "HC024",
    _DENY,
    "a pod may not mount GPU devices, sockets of driver, kubelet, runtime or Halfcard, or a folder above them",
    "Whoever holds the device file or the socket needs no share.",
)
PRIVILEGED_SHARE = Rule(
    "HC025",
    _DENY,
    "a pod with a share of a card may not be privileged or use hostPID",
    "A privileged container sees every device of its node; hostPID lets it reach into its neighbours.",
)
NODE_NAME = Rule(
    "HC026",
    _DENY,
    "a pod that asks for GPU must leave the choice of its node to the scheduler",
    "A pod that names its node is never shown to the scheduler, so nobody chooses a card or counts it.",
)
DEVICE_LIST = Rule(
    "HC027",
    _DENY,
    "a mount or a CDI annotation may not choose GPUs",
    f"NVIDIA's runtime reads these as a list of devices, as it does {names.VISIBLE_DEVICES}.",
)
QUOTA_GATE = Rule(
    "HC028",
    _DENY,
    f"only Halfcard opens the scheduling gate {names.QUOTA_GATE}",
    "Behind it a pod waits until its quotas have room for it: whoever opened it himself would pass the others by.",
)
QUOTA_CORES = Rule(
    "HC030",
    _DENY,
    "a quota of cores must be whole per cent, or cards with at most two decimals",
    "1.5 means one and a half cards and becomes 150; finer than a hundredth of a card cannot be given.",
)
MALFORMED = Rule(
    "HC031",
    _DENY,
    "a field must have the type that Kubernetes gives it",
    "The API server cannot decode such an object. Only `halfcard review` tells it this way.",
)
WHOLE_MEMORY = Rule(
    "HC040",
    _WARN,
    "whole cards come with their own memory, less than this",
    "Whole cards come with all their memory. The pod runs if the node's total suffices; fewer units are enough.",
)
CORE_LIMIT_IDLE = Rule(
    "HC041",
    _WARN,
    "whole cards are never throttled",
    "The limit has no effect. It is harmless where it equals the cores, as older examples write it.",
)
PRIVILEGED_WHOLE = Rule(
    "HC042",
    _WARN,
    "this reaches beyond the pod's own cards",
    "With whole cards nobody shares, but the neighbours' cards are in sight.",
)
SCHEDULER = Rule(
    "HC043",
    _WARN,
    "Halfcard does not serve this scheduler",
    "Cards are chosen only for pods of schedulers that are configured to ask Halfcard's extender.",
)
SMALL_CORES = Rule(
    "HC044",
    _WARN,
    "cores are per cent",
    "A whole number from 1 to 9 is often meant as that many cards.",
)
LIBRARY_PATH = Rule(
    "HC045",
    _WARN,
    f"{names.LIBRARY_PATH} can hide the library that holds a share",
    "CUDA images set it for good reasons, so it is only mentioned.",
)

RULES: Final = {
    rule.code: rule for rule in sorted((r for r in globals().values() if isinstance(r, Rule)), key=lambda r: r.code)
}

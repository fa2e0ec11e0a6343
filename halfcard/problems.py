"""Defines the problems of a request: where, got, rule, fix, and a stable code.

The table at the end is the only list of rules; docs/problems.md is generated from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from . import names

MOST_ANNOTATED: Final = 256 * 1024
"""Bytes of all annotations of one object: the API server takes no more."""

MAX_MESSAGE_BYTES: Final = 900
"""Kubernetes copies a denial into events and conditions, and cuts longer texts there without a sign."""

MAX_WARNING_CHARS: Final = 120
"""The API server recommends this length, and cuts warnings that are together longer than 4096."""

_MESSAGE_BUDGET: Final = MAX_MESSAGE_BYTES - len(" (and 9999999 more)")
_MAX_TEXT_CHARS: Final = 300
_MAX_GOT_CHARS: Final = 64
_MAX_WHERE_CHARS: Final = 160
_MAX_FIX_CHARS: Final = 240


class Severity(StrEnum):
    DENY = "deny"
    WARN = "warn"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Problem:
    """One rule broken in one place; `got` is None where a value is missing."""

    code: str
    where: str
    got: str | None
    rule: str
    fix: str

    @property
    def shown_where(self) -> str:
        """The place, which may contain a caller's key, safe to show."""
        return printable(self.where, _MAX_WHERE_CHARS)

    def __str__(self) -> str:
        where = self.shown_where
        fix = printable(self.fix, _MAX_FIX_CHARS)
        return f"{where}: {self.fact(_MAX_GOT_CHARS)}; {self.rule}; {fix} [{self.code}]"

    def fact(self, limit: int) -> str:
        if self.got is None:
            return "is missing"
        got = printable(self.got, limit).replace('"', r"\"")
        return f'got "{got}"'


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    Attributes:
        code: never changes, so that people can search for it.
        severity: the default; a setting changes it.
        text: the rule in one clause, for every message.
        why: the reason, for the docs.
    """

    code: str
    severity: Severity
    text: str
    why: str

    def broken(self, where: str, got: object, fix: str) -> Problem:
        return Problem(self.code, where, None if got is None else str(got), self.text, fix)


def printable(text: str, limit: int = _MAX_TEXT_CHARS) -> str:
    """Makes text from users safe in headers, log lines and terminals: one line, no control characters, bounded."""
    head = text[: limit + 1]
    safe = head if head.isprintable() else "".join(_escaped(char) for char in head)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def _escaped(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode("ascii")


def message(problems: Iterable[Problem]) -> str:
    """Joins problems to one line that fits a Kubernetes status, in the order of importance, which is that of codes."""
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
    """Makes a line for the `Warning:` header of the API server."""
    return printable(text, MAX_WARNING_CHARS)


def as_warning(problem: Problem) -> str:
    """Makes the warning of a problem; where not all of it fits, without place and value."""
    full = f"[{problem.code}] {problem.where}: {problem.fact(24)}; {problem.rule}; {problem.fix}"
    return warning(full if len(full) <= MAX_WARNING_CHARS else f"[{problem.code}] {problem.rule}; {problem.fix}")


_WARNED: Final = re.compile(r"\[(?P<code>HC\d{3})\] (?:(?P<where>\S+): )?")


def warned(text: str) -> tuple[str, str]:
    """Returns the code and the place of a warning; each is empty where the warning does not say it."""
    found = _WARNED.match(text)
    return (found["code"], found["where"] or "") if found else ("", "")


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
    "A share is on one card. One and a half cards would need two cards, one of them shared: use two containers, or"
    " two cards.",
)
MEMORY_UNITS = Rule(
    "HC003",
    _DENY,
    "memory must be a whole number of 256 MiB units below 1048576, or bytes with a binary suffix such as 5Gi",
    "The node agents count 256 MiB units. A number from 1048576 can only mean bytes, and is converted.",
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
    "The mutating webhook converts such amounts. If it was not called, the pod is refused, because 5Gi would mean"
    " five thousand million units.",
)
SHARE_NEEDS_MEMORY = Rule(
    "HC006",
    _DENY,
    "a share of a card must say how much memory it needs",
    "Without a limit on memory, one container can take the memory of other containers on the card.",
)
MEMORY_ALONE = Rule(
    "HC007",
    _DENY,
    "memory of a card must come with a share of its cores",
    "gpu-manager's agent places by cores; a pod with memory alone would never start. The rule does not apply to"
    " systems that share by memory (tuya, aliyun, volcano).",
)
MEMORY_TOO_LARGE = Rule(
    "HC008",
    _DENY,
    "the memory of a share must fit on one card of this cluster",
    "A share is on one card, so no node could ever run the pod.",
)
CORE_LIMIT = Rule(
    "HC009",
    _DENY,
    "the core limit must be a whole number from the largest share of the pod to 100",
    "A share may burst up to this limit. A limit below the share would take away part of the request.",
)
MIXED_CONTAINER = Rule(
    "HC010",
    _DENY,
    "a container must request GPU resources of one system only",
    "Two systems in one container would count one card twice.",
)
MIXED_POD = Rule(
    "HC011",
    _DENY,
    "GPU resources of these two systems cannot be combined in one pod",
    "No node offers both: in the two systems one resource name has two meanings.",
)
ONE_KIND = Rule(
    "HC012",
    _DENY,
    "this resource cannot be combined with another one of the same container",
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
    "the policy must be one that Halfcard has",
    "A misspelled policy would be ignored, and the cards chosen in another way than requested.",
)
SLOTS = Rule(
    "HC015",
    _DENY,
    f"only Halfcard sets the number of {names.SLOT}",
    "Resources that are counted in MiB have too many units for device ids. The node agent identifies a starting"
    " container by its ids of this resource. Without them the container would start without its card; with the number"
    " of another container, with the card of that one.",
)
DERIVED = Rule(
    "HC016",
    _DENY,
    f"only Halfcard sets amounts of {names.DERIVED_GROUP}",
    "Native ResourceQuotas count whole cards and shares of cards by them (`derived_resources`). With other amounts,"
    " a pod would be charged too little or too much.",
)
DEVICE_CLASS = Rule(
    "HC017",
    _DENY,
    "GPUs are requested by resources that quotas count, not by Dynamic Resource Allocation",
    f"Neither {names.GPU_QUOTA}s nor Halfcard's scheduler count devices that a ResourceClaim or an extended resource of"
    " a device class brings. The setting `gpu_device_classes` names the classes. Where DRA is wanted, let the rule"
    " warn, and limit it by the ResourceQuota key `<class>.deviceclass.resource.k8s.io/devices`.",
)
OWNED = Rule(
    "HC020",
    _DENY,
    "only Halfcard and the node agents may write this",
    "It records the cards of a pod. A forged record could take the card of another pod, or use a card uncounted.",
)
ENV_WIDENS = Rule(
    "HC021",
    _DENY,
    "a variable may not choose which GPUs a container sees",
    "NVIDIA's runtime obeys this variable without any check: a pod that requests nothing would see every card.",
)
ENV_LOOSENS = Rule(
    "HC022",
    _DENY,
    "a container with a share may not set a variable, or mount over a file, that could loosen its limits",
    "These variables replace or disable the library that limits a container to its share. A mount of the pod covers the"
    " files that the node agent mounts at the same path.",
)
ENV_FROM = Rule(
    "HC023",
    _DENY,
    "envFrom may not bring in a variable that chooses GPUs or loosens limits",
    "With a ConfigMap or a prefix, envFrom can set the variables that are refused under env.",
)
HOST_PATH = Rule(
    "HC024",
    _DENY,
    "a pod may not mount device files, sockets or folders of the system, or a folder above them",
    "From a folder of the system there are many ways to a card: device files, sockets, CDI descriptions, keys, programs"
    " that the node starts. The setting `system_workloads` names the agents that need such folders.",
)
PRIVILEGED_SHARE = Rule(
    "HC025",
    _DENY,
    "a pod with a share of a card may not be privileged or use hostPID",
    "A privileged container sees every device of its node; with hostPID it can access processes of other pods.",
)
NODE_NAME = Rule(
    "HC026",
    _DENY,
    "a pod that requests GPUs must leave the choice of its node to the scheduler",
    "The scheduler never sees a pod that names its node, so no card is chosen for it, and it is not counted.",
)
DEVICE_LIST = Rule(
    "HC027",
    _DENY,
    "a mount or an annotation may not choose devices",
    f"NVIDIA's runtime reads such mounts as a list of devices, like {names.VISIBLE_DEVICES}. Container runtimes and"
    " their plugins give out the devices, CDI devices and folders that such annotations name.",
)
QUOTA_GATE = Rule(
    "HC028",
    _DENY,
    f"only Halfcard opens the scheduling gate {names.QUOTA_GATE}",
    "With this gate a pod waits until its quotas have room for it. A user who removes it would overtake other pods.",
)
UNHIDDEN = Rule(
    "HC029",
    _DENY,
    "a container without a claim must hide the GPUs that its image or runtime class would bring",
    f"NVIDIA's runtime class gives a container the GPUs that its image names; an old image, known by CUDA_VERSION, gets"
    f" all. The mutating webhook adds {names.VISIBLE_DEVICES}={names.SEES_NOTHING}.",
)
QUOTA_CORES = Rule(
    "HC030",
    _DENY,
    "a quota of cores must be whole per cent, or cards with at most two decimals",
    "1.5 means one and a half cards and becomes 150; the smallest unit is a hundredth of a card.",
)
MALFORMED = Rule(
    "HC031",
    _DENY,
    "a field must have the type that Kubernetes gives it",
    "The API server cannot decode such an object. Only `halfcard review` reports it with this code.",
)
UNREADABLE = Rule(
    "HC032",
    _DENY,
    "Kubernetes or Halfcard must be able to read this",
    "The API server refuses a kind that it does not have; a quota or configuration that Halfcard cannot read limits"
    " nothing, or its last readable state stays in force. Only `halfcard review` reports it with this code.",
)
WHOLE_MEMORY = Rule(
    "HC040",
    _WARN,
    "whole cards come with their own memory, less than this",
    "Whole cards come with all their memory, and kube-scheduler counts what is written: with more than its cards have,"
    " a pod would wait for ever. A template stays as it is written, and its pods get less.",
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
    "this gives access to cards of other pods",
    "No other pod shares its whole cards, but the pod sees all cards of the node.",
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
    f"{names.LIBRARY_PATH} can hide the library that limits a share",
    "CUDA images set it for good reasons, so this is only a warning.",
)
RESOURCE_CLAIMS = Rule(
    "HC046",
    _WARN,
    "Halfcard does not count the devices of resource claims",
    "Claims of GPU classes are refused when they are created; a pod does not say the class of its claims. Claims that"
    " are older than Halfcard, or that an administrator allowed, may bring GPUs past every quota.",
)
FOREIGN = Rule(
    "HC047",
    _WARN,
    "Halfcard does not count this request",
    "Another system gives out such GPUs, on nodes of its own, or the name is misspelled and nobody gives them out. No"
    f" card of Halfcard's nodes is chosen for it, and no {names.GPU_QUOTA} charges it.",
)
TOO_MANY_CARDS = Rule(
    "HC048",
    _WARN,
    "no node has so many cards",
    "The pod waits until a larger node joins the cluster, which may be never: all cards of a pod are on one node.",
)

RULES: Final = {
    rule.code: rule for rule in sorted((r for r in globals().values() if isinstance(r, Rule)), key=lambda r: r.code)
}

"""Draws the pictures of the pages; names of modes and times come from the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.drawing import (
    CODE,
    FRAME,
    HEAD,
    OURS,
    PLANNED,
    QUIET,
    RED,
    REFUSED,
    Picture,
    arrow,
    box,
    card,
    refusal,
    svg,
    text,
)
from docs.package_picture import packages
from halfcard import names
from halfcard.placing.card_usage import HALVES, CardMode
from halfcard.quota import reservation_expiry

_FOLDER: Final = Path(__file__).parent / "pictures"
_CORE: Final = names.VCUDA_CORE.partition("/")[2]
_MEMORY: Final = names.VCUDA_MEMORY.partition("/")[2]


def drawn() -> Mapping[Path, Callable[[], str]]:
    return {
        _FOLDER / "flow.svg": lambda: svg(flow()),
        _FOLDER / "packages.svg": lambda: svg(packages()),
        _FOLDER / "reservation.svg": lambda: svg(reservation()),
        _FOLDER / "modes.svg": lambda: svg(modes()),
    }


# --- the path of a pod -----------------------------------------------------------------------------------------------


def flow() -> Picture:
    return Picture(
        960,
        430,
        "The path of a pod that requests part of a GPU, and Halfcard's part in it",
        "kubectl apply sends a pod to the API server. The API server asks Halfcard's mutating webhook, checks the pod "
        "itself, asks Halfcard's validating webhook, which also checks the GpuQuotas, charges the ResourceQuota, and "
        "stores the pod. The stock scheduler asks Halfcard's extender, which chooses node and card and binds the pod. "
        "The node agent identifies the container and gives it that card. Limiting the container is planned.",
        (*_legend(), *_api_server(), *_refusals(), *_after()),
    )


def _legend() -> tuple[str, ...]:
    kinds = ((OURS, "Halfcard, today"), (PLANNED, "Halfcard, planned"), ("box", "Kubernetes"))
    return tuple(
        part
        for row, (kind, said) in enumerate(kinds)
        for part in (box(24, 22 + 22 * row, 26, 16, kind=kind), text(60, 35 + 22 * row, said, QUIET))
    )


def _api_server() -> tuple[str, ...]:
    return (
        box(24, 96, 190, 92, (HEAD, "kubectl apply"), (CODE, f"{_CORE}:   0.3"), (CODE, f"{_MEMORY}: 5Gi")),
        arrow("M214 142 H264"),
        box(244, 34, 692, 176, (HEAD, "API server"), kind=FRAME),
        box(266, 82, 146, 120, (HEAD, "mutate"), *_quiet("repairs amounts,", "fills requests,"), kind=OURS),
        text(282, 161, "hides GPUs from", QUIET),
        text(282, 179, "other containers", QUIET),
        arrow("M412 142 H442"),
        box(444, 102, 112, 80, ("", "Kubernetes'"), ("", "own checks")),
        arrow("M556 142 H582"),
        box(584, 82, 142, 120, (HEAD, "validate"), *_quiet("amounts, escapes,", "forged records,"), kind=OURS),
        text(600, 161, "GpuQuota: all", QUIET),
        text(600, 179, "problems at once", QUIET),
        arrow("M726 142 H750"),
        box(752, 82, 170, 120, (HEAD, "ResourceQuota"), *_quiet("counts requests.*;", "Halfcard adds them")),
        text(768, 161, "if the quota has", QUIET),
        text(768, 179, "limits.* only", QUIET),
    )


def _refusals() -> tuple[str, ...]:
    return (
        refusal("M339 202 V246 H216"),
        refusal("M655 202 V246 H339", tip=False),
        box(24, 222, 190, 52, (RED, "refused: where, got,"), (RED, "rule, fix [HC002]"), kind=REFUSED),
    )


def _after() -> tuple[str, ...]:
    return (
        arrow("M837 202 V312"),
        box(752, 314, 170, 92, (HEAD, "the pod as stored"), (CODE, f"{_CORE}:   30"), (CODE, f"{_MEMORY}: 20")),
        arrow("M752 360 H722"),
        box(
            *(500, 314, 220, 92),
            (HEAD, "scheduler extender"),
            *_quiet("chooses node and card for", "the stock kube-scheduler and", "records them in the Binding"),
            kind=OURS,
        ),
        arrow("M500 360 H470"),
        box(
            *(248, 314, 220, 92),
            (HEAD, "node agent"),
            *_quiet("identifies the container,", "and gives it exactly", "the card of its record"),
            kind=OURS,
        ),
        arrow("M248 360 H216"),
        box(24, 314, 190, 92, (HEAD, "the container"), (QUIET, "card, variables, limits")),
        box(36, 371, 166, 27, kind=PLANNED),
        text(48, 389, "planned: enforced", QUIET),
    )


def _quiet(*lines: str) -> tuple[tuple[str, str], ...]:
    return tuple((QUIET, line) for line in lines)


# --- the life of a reservation ---------------------------------------------------------------------------------------

_STEPS: Final = (
    ("reserved", "before the pod is", "stored, by webhooks", "the quota's ledger"),
    ("committed", "once it is stored, by", "the quota service", "the quota's ledger"),
    ("chosen", "before it is bound,", "by the leader", "the leader's memory"),
    ("recorded", "with the Binding, in", "the same request", "the pod's annotations"),
    ("allocated", "before the container", "starts, by the agent", "a file on the node"),
)


def reservation() -> Picture:
    """Draws the steps from left to right, and below each what happens if the next one does not follow."""
    parts = [part for number in range(len(_STEPS)) for part in _step(number)]
    return Picture(
        960,
        292,
        "The life of a reservation",
        "A pod's part of a quota is reserved before the pod is stored, and committed once it is. Its cards are chosen "
        "before it is bound, recorded in the pod with the Binding, and allocated by the node agent. Below each step: "
        "where it is stored, and what happens to it if the next step does not follow.",
        tuple(parts),
    )


def _step(number: int) -> tuple[str, ...]:
    head, when, writer, where = _STEPS[number]
    x = 24 + 184 * number
    last = number == len(_STEPS) - 1
    return (
        box(x, 30, 160, 92, (HEAD, f"{number + 1}  {head}"), *_quiet(when, writer), kind=OURS),
        "" if last else arrow(f"M{x + 160} 76 H{x + 182}"),
        text(x + 16, 148, "is stored in", QUIET),
        text(x + 16, 168, where),
        arrow(f"M{x + 80} 184 V212"),
        box(x, 214, 160, 56, *_quiet(*_otherwise()[number])),
    )


def _otherwise() -> tuple[tuple[str, str], ...]:
    """Returns what happens to each step if the next one does not follow."""
    return (
        ("not stored:", f"released after {reservation_expiry.OLD_S:g} s"),
        ("ended or deleted:", "free at once"),
        ("not bound: free,", "once that is certain"),
        ("leader lost: read", "again from the pods"),
        ("agent down: waits;", "running ones go on"),
    )


# --- how a card is used ----------------------------------------------------------------------------------------------

_WIDTH: Final = 220
_USES: Final = {
    CardMode.SHARED: (
        f"{_CORE}: 30",
        ((0.0, 0.3), (0.3, 0.8)),
        ("more shares, as long as", "cores and memory last"),
    ),
    CardMode.HALVES: ("sgpu: 1", ((0.0, 1 / HALVES),), ("one more half", "")),
    CardMode.SLICES: (
        "gpu.shared: 1",
        ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75)),
        ("more slices, up to the", "node's setting"),
    ),
    CardMode.EXCLUSIVE: (f"{_CORE}: 100", ((0.0, 1.0),), ("no other pod", "")),
}


def modes() -> Picture:
    rows = [part for row, mode in enumerate(_USES) for part in _mode(row, mode)]
    return Picture(
        960,
        410,
        "The modes of a card",
        "The first pod that uses a free card sets its mode: "
        f"{', '.join(_USES)}. Only pods of the same mode may join. When the last pod ends, the card is free again.",
        (
            text(40, 40, "a card is", QUIET),
            box(24, 176, 170, 84, (HEAD, CardMode.FREE), *_quiet("the first pod sets", "its mode")),
            text(262, 40, "the first pod requests", QUIET),
            text(458, 40, "then the card is", QUIET),
            text(728, 40, "what may join it", QUIET),
            arrow("M194 218 H224", tip=False),
            arrow("M224 82 V352", tip=False),
            *rows,
            text(40, 386, "When the last pod ends, the card is free again.", QUIET),
        ),
    )


def _mode(row: int, mode: CardMode) -> tuple[str, ...]:
    request, taken, joins = _USES[mode]
    y = 56 + 90 * row
    return (
        arrow(f"M224 {y + 26} H452"),
        text(262, y + 18, request, CODE),
        card(456, y + 22, _WIDTH, 30, *taken),
        text(458, y + 12, mode, HEAD),
        text(728, y + 32, joins[0], QUIET),
        text(728, y + 50, joins[1], QUIET),
    )

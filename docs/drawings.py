"""Draws the pictures of the pages; names of modes and times come from the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.agent_picture import agent
from docs.drawing import (
    CODE,
    FRAME,
    FULL,
    HEAD,
    LEFT,
    NARROW,
    OURS,
    PLANNED,
    QUIET,
    RED,
    REFUSED,
    Picture,
    arrow,
    box,
    card,
    ours,
    quiet,
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
        _FOLDER / "agent.svg": lambda: svg(agent()),
    }


# --- the path of a pod -----------------------------------------------------------------------------------------------


def flow() -> Picture:
    return Picture(
        NARROW,
        890,
        "The path of a pod that requests part of a GPU, and Halfcard's part in it",
        "kubectl apply sends a pod to the API server. The API server asks Halfcard's mutating webhook, checks the pod "
        "itself, asks Halfcard's validating webhook, which also checks the GpuQuotas, charges the ResourceQuota, and "
        "stores the pod. The stock scheduler asks Halfcard's extender, which chooses node and card and binds the pod. "
        "The node agent identifies the container and gives it that card. Limiting the container is planned.",
        (*_legend(), *_api_server(), *_refusals(), *_after()),
    )


def _legend() -> tuple[str, ...]:
    kinds = ((OURS, "Halfcard, today", 20), (PLANNED, "planned", 180), ("box", "Kubernetes", 290))
    return tuple(
        part for kind, said, x in kinds for part in (box(x, 18, 22, 14, kind=kind), text(x + 30, 30, said, QUIET))
    )


def _api_server() -> tuple[str, ...]:
    return (
        box(LEFT, 46, FULL, 58, (HEAD, "kubectl apply"), (CODE, f"{_CORE}: 0.3  {_MEMORY}: 5Gi")),
        arrow("M112 104 V122"),
        box(LEFT, 124, FULL, 358, (HEAD, "API server"), kind=FRAME),
        box(
            36,
            160,
            292,
            74,
            (HEAD, "mutate"),
            *quiet("repairs amounts, fills requests,", "hides GPUs from others"),
            kind=OURS,
        ),
        arrow("M112 234 V248"),
        box(36, 250, 292, 40, ("", "Kubernetes' own checks")),
        arrow("M112 290 V304"),
        box(
            36,
            306,
            292,
            74,
            (HEAD, "validate"),
            *quiet("amounts, escapes, forged records,", "GpuQuota: all problems at once"),
            kind=OURS,
        ),
        arrow("M112 380 V394"),
        box(
            36,
            396,
            292,
            74,
            (HEAD, "ResourceQuota"),
            *quiet("counts requests.*; Halfcard adds", "them where it has limits.* only"),
        ),
    )


def _refusals() -> tuple[str, ...]:
    return (
        refusal("M328 197 H364 V498"),
        refusal("M328 343 H364", tip=False),
        box(216, 500, 184, 56, (RED, "refused: where, got,"), (RED, "rule, fix [HC002]"), kind=REFUSED),
    )


def _after() -> tuple[str, ...]:
    return (
        arrow("M112 470 V498"),
        box(LEFT, 500, 184, 78, (HEAD, "the pod as stored"), (CODE, f"{_CORE}:   30"), (CODE, f"{_MEMORY}: 20")),
        arrow("M112 578 V596"),
        ours(598, "scheduler extender", "chooses node and card for kube-scheduler,", "and records them in the Binding"),
        arrow("M112 672 V690"),
        ours(692, "node agent", "identifies the container, and gives it", "exactly the card of its record"),
        arrow("M112 766 V784"),
        box(LEFT, 786, FULL, 86, (HEAD, "the container"), (QUIET, "card, variables, limits")),
        box(32, 838, FULL - 24, 26, kind=PLANNED),
        text(44, 856, "planned: enforced", QUIET),
    )


# --- the life of a reservation ---------------------------------------------------------------------------------------

_STEPS: Final = (
    ("reserved", "before the pod is", "stored, by webhooks", "the quota's ledger"),
    ("committed", "once it is stored, by", "the quota service", "the quota's ledger"),
    ("chosen", "before it is bound,", "by the leader", "the leader's memory"),
    ("recorded", "with the Binding, in", "the same request", "the pod's annotations"),
    ("allocated", "before the container", "starts, by the agent", "a file on the node"),
)


def reservation() -> Picture:
    """Draws the steps from top to bottom, and beside each what happens if the next one does not follow."""
    parts = [part for number in range(len(_STEPS)) for part in _step(number)]
    return Picture(
        NARROW,
        _STEP * len(_STEPS) + LEFT,
        "The life of a reservation",
        "A pod's part of a quota is reserved before the pod is stored, and committed once it is. Its cards are chosen "
        "before it is bound, recorded in the pod with the Binding, and allocated by the node agent. Beside each step: "
        "where it is stored, and what happens to it if the next step does not follow.",
        tuple(parts),
    )


_STEP: Final = 118


def _step(number: int) -> tuple[str, ...]:
    head, when, writer, where = _STEPS[number]
    y = LEFT + _STEP * number
    last = number == len(_STEPS) - 1
    return (
        box(LEFT, y, 184, 96, (HEAD, f"{number + 1}  {head}"), *quiet(when, writer), kind=OURS),
        "" if last else arrow(f"M112 {y + 96} V{y + _STEP - 2}"),
        text(232, y + 12, "is stored in", QUIET),
        text(232, y + 31, where),
        arrow(f"M204 {y + 69} H222"),
        box(224, y + 42, 176, 54, *quiet(*_otherwise()[number])),
    )


def _otherwise() -> tuple[tuple[str, str], ...]:
    """Returns what happens to each step if the next one does not follow."""
    return (
        ("not stored:", f"released after {reservation_expiry.OLD_S:g} s"),
        ("ended or deleted:", "free at once"),
        ("not bound: free,", "once that is sure"),
        ("leader lost: read", "from the pods again"),
        ("agent down: waits;", "running ones go on"),
    )


# --- how a card is used ----------------------------------------------------------------------------------------------

_WIDTH: Final = 220
_USES: Final = {
    CardMode.SHARED: (
        f"{_CORE}: 30",
        ((0.0, 0.3), (0.3, 0.8)),
        "more shares while cores and memory last",
    ),
    CardMode.HALVES: ("sgpu: 1", ((0.0, 1 / HALVES),), "one more half"),
    CardMode.SLICES: (
        "gpu.shared: 1",
        ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75)),
        "more slices, up to the node's setting",
    ),
    CardMode.EXCLUSIVE: (f"{_CORE}: 100", ((0.0, 1.0),), "no other pod"),
}


def modes() -> Picture:
    rows = [part for row, mode in enumerate(_USES) for part in _mode(row, mode)]
    return Picture(
        NARROW,
        546,
        "The modes of a card",
        "The first pod that uses a free card sets its mode: "
        f"{', '.join(_USES)}. Only pods of the same mode may join. When the last pod ends, the card is free again.",
        (
            box(
                LEFT,
                20,
                FULL,
                62,
                (HEAD, f"a {CardMode.FREE} card"),
                *quiet("the first pod that requests it sets its mode"),
            ),
            arrow("M36 82 V441", tip=False),
            *rows,
            text(LEFT, 524, "When the last pod ends, the card is free again.", QUIET),
        ),
    )


def _mode(row: int, mode: CardMode) -> tuple[str, ...]:
    request, taken, joins = _USES[mode]
    y = 100 + 102 * row
    return (
        text(68, y + 16, request, CODE),
        arrow(f"M36 {y + 41} H64"),
        text(300, y + 46, mode, HEAD),
        card(68, y + 26, _WIDTH, 30, *taken),
        text(68, y + 76, f"may join: {joins}", QUIET),
    )

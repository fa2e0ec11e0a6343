"""Draws how the agent finds the card of a container that starts."""

from __future__ import annotations

from docs.drawing import CODE, FULL, HEAD, LEFT, NARROW, QUIET, Picture, arrow, box, ours, quiet, text


def agent() -> Picture:
    return Picture(
        NARROW,
        664,
        "How a container gets exactly the card that was recorded for it",
        "1: kubelet asks the agent to allocate device ids; the answer is only the name of a slot. 2: before the "
        "container starts kubelet asks again; the agent finds the container by its ids in kubelet's checkpoint and "
        "reads the record from the current pod. 3: it writes the slot's description. 4: the runtime reads it, and the "
        "container has its card.",
        (*_calls_of_kubelet(), *_what_the_agent_reads(), *_from_slot_to_container()),
    )


def _calls_of_kubelet() -> tuple[str, ...]:
    return (
        box(LEFT, 20, FULL, 58, (HEAD, "kubelet"), (QUIET, "knows the pod, but sends only ids")),
        arrow("M44 78 V194"),
        text(60, 102, "1", HEAD),
        text(80, 102, "Allocate(hc-3, hc-7)", CODE),
        text(80, 121, "answer: the name of a slot, no card", QUIET),
        text(60, 154, "2", HEAD),
        text(80, 154, "PreStartContainer(hc-3, hc-7)", CODE),
        text(80, 173, "answer: done, or an error with the reason", QUIET),
        ours(196, "node agent", "Which container is this? Which card is", "recorded? Do this node's slots allow it?"),
    )


def _what_the_agent_reads() -> tuple[str, ...]:
    return (
        arrow("M144 306 V272"),
        box(56, 308, 176, 78, (HEAD, "checkpoint"), *quiet("of kubelet: whose", "ids these are")),
        arrow("M320 306 V272"),
        box(240, 308, 160, 78, (HEAD, "API server"), *quiet("the current pod,", "with its record")),
    )


def _from_slot_to_container() -> tuple[str, ...]:
    rows = (
        ("3  the slot's CDI file", "card, variables, limits"),
        ("4  containerd", "reads it only now"),
        ("the container", "has that card"),
    )
    boxes = [box(LEFT, 412 + 78 * row, FULL, 58, (HEAD, head), (QUIET, said)) for row, (head, said) in enumerate(rows)]
    return (arrow("M36 270 V410"), *boxes, arrow("M36 470 V488"), arrow("M36 548 V566"))

"""Prints the scenes of the demonstration as kubectl and `halfcard inspect` would, or returns them as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from extender.explain.inspection import NodeInspection
from kube.manifests.documents import parse, to_json

from ..demo_scenes.api_server import CreateOutcome
from ..demo_scenes.scenes import Scene
from ..inspect import print_node
from ..judge import differences
from ..output.terminal import Colour, Screen


def read_object(manifest: str, file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(to_json(next(parse(manifest, file)).obj))
    return found


def open_story(screen: Screen, ready: dict[str, Any], seconds: float) -> None:
    screen.line(screen.paint("Halfcard: GPUs on Kubernetes, shared in fractions of a card", Colour.BOLD))
    screen.line(f"The webhook is up at {ready['admission'].rpartition('/')[0]} ({seconds:.1f} s, TLS by its own CA).")
    screen.line("The cluster is one node with 4 cards of 16 GB. You are kubectl.")


def show_scene(screen: Screen, scene: Scene, obj: dict[str, Any], outcome: CreateOutcome) -> None:
    screen.line()
    screen.wrapped(scene.title, indent="# ", colour=Colour.BLUE)
    for line in _interesting(scene.manifest):
        screen.line(screen.paint(f"  {line}", Colour.DIM))
    screen.line(screen.paint(f"$ kubectl apply -f {scene.file}", Colour.BOLD))
    for text in outcome.warnings:
        screen.wrapped(f"Warning: {text}", indent="", colour=Colour.YELLOW)
    if outcome.denied:
        text = f'Error from server (Forbidden): error when creating "{scene.file}": {outcome.denied}'
        screen.wrapped(text, indent="", colour=Colour.RED)
        return
    changed = " and changed:" if outcome.changes else ""
    resource = {"Deployment": "deployment.apps"}.get(obj["kind"], obj["kind"].lower())
    screen.line(screen.paint(f"{resource}/{obj['metadata']['name']} created{changed}", Colour.GREEN))
    for difference in differences(obj, outcome.changes):
        screen.wrapped(difference, indent="  ", hanging="  ", colour=Colour.DIM)


def _interesting(manifest: str) -> list[str]:
    """Cuts a manifest to the part that the scene is about."""
    words = ("annotations", "requests", "limits", "vcuda", "sgpu", "gpu-mem", "schedulerName", "env:", "hard")
    return [line.strip() for line in manifest.splitlines() if any(word in line for word in words)]


def close_story(screen: Screen) -> None:
    screen.line()
    screen.line(screen.paint("What to type next", Colour.BOLD))
    for command, purpose in (
        ("halfcard review -f your-pods.yaml", "judge your own manifests, no cluster needed"),
        ("halfcard review -f deploy/examples/mistakes/manifests", "the mistakes people make, and the messages"),
        ("halfcard serve --state DIR", "webhook and extender beside a folder"),
        ("make test", "see that all of this is true"),
    ):
        screen.line(f"  {command:54}{screen.paint(purpose, Colour.DIM)}")
    screen.line("halfcard is .venv/bin/halfcard in this checkout.")


def as_json(scene: Scene, outcome: CreateOutcome, record: Mapping[str, str]) -> dict[str, Any]:
    return {
        "file": scene.file,
        "allowed": not outcome.denied,
        "message": outcome.denied,
        "warnings": list(outcome.warnings),
        "patch": [change.as_json() for change in outcome.changes],
        "record": dict(record),
    }


def show_cards(screen: Screen, node: NodeInspection, pod: Mapping[str, Any], record: Mapping[str, str]) -> None:
    screen.line()
    title = "The extender gives each stored pod its card. The two shares are on card 0."
    screen.wrapped(title, indent="# ", colour=Colour.BLUE)
    name = pod["metadata"]["name"]
    screen.line(screen.paint(f"$ halfcard inspect {node.name}", Colour.BOLD))
    print_node(screen, node)
    screen.line()
    title = f"The record travels in the Binding of {name}: the node agent gives its container this card and no other."
    screen.wrapped(title, indent="# ", colour=Colour.BLUE)
    screen.line(screen.paint(f"$ kubectl describe pod {name}", Colour.BOLD))
    for key, value in sorted(record.items()):
        screen.line(screen.paint(f"  {key}: {value}", Colour.GREEN))

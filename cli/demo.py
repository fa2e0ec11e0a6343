"""`halfcard demo`: runs the real service over TLS, sends it good and bad manifests, and shows what kubectl would
print.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK
from kube.manifests.documents import parse, to_json

from .demo_scenes.api_server import ApiServer, CreateOutcome
from .demo_scenes.scenes import NODE, SCENES, Scene
from .judge import differences
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Screen

_READING_S: Final = 0.6
"""The pause between scenes on a terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    screen = Screen.on(sys.stdout)
    quiet = arguments.output != TEXT
    with tempfile.TemporaryDirectory(prefix="halfcard-demo-") as folder:
        state = Path(folder)
        (state / "node.yaml").write_text(NODE, encoding="utf-8")
        started = time.monotonic()
        with _service(state) as ready:
            if not ready:
                return EXIT_CANNOT_START
            if not quiet:
                _open(screen, ready, time.monotonic() - started)
            with ApiServer(ready["admission"], ready["ca"]) as server:
                outcomes = [_play(screen, scene, server, quiet=quiet) for scene in SCENES]
    if quiet:
        print_document(arguments.output, [_as_json(*pair) for pair in zip(SCENES, outcomes, strict=True)])
    else:
        _close(screen)
    return EXIT_OK


@contextmanager
def _service(state: Path) -> Iterator[dict[str, Any]]:
    """Runs `halfcard serve` as a process; yields nothing if it did not start (it has printed why)."""
    command = [sys.executable, "-m", "cli", "serve", "--state", str(state), "--grace", "0"]
    log = state / "service.log"
    with log.open("w") as errors:
        service = subprocess.Popen(  # noqa: S603 - our own command
            [*command, "--admission", "127.0.0.1:0", "--status", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        )
    try:
        line = service.stdout.readline() if service.stdout else b""
        if not line:
            sys.stderr.write(log.read_text())
        yield json.loads(line or b"{}")
    finally:
        service.terminate()
        service.wait(timeout=10)


def _open(screen: Screen, ready: dict[str, Any], seconds: float) -> None:
    screen.line(screen.paint("Halfcard: GPUs on Kubernetes, shared in fractions of a card", Colour.BOLD))
    screen.line(f"The webhook is up at {ready['admission']} ({seconds:.1f} s, TLS by its own CA).")
    screen.line("The cluster is one node with 4 cards of 16 GB. You are kubectl.")


def _play(screen: Screen, scene: Scene, server: ApiServer, *, quiet: bool) -> CreateOutcome:
    obj = json.loads(to_json(next(parse(scene.manifest, scene.file)).obj))
    outcome = server.create(obj, user=scene.user)
    if not quiet:
        _show(screen, scene, obj, outcome)
        time.sleep(_READING_S if screen.is_terminal else 0)
    return outcome


def _show(screen: Screen, scene: Scene, obj: dict[str, Any], outcome: CreateOutcome) -> None:
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


def _close(screen: Screen) -> None:
    screen.line()
    screen.line(screen.paint("What to type next", Colour.BOLD))
    for command, purpose in (
        ("halfcard review -f your-pods.yaml", "judge your own manifests, no cluster needed"),
        ("halfcard review -f deploy/examples/mistakes/manifests", "the mistakes people make, and the messages"),
        ("halfcard serve --state DIR", "the webhook with a folder of manifests"),
        ("make test", "see that all of this is true"),
    ):
        screen.line(f"  {command:54}{screen.paint(purpose, Colour.DIM)}")
    screen.line("halfcard is .venv/bin/halfcard in this checkout.")


def _as_json(scene: Scene, outcome: CreateOutcome) -> dict[str, Any]:
    return {
        "file": scene.file,
        "allowed": not outcome.denied,
        "message": outcome.denied,
        "warnings": list(outcome.warnings),
        "patch": [change.as_json() for change in outcome.changes],
    }

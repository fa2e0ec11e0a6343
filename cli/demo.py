"""`halfcard demo`: runs the real service over TLS, sends it good and bad manifests, and shows what kubectl would print;
then asks it as kube-scheduler does for a card for each stored pod.
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
from halfcard.names import DEFAULT_SCHEDULER

from .demo_scenes.api_server import ApiServer, CreateOutcome
from .demo_scenes.scenes import NODE, SCENES, Scene
from .demo_scenes.scheduler import DemoScheduler
from .inspect import inspect_folder
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Screen
from .reports.demo_report import as_json, close_story, open_story, read_object, show_cards, show_scene

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
                open_story(screen, ready, time.monotonic() - started)
            with ApiServer(ready["admission"], ready["ca"]) as server:
                outcomes = [_play(screen, scene, server, quiet=quiet) for scene in SCENES]
            node = read_object(NODE, "node.yaml")["metadata"]["name"]
            with DemoScheduler(ready["extender"], ready["ca"], state=state, node=node) as scheduler:
                records = [scheduler.run(each.stored) if _is_scheduled(each) else {} for each in outcomes]
        if quiet:
            print_document(arguments.output, [*map(as_json, SCENES, outcomes, records)])
        else:
            show_cards(screen, inspect_folder(state, node), outcomes[0].stored, records[0])
            close_story(screen)
    return EXIT_OK


def _is_scheduled(outcome: CreateOutcome) -> bool:
    """Returns whether kube-scheduler sees the object and asks the extender."""
    is_pod = outcome.stored["kind"] == "Pod" and not outcome.denied
    return is_pod and outcome.stored["spec"].get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER


@contextmanager
def _service(state: Path) -> Iterator[dict[str, Any]]:
    """Runs `halfcard serve` as a process; yields nothing if it did not start (it has printed why)."""
    command = [sys.executable, "-m", "cli", "serve", "--state", str(state), "--grace", "0"]
    log = state / "service.log"
    with log.open("w") as errors:
        service = subprocess.Popen(  # noqa: S603 - our own command
            [*command, "--admission", "127.0.0.1:0", "--extender", "127.0.0.1:0", "--status", "127.0.0.1:0"],
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


def _play(screen: Screen, scene: Scene, server: ApiServer, *, quiet: bool) -> CreateOutcome:
    obj = read_object(scene.manifest, scene.file)
    outcome = server.create(obj, user=scene.user)
    if not quiet:
        show_scene(screen, scene, obj, outcome)
        time.sleep(_READING_S if screen.is_terminal else 0)
    return outcome

"""Prints what `halfcard dev up|down|status` did, and returns the exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from cli.output.structured import TEXT, print_document
from cli.output.terminal import Colour, Screen
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_INTERRUPTED, EXIT_OK, EXIT_REFUSED, EXIT_USAGE

from ..errors import CannotStartError, NotReadyError
from . import steps
from .context_access import ContextOptions
from .state import READY, DevFolder, FolderTakenError

_NO_NODE: Final = "No node runs pods, all nodes are kwok's: "


def run(action: str, path: Path | None, output: str, borrowed: ContextOptions | None = None) -> int:
    folder = DevFolder((path or steps.default_folder()).absolute())
    try:
        if action == "up":
            return _up(folder, borrowed)
        return _status(folder, output) if action == "status" else _down(folder)
    except BrokenPipeError:
        raise  # the reader of our output has closed it
    except FolderTakenError as error:
        return _failed(error, EXIT_USAGE)
    except (CannotStartError, NotReadyError, OSError) as error:
        return _failed(error, EXIT_CANNOT_START)
    except KeyboardInterrupt:
        return _failed("interrupted; nothing is left running", EXIT_INTERRUPTED)


def _failed(why: object, code: int) -> int:
    print(f"halfcard dev: {why}", file=sys.stderr)
    return code


def _say(line: str) -> None:
    print(line, flush=True)


def _up(folder: DevFolder, borrowed: ContextOptions | None) -> int:
    started = steps.up(folder, _say, borrowed)
    state = folder.state()
    if state is None or state.phase != READY:
        return _failed(f"another `up` is starting it; see `halfcard dev status --dir {folder.path}`", EXIT_CANNOT_START)
    _say("It is ready." if started else "It is running already.")
    if state.no_node:
        _say(f"{_NO_NODE}{state.no_node}")
    _introduce(folder)
    return EXIT_OK


def _introduce(folder: DevFolder) -> None:
    screen = Screen.on(sys.stdout)
    screen.line()
    for line in steps.shell_exports(folder):
        screen.line(line)
    screen.line("\nTo try:")
    for number, attempt in enumerate(steps.examples(folder), start=1):
        screen.line(f"\n{number}. {screen.paint(attempt.shows, Colour.BOLD)}\n   {attempt.command}")
    screen.line("\n`halfcard dev status` shows its health, `halfcard dev down` removes everything.")


def _down(folder: DevFolder) -> int:
    _say(
        f"{folder.path}: everything is removed" if steps.down(folder) else f"{folder.path}: there is nothing to remove"
    )
    return EXIT_OK


def _status(folder: DevFolder, output: str) -> int:
    found = steps.status(folder)
    if output == TEXT:
        _print_status(found)
    else:
        print_document(output, found.as_json())
    return EXIT_OK if found.healthy else EXIT_REFUSED


def _print_status(found: steps.DevStatus) -> None:
    screen = Screen.on(sys.stdout)
    if found.phase != READY:
        screen.line(f"{found.folder}: {found.phase or 'nothing is running; `halfcard dev up` starts it'}")
        return
    screen.line(f"{found.server}, in {found.folder}")
    for part in found.parts:
        word = screen.paint("healthy", Colour.GREEN) if part.healthy else screen.paint(part.trouble, Colour.RED)
        screen.line(f"  {part.name:<26}{word}" + ("" if part.healthy else f", see {part.log}"))
    if found.no_node:
        screen.line(f"  {_NO_NODE}{found.no_node}")
    screen.line(f"export KUBECONFIG={found.kubeconfig}")

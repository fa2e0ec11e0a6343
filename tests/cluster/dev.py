"""A development cluster: built, started in the background, looked after, removed."""

from __future__ import annotations

import os
import shlex
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from .binaries import GROUPS
from .build import build, missing_programs
from .dev_state import FAILED, READY, Folder
from .errors import CannotStartError, NotReadyError
from .health import answers
from .network import check_machine
from .waiting import wait_until

_CHECKOUT: Final = Path(__file__).parents[2]
_EXAMPLES: Final = _CHECKOUT / "deploy" / "examples"
_NEEDED: Final = ("control-plane", "kwok")
_UP_WITHIN_S: Final = 180.0  # half a minute is the rule
_DOWN_WITHIN_S: Final = 30.0
_MEMORY_MB: Final = 700

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Something to try: what it shows, and a command for a shell."""

    shows: str
    command: str


def default_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "halfcard" / "dev"


def plan() -> str:
    """What `up` is going to do, with its price."""
    groups = [GROUPS[name] for name in _NEEDED if missing_programs(GROUPS[name])]
    start = f"Starting takes about 20 seconds and {_MEMORY_MB} MB of memory."
    if not groups:
        return f"Everything is built already. {start}"
    programs = ", ".join(program for group in groups for program in missing_programs(group))
    minutes, gigabytes = sum(group.minutes for group in groups), sum(group.gigabytes for group in groups)
    return (
        f"Building {programs} from source, once: about {minutes} minutes on 2 cores and {gigabytes} GB of disk, "
        f"most of it Go's own caches. {start}"
    )


def up(folder: Folder, say: Say) -> bool:
    """Returns when the cluster is ready; it lives on after this process. False where it lived already.

    Raises:
        FolderTakenError: the folder is somebody else's.
        CannotStartError, NotReadyError: it did not come up; the text says why, and nothing is left running.
    """
    if folder.lives():
        return False
    check_machine({"setpriv": "util-linux"})
    with folder.claimed() as lock:
        try:
            folder.clear()
            say(plan())
            _build()
            _run(folder, lock, say)
        except BaseException:
            folder.remove()
            raise
    return True


def _build() -> None:
    for name in _NEEDED:
        if missing_programs(GROUPS[name]):
            build(name)


def _run(folder: Folder, lock: int, say: Say) -> None:
    process = _start(folder, lock)
    folder.note(lock, process.pid)
    try:
        _follow(folder, process, say)
    except BaseException:
        _end(process)
        raise


def _start(folder: Folder, lock: int) -> subprocess.Popen[bytes]:
    with folder.log.open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.dev_process", str(folder.path)],
            cwd=_CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in this terminal ends this command, not the cluster
            pass_fds=[lock],
        )


def _follow(folder: Folder, process: subprocess.Popen[bytes], say: Say) -> None:
    """Says each phase once."""
    said = ""

    def ready() -> bool:
        nonlocal said
        ended = process.poll() is not None
        state = folder.state()
        if state and state.phase == FAILED:
            raise CannotStartError(state.why)
        if ended:
            raise CannotStartError(f"the cluster's process ended before it was ready\n{_tail(folder)}".rstrip())
        if state and state.phase not in (said, READY):
            said = state.phase
            say(f"  {said}")
        return state is not None and state.phase == READY

    wait_until(ready, what="the cluster to be ready", seconds=_UP_WITHIN_S, details=lambda: _tail(folder))


def _tail(folder: Folder) -> str:
    return "\n".join(folder.log.read_text(errors="replace").splitlines()[-20:])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=_DOWN_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def down(folder: Folder) -> bool:
    """Nothing is left; False where nothing was there."""
    if not folder.exists():
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        if folder.lives():
            _end_other(folder, number)
    with folder.claimed():
        folder.remove()
    return True


def _end_other(folder: Folder, number: signal.Signals) -> None:
    """When the cluster's process dies, by SIGKILL too, the kernel ends the cluster's programs with it."""
    os.kill(folder.pid(), number)
    with suppress(NotReadyError):
        wait_until(lambda: not folder.lives(), what="the cluster to end", seconds=_DOWN_WITHIN_S)


@dataclass(frozen=True, slots=True)
class PartStatus:
    name: str
    healthy: bool
    pid: int
    log: str


@dataclass(frozen=True, slots=True)
class Status:
    """`phase` is empty where nothing lives."""

    folder: str
    phase: str = ""
    server: str = ""
    kubeconfig: str = ""
    parts: tuple[PartStatus, ...] = ()

    @property
    def healthy(self) -> bool:
        return self.phase == READY and all(part.healthy for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        return {"healthy": self.healthy, **asdict(self)}


def status(folder: Folder) -> Status:
    state = folder.state()
    if not folder.lives() or state is None:
        return Status(str(folder.path), "starting" if folder.lives() else "")
    if state.phase != READY:
        return Status(str(folder.path), state.phase)
    tls = ssl.create_default_context(cafile=str(folder.authority))
    parts = tuple(PartStatus(each.name, answers(each.health_url, tls), each.pid, each.log) for each in state.parts)
    return Status(str(folder.path), READY, state.server, str(folder.kubeconfig), parts)


def exports(folder: Folder) -> list[str]:
    """What a shell needs; the kubectl is the one of this very Kubernetes."""
    return [
        f"export KUBECONFIG={shlex.quote(str(folder.kubeconfig))}",
        f'export PATH={shlex.quote(str(folder.programs))}:"$PATH"',
    ]


def attempts() -> list[Attempt]:
    console = _example("gpu-manager/manifests/console.yaml")
    resources = '{.spec.containers[0].resources}{"\\n"}'
    wrong = _example("mistakes/manifests/amounts/05-150-per-cent.yaml")
    quota = _example("mistakes/manifests/quotas/01-quota-of-limits.yaml")
    return [
        Attempt(
            "0.3 of a card and 5Gi, repaired on the way in, scheduled and running",
            f"kubectl apply -f {console} && kubectl get pod console -o jsonpath='{resources}'",
        ),
        Attempt("One and a half cards: refused, with what to write instead", f"kubectl apply -f {wrong}"),
        Attempt(
            "A quota of limits, which Kubernetes takes and never counts: now it counts",
            f"kubectl apply -f {quota} && kubectl describe quota",
        ),
    ]


def _example(name: str) -> str:
    return shlex.quote(str(_EXAMPLES / name))

"""A node's own mount, network, process, IPC and host name namespaces on this machine.

Law: the first process of the namespaces keeps them alive. It dies with the test run, and the kernel then ends every
process of the node, containers too, and removes the mounts and interfaces.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import CannotStartError
from ..processes import Component, Launcher
from ..waiting import wait_until

_FIRST_PROCESS = Path(__file__).with_name("node_init.sh")
_SEPARATE = ("--mount", "--net", "--uts", "--ipc", "--pid")
_READY_WITHIN_S = 30.0


def only_child(pid: int) -> int:
    """Returns the process that a waiting process started; 0 if there is none."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else 0


@dataclass(slots=True)
class InsideComponent(Component):
    """A program inside a node: its parent nsenter stays outside, so signals skip nsenter."""

    def _send(self, number: signal.Signals) -> None:
        program = only_child(self.pid)
        leads = program != 0 and os.getpgid(program) == program
        os.killpg(program if leads else self.pid, number)
        if number != signal.SIGSTOP:
            os.killpg(self.pid, signal.SIGCONT)  # nsenter stops itself when its child is stopped


@dataclass(frozen=True, slots=True)
class NodeNamespaces:
    first_process: int

    @property
    def enter(self) -> tuple[str, ...]:
        """Goes before a command; setsid gives the program its own process group, which can be signalled."""
        return ("nsenter", f"--target={self.first_process}", *_SEPARATE, "--", "setsid")


@contextmanager
def node_namespaces(launcher: Launcher, folder: Path, *, name: str, log: Path) -> Iterator[NodeNamespaces]:
    command = ["unshare", *_SEPARATE, "--fork", "--kill-child", "--mount-proc"]
    holder = Component(name, [*command, "sh", str(_FIRST_PROCESS), name, str(folder)], log, launcher)
    holder.start()
    try:
        wait_until(
            lambda: holder.log_tail(1) == "ready" or not holder.running(),
            what=f"the namespaces of {name}",
            seconds=_READY_WITHIN_S,
            details=holder.log_tail,
        )
        if not holder.running():
            raise CannotStartError(f"no namespaces for {name}: run as root with CAP_SYS_ADMIN.\n{holder.log_tail()}")
        yield NodeNamespaces(only_child(holder.pid))
    finally:
        _end(holder)


def _end(holder: Component) -> None:
    """Ends the first process; its parent, unshare, ends after it, and so after all processes of the node."""
    if holder.running() and (first := only_child(holder.pid)):
        os.kill(first, signal.SIGKILL)
        assert holder.process is not None
        holder.process.wait()
    holder.kill()

"""Starts the programs of the control plane in order, waits until each is ready, and restarts them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..build.binaries import program_path
from ..errors import CannotStartError
from ..processes import Component, Launcher, tail
from ..waiting import wait_until
from . import command_lines as control_plane
from .command_lines import ControlPlaneFiles
from .health import is_healthy
from .network import Network

_READY_WITHIN_S = 90.0  # seconds are the rule; a busy machine is slow, not broken
_ARGUMENTS = {
    "etcd": control_plane.etcd,
    "kube-apiserver": control_plane.apiserver,
    "kube-controller-manager": control_plane.controller_manager,
    "kube-scheduler": control_plane.scheduler,
}
COMPONENTS = tuple(_ARGUMENTS)


def _health_urls(network: Network) -> Mapping[str, str]:
    def at(port: str) -> str:
        return f"{network.address}:{network.ports[port]}"

    return {
        "etcd": f"http://{at('etcd')}/health",
        "kube-apiserver": f"https://{at('apiserver')}/readyz",
        "kube-controller-manager": f"https://{at('controller-manager')}/healthz",
        "kube-scheduler": f"https://{at('scheduler')}/readyz",
    }


class Supervisor:
    """The components of one control plane by the names in COMPONENTS."""

    def __init__(
        self,
        *,
        network: Network,
        files: ControlPlaneFiles,
        launcher: Launcher,
        logs: Path,
        flags: Mapping[str, Sequence[str]],
    ) -> None:
        logs.mkdir()
        self._logs = logs
        self._components = {
            name: Component(
                name,
                [*network.enter, str(program_path(name)), *arguments(network, files), *flags.get(name, ())],
                logs / f"{name}.log",
                launcher,
            )
            for name, arguments in _ARGUMENTS.items()
        }
        self.health_urls = _health_urls(network)
        self._tls = ssl.create_default_context(cafile=str(files.authority))

    def start(self) -> None:
        """Starts etcd and the API server first; the API server waits for etcd, the others exit without it."""
        for names in (COMPONENTS[:2], COMPONENTS[2:]):
            for name in names:
                self._components[name].start()
            for name in names:
                self.wait_ready(name)

    def __getitem__(self, name: str) -> Component:
        if name not in self._components:
            raise KeyError(f"no component {name!r}: use one of {', '.join(COMPONENTS)}")
        return self._components[name]

    def healthy(self, name: str) -> bool:
        return is_healthy(self.health_urls[name], self._tls)

    def _healthy_or_dead(self, name: str) -> bool:
        if not self[name].running():
            raise CannotStartError(f"{name} ended by itself: its last lines below say why.\n{self[name].log_tail()}")
        return self.healthy(name)

    def wait_ready(self, name: str) -> None:
        wait_until(
            lambda: self._healthy_or_dead(name),
            what=f"{name} to be ready",
            seconds=_READY_WITHIN_S,
            details=self.log_tails,
        )

    def restart(self, name: str) -> None:
        self[name].kill()
        self[name].start()
        self.wait_ready(name)

    def stop(self) -> None:
        """Ends clients first and the store last, so that they log few errors at the end."""
        for name in reversed(COMPONENTS):
            self[name].kill()

    def log_tails(self, lines: int = 20) -> str:
        """Returns the last lines of every log in the folder, including those of a test's own programs."""
        return "\n".join(
            f"--- {log.stem} (the last {lines} lines)\n{tail(log, lines)}" for log in sorted(self._logs.glob("*.log"))
        )

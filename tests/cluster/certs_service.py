"""Certificate controllers, and an admission service that reads its certificate from the Secret, as in a pod."""

from __future__ import annotations

import base64
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Final

from certs.chain_state import ChainState, object_paths
from certs.chains import Chain, ObjectPath
from certs.steps import Keep
from certs.tokens.token_rotation import TOKENS
from cli.__main__ import main as halfcard
from devcluster.cluster import Cluster
from devcluster.control_plane.network import free_port
from devcluster.control_plane.users import User
from devcluster.services.installation import Installation, Replica
from halfcard import names
from serving.log import utc_now

from .certs_process import ADMISSION

_TIMEOUT_S: Final = 60.0
_SYNC_INTERVAL_S: Final = 0.2
_ROOT: Final = Path(__file__).parents[2]


class CertifiedInstallation(Installation):
    """An installation whose webhook configurations have an empty caBundle, as in the chart."""

    def _certificate(self) -> Path:
        folder = self.cluster.folder / "halfcard-tls"
        folder.mkdir()
        return folder

    @property
    def tls(self) -> Path:
        return self._tls

    def _caller_tokens(self) -> Path:
        self.callers = self.cluster.folder / "halfcard-callers"
        self.callers.mkdir()
        return self.callers / TOKENS

    def registration(self) -> str:
        printed = StringIO()
        with redirect_stdout(printed):
            assert halfcard(["webhooks", "--settings", str(self.settings)]) == 0
        return printed.getvalue()


class CertificateControllers:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.replicas: list[Replica] = []
        self.account: User = cluster.service_account(names.NAMESPACE, names.CERTS_SERVICE)
        self._started = 0

    def start(self, count: int, *, fast: bool = True) -> None:
        """Starts several replicas at the same moment and waits until they are ready."""
        started = [self._start(fast=fast) for _ in range(count)]
        for replica in started:
            self.cluster.wait_until(replica.ready, what=f"{replica.program.name} to be ready")
        self.replicas += started

    def _start(self, *, fast: bool) -> Replica:
        host = self.cluster.network.host_address
        port = free_port(host)
        self._started += 1
        program = self.cluster.program(
            f"halfcard-certs-{self._started}",
            *(sys.executable, "-m", *(("tests.cluster.certs_process",) if fast else ("certs", "keep"))),
            *("--kubeconfig", str(self.account.kubeconfig), "--status", f"{host}:{port}"),
            environment={"PYTHONPATH": str(_ROOT)},
        )
        return Replica(program, host, port, port)

    def kill_all(self) -> None:
        for replica in self.replicas:
            replica.program.kill()
        self.replicas.clear()

    def logs(self) -> str:
        return "".join(replica.program.log.read_text() for replica in self.replicas)

    # --- what they maintain -----------------------------------------------------------------------------------------

    def state(self, chain: Chain = ADMISSION) -> ChainState:
        return ChainState(chain, {place: self._read(place) for place in object_paths(chain)})

    def _read(self, place: ObjectPath) -> dict[str, object] | None:
        answer = self.cluster.request("GET", str(place))
        return None if answer.status == 404 else answer.must()

    def wait_for(self, reason: str, chain: Chain = ADMISSION) -> None:
        """Waits until the plan has nothing to do for this reason."""

        def has_nothing_to_do() -> bool:
            step = self.state(chain).plan(utc_now())
            return isinstance(step, Keep) and reason in step.reason

        self.cluster.wait_until(
            has_nothing_to_do,
            what=f'the certificates of the {chain.title} to be in order: "{reason}"',
            seconds=_TIMEOUT_S,
            details=lambda: str(self.state(chain).plan(utc_now())),
        )


@contextmanager
def mounted(cluster: Cluster, secret: ObjectPath, folder: Path) -> Iterator[None]:
    """Copies a Secret to a folder as kubelet does: one link switches all files; a deleted Secret changes nothing."""
    stopping = threading.Event()

    def sync_changes() -> None:
        last, generation = "", 0
        while not stopping.wait(_SYNC_INTERVAL_S):
            answer = cluster.request("GET", str(secret))
            if answer.ok and answer.body["metadata"]["resourceVersion"] != last:
                last, generation = answer.body["metadata"]["resourceVersion"], generation + 1
                _swap(folder, f"..{generation}", answer.body.get("data") or {})

    thread = threading.Thread(target=sync_changes)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _swap(folder: Path, generation: str, data: dict[str, str]) -> None:
    (folder / generation).mkdir()
    for name, text in data.items():
        (folder / generation / name).write_bytes(base64.b64decode(text))
    link = folder / "..data_tmp"
    link.symlink_to(generation)
    link.replace(folder / "..data")
    for name in data:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data") / name)

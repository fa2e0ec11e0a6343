"""`python -m devcluster.dev.background_process FOLDER`: runs a development cluster in the background until SIGTERM.

It holds the folder's lock, which it inherits, and writes to the folder's state how far it is.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from halfcard import names

from ..build.binaries import program_path
from ..cluster import Cluster
from ..control_plane import isolation
from ..control_plane.supervisor import COMPONENTS
from ..errors import CannotStartError, NotReadyError
from ..fake_nodes.gpu_nodes import GpuNodes
from ..services.extender_installation import ExtenderInstallation
from ..services.installation import Installation, Replica
from ..services.plain_installation import PlainInstallation
from ..services.quota_installation import QuotaInstallation
from . import real_node
from .real_node import DevelopmentNode
from .state import FAILED, READY, DevFolder, DevState, Program

NODES: Final = (
    GpuNodes(2, "Tesla-T4", 15360, cards=4),
    GpuNodes(1, "Tesla-V100-SXM2-32GB", 32768),
    GpuNodes(1, "NVIDIA-A10", 23028, "gpushare", cards=2),
    GpuNodes(1, "NVIDIA-L40S", 46068, "tuya", cards=4),
    GpuNodes(1, "NVIDIA-H100-80GB-HBM3", 81559, "nvidia"),
)
_CHECKOUT: Final = Path(__file__).parents[2]


class _Development:
    def __init__(self, folder: DevFolder) -> None:
        self._folder = folder

    def run(self) -> None:
        isolated = isolation.is_possible()
        self._write_phase("starting etcd, API server, controller manager and scheduler")
        with Cluster(in_namespace=isolated) as cluster:
            self._write_phase(f"adding {sum(row.count for row in NODES)} nodes with GPUs, run by kwok")
            cluster.add_gpu_nodes(NODES)
            self._write_phase("installing Halfcard: namespace, quotas, RBAC, admission webhook, quota service")
            installation = Installation(cluster) if isolated else PlainInstallation(cluster)
            installation.add_replica()
            installation.register()
            quotas = QuotaInstallation(installation)
            quotas.add_replica()
            self._write_phase("installing Halfcard: scheduler extender, and restarting kube-scheduler, which calls it")
            with ExtenderInstallation(cluster) as extender, ExitStack() as stack:
                _schedule_by(extender)
                found = self._add_node(cluster, stack)
                replicas = [*installation.replicas, *quotas.replicas, *extender.replicas]
                self._publish(cluster, replicas, found)
                signal.pause()

    def _add_node(self, cluster: Cluster, stack: ExitStack) -> DevelopmentNode | str:
        """Starts the node that runs pods, or returns why there is none: everything else works without it."""
        if why := real_node.why_not():
            return why
        self._write_phase(f"adding node {real_node.NODE}, with kubelet, containerd and Halfcard's agent")
        try:
            return stack.enter_context(DevelopmentNode(cluster))
        except (CannotStartError, NotReadyError) as error:
            traceback.print_exc()
            return f"{str(error).splitlines()[0]}; {self._folder.log} says more."

    def _write_phase(self, phase: str) -> None:
        self._folder.write(DevState(phase))

    def _publish(self, cluster: Cluster, replicas: Sequence[Replica], node: DevelopmentNode | str) -> None:
        shutil.copy(cluster.authority.certificate, self._folder.authority)
        shutil.copy(cluster.admin.kubeconfig, self._folder.kubeconfig)
        self._folder.programs.mkdir()
        (self._folder.programs / "kubectl").symlink_to(program_path("kubectl"))
        _write_halfcard(self._folder.programs / "halfcard")
        parts, no_node = _parts(cluster, replicas), ""
        if isinstance(node, str):
            no_node = node
        else:
            parts += node.parts()
        self._folder.write(DevState(READY, server=cluster.url, parts=parts, no_node=no_node))


def _schedule_by(extender: ExtenderInstallation) -> None:
    """Lets the scheduler call one replica directly."""
    replica = extender.add_replica()
    extender.leader()  # a bind before that would fail, and be tried again only after a while
    url = f"https://{replica.host}:{replica.port}/scheduler"
    extender.schedule_by(extender.shipped("halfcard.yaml", url=url))


def _write_halfcard(program: Path) -> None:
    """Writes a script that runs the command of this checkout, whether it is installed or not."""
    python, checkout = shlex.quote(sys.executable), shlex.quote(str(_CHECKOUT))
    program.write_text(f'#!/bin/sh\nPYTHONPATH={checkout} exec {python} -m cli "$@"\n')
    program.chmod(0o755)


def _parts(cluster: Cluster, replicas: Sequence[Replica]) -> tuple[Program, ...]:
    components, kwok = cluster.components, cluster.kwok
    assert kwok is not None
    programs = [(components[name], components.health_urls[name]) for name in COMPONENTS]
    programs += [(kwok.program, kwok.health_url)]
    programs += [(each.program, _health_url(each)) for each in replicas]
    return tuple(Program(each.name, each.pid, url, str(each.log)) for each, url in programs)


def _health_url(replica: Replica) -> str:
    return f"http://{replica.host}:{replica.status_port}{names.READY_PATH}"


def end_at_signal(_number: int, _frame: object) -> None:
    raise SystemExit(0)


def main(path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end_at_signal)
    folder = DevFolder(path)
    folder.cluster.mkdir()
    tempfile.tempdir = str(folder.cluster)  # so that `down` removes a cluster's scratch folder too
    try:
        _Development(folder).run()
    except Exception as error:
        traceback.print_exc()
        why = str(error) if isinstance(error, CannotStartError) else f"{type(error).__name__}: {error}"
        folder.write(DevState(FAILED, why=why))
        raise SystemExit(1) from error


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Builds a development cluster, starts it in the background, shows its health, removes it."""

from __future__ import annotations

import json
import os
import shlex
import ssl
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ..build.binaries import GROUPS, ProgramGroup, price
from ..build.builder import build, missing_programs
from ..control_plane.health import is_healthy
from ..control_plane.network import check_machine
from ..nodes import cgroups
from ..waiting import wait_until
from . import context_steps, real_node
from .background import Say, end_earlier, start
from .context_access import ContextOptions
from .state import READY, DevFolder, FolderTakenError

_CHECKOUT: Final = Path(__file__).parents[2]
_EXAMPLES: Final = _CHECKOUT / "deploy" / "examples"
_QUOTA: Final = Path(__file__).with_name("quota.yaml")
_ALWAYS: Final = ("control-plane", "kwok")
_MEMORY_MB: Final = 750
_NODE_MEMORY_MB: Final = 250


@dataclass(frozen=True, slots=True)
class Example:
    """Something to try: what it shows, and a shell command."""

    shows: str
    command: str


def default_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "halfcard" / "dev"


def plan() -> str:
    """Says what `up` is going to do, and how long that takes."""
    groups = _to_build()
    memory_mb = _MEMORY_MB if real_node.why_not() else _MEMORY_MB + _NODE_MEMORY_MB
    start = f"Starting takes about 20 seconds and {memory_mb} MB of memory."
    if not groups:
        return f"Everything is built already. {start}"
    programs = ", ".join(program for group in groups.values() for program in missing_programs(group))
    minutes, gigabytes = price([*groups.values()])
    return (
        f"Building {programs} from source, once: about {minutes} minutes on 2 cores and {gigabytes} GB of disk, "
        f"most of it Go's own caches. {start}"
    )


def _to_build() -> dict[str, ProgramGroup]:
    """Returns the missing groups by name; those of a node only if this machine can have one."""
    names = _ALWAYS if real_node.why_not() else (*_ALWAYS, *real_node.GROUPS)
    return {name: GROUPS[name] for name in names if missing_programs(GROUPS[name])}


def up(folder: DevFolder, say: Say, borrowed: ContextOptions | None = None) -> bool:
    """Returns when the cluster is ready; it runs on after this process. Returns False if it was running already.

    With `borrowed`, Halfcard runs beside that cluster, and no cluster is started.

    Raises:
        FolderTakenError: the folder is used for something else, or for another cluster.
        CannotStartError, NotReadyError: the start failed; the text says why, and nothing is left running.
    """
    if folder.is_running():
        _check_same(folder, borrowed)
        return False
    check_machine({"setpriv": "util-linux"})
    with folder.claimed() as lock:
        context_steps.undo(folder)  # what a killed one left
        try:
            folder.clear()
            if borrowed:
                context_steps.up(folder, lock, borrowed, say)
            else:
                _up_own(folder, lock, say)
        except BaseException:
            context_steps.undo(folder)
            folder.remove()
            raise
    return True


def _check_same(folder: DevFolder, borrowed: ContextOptions | None) -> None:
    runs, wanted = folder.context(), borrowed.context if borrowed else ""
    if runs != wanted:
        what = f'Halfcard in the cluster of context "{runs}"' if runs else "a cluster of its own"
        raise FolderTakenError(
            f"{folder.path} runs {what}: end that with `halfcard dev down`, or name another folder with --dir"
        )


def _up_own(folder: DevFolder, lock: int, say: Say) -> None:
    say(plan())
    for name in _to_build():
        build(name)
    start(folder, lock, "devcluster.dev.background_process", say)


def down(folder: DevFolder) -> bool:
    """Removes everything; returns False if there was nothing."""
    if not folder.exists():
        return False
    try:
        context_steps.undo(folder)  # first, so that the API server never calls a webhook that has ended
    finally:
        end_earlier(folder)
    with folder.claimed():
        folder.remove()
    wait_until(cgroups.sweep, what="the cgroups of nodes that were killed to be empty")
    return True


@dataclass(frozen=True, slots=True)
class ProgramStatus:
    name: str
    healthy: bool
    pid: int
    log: str
    trouble: str = "does not answer"


@dataclass(frozen=True, slots=True)
class DevStatus:
    """`phase` is empty if nothing runs; `no_node` as in DevState."""

    folder: str
    phase: str = ""
    server: str = ""
    kubeconfig: str = ""
    parts: tuple[ProgramStatus, ...] = ()
    no_node: str = ""

    @property
    def healthy(self) -> bool:
        return self.phase == READY and all(part.healthy for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        return {"healthy": self.healthy, **asdict(self)}


def status(folder: DevFolder) -> DevStatus:
    state = folder.state()
    if not folder.is_running() or state is None:
        return DevStatus(str(folder.path), "starting" if folder.is_running() else "")
    if state.phase != READY:
        return DevStatus(str(folder.path), state.phase)
    tls = _tls(folder)
    parts = [ProgramStatus(each.name, is_healthy(each.health_url, tls), each.pid, each.log) for each in state.parts]
    if folder.context():
        registered = context_steps.registered(folder)
        parts.append(ProgramStatus("registration", registered, 0, str(folder.log), "is missing in the cluster"))
    return DevStatus(str(folder.path), READY, state.server, str(folder.kubeconfig), tuple(parts), state.no_node)


def _tls(folder: DevFolder) -> ssl.SSLContext:
    """Shows the administrator's certificate in our own cluster: only the administrator may read the health of its
    nodes.
    """
    tls = ssl.create_default_context(cafile=str(folder.authority))
    if not folder.context():
        admin = json.loads(folder.kubeconfig.read_text())["users"][0]["user"]
        tls.load_cert_chain(admin["client-certificate"], admin["client-key"])
    return tls


def shell_exports(folder: DevFolder) -> list[str]:
    """Returns the shell lines that set up the environment; the kubectl is that of this cluster's version."""
    return [
        f"export KUBECONFIG={shlex.quote(str(folder.kubeconfig))}",
        f'export PATH={shlex.quote(str(folder.programs))}:"$PATH"',
    ]


def examples(folder: DevFolder) -> list[Example]:
    """Returns the examples to try; beside an existing cluster they create nothing."""
    console = _example("gpu-manager/manifests/console.yaml")
    resources = '{.spec.containers[0].resources}{"\\n"}'
    wrong = Example(
        "One and a half cards: refused, with what to write instead",
        f"kubectl apply -f {_example('mistakes/manifests/amounts/05-150-per-cent.yaml')}",
    )
    quota = _example("mistakes/manifests/quotas/01-quota-of-limits.yaml")
    quota_shows = "A quota of limits, which Kubernetes accepts and never counts: now it is counted"
    if folder.context():
        dry = "kubectl create --dry-run=server"
        return [
            Example(
                "0.3 of a card and 5Gi, repaired at admission",
                f"{dry} -f {console} -o jsonpath='{resources}'",
            ),
            wrong,
            Example(quota_shows, f"{dry} -f {quota} -o jsonpath='{{.spec.hard}}{{\"\\n\"}}'"),
        ]
    return [
        Example(
            "0.3 of a card and 5Gi, repaired at admission, scheduled and running",
            f"kubectl apply -f {console} && kubectl get pod console -o jsonpath='{resources}'",
        ),
        wrong,
        Example(quota_shows, f"kubectl apply -f {quota} && kubectl describe quota"),
        *_placements(),
        *_budgets(console),
        *(() if _without_node(folder) else _running()),
    ]


def _without_node(folder: DevFolder) -> bool:
    state = folder.state()
    return state is None or bool(state.no_node)


def _running() -> list[Example]:
    node, pod = real_node.NODE, shlex.quote(str(real_node.POD))
    return [
        Example(
            f"A pod that really runs, on node {node}, and which card it got",
            f"kubectl apply -f {pod} && kubectl wait --for=condition=Ready --timeout=60s pod/real && kubectl logs real",
        ),
        Example(
            "That node: what it offers, what is granted, and what is used",
            f"kubectl describe node {node} && halfcard inspect {node} && halfcard top --node {node}",
        ),
    ]


def _budgets(share: str) -> list[Example]:
    """Waits for the quota first: it grants nothing before its pods are counted."""
    counted = "kubectl -n team wait --for=condition=Ready --timeout=30s gpuquota/gpu"
    reported = "kubectl -n team wait --for=jsonpath={.status.shares}=1/1 gpuquota/gpu"
    another = _example("gpu-manager/manifests/nginx.yaml")
    return [
        Example(
            "One share for a namespace: the second pod is refused, with the amounts",
            f"kubectl apply -f {shlex.quote(str(_QUOTA))} && {counted} && kubectl -n team apply -f {share}; "
            f"kubectl -n team apply -f {another}; {reported} && halfcard quota explain team",
        ),
    ]


def _placements() -> list[Example]:
    """Each command waits until its pods are bound, because only then there is something to show."""
    share, apart = _example("gpu-manager/manifests/nginx.yaml"), _example("gpushare/manifests/apart.yaml")
    return [
        Example(
            "A second share is placed on the card of the first, and the record shows it",
            f"kubectl apply -f {share} && {_bound('console', 'nginx')} && halfcard inspect -d",
        ),
        Example(
            "14 GiB that fit on a node, and on none of its cards",
            f"kubectl apply -f {apart} && {_bound('first', 'second')} && halfcard explain pod/default/third",
        ),
    ]


def _bound(*pods: str) -> str:
    return f"kubectl wait --for=condition=PodScheduled --timeout=30s {' '.join(f'pod/{pod}' for pod in pods)}"


def _example(name: str) -> str:
    return shlex.quote(str(_EXAMPLES / name))

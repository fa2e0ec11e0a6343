"""A development cluster: built, started in the background, looked after, removed."""

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
from ..control_plane.health import answers
from ..control_plane.network import check_machine
from ..nodes import cgroups
from ..waiting import wait_until
from . import context_steps, real_node
from .background import Say, end_other, start
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
    """Something to try: what it shows, and a command for a shell."""

    shows: str
    command: str


def default_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "halfcard" / "dev"


def plan() -> str:
    """What `up` is going to do, with its price."""
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
    """By name; those of a node only where the machine can have one."""
    names = _ALWAYS if real_node.why_not() else (*_ALWAYS, *real_node.GROUPS)
    return {name: GROUPS[name] for name in names if missing_programs(GROUPS[name])}


def up(folder: DevFolder, say: Say, borrowed: ContextOptions | None = None) -> bool:
    """Returns when the cluster is ready; it lives on after this process. False where it lived already.

    With `borrowed`, Halfcard is put into that cluster, and none is made.

    Raises:
        FolderTakenError: the folder is somebody else's, or another cluster's.
        CannotStartError, NotReadyError: it did not come up; the text says why, and nothing is left running.
    """
    if folder.lives():
        _check_same(folder, borrowed)
        return False
    check_machine({"setpriv": "util-linux"})
    with folder.claimed() as lock:
        context_steps.undo(folder)  # what one that was killed has left
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
    """Nothing is left; False where nothing was there."""
    if not folder.exists():
        return False
    try:
        context_steps.undo(folder)  # first: nobody is to be asked who is gone
    finally:
        end_other(folder)
    with folder.claimed():
        folder.remove()
    wait_until(cgroups.swept, what="the cgroups of nodes that were killed to be empty")
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
    """`phase` is empty where nothing lives; `no_node` as in State."""

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
    if not folder.lives() or state is None:
        return DevStatus(str(folder.path), "starting" if folder.lives() else "")
    if state.phase != READY:
        return DevStatus(str(folder.path), state.phase)
    tls = _tls(folder)
    parts = [ProgramStatus(each.name, answers(each.health_url, tls), each.pid, each.log) for each in state.parts]
    if folder.context():
        registered = context_steps.registered(folder)
        parts.append(ProgramStatus("registration", registered, 0, str(folder.log), "is gone from the cluster"))
    return DevStatus(str(folder.path), READY, state.server, str(folder.kubeconfig), tuple(parts), state.no_node)


def _tls(folder: DevFolder) -> ssl.SSLContext:
    """As the administrator where the cluster is our own: only he may ask it for what its nodes say."""
    tls = ssl.create_default_context(cafile=str(folder.authority))
    if not folder.context():
        admin = json.loads(folder.kubeconfig.read_text())["users"][0]["user"]
        tls.load_cert_chain(admin["client-certificate"], admin["client-key"])
    return tls


def exports(folder: DevFolder) -> list[str]:
    """What a shell needs; the kubectl is the one of this very Kubernetes."""
    return [
        f"export KUBECONFIG={shlex.quote(str(folder.kubeconfig))}",
        f'export PATH={shlex.quote(str(folder.programs))}:"$PATH"',
    ]


def attempts(folder: DevFolder) -> list[Example]:
    """In a borrowed cluster they leave nothing behind."""
    console = _example("gpu-manager/manifests/console.yaml")
    resources = '{.spec.containers[0].resources}{"\\n"}'
    wrong = Example(
        "One and a half cards: refused, with what to write instead",
        f"kubectl apply -f {_example('mistakes/manifests/amounts/05-150-per-cent.yaml')}",
    )
    quota = _example("mistakes/manifests/quotas/01-quota-of-limits.yaml")
    quota_shows = "A quota of limits, which Kubernetes takes and never counts: now it counts"
    if folder.context():
        dry = "kubectl create --dry-run=server"
        return [
            Example(
                "0.3 of a card and 5Gi, repaired on the way in",
                f"{dry} -f {console} -o jsonpath='{resources}'",
            ),
            wrong,
            Example(quota_shows, f"{dry} -f {quota} -o jsonpath='{{.spec.hard}}{{\"\\n\"}}'"),
        ]
    return [
        Example(
            "0.3 of a card and 5Gi, repaired on the way in, scheduled and running",
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
            f"A pod that really runs, on node {node}, and what it was given",
            f"kubectl apply -f {pod} && kubectl wait --for=condition=Ready --timeout=60s pod/real && kubectl logs real",
        ),
        Example(
            "That node: what it offers, what was given of it, and what is used",
            f"kubectl describe node {node} && halfcard inspect {node} && halfcard top --node {node}",
        ),
    ]


def _budgets(share: str) -> list[Example]:
    """A quota grants nothing before it has been counted."""
    counted = "kubectl -n team wait --for=condition=Ready --timeout=30s gpuquota/gpu"
    told = "kubectl -n team wait --for=jsonpath={.status.shares}=1/1 gpuquota/gpu"
    another = _example("gpu-manager/manifests/nginx.yaml")
    return [
        Example(
            "One share for a namespace: the second pod is refused, in numbers",
            f"kubectl apply -f {shlex.quote(str(_QUOTA))} && {counted} && kubectl -n team apply -f {share}; "
            f"kubectl -n team apply -f {another}; {told} && halfcard quota explain team",
        ),
    ]


def _placements() -> list[Example]:
    """Each waits for the pods that it is about: what nobody has bound yet nobody can show."""
    share, apart = _example("gpu-manager/manifests/nginx.yaml"), _example("gpushare/manifests/apart.yaml")
    return [
        Example(
            "A second share comes to the card of the first, and the record says so",
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

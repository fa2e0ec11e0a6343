"""Checks that the pods of Halfcard's processes start, and become ready."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from halfcard import names
from halfcard.exit_codes import MEANINGS
from halfcard.problems import printable

from ..causes import NOT_ON_NODE, NOT_STARTED, PREVENTED
from ..finding import BROKEN, Check, FoundFault, several
from ..own_objects import ContainerState, OwnPod
from ..snapshot import Snapshot

_STARTS_WITHIN: Final = timedelta(minutes=2)
_WORDS_CHARS: Final = 240
_NO_IMAGE: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable"}
)
_IMPORT: Final = "ctr --namespace k8s.io images import halfcard.tar"
_OUT_OF_MEMORY: Final = "OOMKilled"


def _where(pod: OwnPod) -> str:
    return f"pod {names.NAMESPACE}/{pod.name}" + (f" on node {pod.node}" if pod.node else "")


def _unready(snapshot: Snapshot) -> Iterator[OwnPod]:
    return (pod for pod in snapshot.own_pods if not pod.is_ready)


def _without_image(snapshot: Snapshot) -> Iterator[FoundFault]:
    for pod in _unready(snapshot):
        if pod.container.waits in _NO_IMAGE:
            said = printable(pod.container.message, _WORDS_CHARS)
            got = f"{pod.container.waits}: {pod.container.image}" + (f": {said}" if said else "")
            yield FoundFault(_where(pod), got, *_way_to_image(pod), pod.subject)


def _way_to_image(pod: OwnPod) -> tuple[str, str]:
    """Returns how the node gets the image, and the command for it; kube-scheduler's is Kubernetes' own."""
    if pod.account == names.SCHEDULER:
        return "name an image of kube-scheduler that the node can pull in the chart's value `scheduler.image`", ""
    push = "or push it to a registry that the node reaches, and name it in the chart's values"
    return f"import the image on that node; {push} `image.repository` and `imagePullSecrets`", _IMPORT


def _crashing(snapshot: Snapshot) -> Iterator[FoundFault]:
    for pod in _unready(snapshot):
        if _has_crashed(pod.container):
            command = f"kubectl -n {names.NAMESPACE} logs {pod.name} --previous"
            yield FoundFault(_where(pod), _crash(pod.container), _remedy(pod.container), command, pod.subject)


def _has_crashed(container: ContainerState) -> bool:
    return container.waits == "CrashLoopBackOff" or bool(container.restarts and container.exit_code)


def _crash(container: ContainerState) -> str:
    """Formats how it ended: the reason, the exit code with its meaning, and the last line of the log."""
    code = container.exit_code
    reason = container.ended if container.ended not in ("", "Error") else ""
    meaning = MEANINGS.get(code, "") if code and not reason else ""
    ended = [reason, "" if code is None else f"exit code {code}" + (f" ({meaning})" if meaning else "")]
    restarts = f"ended after {container.restarts} restart{'' if container.restarts == 1 else 's'}"
    return ": ".join(
        filter(None, (restarts, ", ".join(filter(None, ended)), printable(container.last_line, _WORDS_CHARS)))
    )


def _remedy(container: ContainerState) -> str:
    if container.ended == _OUT_OF_MEMORY:
        return "raise its memory limit, in the chart's values `resources.limits.memory`"
    return "correct what the last line of its log names; if that is a bug, report it with the log"


def _unscheduled(snapshot: Snapshot) -> Iterator[FoundFault]:
    for pod in _unready(snapshot):
        if pod.unscheduled and not pod.node:
            fix = (
                "make room, or change what keeps it away: the chart's values `nodeSelector`, `tolerations`, `resources`"
            )
            command = f"kubectl -n {names.NAMESPACE} describe pod {pod.name}"
            yield FoundFault(_where(pod), printable(pod.unscheduled, _WORDS_CHARS), fix, command, pod.subject)


def _starting(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks processes of which no pod is ready yet: while one is, a pod that starts is a rollout.

    Most of them wait for Secrets that the certificate controller fills.
    """
    ready = {pod.account for pod in snapshot.own_pods if pod.is_ready}
    young = [pod for pod in _unready(snapshot) if pod.account not in ready and not _says_why(pod)]
    for account in sorted({pod.account for pod in young if snapshot.now - pod.since <= _STARTS_WITHIN}):
        pods = [pod for pod in young if pod.account == account]
        got = f"{several([pod.name for pod in pods], 'pod')} starting{_waiting(pods[0].container)}"
        fix = f"wait for them; if their image {pods[0].container.image} is on no node and in no registry, import it"
        where, by = f"{account} in {names.NAMESPACE}", (account, names.CERTS_SERVICE)
        yield FoundFault(where, got, fix, "halfcard doctor --wait 120", account, by)


def _says_why(pod: OwnPod) -> bool:
    """Returns whether another check reports its state."""
    return pod.container.waits in _NO_IMAGE or _has_crashed(pod.container) or bool(pod.unscheduled)


def _not_ready(snapshot: Snapshot) -> Iterator[FoundFault]:
    for pod in _unready(snapshot):
        if not _says_why(pod) and snapshot.now - pod.since > _STARTS_WITHIN:
            got = f"not ready since {pod.since:%Y-%m-%dT%H:%M:%SZ}"
            yield FoundFault(_where(pod), f"{got}{_waiting(pod.container)}", *_where_to_read(pod), pod.subject)


def _waiting(container: ContainerState) -> str:
    said = printable(container.message, _WORDS_CHARS)
    return f": {container.waits}" + (f": {said}" if said else "") if container.waits else ""


def _where_to_read(pod: OwnPod) -> tuple[str, str]:
    """A container that has not started has no log: its events say what it waits for, such as a missing Secret."""
    if pod.container.waits or not pod.node:
        return "its events say what it waits for", f"kubectl -n {names.NAMESPACE} describe pod {pod.name}"
    return "its log says what it waits for", f"kubectl -n {names.NAMESPACE} logs {pod.name}"


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "image-missing",
        BROKEN,
        "the image of Halfcard is on the node, or can be pulled",
        "The container cannot start.",
        _without_image,
    ),
    Check(
        "process-crashes",
        BROKEN,
        "a process of Halfcard does not end by itself",
        "Otherwise its task is not done.",
        _crashing,
        unless=("settings-unusable", *NOT_ON_NODE),
    ),
    Check(
        "pod-unscheduled",
        BROKEN,
        "the scheduler finds a node for each pod of Halfcard",
        "Otherwise its task is not done.",
        _unscheduled,
    ),
    Check(
        "process-starting",
        BROKEN,
        "a replica of each process of Halfcard is ready",
        "For up to two minutes its pods are only starting: its task is not done yet.",
        _starting,
        unless=(*PREVENTED, *NOT_ON_NODE, "right-missing"),
    ),
    Check(
        "process-not-ready",
        BROKEN,
        "a pod of Halfcard is ready within two minutes",
        "Otherwise its task is not done.",
        _not_ready,
        unless=(*NOT_STARTED, *NOT_ON_NODE, "right-missing", "certificates-due"),
    ),
)

"""Reads which pod, or the pods of which workload, a command is about, as kubectl users write it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from halfcard import names
from halfcard.exit_codes import UnusableInputError
from halfcard.pod.stored_pod import StoredPod

POD: Final = "Pod"
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    POD: ("pod", "pods", "po"),
    "Deployment": ("deploy", "deployment", "deployments"),
    "ReplicaSet": ("rs", "replicaset", "replicasets"),
    "StatefulSet": ("sts", "statefulset", "statefulsets"),
    "DaemonSet": ("ds", "daemonset", "daemonsets"),
    "Job": ("job", "jobs"),
}
_KINDS: Final = {word: kind for kind, words in _WORDS.items() for word in words}

P = TypeVar("P", bound=StoredPod)


class PodTarget(NamedTuple):
    """A pod, or the workload that owns it."""

    kind: str
    namespace: str
    name: str

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    def __str__(self) -> str:
        return f"{self.kind.lower() if self.kind == POD else self.kind} {self.title}"

    def owns(self, pod: StoredPod) -> bool:
        """Returns whether the workload created the pod; a Deployment does so through a ReplicaSet that it names."""
        owner = pod.meta.controller
        if owner is None or pod.meta.namespace != self.namespace:
            return False
        if self.kind == "Deployment":
            through = f"{self.name}-{pod.labels.get(names.TEMPLATE_HASH)}"
            return (owner.kind, owner.name) == ("ReplicaSet", through)
        return (owner.kind, owner.name) == (self.kind, self.name)


def read_target(written: str, asked_namespace: str | None, default_namespace: str) -> PodTarget:
    """Reads NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME; a first part that is a kind is never a namespace.

    Raises:
        UnusableInputError: it is none of them, or names another namespace than the option.
    """
    *before, name = written.split("/")
    kind = _KINDS.get(before[0].lower().partition(".")[0]) if before else None
    spaces = before[1:] if kind else before
    if not name or "" in spaces or len(spaces) > 1:
        raise UnusableInputError(
            f'got "{written}"; write NAME, NAMESPACE/NAME or KIND/NAME, such as train, team-a/train or deploy/train;'
            f" KIND is one of {', '.join(words[0] for words in _WORDS.values())}"
        )
    if asked_namespace and spaces and spaces[0] != asked_namespace:
        raise UnusableInputError(
            f'got "{written}" and the namespace {asked_namespace}; name one namespace, or write KIND/NAME with a KIND'
            f" of {', '.join(words[0] for words in _WORDS.values())}"
        )
    return PodTarget(kind or POD, asked_namespace or next(iter(spaces), default_namespace), name)


def by_urgency(pods: Iterable[P]) -> list[P]:
    """Returns the pods that still matter: those that wait first, the oldest of them first."""
    living = (pod for pod in pods if not pod.is_over and pod.meta.deletion_timestamp is None)
    return sorted(living, key=lambda pod: (bool(pod.node), pod.meta.creation_timestamp or "", pod.meta.title))

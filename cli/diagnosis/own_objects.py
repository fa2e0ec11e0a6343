"""Halfcard's own pods and workloads as plain data."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from halfcard import names

PROCESSES: Final = frozenset(
    {names.ADMISSION_SERVICE, names.EXTENDER_SERVICE, names.QUOTA_SERVICE, names.CERTS_SERVICE, names.AGENT}
)
"""The service accounts of Halfcard's processes, by which their pods and workloads are recognised."""


class ContainerState(NamedTuple):
    """Why a container does not run.

    Attributes:
        waits: the reason of kubelet, such as `ErrImagePull`; empty while it runs.
        message: what kubelet adds to it.
        exit_code: of its last run; None if it has never ended.
        ended: the reason why its last run ended, such as `OOMKilled`.
        last_line: the last line of its log.
    """

    image: str = ""
    waits: str = ""
    message: str = ""
    restarts: int = 0
    exit_code: int | None = None
    ended: str = ""
    last_line: str = ""


class OwnPod(NamedTuple):
    """A pod of Halfcard's own namespace.

    Attributes:
        since: when it became ready or unready.
        unscheduled: why the scheduler finds no node for it; empty if it does.
        settings: the hash in its annotation of the settings that it was created with; empty without one.
    """

    name: str
    account: str
    node: str
    is_ready: bool
    since: datetime
    started: datetime
    container: ContainerState = ContainerState()
    unscheduled: str = ""
    settings: str = ""

    @property
    def subject(self) -> str:
        """Returns what a finding about this pod is about: one of a node only concerns that node."""
        return f"{self.account}/{self.node}" if self.account == names.AGENT else self.account


class TaintToleration(NamedTuple):
    """A toleration; an empty key or effect tolerates all of them."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        has_value = self.operator == "Exists" or self.value == taint.value
        return self.key in ("", taint.key) and self.effect in ("", taint.effect) and has_value


class Taint(NamedTuple):
    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


class WorkloadSnapshot(NamedTuple):
    """A Deployment or a DaemonSet by its template; Halfcard's own are recognised by their service account.

    Attributes:
        is_off: whether it is scaled to zero.
        lacks: how many pods it has not created.
        refusal: why the API server refused its pods.
        selector: the labels that a node needs.
    """

    kind: str
    namespace: str
    name: str
    account: str
    images: tuple[str, ...]
    config_maps: tuple[str, ...]
    is_off: bool = False
    lacks: int = 0
    refusal: str = ""
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[TaintToleration, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def is_ours(self) -> bool:
        return self.namespace == names.NAMESPACE and self.account in PROCESSES

    @property
    def is_our_scheduler(self) -> bool:
        return (self.namespace, self.account) == (names.NAMESPACE, names.SCHEDULER)


class MissingRight(NamedTuple):
    """A right that a process needs and does not have; `role` is the object that should grant it."""

    account: str
    verb: str
    resource: str
    namespace: str
    role: str
    file: str

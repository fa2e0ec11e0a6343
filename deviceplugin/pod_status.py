"""A pod with its status as kubelet reports it: why kubelet failed it, and which containers were started."""

from __future__ import annotations

from typing import Final

import msgspec

from halfcard.pod.stored_pod import Status, StoredPod

_RUNNING: Final = "Running"


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """`container_id` is empty before the first start, and begins with the runtime, as in containerd://5f0c."""

    name: str = ""
    container_id: str = msgspec.field(default="", name="containerID")


class NodePodStatus(Status, frozen=True, rename="camel", gc=False):
    reason: str = ""
    message: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class NodePod(StoredPod, frozen=True, rename="camel"):
    status: NodePodStatus | None = None

    @property
    def runs(self) -> bool:
        """Returns whether a container has been started, and none is only about to be for the first time."""
        return self.status is not None and self.status.phase == _RUNNING

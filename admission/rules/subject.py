"""The subject of the rules: one pod, its requests, and the context of the review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from halfcard.added_resources import AddedResources, added, is_added
from halfcard.claims import Claim
from halfcard.cluster_view import ClusterView
from halfcard.pod.requests import RequestingContainer, claims, read_pod
from halfcard.pod.spec import ContainerPath, Pod, ephemeral_places

from ..policy import AdmissionPolicy

_NO_POD: Final = Pod()


class ReviewStage(Enum):
    PROPOSED = "as written, before repairs"
    TEMPLATE = "repaired, but still without what only a pod gets"
    FINAL = "as it will be stored"


class ReviewContext(NamedTuple):
    """Everything that a verdict depends on, except the pod."""

    policy: AdmissionPolicy
    cluster: ClusterView
    namespace: str
    user: str
    stage: ReviewStage

    @property
    def is_trusted(self) -> bool:
        return self.user in self.policy.trusted_users


class Subject(NamedTuple):
    """A pod to be judged."""

    pod: Pod
    asked: tuple[RequestingContainer, ...]
    claims: tuple[Claim, ...]
    containers: tuple[tuple[ContainerPath, Claim | None], ...]
    """Every container with its claim; ephemeral containers, which cannot have one, too."""
    resources: frozenset[str]
    """All that its containers name: few, so that rules about names look here before they look for the place."""
    context: ReviewContext
    old: Pod | None

    @property
    def has_share(self) -> bool:
        return any(claim.is_share for claim in self.claims)

    def added(self) -> Iterator[AddedResources]:
        """Yields the added resources of each container."""
        policy = self.context.policy
        if not policy.slotted and policy.derived is None and not any(map(is_added, self.resources)):
            return iter(())
        return added(self.pod, self.asked, policy.slotted, policy.derived)

    def metadata(self) -> Iterator[tuple[str, Mapping[str, str], Mapping[str, str]]]:
        """Yields annotations and labels: the field, what it has now, and what it had before."""
        old = self.old or _NO_POD
        yield "metadata.annotations", self.pod.annotations, old.annotations
        yield "metadata.labels", self.pod.labels, old.labels


def subject(pod: Pod, context: ReviewContext, old: Pod | None = None) -> Subject:
    asked = read_pod(pod, context.policy.dialects)
    able = [(place, request.claim) for place, request in asked]
    unable = [(place, None) for place in ephemeral_places(pod)]
    containers = (*able, *unable)
    resources = [side for place, _ in containers for side in (place.container.limits, place.container.requests)]
    return Subject(pod, asked, claims(asked), containers, frozenset().union(*resources), context, old)

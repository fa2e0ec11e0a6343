"""Checks that the workloads of Halfcard's processes have their pods, of one version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from halfcard import names
from halfcard.problems import printable

from ..causes import ELSEWHERE
from ..finding import BROKEN, WARNING, Check, FoundFault
from ..own_objects import WorkloadSnapshot
from ..presence import INSTALL
from ..snapshot import Snapshot

_WORDS_CHARS: Final = 240
_PRIVILEGED: Final = (
    f"kubectl label namespace {names.NAMESPACE} pod-security.kubernetes.io/enforce=privileged --overwrite"
)


class Remedy(NamedTuple):
    """What to do about a refusal that contains `sign`."""

    sign: str
    fix: str
    command: str = ""


_REMEDIES: Final = (
    Remedy(
        "exceeded quota",
        "raise the ResourceQuota that it names, or delete it",
        f"kubectl -n {names.NAMESPACE} get resourcequotas",
    ),
    Remedy(
        "violates PodSecurity",
        "allow it: the agent needs folders of its node, so its namespace must be privileged",
        _PRIVILEGED,
    ),
    Remedy("serviceaccount", "create the ServiceAccount again", INSTALL),
    Remedy(
        "PriorityClass",
        "create the PriorityClass, or name another one in the chart's value `priorityClassName`",
        "kubectl get priorityclasses",
    ),
    Remedy(
        "RuntimeClass",
        "create the RuntimeClass, or name another one in the chart's value `agent.runtimeClassName`",
        "kubectl get runtimeclasses",
    ),
    Remedy("failed calling webhook", "correct the webhook that it names, or exempt this namespace from it"),
)


def _of_the_chart(snapshot: Snapshot) -> Iterator[WorkloadSnapshot]:
    """Yields those of Halfcard's processes, and its kube-scheduler."""
    return (each for each in snapshot.workloads if each.is_ours or each.is_our_scheduler)


def _off(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks that every process runs; the quota service is needed only where there are quotas."""
    for each in _of_the_chart(snapshot):
        is_needed = each.account != names.QUOTA_SERVICE or bool(snapshot.budgets)
        if each.is_off and is_needed and not snapshot.runs_in_place_of(each.name):
            command = f"kubectl -n {each.namespace} scale {each.kind.lower()} {each.name} --replicas=2"
            yield FoundFault(str(each), "it is scaled to zero", "scale it up again", command, each.account)


def _without_pods(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in _of_the_chart(snapshot):
        if each.lacks:
            said = printable(each.refusal, _WORDS_CHARS)
            got = (
                f"{each.lacks} of its pods {'is' if each.lacks == 1 else 'are'} not created{': ' if said else ''}{said}"
            )
            remedy = _remedy(each)
            yield FoundFault(str(each), got, remedy.fix, remedy.command, each.account)


def _remedy(each: WorkloadSnapshot) -> Remedy:
    described = f"kubectl -n {each.namespace} describe {each.kind.lower()},replicasets {each.name}"
    other = Remedy("", "its events say why", described)
    return next((remedy for remedy in _REMEDIES if remedy.sign.lower() in each.refusal.lower()), other)


def _mixed(snapshot: Snapshot) -> Iterator[FoundFault]:
    images = {image: str(each) for each in snapshot.workloads if each.is_ours for image in each.images}
    if len(images) > 1:
        got = "; ".join(f"{where} runs {image}" for image, where in images.items())
        fix = "upgrade all of them to one version"
        yield FoundFault(f"workloads in {names.NAMESPACE}", printable(got, _WORDS_CHARS), fix, INSTALL)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "scaled-to-zero",
        BROKEN,
        "no Deployment of Halfcard is scaled to zero",
        "Otherwise its task is not done: pods are not checked, not placed, not counted; or certificates are not renewed"
        " and webhooks not repaired. The quota service is needed only where there are quotas.",
        _off,
    ),
    Check(
        "pods-not-created",
        BROKEN,
        "the API server accepts the pods of Halfcard's workloads",
        "A ResourceQuota, a Pod Security standard or another webhook may refuse them.",
        _without_pods,
        unless=ELSEWHERE,
    ),
    Check(
        "versions-differ",
        WARNING,
        "all processes run one image",
        "Processes of two versions may read each other's records differently.",
        _mixed,
    ),
)

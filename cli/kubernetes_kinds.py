"""Tells apart kinds that Kubernetes has, misspelled ones, and custom ones of which Halfcard knows nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from admission.wire import ObjectKind
from halfcard import names
from halfcard.pod.holders import kind_key
from halfcard.problems import UNREADABLE, Problem, printable

_OWN: Final = names.QUOTA_API.split("/")[2]
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        {
            *("Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "LimitRange", "List", "Namespace"),
            *("Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "Policy"),
            *("ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount"),
        }
    ),
    "apps": frozenset({"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}),
    "batch": frozenset({"CronJob", "Job"}),
    _OWN: frozenset({names.GPU_QUOTA, names.CLUSTER_GPU_QUOTA, names.GPU_QUOTA_USAGE}),
}
"""All kinds of these groups; Policy is the configuration of kube-schedulers before 1.23."""

_EVERYWHERE: Final = sorted({kind for kinds in _KINDS.values() for kind in kinds})
_WITHOUT_PODS: Final = frozenset({"autoscaling", "policy", "extensions", "config.openshift.io"})


def misspelled(kind: ObjectKind) -> Problem | None:
    """Returns the problem of a kind that its group does not have; only of groups whose kinds are all known."""
    if kind.group not in _KINDS or kind.kind in _EVERYWHERE:
        return None
    close = get_close_matches(kind.kind, _EVERYWHERE, n=1)
    return UNREADABLE.broken("kind", kind.kind, f"write {close[0]}" if close else "correct kind: or apiVersion:")


def why_not_judged(kind: ObjectKind, known: Iterable[str]) -> str | None:
    """Returns a sentence for a custom kind that is not known; Kubernetes' own kinds without pods need no judgement."""
    key = kind_key(kind.group, kind.kind)
    if kind.group in _KINDS or kind.group in _WITHOUT_PODS or kind.group.endswith(".k8s.io") or key in known:
        return None
    close = get_close_matches(key, known, n=1, cutoff=0.8)
    advice = f"Did you mean {close[0]}? If not, name" if close else "Name"
    return (
        f"Halfcard does not know where {printable(key, 120)} has pod templates. {advice} their paths in the setting"
        " pod_templates, or [] if it has none. Its pods are judged when they are created"
    )

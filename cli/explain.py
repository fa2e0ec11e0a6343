"""`halfcard explain`: why a pod is on its node, or what keeps it from each node and card."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from extender.explain.explanation import Explanation, explain, explain_without_nodes
from extender.explain.scheduling import NO_TRACES, Scheduling, explain_scheduling, reported
from extender.explain.summary import summarize
from extender.quota_limits import UNLIMITED, BudgetUsage, QuotaLimits
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED, UnusableInputError
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.pod.reported_pod import ReportedPod
from kube.api.list_watch import ListForbiddenError

from .inputs.cluster_state import ClusterState, NoClusterError, ask, default_namespace, read_cluster, read_namespace
from .inputs.cluster_state import add_arguments as add_source
from .inputs.namespace_choice import add_namespace_arguments
from .inputs.pod_events import halfcards_events
from .inputs.pod_target import POD, PodTarget, by_urgency, read_target
from .inputs.scheduler_traces import SchedulerSigns, read_scheduler_signs
from .inputs.workload_report import WorkloadReport, read_workload
from .inspect import warn
from .output.explanation_text import print_explanation, print_summaries
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Screen
from .quota_commands.gpu_quotas import concerning
from .reports import planned_report

_HELP: Final = (
    "the pod, as NAME, NAMESPACE/NAME or pod/NAME; or its workload, such as deploy/NAME, job/NAME or sts/NAME;"
    " default: all pending pods that request cards"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pod", nargs="?", metavar="[KIND/]NAME", help=_HELP)
    parser.add_argument(
        "-f",
        "--file",
        metavar="FILE",
        help="instead: the pods of manifests that do not exist yet; - for standard input",
    )
    add_namespace_arguments(parser, "default: the namespace of the context")
    add_source(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.file is not None:
        return _explain_planned(arguments)
    if arguments.pod is None:
        return _list_pending(arguments)
    if arguments.all_namespaces:
        raise UnusableInputError(f"got {arguments.pod} and -A; name its namespace with -n, or leave out one of them")
    target = read_target(arguments.pod, arguments.namespace, default_namespace(arguments))
    cluster = _read(arguments, target.namespace)
    if target.kind == POD:
        stored = cluster.pods.get(target.title)
        if stored is None:
            raise NoClusterError(f"{target} does not exist; check its namespace and its name")
        return _answer(arguments, cluster, stored, None)
    pods = by_urgency(pod for pod in cluster.pods.values() if target.owns(pod))
    return _answer(arguments, cluster, next(iter(pods), None), _workload(arguments, target, pods))


def _answer(
    arguments: argparse.Namespace, cluster: ClusterState, pod: ReportedPod | None, owner: WorkloadReport | None
) -> int:
    found = None if pod is None else _explained(arguments, cluster, pod)
    if arguments.output != TEXT:
        print_document(arguments.output, _document(found, owner))
    else:
        _print(Screen.on(sys.stdout), cluster, found, owner)
    is_held_back = (found is not None and found.is_held_back) or (owner is not None and owner.is_short)
    return EXIT_REFUSED if is_held_back else EXIT_OK


def _document(found: Explanation | None, owner: WorkloadReport | None) -> Mapping[str, Any]:
    explained = {} if found is None else msgspec.to_builtins(found)
    return explained if owner is None else {"workload": msgspec.to_builtins(owner), **explained}


def _print(screen: Screen, cluster: ClusterState, found: Explanation | None, owner: WorkloadReport | None) -> None:
    if owner is not None:
        screen.wrapped(str(owner), indent="", hanging="  ", colour=Colour.BOLD)
        if owner.trouble:
            screen.wrapped(f"Its controller says: {owner.trouble}", indent="", hanging="  ", colour=Colour.YELLOW)
    if found is not None:
        warn([doubt for doubt in cluster.doubts() if _concerns(doubt, found)])
        print_explanation(screen, found)


def _concerns(doubt: str, found: Explanation) -> bool:
    """Selects the inconsistencies of a pod: its own trouble is reported as such; hidden nodes matter to every
    pending pod.
    """
    if found.whereabouts is not None:
        return f" on node {found.whereabouts.node}: " in doubt
    return " is left out: " in doubt and doubt.startswith("node ")


def _explain_planned(arguments: argparse.Namespace) -> int:
    if arguments.pod is not None or arguments.all_namespaces:
        raise UnusableInputError("got -f with a pod or -A; the pods are those of the file, in the namespace of -n")
    cluster = _read(arguments, arguments.namespace or default_namespace(arguments))
    return planned_report.run(arguments, cluster, lambda pod: _placed(arguments, cluster, pod))


# --- all pending pods ------------------------------------------------------------------------------------------------


def _list_pending(arguments: argparse.Namespace) -> int:
    namespace = None if arguments.all_namespaces else arguments.namespace or default_namespace(arguments)
    cluster = read_cluster(arguments) if namespace is None else _read(arguments, namespace)
    pods = [pod for pod in by_urgency(cluster.pods.values()) if namespace in (None, pod.meta.namespace)]
    found = [each for pod in pods if not pod.node and (each := summarize(pod, cluster.state, cluster.schedulers))]
    if arguments.output != TEXT:
        print_document(arguments.output, {"pending": msgspec.to_builtins(found)})
    else:
        print_summaries(Screen.on(sys.stdout), found)
    return EXIT_REFUSED if found else EXIT_OK


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(arguments: argparse.Namespace, namespace: str) -> ClusterState:
    """Reads the cluster, or else what members of a namespace may read: its pods."""
    try:
        return read_cluster(arguments)
    except ListForbiddenError:
        return read_namespace(arguments, namespace)


def _workload(arguments: argparse.Namespace, target: PodTarget, pods: Sequence[ReportedPod]) -> WorkloadReport:
    pending = sum(not pod.node for pod in pods)
    if arguments.state is not None:
        if not pods:
            raise NoClusterError(f"no pod of {target} exists there; check its namespace and its name")
        return WorkloadReport(target.kind, target.title, len(pods), pending)
    return ask(arguments, lambda calls: read_workload(calls, target, len(pods), pending))


def _explained(arguments: argparse.Namespace, cluster: ClusterState, stored: ReportedPod) -> Explanation:
    pod = read_facts(stored, cluster.state.dialects)
    scheduling = None if pod.node or pod.is_over else _scheduling(arguments, cluster, stored, pod)
    said = () if arguments.state is not None else ask(arguments, lambda calls: halfcards_events(calls, stored))
    return replace(_placed(arguments, cluster, pod), gates=stored.gates, scheduling=scheduling, events=said)


def _placed(arguments: argparse.Namespace, cluster: ClusterState, pod: PodFacts) -> Explanation:
    if not cluster.has_nodes:
        return explain_without_nodes(pod)
    policy = cluster.policy_of(pod.demand.wanted.policy)
    return explain(cluster.state, pod, policy, _limits(arguments, pod))


def _scheduling(arguments: argparse.Namespace, cluster: ClusterState, stored: ReportedPod, pod: PodFacts) -> Scheduling:
    signs = SchedulerSigns(reported(stored), NO_TRACES)
    if signs.report is None and not stored.gates and arguments.state is None:
        others = [each for each in cluster.pods.values() if each.node and each.scheduler == stored.scheduler]
        signs = ask(arguments, lambda calls: read_scheduler_signs(calls, stored, len(others)))
    return explain_scheduling(stored, cluster.schedulers if pod.asks_for_cards else (), *signs)


def _limits(arguments: argparse.Namespace, pod: PodFacts) -> QuotaLimits:
    """Reads the quota limits of a pending pod by model and pool; a dump has none."""
    if arguments.state is not None or pod.node:
        return UNLIMITED
    try:
        answers, _ = ask(arguments, lambda calls: concerning(calls, pod.namespace))
    except NoClusterError:
        return UNLIMITED  # the kinds are not installed, or the user may not read them
    return QuotaLimits(
        pod.demand.needs, [BudgetUsage(each.budget, each.ledger) for each in answers if each.budget.depends_on_location]
    )

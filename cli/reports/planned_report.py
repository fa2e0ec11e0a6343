"""`halfcard explain -f FILE`: whether pods that do not exist yet would be stored, wait for a quota, and find a card."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from extender.explain.explanation import Explanation
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.quota.budget_messages import exceeded
from halfcard.quota.charge import charge

from ..inputs.cluster_state import ClusterState, NoClusterError, ask
from ..output.explanation_text import print_explanation
from ..output.structured import TEXT, print_document
from ..output.terminal import Colour, Screen
from ..quota_commands.gpu_quotas import concerning
from ..reviewing.planned_pods import PlannedPod, planned_pods

Explain = Callable[[PodFacts], Explanation]


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """The prospects of a pod that does not exist yet; the names of all fields are JSON keys.

    Attributes:
        refusal: why it would not be stored; empty if it would.
        waits: the quotas that it would wait for, a sentence each.
        explanation: where it would fit; None if it would not be stored.
    """

    pod: str
    refusal: str = ""
    waits: tuple[str, ...] = ()
    explanation: Explanation | None = None

    @property
    def is_held_back(self) -> bool:
        return bool(self.refusal or self.waits) or (self.explanation is not None and self.explanation.is_held_back)


def run(arguments: argparse.Namespace, cluster: ClusterState, explain: Explain) -> int:
    answers = [_answer(arguments, cluster, each, explain) for each in planned_pods(arguments)]
    if arguments.output != TEXT:
        print_document(arguments.output, {"planned": msgspec.to_builtins(answers)})
    else:
        for each in answers:
            _print(Screen.on(sys.stdout), each)
    return EXIT_REFUSED if any(each.is_held_back for each in answers) else EXIT_OK


def _answer(
    arguments: argparse.Namespace, cluster: ClusterState, planned: PlannedPod, explain: Explain
) -> PlannedAnswer:
    if planned.pod is None:
        return PlannedAnswer(planned.title, planned.refusal)
    pod = read_facts(planned.pod, cluster.state.dialects)
    return PlannedAnswer(planned.title, "", _waits(arguments, pod), replace(explain(pod), pod=planned.title))


def _waits(arguments: argparse.Namespace, pod: PodFacts) -> tuple[str, ...]:
    """Returns the quotas with a queue that lack room now; a dump has no quotas."""
    if arguments.state is not None or not pod.demand.needs:
        return ()
    try:
        answers, _ = ask(arguments, lambda calls: concerning(calls, pod.namespace))
    except NoClusterError:
        return ()  # the kinds are not installed, or the user may not read them
    asked = charge(pod.demand.needs)
    lacking = [(each.budget.title, short) for each in answers if each.budget.gates and (short := each.shortages(asked))]
    return tuple(exceeded(title, short) for title, short in lacking)


def _print(screen: Screen, answer: PlannedAnswer) -> None:
    if answer.explanation is None:
        screen.line(screen.paint(f"Pod {answer.pod} would be refused:", Colour.BOLD))
        screen.wrapped(answer.refusal, indent="  ", hanging="  ", colour=Colour.RED)
        return
    for each in answer.waits:
        screen.wrapped(f"Pod {answer.pod} would wait: {each}", indent="", hanging="  ", colour=Colour.YELLOW)
    print_explanation(screen, answer.explanation, is_planned=True)

"""The rules about requests: amounts, core limit, card size, policy, node and scheduler.

A rule is a function from a subject to its problems. `AdmissionPolicy` decides their severity.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.added_resources import AddedResources, says, written
from halfcard.claims import MEMORY, WHOLE_CARD, Part
from halfcard.placing.demand import Demand, needs_of
from halfcard.placing.driver_demand import may_go_to_driver
from halfcard.pod.card_preferences import POLICIES, read_preferences
from halfcard.pod.requests import LIMITS, REQUESTS, RequestingContainer, ResourceRequest, shape_problems
from halfcard.pod.spec import CONTAINERS
from halfcard.problems import (
    CORE_LIMIT,
    CORE_LIMIT_IDLE,
    DERIVED,
    DEVICE_CLASS,
    MEMORY_TOO_LARGE,
    NODE_NAME,
    POLICY,
    QUOTA_GATE,
    RESOURCE_CLAIMS,
    SCHEDULER,
    SLOTS,
    TOO_MANY_CARDS,
    UNREPAIRED,
    WHOLE_MEMORY,
    Problem,
)

from .core_limit import limits_of, whole_number_in
from .subject import ReviewStage, Subject


def amounts_are_valid(subject: Subject) -> Iterator[Problem]:
    return shape_problems(subject.asked)


def units_are_repaired(subject: Subject) -> Iterator[Problem]:
    """Refuses what a repair would have changed, once repairs are over: the mutating webhook may have been down."""
    if subject.context.stage is ReviewStage.PROPOSED:
        return
    for each in subject.asked:
        if each.request.is_settled:
            continue
        for ask in each.request.asks:
            yield from _foreign_units(each, ask)
        if subject.context.stage is ReviewStage.FINAL:
            yield from _missing(each)


def _foreign_units(asked: RequestingContainer, ask: ResourceRequest) -> Iterator[Problem]:
    sides = [LIMITS] if ask.limits == ask.requests else [LIMITS, REQUESTS]
    for side in sides:
        if ask.needs_respelling(side):
            yield UNREPAIRED.broken(asked.field(side, ask.resource), ask.written(side), f"write {ask.amount}")


def _missing(asked: RequestingContainer) -> Iterator[Problem]:
    for ask in asked.request.implied:
        yield UNREPAIRED.broken(asked.field(LIMITS, ask.resource), None, f"add {ask.resource}: {ask.amount}")


def added_resources_are_due(subject: Subject) -> Iterator[Problem]:
    """Refuses added resources in other amounts, of pods and once repairs are over: other webhooks may change containers
    until then.

    A pod without its slots is refused, too: its container would start without a card, or with every card that the image
    asks for, and no error would be visible.
    """
    if subject.context.stage is not ReviewStage.FINAL:
        return
    for each in subject.added():
        yield from _not_as_due(each, _STORED if subject.old else _NEW)


_NEW: Final = "leave it to the webhook"
_STORED: Final = "leave the annotations of a stored pod as they were"


def _not_as_due(each: AddedResources, otherwise: str) -> Iterator[Problem]:
    asked, resource, due = each
    rule = SLOTS if resource == names.SLOT else DERIVED
    found = {side: text for side in (LIMITS, REQUESTS) if (text := written(asked, side, resource)) is not None}
    wrong = next((side for side, text in found.items() if not says(text, due)), None)
    if wrong is not None:
        fix = f"use {due}" if due else "remove it"
        yield rule.broken(asked.field(wrong, resource), found[wrong], f"{fix}, or {otherwise}")
    elif due and not found:
        yield rule.broken(asked.field(LIMITS, resource), None, f"add {resource}: {due}")


def devices_are_counted(subject: Subject) -> Iterator[Problem]:
    """Refuses device classes of GPUs as resources, and mentions claims: a pod does not say their class.

    Kubernetes forbids resources in ephemeral containers.
    """
    classes = subject.context.policy.device_classes
    devices = {each for each in subject.resources if each.removeprefix(names.DEVICE_CLASS_PREFIX) in classes}
    for place, _ in subject.asked if devices else ():
        for side, amounts in ((LIMITS, place.container.limits), (REQUESTS, place.container.requests)):
            for resource, amount in amounts.items():
                if resource in devices:
                    fix = "ask for a share or for cards in other resources"
                    yield DEVICE_CLASS.broken(f'{place.where}.resources.{side}["{resource}"]', amount, fix)
    spec = subject.pod.spec
    for number, claim in enumerate((spec and spec.resource_claims) or ()):
        fix = "ask for GPU in resources"
        yield RESOURCE_CLAIMS.broken(f"spec.resourceClaims[{number}]", claim.name, fix)


def memory_fits_a_card(subject: Subject) -> Iterator[Problem]:
    cluster = subject.context.cluster
    for each in subject.asked:
        claim = each.claim
        if claim is None or claim.memory_mib is None or not each.request.is_read:
            continue
        rule, most = (
            (MEMORY_TOO_LARGE, cluster.largest_card_mib)
            if claim.is_share
            else (WHOLE_MEMORY, cluster.smallest_card_mib)
        )
        if most is not None and claim.memory_mib > most:
            where, got = f"{each.place.where}.resources", f"{claim.memory_mib} MiB a card"
            yield rule.broken(where, got, f"use at most {most} MiB a card{_in_units(each, most)}")


def _in_units(asked: RequestingContainer, card_mib: int) -> str:
    """Returns the amount in the unit that the container writes, where that is not MiB."""
    units = asked.request.dialect.units if asked.request.dialect is not None else {}
    used = [units[ask.resource] for ask in asked.request.asks if ask.resource in units]
    size = next((unit.size for unit in used if unit.counted == MEMORY), 1)
    return "" if size == 1 else f" ({card_mib // size} units of {size} MiB)"


def a_node_has_the_cards(subject: Subject) -> Iterator[Problem]:
    cluster = subject.context.cluster
    most = cluster.most_cards
    if most is not None and (wanted := _cards_of_a_node(subject)) > most:
        if cluster.driver_nodes and may_go_to_driver(_demand(subject)):
            return  # the driver alone knows how many devices its nodes have
        fix = f"use at most {most} in a pod, or it waits for a larger node"
        yield TOO_MANY_CARDS.broken("spec.containers", f"{wanted} cards", fix)


def _demand(subject: Subject) -> Demand:
    return Demand(needs_of(subject.asked)[1], read_preferences(subject.pod.annotations))


def _cards_of_a_node(subject: Subject) -> int:
    """Returns how many different cards the pod needs at once: init containers leave theirs to those that follow."""
    alone = [claim.cards for claim in subject.claims if claim.part is not Part.SLICE]
    apps = [each.claim for each in subject.asked if each.place.field == CONTAINERS]
    return max(sum([claim.cards for claim in apps if claim is not None and claim.exclusive]), *alone, 0)


def core_limit_is_valid(subject: Subject) -> Iterator[Problem]:
    for limit in limits_of(subject.pod, subject.asked):
        number = whole_number_in(limit.text)
        least, has_share = limit.least, limit.has_share
        if number is None or (has_share and not least <= number <= WHOLE_CARD):
            allowed = f"{least}-{WHOLE_CARD}" if least < WHOLE_CARD else WHOLE_CARD
            yield CORE_LIMIT.broken(limit.where, limit.text, f"use {allowed}, or remove it")
        elif not has_share and number not in limit.whole_cores:
            yield CORE_LIMIT_IDLE.broken(limit.where, limit.text, "remove it")


def policy_is_known(subject: Subject) -> Iterator[Problem]:
    policy = subject.pod.annotations.get(names.ASK_POLICY)
    if subject.claims and policy is not None and policy not in POLICIES:
        yield POLICY.broken(f'metadata.annotations["{names.ASK_POLICY}"]', policy, f"use {' or '.join(POLICIES)}")


def node_is_not_chosen(subject: Subject) -> Iterator[Problem]:
    spec = subject.pod.spec
    if subject.claims and spec is not None and spec.node_name:
        yield NODE_NAME.broken("spec.nodeName", spec.node_name, "use nodeSelector or affinity")


def scheduler_is_served(subject: Subject) -> Iterator[Problem]:
    spec, served = subject.pod.spec, subject.context.policy.schedulers
    if subject.claims and spec is not None and spec.scheduler_name and spec.scheduler_name not in served:
        yield SCHEDULER.broken("spec.schedulerName", spec.scheduler_name, f"use {' or '.join(sorted(served))}")


def gate_is_not_removed(subject: Subject) -> Iterator[Problem]:
    """Refuses an update that removes our gate; before, the mutating webhook adds it again."""
    if subject.context.stage is ReviewStage.FINAL and lacks_its_gate(subject):
        yield QUOTA_GATE.broken("spec.schedulingGates", f"{names.QUOTA_GATE} removed", "add it back")


def lacks_its_gate(subject: Subject) -> bool:
    """Returns whether an update removes our gate: users with update rights may remove gates, but ours ends with the
    reservation.
    """
    if subject.old is None or subject.context.user == names.QUOTA_SERVICE_ACCOUNT:
        return False
    return subject.old.waits_for_quota and not subject.pod.waits_for_quota

"""Refuses pods that no node may take, whatever is free."""

from __future__ import annotations

from halfcard.placing.pod_facts import PodFacts
from halfcard.pod.owned_annotations import forged
from halfcard.problems import OWNED


class Unplaceable(Exception):
    """A pod that cannot be placed on any node; the text is a sentence for its events."""


def check_no_record(facts: PodFacts) -> None:
    """Refuses a pod with annotations of a record: the Binding only adds to them, so they would look like ours."""
    if not facts.uid:
        raise Unplaceable('metadata.uid: got ""; a pod of the API server has one; send the pod as it is stored')
    for key in forged(facts.owned):
        where = f'metadata.annotations["{key}"]'
        raise Unplaceable(str(OWNED.broken(where, facts.owned[key], "delete the pod and create it without")))

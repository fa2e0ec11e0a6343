"""Writes cards and shares into pods as resources, so that a plain ResourceQuota counts them.

With the setting, the mutating call adds them to every container that requests a GPU. No node publishes them, and
schedulers are configured to ignore them. Invariant: Kubernetes counts of them what a GpuQuota counts of the same pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from .. import names
from ..claims import CARDS, SHARES, Claim
from ..pod.card_preferences import CardPreferences, read_preferences
from ..pod.requests import RequestingContainer
from ..pod.spec import Pod
from .charge import of_claim

_NOTHING: Final[Mapping[str, int]] = {}
_RESOURCES: Final = {CARDS: names.DERIVED_CARDS, SHARES: names.DERIVED_SHARES}


class DerivedSettings(NamedTuple):
    """Which resources are added.

    Attributes:
        models: substrings of model names; pods that require such a model are counted for it too.
    """

    models: tuple[str, ...] = ()

    @property
    def resources(self) -> frozenset[str]:
        """All resources that a quota may count."""
        general = _RESOURCES.values()
        return frozenset([*general, *(of_model(each, model) for each in general for model in self.models)])

    def model_of(self, wanted: CardPreferences) -> str | None:
        """Returns the longest model name that covers every model that the pod accepts; None where there is none."""
        pinned = [each for each in self.models if wanted.models and all(_means(word, each) for word in wanted.models)]
        return max(pinned, key=len, default=None)


def of_model(resource: str, model: str) -> str:
    return f"{resource}.{model}"


def _means(word: str, model: str) -> bool:
    return model.lower() in word.lower().replace(" ", "-")


def derived_due(
    pod: Pod, asked: tuple[RequestingContainer, ...], derived: DerivedSettings | None
) -> list[Mapping[str, int]]:
    """Returns what each container has to request in addition."""
    if derived is None:
        return [_NOTHING] * len(asked)
    model = derived.model_of(read_preferences(pod.annotations))
    return [_NOTHING if each.claim is None else _due(each.claim, model) for each in asked]


def _due(claim: Claim, model: str | None) -> Mapping[str, int]:
    charged = of_claim(claim)
    due = {resource: charged[key] for key, resource in _RESOURCES.items() if charged[key]}
    return due if model is None else due | {of_model(resource, model): amount for resource, amount in due.items()}

"""Decides whether a chain of certificates is fine: for `halfcard certs status` and for `halfcard doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from cryptography import x509

from certs.certificate_checks import certificates, outside_validity
from certs.chain_state import ChainState, kind_of
from certs.chains import ObjectPath
from certs.objects import TLS_CRT, Object, distrusting, entry
from certs.steps import Keep, Refuse


class ObjectState(StrEnum):
    FINE = "fine"
    DUE = "due"
    LEFT_ALONE = "left alone"
    UNREADABLE = "unreadable"


class ReadChain(NamedTuple):
    """The objects of a chain; `refused` gives the reason why an object could not be read."""

    state: ChainState
    refused: Mapping[ObjectPath, str]

    @property
    def is_in_use(self) -> bool:
        """Returns whether any of its Secrets exists, or may exist."""
        secrets = (self.state.chain.authority, *self.state.chain.leaves)
        return any(place in self.refused or self.state.items[place] is not None for place in secrets)

    def ended(self, now: datetime) -> str:
        """Names a certificate that is not valid now, and since when; empty if there is none."""
        leaves = {place: _leaf(self.state.items[place]) for place in self.state.chain.leaves}
        flaws = (outside_validity(place.name, each, now) for place, found in leaves.items() for each in found)
        return next(filter(None, flaws), "")

    def distrust(self) -> str:
        """Names the webhooks that trust another issuer's CA instead of the one in use; empty if there are none."""
        leaves = [each for place in self.state.chain.leaves for each in _leaf(self.state.items[place])]
        found = {place: distrusting(self.state.items[place], leaves) for place in self.state.chain.configurations}
        return "; ".join(f"{kind_of(place)}: {', '.join(webhooks)}" for place, webhooks in found.items() if webhooks)


def _leaf(secret: Object | None) -> list[x509.Certificate]:
    return certificates(entry(secret, TLS_CRT))[:1]


@dataclass(frozen=True, slots=True)
class ChainHealth:
    """`needs_action`: the next step is an administrator's, not the certificate controller's."""

    chain: str
    state: ObjectState
    reason: str
    needs_action: bool = False


def verdict(found: ReadChain, now: datetime) -> ChainHealth:
    title = found.state.chain.title
    if whys := [found.refused[place] for place in found.state.items if place in found.refused]:
        return ChainHealth(title, ObjectState.UNREADABLE, whys[0])
    step = found.state.plan(now)
    if isinstance(step, Refuse) and (ended := found.ended(now)):
        return ChainHealth(
            title, ObjectState.DUE, f"{step.reason}, and {ended}: its issuer renews it", needs_action=True
        )
    if isinstance(step, Refuse):
        return ChainHealth(title, ObjectState.LEFT_ALONE, step.reason)
    if isinstance(step, Keep) and (distrust := found.distrust()):
        reason = f"these webhooks trust another issuer's CA, which did not sign the certificate: {distrust}"
        return ChainHealth(title, ObjectState.DUE, reason, needs_action=True)
    if isinstance(step, Keep):
        state = ObjectState.DUE if step.needs_action else ObjectState.FINE
        return ChainHealth(title, state, step.reason, step.needs_action)
    return ChainHealth(title, ObjectState.DUE, f"{step.reason}; the controller checks every half minute: does it run?")

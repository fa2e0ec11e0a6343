"""Checks that nothing is due for a chain of certificates: what `halfcard certs status` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from certs.chain_health import ChainHealth, ObjectState, verdict
from halfcard import names

from ..causes import NOT_KEPT
from ..finding import BROKEN, WARNING, Check, FoundFault
from ..snapshot import Snapshot
from ..webhooks.registered_webhooks import KEEPERS, has_controller

_LOG: Final = f"kubectl -n {names.NAMESPACE} logs deployment/{names.CERTS_SERVICE}"
_STATUS: Final = "halfcard certs status"
_PROCESSES: Final = {"admission": names.ADMISSION_SERVICE, "extender": names.EXTENDER_SERVICE}


def _due(snapshot: Snapshot) -> Iterator[ChainHealth]:
    """Yields the chains that need something; one without any Secret is not in use, unless a controller makes them."""
    for each in snapshot.chains:
        found = verdict(each, snapshot.now)
        if found.state is ObjectState.DUE and (each.is_in_use or has_controller(snapshot)):
            yield found


def _renewals(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in _due(snapshot):
        if not each.needs_action:
            fix = "the certificate controller does it within a minute; if it does not, its log says why"
            yield FoundFault(f"certificates: {each.chain}", each.reason, fix, _LOG, _PROCESSES[each.chain], KEEPERS)


def _actions(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in _due(snapshot):
        if each.needs_action:
            fix = "docs/certificates.md says how: the certificate controller does not do it"
            yield FoundFault(f"certificates: {each.chain}", each.reason, fix, _STATUS, _PROCESSES[each.chain])


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "certificates-due",
        BROKEN,
        "the certificate controller has nothing left to do",
        "A Secret or a caBundle is missing, wrong or late. `halfcard certs status` says the same. Certificates of"
        " another issuer are judged by the checks that follow.",
        _renewals,
        unless=NOT_KEPT,
    ),
    Check(
        "certificates-need-you",
        WARNING,
        "no certificate waits for an administrator",
        "Halfcard does not do it: schedulers would lose their connection, or another issuer's CA its trust.",
        _actions,
        unless=(
            "ca-bundle-empty",
            "ca-bundle-garbage",
            "ca-bundle-expired",
            "certificate-mismatch",
            "certificate-expired",
        ),
    ),
)

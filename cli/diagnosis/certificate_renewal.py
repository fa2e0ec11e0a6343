"""Checks that a process renews the certificates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from certs.objects import injector
from halfcard import names

from .finding import BROKEN, Check, FoundFault
from .snapshot import Snapshot
from .webhook_registration import registered, title

_SCALE: Final = f"kubectl -n {names.NAMESPACE} scale deployment {names.CERTS_SERVICE} --replicas=2"
_SEE: Final = f"kubectl -n {names.NAMESPACE} describe deployments,replicasets"


def _unkept(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks that the controller exists; its unready pods are another check's finding."""
    if _by_cert_manager(snapshot):
        return
    has_pods = any(pod.account == names.CERTS_SERVICE for pod in snapshot.own_pods)
    for each in snapshot.workloads:
        if each.namespace != names.NAMESPACE or each.account != names.CERTS_SERVICE:
            continue
        if each.is_off:
            yield FoundFault(str(each), "it is scaled to zero", "scale it up again", _SCALE)
        elif not has_pods:
            yield FoundFault(str(each), "it has no pod", "its events say why none is created", _SEE)


def _by_cert_manager(snapshot: Snapshot) -> bool:
    ours = {each.configuration for each in registered(snapshot).values()}
    return any(injector(item) for item in snapshot.webhooks or () if title(item) in ours)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "certificates-unkept",
        BROKEN,
        "the certificate controller or cert-manager runs",
        "Otherwise certificates expire in some weeks, and GPU pods are refused from then on.",
        _unkept,
    ),
)

"""Halfcard beside a cluster of the user's own: its webhooks are called on this machine, by URL.

The laws: no webhook may hold up that cluster (all of them fail open, and soon); its scheduler is left alone, and gets
no extender; what is put there carries a mark of its own, and exactly what carries it is removed again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import yaml

from admission.policy import AdmissionPolicy
from admission.registration.webhook_configurations import configurations
from deploy.chart.made import CHART
from halfcard import names

from ..control_plane.pki import ClusterAuthority
from ..errors import CannotStartError, NotReadyError
from ..objects import Object, probe_pod
from ..waiting import wait_until
from . import background
from .background import Say
from .context_access import ContextInstallation, ContextOptions, agree, copy_access, kubectl
from .state import DevFolder

_RBAC: Final = [CHART / "rbac" / name for name in ("admission.yaml", "quota-map.yaml")]
_MARK: Final = f"{names.OWN_PREFIX}dev"
_CONFIGURATIONS: Final = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
_KINDS: Final = f"{_CONFIGURATIONS},clusterrolebindings,clusterroles,namespaces"
_KINDS_OF_SYSTEM: Final = "rolebindings,roles"
_WEBHOOK_TIMEOUT_S: Final = 2  # a machine that was switched off answers nothing: its cluster waits so long
_ASKED_WITHIN_S: Final = 20.0
_NOT_REPAIRED: Final = "must be an integer"
"""What Kubernetes itself says of 0.3 of a card: our webhook was not asked."""


def up(folder: DevFolder, lock: int, wanted: ContextOptions, say: Say) -> None:
    """Whoever calls it undoes what it has made where it fails."""
    say(
        f'Halfcard for the cluster of context "{wanted.context}", for evaluation: it runs on this machine. All its '
        "webhooks have failurePolicy Ignore: when it is gone, that cluster goes on as if Halfcard had never been "
        "there. Its scheduler is left alone: there is no extender, and cards are chosen as they are today."
    )
    server = copy_access(folder, wanted.context)
    loan = agree(folder, wanted, server)
    say(f"  creating the namespace {names.NAMESPACE} and the RBAC of the webhook")
    _create(folder, loan, [_namespace()])  # alone: if it is somebody else's, nothing is written into it
    _create(folder, loan, [each for file in _RBAC for each in yaml.safe_load_all(file.read_text())])
    process = background.start(folder, lock, "devcluster.dev.context_process", say)
    try:
        say(f"  registering the webhooks at {loan.url}")
        _create(folder, loan, registration(ClusterAuthority.bundle_of(folder.authority), loan.url))
        _verify(folder, loan, server)
    except BaseException:
        background.end(process)
        raise


def _namespace() -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.NAMESPACE}}


def registration(authority: str, url: str) -> list[Object]:
    """As shipped, but by URL, and none of them may refuse for want of an answer."""
    policy = AdmissionPolicy()
    objects = configurations(policy.dialects, exempt=policy.exempt_namespaces, ca_bundle=authority)
    for webhook in (each for item in objects for each in item["webhooks"]):
        client: dict[str, Any] = webhook["clientConfig"]
        client["url"] = f"{url}{client.pop('service')['path']}"
        webhook |= {"failurePolicy": "Ignore", "timeoutSeconds": _WEBHOOK_TIMEOUT_S}
    return objects


def _create(folder: DevFolder, loan: ContextInstallation, objects: Sequence[Object]) -> None:
    """What is there already is somebody else's: it is not overwritten, and the others of the list are undone."""
    items = [{**each, "metadata": {**each["metadata"], "labels": {_MARK: loan.mark}}} for each in objects]
    kubectl(folder, "create", "-f-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _verify(folder: DevFolder, loan: ContextInstallation, server: str) -> None:
    why = ""

    def repaired() -> bool:
        nonlocal why
        try:
            probe = ("create", "--dry-run=server", "--namespace=default", "--output=json", "-f-")
            stored = json.loads(kubectl(folder, *probe, stdin=json.dumps(probe_pod("halfcard-probe"))))
        except CannotStartError as error:
            why = str(error)
            return False
        return bool(stored["spec"]["containers"][0]["resources"]["limits"][names.VCUDA_CORE] == "30")

    try:
        wait_until(repaired, what="the API server to ask Halfcard", seconds=_ASKED_WITHIN_S)
    except NotReadyError as error:
        reason = _unreachable(server, loan) if _NOT_REPAIRED in why else f"the probe pod was not let in: {why}"
        raise CannotStartError(f"{reason}\nNothing of Halfcard is left in the cluster.") from error


def _unreachable(server: str, loan: ContextInstallation) -> str:
    return (
        f"the API server {server} does not reach Halfcard at {loan.url}: name an address of this machine that it can "
        f"reach with --advertise HOST, and let it through the firewall here"
    )


def undo(folder: DevFolder) -> None:
    """Exactly what carries our mark.

    Raises:
        CannotStartError: the cluster did not let us; the folder still knows what is there.
    """
    if not folder.borrowed.exists():
        return
    loan = ContextInstallation.of(folder)
    try:
        ours = ("--selector", f"{_MARK}={loan.mark}", "--ignore-not-found", "--timeout=60s")
        kubectl(folder, "delete", _KINDS, *ours)
        kubectl(folder, "delete", _KINDS_OF_SYSTEM, f"--namespace={names.KUBE_SYSTEM}", *ours)
    except CannotStartError as error:
        raise CannotStartError(
            f'what Halfcard put into the cluster of context "{loan.context}" is still there (it fails open, so nothing '
            f"waits for it): run `halfcard dev down --dir {folder.path}` when the cluster answers. {error}"
        ) from error


def registered(folder: DevFolder) -> bool:
    """Whether both configurations are still in the cluster."""
    selector = f"{_MARK}={ContextInstallation.of(folder).mark}"
    try:
        found = kubectl(folder, "get", _CONFIGURATIONS, "--selector", selector, "--output=name", "--request-timeout=5s")
    except CannotStartError:
        return False
    return len(found.split()) == 2

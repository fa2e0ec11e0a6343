"""Runs Halfcard beside an existing cluster: its webhooks are called on this machine, by URL.

Laws: no webhook blocks that cluster (all fail open, within seconds). Its scheduler is not changed, and there is no
extender. Every object that is created there carries a mark, and exactly the objects with the mark are removed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import yaml

from admission.policy import AdmissionPolicy
from deploy.chart.made import CHART
from halfcard import names
from halfcard.caller_tokens import WITHOUT
from halfcard.webhook_configurations import configurations

from ..control_plane.pki import ClusterAuthority
from ..errors import CannotStartError, NotReadyError
from ..objects import Object, probe_pod
from ..waiting import wait_until
from . import background
from .background import Say
from .context_access import ContextInstallation, ContextOptions, agree, caller_token, copy_access, kubectl
from .state import DevFolder

_RBAC: Final = [CHART / "rbac" / name for name in ("admission.yaml", "quota-map.yaml")]
_MARK: Final = f"{names.OWN_PREFIX}dev"
_CONFIGURATIONS: Final = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
_KINDS: Final = f"{_CONFIGURATIONS},clusterrolebindings,clusterroles,namespaces"
_KINDS_OF_SYSTEM: Final = "rolebindings,roles"
_WEBHOOK_TIMEOUT_S: Final = 2  # how long that cluster waits while this machine is off
_ASKED_WITHIN_S: Final = 20.0
_NOT_REPAIRED: Final = "must be an integer"
"""Kubernetes' own refusal of 0.3 of a card, which means that our webhook was not called."""


def up(folder: DevFolder, lock: int, wanted: ContextOptions, say: Say) -> None:
    """Creates and registers everything; the caller undoes it if this raises."""
    say(
        f'Halfcard for the cluster of context "{wanted.context}", for evaluation: it runs on this machine. All its '
        "webhooks have failurePolicy Ignore: without this machine, that cluster works as if Halfcard had never been "
        "there. Its scheduler is not changed: there is no extender, and cards are chosen as they are today."
    )
    server = copy_access(folder, wanted.context)
    loan = agree(folder, wanted, server)
    say(f"  creating the namespace {names.NAMESPACE} and the RBAC of the webhook")
    _create(folder, loan, [_namespace()])  # alone: if it exists already, nothing is written into it
    _create(folder, loan, [each for file in _RBAC for each in yaml.safe_load_all(file.read_text())])
    process = background.start(folder, lock, "devcluster.dev.context_process", say)
    try:
        say(f"  registering the webhooks at {loan.url}")
        _create(
            folder, loan, registration(ClusterAuthority.bundle_of(folder.authority), loan.url, caller_token(folder))
        )
        _verify(folder, loan, server)
    except BaseException:
        background.end(process)
        raise


def _namespace() -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.NAMESPACE}}


def registration(authority: str, url: str, token: str = WITHOUT) -> list[Object]:
    """Returns the configurations as shipped, but by URL, and with failurePolicy Ignore."""
    policy = AdmissionPolicy()
    objects = configurations(
        policy.dialects,
        exempt=policy.exempt_namespaces,
        ca_bundle=authority,
        token=token,
        custom=policy.custom_kinds,
    )
    for webhook in (each for item in objects for each in item["webhooks"]):
        client: dict[str, Any] = webhook["clientConfig"]
        client["url"] = f"{url}{client.pop('service')['path']}"
        webhook |= {"failurePolicy": "Ignore", "timeoutSeconds": _WEBHOOK_TIMEOUT_S}
    return objects


def _create(folder: DevFolder, loan: ContextInstallation, objects: Sequence[Object]) -> None:
    """Creates objects with our mark. An existing object is never overwritten: the call fails, and what it created is
    undone.
    """
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
    """Removes exactly the objects with our mark.

    Raises:
        CannotStartError: the cluster refused; the folder still has the mark, so that `down` can be repeated.
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
    """Returns whether both configurations are still in the cluster."""
    selector = f"{_MARK}={ContextInstallation.of(folder).mark}"
    try:
        found = kubectl(folder, "get", _CONFIGURATIONS, "--selector", selector, "--output=name", "--request-timeout=5s")
    except CannotStartError:
        return False
    return len(found.split()) == 2

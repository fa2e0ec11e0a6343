"""The webhooks of Halfcard as they are registered, as they should be, and the way from one to the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from admission.policy_settings import policy_of
from halfcard import names
from halfcard.caller_tokens import split_path
from halfcard.webhook_configurations import configurations

from ..snapshot import Object, Snapshot

AGAIN: Final = (
    "register it again, with the CA of the installation's certificate, and with its settings if there are any"
)
_READ_WHY: Final = "the certificate controller repairs this within a minute; if it does not, its log says why"
_LOG: Final = f"kubectl -n {names.NAMESPACE} logs deployment/{names.CERTS_SERVICE}"
KEEPERS: Final = (names.CERTS_SERVICE,)
"""The process that repairs webhooks and renews certificates."""
REGISTRARS: Final = (names.CERTS_SERVICE, names.ADMISSION_SERVICE)
"""The controller registers the webhooks once a replica of the webhook is ready."""
SERVICE: Final = f"{names.NAMESPACE}/{names.ADMISSION_SERVICE}"


class Registered(NamedTuple):
    """One webhook, the object that contains it, and its number there."""

    configuration: str
    webhook: Object
    place: int

    @property
    def where(self) -> str:
        return f"{self.configuration}, webhook {self.webhook.get('name')}"

    @property
    def split_path(self) -> tuple[str, str]:
        """The caller token and the path behind it."""
        service = self.client.get("service")
        return split_path(str(service.get("path", "")) if service else urlsplit(str(self.client.get("url") or "")).path)

    @property
    def client(self) -> Mapping[str, Any]:
        return self.webhook.get("clientConfig") or {}


def registered(snapshot: Snapshot) -> dict[tuple[str, str], Registered]:
    """Returns Halfcard's webhooks by kind and name, whichever object contains them."""
    wanted = {(kind, webhook["name"]) for kind, _, webhook in expected(snapshot)}
    return {
        (item["kind"], webhook["name"]): Registered(title(item), webhook, place)
        for item in snapshot.webhooks or ()
        for place, webhook in enumerate(item.get("webhooks") or ())
        if (item["kind"], webhook.get("name")) in wanted
    }


class WebhookRepair(NamedTuple):
    fix: str
    command: str


def repair(snapshot: Snapshot) -> WebhookRepair:
    """Returns how an edited webhook is repaired: by the certificate controller where it runs, else by hand."""
    if has_controller(snapshot):
        return WebhookRepair(_READ_WHY, _LOG)
    return WebhookRepair(AGAIN, register(snapshot))


def has_controller(snapshot: Snapshot) -> bool:
    return any(each.is_ours and each.account == names.CERTS_SERVICE for each in snapshot.workloads)


def register(snapshot: Snapshot) -> str:
    """Returns the command that registers the webhooks; the certificate controller adds the CA where it runs."""
    return f"halfcard webhooks{'' if has_controller(snapshot) else ' --ca ca.crt'} | kubectl apply -f-"


def title(configuration: Object) -> str:
    return f"{configuration['kind']} {configuration['metadata']['name']}"


def expected(snapshot: Snapshot) -> Iterator[tuple[str, str, Object]]:
    policy = policy_of(snapshot.settings)
    for item in configurations(policy.dialects, exempt=policy.exempt_namespaces, custom=policy.custom_kinds):
        for webhook in item["webhooks"]:
            yield item["kind"], title(item), webhook


def pairs(snapshot: Snapshot) -> Iterator[tuple[Object, Registered]]:
    """Yields the wanted and the present webhook of each name."""
    there = registered(snapshot)
    for kind, _, webhook in expected(snapshot):
        if (kind, webhook["name"]) in there:
            yield webhook, there[kind, webhook["name"]]

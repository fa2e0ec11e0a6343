"""Checks that the webhook configurations are those of `halfcard webhooks`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from admission.policy_settings import policy_of
from halfcard import names
from halfcard.caller_tokens import is_accepted, read_tokens, split_path
from halfcard.webhook_configurations import configurations

from .finding import BROKEN, WARNING, Check, FoundFault
from .snapshot import Object, Snapshot

REGISTER: Final = "halfcard webhooks --ca ca.crt | kubectl apply -f-"
_AGAIN: Final = (
    "register it again, with the CA of the installation's certificate, and with its settings if there are any"
)
SERVICE: Final = f"{names.NAMESPACE}/{names.ADMISSION_SERVICE}"
_LOGS: Final = f"kubectl -n {names.NAMESPACE} logs deployment/{names.CERTS_SERVICE}"
_DEFAULTS: Final = {"objectSelector": {}, "matchPolicy": "Equivalent", "timeoutSeconds": 10, "failurePolicy": "Fail"}
_COMPARED: Final = (
    "failurePolicy",
    "namespaceSelector",
    "objectSelector",
    "matchConditions",
    "matchPolicy",
    "timeoutSeconds",
    "sideEffects",
    "reinvocationPolicy",
)


class Registered(NamedTuple):
    """One webhook, and the object that contains it."""

    configuration: str
    webhook: Object

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
    wanted = {(kind, webhook["name"]) for kind, _, webhook in _expected(snapshot)}
    return {
        (item["kind"], webhook["name"]): Registered(title(item), webhook)
        for item in snapshot.webhooks or ()
        for webhook in item.get("webhooks") or ()
        if (item["kind"], webhook.get("name")) in wanted
    }


def title(configuration: Object) -> str:
    return f"{configuration['kind']} {configuration['metadata']['name']}"


def _expected(snapshot: Snapshot) -> Iterator[tuple[str, str, Object]]:
    policy = policy_of(snapshot.settings)
    for item in configurations(policy.dialects, exempt=policy.exempt_namespaces, custom=policy.custom_kinds):
        for webhook in item["webhooks"]:
            yield item["kind"], title(item), webhook


def _pairs(snapshot: Snapshot) -> Iterator[tuple[Object, Registered]]:
    """Yields the wanted and the present webhook of each name."""
    there = registered(snapshot)
    for kind, _, webhook in _expected(snapshot):
        if (kind, webhook["name"]) in there:
            yield webhook, there[kind, webhook["name"]]


# --- registration ----------------------------------------------------------------------------------------------------


def _missing(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.webhooks is None:
        return
    there = registered(snapshot)
    by_object: dict[str, list[tuple[str, bool]]] = {}
    for kind, where, webhook in _expected(snapshot):
        by_object.setdefault(where, []).append((webhook["name"], (kind, webhook["name"]) in there))
    for where, webhooks in by_object.items():
        missing = [name for name, is_there in webhooks if not is_there]
        got = "no webhook of Halfcard's" if len(missing) == len(webhooks) else f"no webhook {', '.join(missing)}"
        if missing:
            yield FoundFault(where, got, _AGAIN, REGISTER)


def _elsewhere(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks the Service or address; an address instead of a Service is valid if it has the same path."""
    for wanted, found in _pairs(snapshot):
        service, url = found.client.get("service"), str(found.client.get("url") or "")
        expected = wanted["clientConfig"]["service"]
        if service is not None and {"port": 443, **service, "path": _path(found)} != expected:
            got = f"{service.get('namespace')}/{service.get('name')}{_path(found)}"
            yield FoundFault(found.where, got, f"let it call {SERVICE}{expected['path']}", REGISTER)
        elif service is None and _path(found) != expected["path"]:
            got = f"{urlsplit(url).netloc}{_path(found)}"
            yield FoundFault(found.where, got, f"let it call {SERVICE}{expected['path']}", REGISTER)


def _path(found: Registered) -> str:
    """Returns the path behind the caller token, which is never shown."""
    return found.split_path[1]


def _unproven(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks caller tokens where the Secret can be read; webhooks called by URL may have a file of their own."""
    accepted = read_tokens((snapshot.secrets.get(names.ADMISSION_CALLERS) or {}).get("tokens", b""))
    for found in registered(snapshot).values():
        if accepted and "service" in found.client and not is_accepted(found.split_path[0], accepted):
            got = "its path has a caller token that no replica accepts" if found.split_path[0] else "no caller token"
            yield FoundFault(found.where, got, "let the certificate controller write it: check that it runs", _LOGS)


def _blind(snapshot: Snapshot) -> Iterator[FoundFault]:
    for wanted, found in _pairs(snapshot):
        asked = list(found.webhook.get("rules") or ())
        lacking = [what for rule in wanted["rules"] for what in _asks(rule) if not _covered(what, asked)]
        if lacking:
            words = ", ".join(f"{operation} {resource}" for _, resource, operation in lacking)
            yield FoundFault(found.where, f"it is not called for {words}", _AGAIN, REGISTER)


def _asks(rule: Object) -> list[tuple[str, str, str]]:
    return [(rule["apiGroups"][0], what, operation) for what in rule["resources"] for operation in rule["operations"]]


def _covered(wanted: tuple[str, str, str], rules: list[Object]) -> bool:
    group, resource, operation = wanted
    of = f"{resource.partition('/')[0]}/*" if "/" in resource else "*"
    return any(
        {group, "*"} & {*rule.get("apiGroups", ())}
        and {resource, of, "*/*"} & {*rule.get("resources", ())}
        and {operation, "*"} & {*rule.get("operations", ())}
        for rule in rules
    )


def _differs(snapshot: Snapshot) -> Iterator[FoundFault]:
    for wanted, found in _pairs(snapshot):
        there, should = {**_DEFAULTS, **found.webhook}, {**_DEFAULTS, **wanted}
        fields = [field for field in _COMPARED if there.get(field) != should.get(field)]
        if fields:
            differences = ", ".join(_difference(field, there.get(field)) for field in fields)
            yield FoundFault(found.where, differences, f"{_AGAIN}, or leave it if the difference is intended", REGISTER)


def _difference(field: str, there: object) -> str:
    return f"{field}: {there}" if isinstance(there, str | int) else f"another {field}"


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "webhook-missing",
        BROKEN,
        "the API server has one mutating and one validating configuration of Halfcard",
        "Without them pods are stored as they were written: shares without memory, forged records, uncounted quotas."
        " Halfcard never creates a deleted one again: deleting it is the way out of an outage.",
        _missing,
    ),
    Check(
        "webhook-elsewhere",
        BROKEN,
        "a webhook calls Halfcard's Service, with the path of its name",
        "Another server decides about GPU pods.",
        _elsewhere,
    ),
    Check(
        "webhook-unproven",
        BROKEN,
        "the path of a webhook has a caller token that its replicas accept",
        "Otherwise the webhook refuses the API server's calls, and GPU pods with them.",
        _unproven,
    ),
    Check(
        "webhook-blind",
        BROKEN,
        "a webhook is called for every kind of object and operation that it must check",
        "Objects that the API server does not send are not checked.",
        _blind,
    ),
    Check(
        "webhook-differs",
        WARNING,
        "a webhook is registered as this version would register it with these settings",
        "Another failure policy or selector admits objects unchecked; conditions of an older version may miss a new"
        " resource.",
        _differs,
    ),
)

"""Checks that the webhook configurations are those of `halfcard webhooks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from halfcard import names
from halfcard.caller_tokens import is_accepted, read_tokens

from ..causes import NOT_KEPT, NOT_WORKING
from ..finding import BROKEN, WARNING, Check, FoundFault
from ..snapshot import Object, Snapshot
from .registered_webhooks import (
    AGAIN,
    KEEPERS,
    REGISTRARS,
    SERVICE,
    Registered,
    WebhookRepair,
    expected,
    has_controller,
    pairs,
    register,
    registered,
    repair,
    title,
)

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


def _missing(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.webhooks is None:
        return
    there = registered(snapshot)
    by_object: dict[str, list[tuple[str, bool]]] = {}
    for kind, where, webhook in expected(snapshot):
        by_object.setdefault(where, []).append((webhook["name"], (kind, webhook["name"]) in there))
    for where, webhooks in by_object.items():
        missing = [name for name, is_there in webhooks if not is_there]
        got = "no webhook of Halfcard's" if len(missing) == len(webhooks) else f"no webhook {', '.join(missing)}"
        if missing:
            yield FoundFault(where, got, *_to_register(snapshot, where), names.ADMISSION_SERVICE, REGISTRARS)


def _to_register(snapshot: Snapshot, where: str) -> WebhookRepair:
    """The certificate controller writes the webhooks of a configuration, but never creates a deleted one."""
    exists = any(title(each) == where for each in snapshot.webhooks or ())
    if exists:
        return repair(snapshot)
    if has_controller(snapshot):
        return WebhookRepair(
            "create it again: the certificate controller adds the CA and the settings", register(snapshot)
        )
    return WebhookRepair(AGAIN, register(snapshot))


def _elsewhere(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks the Service or address; an address instead of a Service is valid if it has the same path."""
    for wanted, found in pairs(snapshot):
        service, url = found.client.get("service"), str(found.client.get("url") or "")
        expected = wanted["clientConfig"]["service"]
        if service is not None and {"port": 443, **service, "path": _path(found)} != expected:
            got = f"{service.get('namespace')}/{service.get('name')}{_path(found)}"
            yield _called_wrongly(snapshot, found, got, expected["path"])
        elif service is None and _path(found) != expected["path"]:
            got = f"{urlsplit(url).netloc}{_path(found)}"
            yield _called_wrongly(snapshot, found, got, expected["path"])


def _path(found: Registered) -> str:
    """Returns the path behind the caller token, which is never shown."""
    return found.split_path[1]


def _unproven(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks caller tokens where the Secret can be read; webhooks called by URL may have a file of their own."""
    accepted = read_tokens((snapshot.secrets.get(names.ADMISSION_CALLERS) or {}).get("tokens", b""))
    for found in registered(snapshot).values():
        if accepted and "service" in found.client and not is_accepted(found.split_path[0], accepted):
            got = "its path has a caller token that no replica accepts" if found.split_path[0] else "no caller token"
            yield FoundFault(found.where, got, *repair(snapshot), names.ADMISSION_SERVICE, KEEPERS)


def _called_wrongly(snapshot: Snapshot, found: Registered, got: str, path: str) -> FoundFault:
    how = repair(snapshot)
    fix = f"let it call {SERVICE}{path}: {how.fix}"
    return FoundFault(found.where, got, fix, how.command, names.ADMISSION_SERVICE, KEEPERS)


def _blind(snapshot: Snapshot) -> Iterator[FoundFault]:
    for wanted, found in pairs(snapshot):
        asked = list(found.webhook.get("rules") or ())
        lacking = [what for rule in wanted["rules"] for what in _asks(rule) if not _covered(what, asked)]
        if lacking:
            words = ", ".join(f"{operation} {resource}" for _, resource, operation in lacking)
            got = f"it is not called for {words}"
            yield FoundFault(found.where, got, *repair(snapshot), names.ADMISSION_SERVICE, KEEPERS)


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
    for wanted, found in pairs(snapshot):
        there, should = {**_DEFAULTS, **found.webhook}, {**_DEFAULTS, **wanted}
        fields = [field for field in _COMPARED if there.get(field) != should.get(field)]
        if fields:
            differences = ", ".join(_difference(field, there.get(field)) for field in fields)
            how = repair(snapshot)
            fix = f"{how.fix}; or leave it, if the difference is intended"
            yield FoundFault(found.where, differences, fix, how.command, names.ADMISSION_SERVICE, KEEPERS)


def _difference(field: str, there: object) -> str:
    return f"{field}: {there}" if isinstance(there, str | int) else f"another {field}"


_ABSENT: Final = ("service-missing", "service-empty")

CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "webhook-missing",
        BROKEN,
        "the API server has one mutating and one validating configuration of Halfcard",
        "Without them pods are stored as they were written: shares without memory, forged records, uncounted quotas."
        " Halfcard never creates a deleted one again: deleting it is the way out of an outage.",
        _missing,
        unless=(*_ABSENT, *NOT_WORKING),
    ),
    Check(
        "webhook-elsewhere",
        BROKEN,
        "a webhook calls Halfcard's Service, with the path of its name",
        "Another server decides about GPU pods.",
        _elsewhere,
        unless=NOT_KEPT,
    ),
    Check(
        "webhook-unproven",
        BROKEN,
        "the path of a webhook has a caller token that its replicas accept",
        "Otherwise the webhook refuses the API server's calls, and GPU pods with them.",
        _unproven,
        unless=NOT_KEPT,
    ),
    Check(
        "webhook-blind",
        BROKEN,
        "a webhook is called for every kind of object and operation that it must check",
        "Objects that the API server does not send are not checked.",
        _blind,
        unless=NOT_KEPT,
    ),
    Check(
        "webhook-differs",
        WARNING,
        "a webhook is registered as this version would register it with these settings",
        "Another failure policy or selector admits objects unchecked; conditions of an older version may miss a new"
        " resource.",
        _differs,
        unless=NOT_KEPT,
    ),
)

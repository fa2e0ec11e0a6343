"""Decides what a webhook configuration needs: webhooks once a replica serves them, and repair after an edit.

The chart creates both configurations without webhooks, so that an installation whose pods never start refuses nothing.
A missing configuration is never created: deleting it switches the webhooks off, and helm deletes it first of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from certs.chains import CONFIGURATIONS, ObjectPath
from certs.objects import Object
from halfcard import names
from halfcard.caller_tokens import path_with, split_path
from halfcard.webhook_configurations import configurations
from settings.installation import Settings

_CA_BUNDLE: Final = "caBundle"


class Write(NamedTuple):
    """The JSON patch that registers or repairs, and why; `is_routine`: it replaces only the caller token."""

    patch: bytes
    reason: str
    is_routine: bool = False


class Wait(NamedTuple):
    """The webhooks are not registered; `is_chosen`: an administrator wanted that."""

    reason: str
    is_chosen: bool = False


RegistrationStep = Write | Wait | None
"""None where nothing is to be done."""


def wanted_webhooks(settings: Settings, *, fails: str) -> dict[ObjectPath, list[Object]]:
    """Returns the webhooks of each configuration, complete with the defaults that the API server stores."""
    made = configurations(
        settings.enabled_dialects(),
        exempt=settings.unchecked_namespaces(),
        fails=fails,
        custom=[kind for kind, paths in settings.custom_templates().items() if paths],
    )
    by_kind = {f"{item['kind'].lower()}s": item["webhooks"] for item in made}
    return {place: list(map(_complete, by_kind[place.collection.rpartition("/")[2]])) for place in CONFIGURATIONS}


def _complete(webhook: Object) -> Object:
    rules = [{**rule, "scope": "*"} for rule in webhook["rules"]]
    return {"objectSelector": {}, **webhook, "rules": rules}


def with_token(webhooks: Sequence[Object], token: str) -> list[Object]:
    """Returns the webhooks with a caller token in their paths."""
    return [_with_path(each, lambda path: path_with(token, path)) for each in webhooks]


def _with_path(webhook: Object, change: Callable[[str], str]) -> Object:
    client = webhook.get("clientConfig") or {}
    service = client.get("service") or {}
    changed = {**service, "path": change(str(service.get("path", "")))}
    return {**webhook, "clientConfig": {**client, "service": changed}} if service else webhook


def is_rolled_out(deployment: Object) -> bool:
    """Returns whether every replica of the webhook is of a version that reads caller tokens."""
    spec, status = deployment["spec"], deployment.get("status") or {}
    volumes = spec["template"]["spec"].get("volumes") or ()
    is_new = any((each.get("secret") or {}).get("secretName") == names.ADMISSION_CALLERS for each in volumes)
    is_seen = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return is_new and is_seen and status.get("updatedReplicas", 0) == status.get("replicas", 0)


def plan_registration(
    configuration: Object | None, wanted: Sequence[Object], *, bundle: str, is_served: bool
) -> RegistrationStep:
    """Returns the next step.

    Args:
        configuration: the stored object; None for a deleted one.
        wanted: the webhooks of this version with these settings.
        bundle: the CAs to trust, base64, for webhooks that are not registered yet; empty if there are none.
        is_served: a replica of the webhook is ready. What is registered already stays without one: it fails closed.
    """
    if configuration is None:
        return Wait("it was deleted; `helm upgrade` and `kubectl apply` create it again", is_chosen=True)
    found = configuration.get("webhooks") or []
    difference = _difference(list(map(_without_token, found)), list(map(_without_token, wanted)))
    if not difference and not _difference(found, wanted):
        return None
    if not found and not is_served:
        return Wait("no replica of the webhook is ready")
    if not found and not bundle:
        return Wait("the webhook's certificate names no CA")
    patch = _patch(configuration, wanted, bundle)
    return Write(patch, difference or "the caller token was replaced", is_routine=not difference)


def _without_token(webhook: Object) -> Object:
    return _with_path(webhook, lambda path: split_path(path)[1])


def _difference(found: Sequence[Object], wanted: Sequence[Object]) -> str:
    """Returns what is to be written, in a few words; fields that this version does not know are not compared."""
    if not found:
        return "registered: a replica of the webhook is ready"
    if [each.get("name") for each in found] != [each["name"] for each in wanted]:
        return "repaired: its list of webhooks was changed"
    changed = [
        f"{field} of {each['name']}"
        for each, there in zip(wanted, found, strict=True)
        for field in each
        if _compared(there.get(field)) != each[field]
    ]
    return f"repaired: {', '.join(changed)}" if changed else ""


def _compared(value: Any) -> Any:
    """Returns the value without caBundle, which the certificates' chain keeps."""
    return {key: each for key, each in value.items() if key != _CA_BUNDLE} if isinstance(value, dict) else value


def _patch(configuration: Object, wanted: Sequence[Object], bundle: str) -> bytes:
    """Returns a patch of the version that was read, which keeps caBundle."""
    found = configuration.get("webhooks") or []
    bundles = {each.get("name"): (each.get("clientConfig") or {}).get(_CA_BUNDLE) for each in found}
    others = next(filter(None, bundles.values()), bundle)
    webhooks = [_with(each, bundles.get(each["name"]) or others) for each in wanted]
    version = {
        "op": "replace",
        "path": "/metadata/resourceVersion",
        "value": configuration["metadata"]["resourceVersion"],
    }
    return msgspec.json.encode([version, {"op": "add", "path": "/webhooks", "value": webhooks}])


def _with(webhook: Object, bundle: str) -> Object:
    return {**webhook, "clientConfig": {**webhook["clientConfig"], **({_CA_BUNDLE: bundle} if bundle else {})}}

"""Decides what a webhook configuration needs: webhooks once a replica serves them, and repair after an edit.

The chart creates both configurations without webhooks, so that an installation whose pods never start refuses nothing.
A missing configuration is never created: deleting it switches the webhooks off, and helm deletes it first of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from certs.chains import CONFIGURATIONS, ObjectPath
from certs.objects import Object
from halfcard.webhook_configurations import configurations
from settings.installation import Settings

_CA_BUNDLE: Final = "caBundle"


class Write(NamedTuple):
    """The JSON patch that registers or repairs, and why."""

    patch: bytes
    reason: str


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
    difference = _difference(found, wanted)
    if not difference:
        return None
    if not found and not is_served:
        return Wait("no replica of the webhook is ready")
    if not found and not bundle:
        return Wait("the webhook's certificate names no CA")
    return Write(_patch(configuration, wanted, bundle), difference)


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

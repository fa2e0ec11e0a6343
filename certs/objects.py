"""Reads and builds the Secrets and webhook configurations that contain certificates.

Invariant: fields of other programs are preserved; every write names the version that it replaces.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from cryptography import x509

from certs.certificate_checks import certificates, is_ours, is_signed_by, pem
from certs.chains import ObjectPath
from halfcard import names

CA_CRT: Final = "ca.crt"
CA_KEY: Final = "ca.key"
TLS_CRT: Final = "tls.crt"
TLS_KEY: Final = "tls.key"

Object = dict[str, Any]

_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


# --- any object ------------------------------------------------------------------------------------------------------


def annotation(item: Object | None, name: str) -> str:
    return str(((item or {}).get("metadata", {}).get("annotations") or {}).get(name, ""))


def time_of(item: Object | None, name: str) -> datetime | None:
    """Parses a time annotation; None for an invalid one, since administrators write it too."""
    try:
        return datetime.strptime(annotation(item, name), _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def written(moment: datetime) -> str:
    return moment.strftime(_TIME)


# --- Secrets ---------------------------------------------------------------------------------------------------------


def entry(secret: Object | None, key: str) -> bytes | None:
    text = ((secret or {}).get("data") or {}).get(key)
    return None if text is None else base64.b64decode(text)


def new_secret(place: ObjectPath, kind: str) -> Object:
    namespace = place.collection.split("/")[4]
    metadata = {"name": place.name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": {}}


def with_entries(secret: Object, entries: Mapping[str, bytes]) -> Object:
    encoded = {key: base64.b64encode(value).decode() for key, value in entries.items()}
    return {**secret, "data": {**(secret.get("data") or {}), **encoded}}


def with_annotation(secret: Object, name: str, value: str | None) -> Object:
    """Sets an annotation, or removes it where there is no value."""
    others = {key: each for key, each in (secret["metadata"].get("annotations") or {}).items() if key != name}
    annotations = others if value is None else {**others, name: value}
    return {**secret, "metadata": {**secret["metadata"], "annotations": annotations}}


# --- webhook configurations ------------------------------------------------------------------------------------------


def bundles(configuration: Object | None) -> tuple[bytes, ...]:
    """Returns Halfcard's part of each webhook's bundle, for webhooks that Halfcard manages."""
    return tuple(_our_part(each) for each in _webhooks(configuration) if not _is_unmanaged(configuration, each))


def why_unmanaged(configuration: Object | None) -> str:
    """Returns why Halfcard does not write some of it; empty where it writes all."""
    if injector(configuration):
        return f"its annotation {injector(configuration)} says that cert-manager writes caBundle"
    foreign = [each for each in _webhooks(configuration) if _is_unmanaged(configuration, each)]
    return f"{len(foreign)} of its webhooks trust a CA of another issuer" if foreign else ""


def distrusting(configuration: Object | None, leaves: Sequence[x509.Certificate]) -> tuple[str, ...]:
    """Returns the webhooks that trust CAs, none of which signed a leaf; those without a CA are not meant."""
    trusted = {str(each.get("name")): certificates(_trusted(each)) for each in _webhooks(configuration)}
    return tuple(
        name
        for name, authorities in trusted.items()
        if authorities and not any(is_signed_by(leaf, each) for leaf in leaves for each in authorities)
    )


def bundle_patch(configuration: Object, bundle: bytes) -> bytes:
    """Returns a JSON patch that keeps the certificates of other issuers."""
    read = configuration["metadata"]["resourceVersion"]
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": read}
    changes = [
        {"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": _beside(bundle, each)}
        for at, each in enumerate(_webhooks(configuration))
        if not _is_unmanaged(configuration, each)
    ]
    return msgspec.json.encode([version, *changes])


def _beside(bundle: bytes, webhook: Object) -> str:
    others = pem(each for each in certificates(_trusted(webhook)) if not is_ours(each))
    return base64.b64encode(bundle + others).decode()


def _is_unmanaged(configuration: Object | None, webhook: Object) -> bool:
    trusted = certificates(_trusted(webhook))
    return bool(injector(configuration)) or (bool(trusted) and not any(map(is_ours, trusted)))


def injector(configuration: Mapping[str, Any] | None) -> str:
    """Returns the annotation that makes cert-manager write its caBundle; empty where there is none."""
    annotations: Iterable[str] = ((configuration or {}).get("metadata", {}).get("annotations") or {}).keys()
    return next((each for each in annotations if each.startswith(names.CERT_MANAGER_INJECTS)), "")


def _our_part(webhook: Object) -> bytes:
    return pem(each for each in certificates(_trusted(webhook)) if is_ours(each))


def _trusted(webhook: Object) -> bytes:
    try:
        return base64.b64decode(webhook["clientConfig"].get("caBundle") or "")
    except binascii.Error:
        return b""


def _webhooks(configuration: Object | None) -> list[Object]:
    return (configuration or {}).get("webhooks") or []

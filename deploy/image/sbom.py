"""The bill of materials of an image, in CycloneDX's JSON: the packages of Debian, the wheels and Halfcard.

It is read from the image itself, so that it cannot list anything else, and has no time: equal images have equal bills.
"""

from __future__ import annotations

import json
import uuid
from email import message_from_string
from email.message import Message
from fnmatch import fnmatch
from typing import Any, Final
from urllib.parse import quote

from .packed import METADATA, STATUS, Packed

_VERSION: Final = "1.6"
_OURS: Final = "halfcard"
_CLASSIFIED: Final = "License :: OSI Approved :: "


def sbom(packed: Packed) -> str:
    parts = [_ours(packed), *_debian(packed), *_wheels(packed)]
    whole = _image(packed)
    bill = {
        "$schema": f"http://cyclonedx.org/schema/bom-{_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": _VERSION,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, whole['purl'])}",
        "version": 1,
        "metadata": {"component": whole},
        "components": parts,
        "dependencies": [{"ref": whole["bom-ref"], "dependsOn": [each["bom-ref"] for each in parts]}],
    }
    return json.dumps(bill, indent=2) + "\n"


def _image(packed: Packed) -> dict[str, Any]:
    name, _, version = packed.name.rpartition(":")
    purl = f"pkg:oci/{_OURS}@{packed.digest}?arch={packed.configuration['architecture']}&tag={version}"
    return _component("container", name, version, purl)


def _ours(packed: Packed) -> dict[str, Any]:
    labels = packed.configuration["config"]["Labels"]
    version = labels["org.opencontainers.image.version"]
    purl = f"pkg:generic/{_OURS}@{version}"
    return _component("application", _OURS, version, purl) | _expression(labels["org.opencontainers.image.licenses"])


def _debian(packed: Packed) -> list[dict[str, Any]]:
    """Lists Debian packages without licences: Debian states them per file, in usr/share/doc of the image."""
    found = []
    for fields in _said(packed, STATUS):
        name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
        purl = f"pkg:deb/debian/{quote(name)}@{quote(version, safe=':')}?arch={architecture}&distro=debian-12"
        found.append(_component("library", name, version, purl))
    return found


def _wheels(packed: Packed) -> list[dict[str, Any]]:
    found = []
    for fields in _said(packed, METADATA):
        name, version = fields["Name"], fields["Version"]
        purl = f"pkg:pypi/{quote(name.lower().replace('_', '-'))}@{quote(version)}"
        found.append(_component("library", name, version, purl) | _licence(fields))
    return found


def _said(packed: Packed, pattern: str) -> list[Message]:
    """Reads package descriptions by file name: Debian's and Python's have the same format."""
    return [message_from_string(text) for path, text in sorted(packed.descriptions.items()) if fnmatch(path, pattern)]


def _component(kind: str, name: str, version: str, purl: str) -> dict[str, Any]:
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _licence(fields: Message) -> dict[str, Any]:
    """Returns the licence that the package states: an SPDX expression, or a classifier."""
    if expression := fields["License-Expression"]:
        return _expression(expression)
    classified = [each for each in fields.get_all("Classifier", []) if each.startswith(_CLASSIFIED)]
    named = [{"license": {"name": each.removeprefix(_CLASSIFIED)}} for each in classified]
    return {"licenses": named} if named else {}


def _expression(expression: str) -> dict[str, Any]:
    return {"licenses": [{"expression": expression}]}

"""Passes grants to a runtime that supports CDI: one description file for each slot.

Invariant: the description overrides the pod's own variables: the runtime sets these last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from halfcard import names
from halfcard.problems import printable

from ..kubelet.messages import Granted

Edits = Mapping[str, Any]
"""The containerEdits of CDI."""


class CardEdits(NamedTuple):
    """The edits that give a container its cards, and the version of CDI that they need."""

    version: str
    edits: Edits


VERSION: Final = "0.6.0"
"""The first version of CDI with annotations."""

READ_ONLY: Final = ("ro", "nosuid", "nodev", "bind")
_RUNTIME: Final = re.compile(r"(?P<name>[a-z][a-z-]*)://v?(?P<major>[0-9]{1,4})\.(?P<minor>[0-9]{1,4})")
_FIRST_WITH_CDI: Final = {"containerd": (2, 0), "cri-o": (1, 23)}
_RUNTIME_CHARS: Final = 60


class CdiInjector:
    """Kubelet hands the slot's name to the runtime, which looks for the description when the container is created."""

    def answer(self, slot: str) -> Granted:
        return Granted(cdi=(f"{names.CDI_KIND}={slot}",))

    def set_cards(self, slot: str, minors: Iterable[int]) -> None:
        """Does nothing: the description names the cards."""


def description(slot: str, record: str, edits: Edits, version: str = VERSION) -> bytes:
    """Returns the content of a description; `record` is our own data about its holder."""
    found = {
        "cdiVersion": version,
        "kind": names.CDI_KIND,
        "annotations": {names.SLOT_RECORD: record},
        "devices": [{"name": slot, "containerEdits": edits}],
    }
    return msgspec.json.encode(found)


def record_in(content: bytes) -> tuple[str, str]:
    """Reads the slot's name and the record.

    Raises:
        ValueError: the file is no description of ours.
    """
    found = _DESCRIPTION.decode(content)
    if found.kind != names.CDI_KIND or len(found.devices) != 1:
        raise ValueError("it describes something else")
    return found.devices[0].name, found.annotations.get(names.SLOT_RECORD, "")


class _Device(msgspec.Struct):
    name: str


class _Description(msgspec.Struct):
    kind: str
    annotations: dict[str, str]
    devices: list[_Device]


_DESCRIPTION: Final = msgspec.json.Decoder(_Description)


def with_limits(edits: Edits, variables: Mapping[str, str], limits_file: str) -> Edits:
    """Adds our variables and the mount of the limits; our variables replace others of the same name."""
    env = [each for each in edits.get("env", ()) if each.partition("=")[0] not in variables]
    mount = {"hostPath": limits_file, "containerPath": names.LIMITS_FILE, "options": READ_ONLY}
    ours = {"env": [f"{key}={text}" for key, text in variables.items()], "mounts": [mount]}
    return merged([{**edits, "env": env}, ours])


def merged(parts: Sequence[Edits]) -> Edits:
    """Joins edits without duplicates: cards have most of their edits in common."""
    found: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, list | tuple):
                there = found.setdefault(key, [])
                there += [each for each in value if each not in there]
            else:
                found[key] = value
    return found


def runtime_supports_cdi(runtime: str) -> bool:
    """Checks the runtime as a node's status names it: containerd://2.1.4."""
    match = _RUNTIME.match(runtime)
    first = _FIRST_WITH_CDI.get(match["name"]) if match else None
    return match is not None and first is not None and (int(match["major"]), int(match["minor"])) >= first


def without_cdi(runtime: str) -> str:
    """Explains why a runtime cannot be served, and what to do."""
    known = ", ".join(f"{name} {major}.{minor}" for name, (major, minor) in _FIRST_WITH_CDI.items())
    return (
        f"got the container runtime {printable(runtime, _RUNTIME_CHARS)}; containers get their cards by CDI, which the "
        f"runtime must support, or it would start them without cards ({known} or newer); update it, or start the agent "
        "with --without-cdi"
    )

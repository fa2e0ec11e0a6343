"""Reads how a node's cards are time-sliced, from the configurations in the ConfigMap of NVIDIA's device plugin.

Invariant: every field is obeyed or reported as ignored. An unreadable configuration changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from halfcard import names
from halfcard.capacity import MOST_REPLICAS
from halfcard.problems import printable
from kube.manifests.manifest_error import ManifestError
from kube.manifests.yaml_documents import parse_yaml

_VERSION: Final = "v1"
_ALL: Final = "all"
_DOMAIN: Final = names.NVIDIA_GPU.partition("/")[0] + "/"
_GOT_CHARS: Final = 60
_KNOWN_CHARS: Final = 200


class TimeSlices(NamedTuple):
    """The time slices of the node.

    Attributes:
        resource: the resource of the slices; empty where cards are offered as a whole.
        replicas: the number of slices of each card.
        fail_above_one: whether a container that requests more than one slice is refused.
    """

    resource: str = ""
    replicas: int = 1
    fail_above_one: bool = False


IN_ONE_PIECE: Final = TimeSlices()


class ChosenSlicing(NamedTuple):
    """The result of reading a configuration.

    Attributes:
        slicing: None where it is unusable: the last valid one stays.
        problems: what is wrong or ignored, a sentence each.
    """

    slicing: TimeSlices | None
    problems: tuple[str, ...] = ()


class _MistakeError(Exception):
    """The configuration cannot be used; the text says where, got, rule, fix."""


def chosen(data: Mapping[str, Any], default: str, label: str) -> ChosenSlicing:
    """Returns the configuration that the node's label names, else the default; without either, cards are not sliced."""
    key = label or default
    if not key:
        return ChosenSlicing(IN_ONE_PIECE)
    text = data.get(key)
    if not isinstance(text, str):
        where = f"label {names.TIME_SLICING_LABEL}" if label else "time_slicing.default"
        known = printable(", ".join(sorted(data)), _KNOWN_CHARS) or "(there are none)"
        return ChosenSlicing(
            None, (_sentence(where, key, "it names a configuration of the ConfigMap", f"use {known}"),)
        )
    return read_slicing(text, f"configuration {printable(key, _GOT_CHARS)}")


def read_slicing(text: str, where: str) -> ChosenSlicing:
    try:
        documents = [document.value for document in parse_yaml(text, where)]
        return _configuration(documents[0] if documents else None, where)
    except (ManifestError, _MistakeError) as mistake:
        return ChosenSlicing(None, (str(mistake),))


def _configuration(value: object, where: str) -> ChosenSlicing:
    config = _mapping(value, where)
    version = config.get("version")
    if version not in (None, "", _VERSION):
        raise _mistake(
            f"{where}: version",
            version,
            "only the first version of the format is supported",
            f"write version: {_VERSION}",
        )
    sharing = _mapping(config.get("sharing"), f"{where}: sharing")
    problems = [
        *_ignored(config, f"{where}: ", {"version": "", "sharing": "", **_NOT_OURS}),
        *_ignored(sharing, f"{where}: sharing.", {"timeSlicing": "", **_NOT_SHARED}),
    ]
    if sharing.get("timeSlicing") is None:
        return ChosenSlicing(IN_ONE_PIECE, tuple(problems))
    return _time_slicing(sharing["timeSlicing"], f"{where}: sharing.timeSlicing", problems)


def _time_slicing(value: object, where: str, problems: list[str]) -> ChosenSlicing:
    sharing = _mapping(value, where)
    problems += _ignored(sharing, f"{where}.", dict.fromkeys((*_SWITCHES, "resources"), ""))
    renames, fails = (_switch(sharing, key, where) for key in _SWITCHES)
    sold_as = names.NVIDIA_GPU_SHARED if renames else names.NVIDIA_GPU
    found = IN_ONE_PIECE
    for number, item in enumerate(_list(sharing.get("resources"), f"{where}.resources")):
        place = f"{where}.resources[{number}]"
        resource = _mapping(item, place)
        name = _name(resource, place)
        replicas = _replicas(resource, place)
        problems += _ignored(resource, f"{place}.", {"name": "", "replicas": "", **_of_resource(resource, sold_as)})
        if name != names.NVIDIA_GPU:
            problems.append(
                f"{place}.name: {printable(name, _GOT_CHARS)} is ignored: only {names.NVIDIA_GPU} is sliced"
            )
        elif found is not IN_ONE_PIECE:
            raise _mistake(f"{place}.name", name, "every resource is listed once", "keep one of them")
        else:
            found = TimeSlices(sold_as, replicas, fails)
    return ChosenSlicing(found, tuple(problems))


# --- what is ignored -------------------------------------------------------------------------------------------------

_SWITCHES: Final = ("renameByDefault", "failRequestsGreaterThanOne")
_NOT_OURS: Final = {
    "flags": "Halfcard's agent has its own arguments and settings, and offers no MIG instances",
    "resources": "cards keep their name",
    "imex": "IMEX channels are not offered",
}
_NOT_SHARED: Final = {"mps": "MPS is not started: containers on a card take turns"}


def _of_resource(resource: Mapping[str, Any], sold_as: str) -> dict[str, str]:
    """Reads both fields like NVIDIA's plugin, which reads and then ignores them."""
    rename, devices = resource.get("rename"), resource.get("devices")
    return {
        "rename": "" if rename in (None, sold_as) else "renameByDefault alone says whether slices have another name",
        "devices": "" if devices in (None, _ALL) else "all cards are sliced alike",
    }


def _ignored(found: Mapping[str, Any], before: str, known: Mapping[str, str]) -> Iterator[str]:
    """Yields the ignored keys; `known` has a reason for each of them, and an empty one for keys that are obeyed."""
    for key in found:
        if why := known.get(key, "it is unknown"):
            yield f"{before}{printable(key, _GOT_CHARS)} is ignored: {why}"


# --- what is written --------------------------------------------------------------------------------------------------


def _name(resource: Mapping[str, Any], where: str) -> str:
    name = resource.get("name")
    if not isinstance(name, str) or not name:
        raise _mistake(f"{where}.name", name, "it names a resource", f"write name: {names.NVIDIA_GPU}")
    return name if name.startswith(_DOMAIN) else _DOMAIN + name


def _replicas(resource: Mapping[str, Any], where: str) -> int:
    number = resource.get("replicas")
    if isinstance(number, bool) or not isinstance(number, int) or not 2 <= number <= MOST_REPLICAS:
        rule = f"it is a whole number from 2 to {MOST_REPLICAS}"
        raise _mistake(f"{where}.replicas", number, rule, "write replicas: 4, or take the resource out for whole cards")
    return number


def _switch(found: Mapping[str, Any], key: str, where: str) -> bool:
    value = found.get(key)
    if value is not None and not isinstance(value, bool):
        raise _mistake(f"{where}.{key}", value, "it is true or false", "write true or false, without quotes")
    return bool(value)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    """Returns a mapping; empty where the value is missing."""
    if value is not None and not isinstance(value, dict):
        raise _mistake(
            where, value, "it is a mapping of keys to values", "compare the indentation with the lines above"
        )
    return value or {}


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise _mistake(where, value, "it lists at least one resource", f"add - name: {names.NVIDIA_GPU}, replicas: 4")
    return value


def _mistake(where: str, got: object, rule: str, fix: str) -> _MistakeError:
    return _MistakeError(_sentence(where, got, rule, fix))


def _sentence(where: str, got: object, rule: str, fix: str) -> str:
    text = "is missing" if got is None else f'got "{printable(str(got), _GOT_CHARS)}"'
    return f"{where}: {text}; {rule}; {fix}"

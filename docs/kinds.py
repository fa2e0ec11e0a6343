"""Makes the reference of the kinds that Halfcard adds to Kubernetes, from their CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.chart.made import CHART
from docs.tables import cell, code, table

_Row = tuple[str, str, str]

_COLUMNS: Final = ("field", "type", "meaning")
_FOLDER: Final = CHART / "kinds"
_OF_ONE, _OF_SEVERAL, _USAGE = (_FOLDER / f"{kind}.yaml" for kind in ("gpuquota", "clustergpuquota", "gpuquotausage"))
_AMOUNTS: Final = frozenset({"cores", "memory", "cards", "shares"})
"""The fields of an amount, which many fields have; they are described once."""


def kinds() -> str:
    schema = _schema(_OF_ONE)
    return "\n\n".join(
        [
            _head(_OF_ONE),
            table(_COLUMNS, _spec(_OF_ONE)),
            _head(_OF_SEVERAL) + " It has the same fields, and these:",
            table(_COLUMNS, [row for row in _spec(_OF_SEVERAL) if row not in _spec(_OF_ONE)]),
            f"### Amounts\n\n{table(_COLUMNS, _fields(schema['properties']['spec']['properties']['hard'], ''))}",
            f"### What is refused\n\nThe API server refuses with these messages:\n\n{_refused(_OF_ONE, _OF_SEVERAL)}",
            f"### Status\n\nOf both kinds; only Halfcard writes it.\n\n{table(_COLUMNS, _status(schema))}",
            _head(_USAGE),
            table(_COLUMNS, _status(_schema(_USAGE))),
        ]
    )


def _head(file: Path) -> str:
    spec = _definition(file)
    said = file.read_text().partition("\n")[0].removeprefix("# ")
    return f"### {spec['names']['kind']}\n\n{said} {_facts(spec)}"


@cache  # reading YAML is slow
def _definition(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text())["spec"]
    return found


def _schema(file: Path) -> dict[str, Any]:
    (version,) = _definition(file)["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def _spec(file: Path) -> list[_Row]:
    return [*_fields(_schema(file)["properties"]["spec"], "spec.")]


def _status(schema: Mapping[str, Any]) -> Iterator[_Row]:
    """Yields the rows of the status, except the fields that all conditions of Kubernetes have."""
    return (row for row in _fields(schema["properties"]["status"], "status.") if "conditions[]" not in row[0])


def _refused(*files: Path) -> str:
    messages = dict.fromkeys(message for file in files for message in _messages(_schema(file)))
    return "\n".join(f"- {cell(message)}" for message in messages)


def _facts(spec: Mapping[str, Any]) -> str:
    names, scope = spec["names"], {"Namespaced": "in a namespace", "Cluster": "for the cluster"}[spec["scope"]]
    short = ", ".join(map(code, (names["plural"], *names["shortNames"])))
    version = f"{spec['group']}/{spec['versions'][0]['name']}"
    return f"`apiVersion: {version}`, {scope}; in kubectl {short}."


def _fields(schema: Mapping[str, Any], above: str) -> Iterator[_Row]:
    for name, each in schema.get("properties", {}).items():
        path = above + name
        yield code(path), _type(each), cell(each.get("description", ""))
        for inner, suffix in ((each, "."), (each.get("additionalProperties"), ".NAME."), (each.get("items"), "[].")):
            if isinstance(inner, Mapping) and inner.get("properties", {}).keys() != _AMOUNTS:
                yield from _fields(inner, path + suffix)


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        default = f", default {code(schema['default'])}" if "default" in schema else ""
        return " or ".join(map(code, schema["enum"])) + default
    if schema.get("properties", {}).keys() == _AMOUNTS:
        return "[amounts](#amounts)"
    inner = schema.get("additionalProperties")
    if isinstance(inner, Mapping):
        return f"{_type(inner)} by name"
    return f"{_type(schema['items'])}, several" if "items" in schema else schema.get("type", "amount")


def _messages(schema: Mapping[str, Any]) -> list[str]:
    """Returns each message once, in the order of the fields."""
    found = dict.fromkeys(rule["message"] for rule in schema.get("x-kubernetes-validations", ()))
    for name in ("properties", "additionalProperties", "items"):
        inner = schema.get(name)
        for each in inner.values() if name == "properties" and inner else [inner] if isinstance(inner, Mapping) else []:
            found |= dict.fromkeys(_messages(each))
    return list(found)

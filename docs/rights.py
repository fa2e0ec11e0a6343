"""Makes the reference of what Halfcard's accounts may do, with the reason next to each right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, Final

import yaml

from deploy.chart.made import CHART
from docs.tables import cell, code, table
from docs.templated_roles import templated_roles

_FOLDER: Final = CHART / "rbac"
_ROLES: Final = frozenset({"ClusterRole", "Role"})
_REASON: Final = re.compile(r"- (?P<verb>[a-z]+(?: or [a-z]+)?)(?: # (?P<why>.*))?$")


def rights() -> str:
    files = ((file.name, file.read_text()) for file in sorted(_FOLDER.glob("*.yaml")))
    return "\n\n".join(part for title, text in (*files, *templated_roles()) if (part := _of(title, text)))


def _of(title: str, text: str) -> str:
    rows = [row for document in yaml.compose_all(text, Loader=yaml.SafeLoader) for row in _rules(document, text)]
    if not rows:
        return ""
    said = " ".join(line.removeprefix("# ") for line in takewhile(lambda each: each.startswith("#"), text.splitlines()))
    return f"### {title}\n\n{said}\n\n{table(('on', 'where', 'may', 'for'), rows)}"


def _rules(document: yaml.Node, text: str) -> Iterator[tuple[str, str, str, str]]:
    role = _value(document)
    if role["kind"] not in _ROLES:
        return
    where = role["metadata"].get("namespace", "everywhere")
    for node in _child(document, "rules").value:
        rule = _value(node)
        for verb, why in _verbs(_child(node, "verbs"), text):
            yield _on(rule), where, verb, cell(why)


def _verbs(node: yaml.Node, text: str) -> Iterator[tuple[str, str]]:
    """Yields each verb with its reason, one per line; verbs that share a line have none."""
    lines = text.splitlines()[node.start_mark.line : node.end_mark.line]
    found = [match for line in lines if (match := _REASON.search(line))]
    if not found:
        yield ", ".join(_value(node)), ""
    for match in found:
        yield match["verb"], match["why"] or "as above"


def _on(rule: Mapping[str, Any]) -> str:
    groups = [f".{group}" if group else "" for group in rule.get("apiGroups", [""])]
    what = [code(f"{each}{group}") for group in groups for each in rule.get("resources", ())]
    only = ", ".join(map(code, rule.get("resourceNames", ())))
    return ", ".join([*what, *map(code, rule.get("nonResourceURLs", ()))]) + (f": {only}" if only else "")


def _child(node: yaml.Node, name: str) -> yaml.Node:
    found: yaml.Node = next(value for key, value in node.value if key.value == name)
    return found


def _value(node: yaml.Node) -> Any:
    return yaml.SafeLoader("").construct_document(node)

"""The static guard: rules about amounts that the API server enforces itself, for webhooks that fail open.

It is one ValidatingAdmissionPolicy. Its texts come from the table of rules, its conditions are written here.
Invariant: by these rules, guard and webhook refuse the same pods.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from halfcard import names
from halfcard.claims import MEMORY, UNIT_MIB, WHOLE_CARD
from halfcard.dialects import ALL, Dialects
from halfcard.dialects.dialect import MAX_AMOUNT
from halfcard.dialects.hami import HAMI_WORDS
from halfcard.dialects.memory_amount import MOST_UNITS
from halfcard.dialects.vcuda import Vcuda
from halfcard.problems import (
    CORES,
    MEMORY_ALONE,
    MEMORY_UNITS,
    MIXED_CONTAINER,
    MIXED_POD,
    ONE_KIND,
    PER_CENT,
    QUANTITY,
    SHARE_NEEDS_MEMORY,
    UNREPAIRED,
    Rule,
    Severity,
)
from halfcard.webhook_configurations import NOT_HALFCARD, cel_list, not_in

from ..policy import AdmissionPolicy

_NAME: Final = "halfcard-guard"
_VERSION: Final = "admissionregistration.k8s.io/v1"
_MIB: Final = 2**20
_MOST_BYTES: Final = (_MIB - 1) * UNIT_MIB * _MIB


class GuardedRule(NamedTuple):
    """A rule in CEL."""

    rule: Rule
    broken: str
    """An expression over `a`, the amounts that container `i` requests; `variables.texts[i]` has their spellings."""
    fix: str

    @property
    def variable(self) -> str:
        return self.rule.code.lower()


def _of(word: str, container: str = "a") -> str:
    return f"{container}[?{word}].orValue(0)"


def _all_of(*words: str) -> str:
    return f"({' && '.join(f'{_of(word)} > 0' for word in map(_text, words))})"


def _text(word: str) -> str:
    return f"'{word}'"


def _hami(container: str) -> str:
    return f"{cel_list(sorted(HAMI_WORDS))}.exists(w, {_of('w', container)} > 0)"


_CORE, _MEMORY = _text(names.VCUDA_CORE_SUFFIX), _text(names.VCUDA_MEMORY_SUFFIX)
_GPU, _SLICE = _text(names.NVIDIA_GPU), _text(names.NVIDIA_GPU_SHARED)
_IS_CARD_OF_HAMI: Final = f"w == {_GPU} && ('{names.HAMI_GPUMEM}' in s || {_hami('a')})"
_SPEAKS: Final = f"s.exists(w, {_of('w')} > 0 && !({_IS_CARD_OF_HAMI}))"
_NVIDIA: Final = (
    f"variables.systems.exists(s, {_SLICE} in s) && variables.asked.exists(b, !{_hami('b')} && "
    f"({_of(_GPU, 'b')} > 0 || {_of(_SLICE, 'b')} > 0))"
)
_BYTES: Final = f"a.exists(w, w.endsWith({_MEMORY}) && (variables.texts[i][w].endsWith('i') || a[w] >= {_MIB}))"


def own_units() -> str:
    """Names the unit in which each resource counts memory."""
    by_size: dict[int, set[str]] = {}
    for dialect in ALL:
        for word, unit in dialect.units.items():
            if unit.counted == MEMORY:
                by_size.setdefault(unit.size, set()).add(word)
    return ", ".join(f"{' and '.join(sorted(words))} in {_UNITS[size]}" for size, words in sorted(by_size.items()))


_UNITS: Final = {
    1: "MiB",
    UNIT_MIB: f"units of {UNIT_MIB} MiB",
    1024: "GiB or MiB as the setting aliyun_memory_unit says",
}

GUARDED: Final = (
    GuardedRule(
        QUANTITY,
        f"a.exists(w, !w.endsWith({_MEMORY}) && a[w] > variables.bytes[?w].orValue({MAX_AMOUNT}))",
        "use a smaller number",
    ),
    GuardedRule(
        MEMORY_UNITS, f"a.exists(w, w.endsWith({_MEMORY}) && a[w] > {_MOST_BYTES})", "use fewer: no card has 256 TiB"
    ),
    GuardedRule(
        MIXED_CONTAINER, f"variables.systems.filter(s, {_SPEAKS}).size() > 1", "keep the resources of one system"
    ),
    GuardedRule(
        MIXED_POD,
        f"{_hami('a')} && a[?{_GPU}].orValue(1) > 0 && {_NVIDIA}",
        "use the resources of one system in all containers, or two pods",
    ),
    GuardedRule(
        ONE_KIND,
        f"{_all_of(names.HAMI_GPUMEM, names.HAMI_GPUMEM_PERCENTAGE)}"
        f" || {_all_of(names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED)}"
        f" || {_all_of(names.VOLCANO_GPU_MEMORY, names.VOLCANO_GPU_NUMBER)}",
        "keep one of the two",
    ),
    GuardedRule(
        PER_CENT,
        f"{cel_list([names.HAMI_GPUCORES, names.HAMI_GPUMEM_PERCENTAGE])}.exists(w, {_of('w')} > 100)",
        "use at most 100",
    ),
    GuardedRule(
        CORES,
        f"a.exists(w, w.endsWith({_CORE}) && a[w] > {WHOLE_CARD} && a[w] % {WHOLE_CARD} != 0)",
        f"use {WHOLE_CARD} or {2 * WHOLE_CARD}",
    ),
    GuardedRule(
        SHARE_NEEDS_MEMORY,
        f"a.exists(w, w.endsWith({_CORE}) && a[w] > 0 && a[w] < {WHOLE_CARD}"
        f" && {_of(f'w.replace({_CORE}, {_MEMORY})')} == 0)",
        f"add memory in units of {UNIT_MIB} MiB",
    ),
    GuardedRule(
        MEMORY_ALONE,
        f"a.exists(w, w.endsWith({_MEMORY}) && a[w] > 0 && !(w in variables.alone)"
        f" && {_of(f'w.replace({_MEMORY}, {_CORE})')} == 0)",
        "add cores: 1-99 for a share of one card",
    ),
    GuardedRule(
        UNREPAIRED,
        f"{_BYTES} || a.exists(w, w in variables.bytes && a[w] >= {_MIB}) || ({_hami('a')} && !({_GPU} in a))",
        f"write {own_units()}; beside HAMi's other words write {names.NVIDIA_GPU}: 1",
    ),
)
"""In the order of messages: unreadable amounts, mixed systems, then the rules of each system."""


def guard(policy: AdmissionPolicy) -> list[dict[str, Any]]:
    """Returns the policy and its binding; rules that only warn are left out."""
    denied = [each for each in GUARDED if policy.severities.get(each.rule.code, each.rule.severity) is Severity.DENY]
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": not_in(policy.exempt_namespaces),
            "resourceRules": [pods],
        },
        "matchConditions": [
            {"name": "not-halfcard-itself", "expression": NOT_HALFCARD},
            {"name": "not-a-static-pod", "expression": _NOT_STATIC},
        ],
        "variables": _variables(policy.dialects),
        "validations": [_validation(each) for each in denied],
    }
    bound = {"policyName": _NAME, "validationActions": ["Deny"]}
    return [_object("ValidatingAdmissionPolicy", spec), _object("ValidatingAdmissionPolicyBinding", bound)]


def _object(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _VERSION, "kind": kind, "metadata": {"name": _NAME}, "spec": spec}


_NOT_STATIC: Final = (
    f"!request.userInfo.username.startsWith('{names.NODE_USERS}') || !has(object.metadata.annotations)"
    f" || !('{names.MIRROR_POD}' in object.metadata.annotations)"
)


def _validation(guarded: GuardedRule) -> dict[str, str]:
    rule, faults = guarded.rule, f"variables.{guarded.variable}"
    text = json.dumps(f"; {rule.text}; {guarded.fix} [{rule.code}]")  # CEL reads strings as JSON writes them
    return {
        "expression": f"{faults}.size() == 0",
        "messageExpression": f"{faults}[0] + {text}",
        "reason": "Forbidden",
    }


def _variables(dialects: Dialects) -> list[dict[str, str]]:
    expressions = {**words_of(dialects), **_READ, **{each.variable: _faults(each) for each in GUARDED}}
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def words_of(dialects: Dialects) -> dict[str, str]:
    """Returns the variables that depend on the dialects: all resources, those of each, and memory without cores."""
    systems = sorted(cel_list(sorted(each.resources)) for each in dialects.table)
    return {
        "words": cel_list(sorted(dialects.resources)),
        "systems": f"[{', '.join(systems)}]",
        "alone": cel_list(sorted(alone(dialects))),
    }


def alone(dialects: Dialects) -> Collection[str]:
    return {each.memory for each in dialects.table if isinstance(each, Vcuda) and each.memory_alone}


def _of_both_lists(listed: str) -> str:
    """Returns the expression for app containers and for init containers; `LIST` is replaced by each."""
    init = f"has(object.spec.initContainers) ? {listed.replace('LIST', 'initContainers')} : []"
    return f"{listed.replace('LIST', 'containers')} + ({init})"


_TEXTS: Final = (
    "has(c.resources) && has(c.resources.limits) ? c.resources.limits.transformMap(w, q, w in variables.words, q) : {}"
)
_NUMBER: Final = (
    "quantity(q).isInteger() ? quantity(q).asInteger()"
    f" : quantity(q).isLessThan(quantity('4Ei')) ? int(quantity(q).asApproximateFloat()) : {2**62}"
)
"""Kubernetes admits only whole amounts here: one that CEL cannot read as an integer is too large."""
_GOT: Final = "variables.words.filter(w, w in t).map(w, w + '=' + t[w]).join(', ')"
_MOST: Final = {
    word: MOST_UNITS * unit.size * _MIB
    for each in ALL
    if not isinstance(each, Vcuda)
    for word, unit in each.units.items()
    if unit.counted == MEMORY
}
"""The most bytes of each resource of memory, except gpu-manager's; a large number of such a resource means bytes."""
_READ: Final = {
    "bytes": f"{{{', '.join(f'{_text(word)}: {most}' for word, most in sorted(_MOST.items()))}}}",
    "texts": _of_both_lists(f"object.spec.LIST.map(c, {_TEXTS})"),
    "asked": f"variables.texts.map(t, t.transformMap(w, q, {_NUMBER}))",
    "places": _of_both_lists("object.spec.LIST.transformList(n, c, 'spec.LIST[' + string(n) + '].resources.limits')"),
    "got": f"variables.texts.transformList(n, t, variables.places[n] + ': got \"' + {_GOT} + '\"')",
}


def _faults(guarded: GuardedRule) -> str:
    """Returns the CEL expression of the fields that break the rule, with their amounts."""
    return f"variables.asked.transformList(i, a, {guarded.broken}, variables.got[i])"

"""Judges what Halfcard's own processes read: quotas, TKE's map of quotas, and how cards are time-sliced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from admission.verdict import Verdict
from admission.wire import ObjectKind
from deviceplugin.advertise.time_slicing import read_slicing
from halfcard import names
from halfcard.patches import field_path
from halfcard.problems import UNREADABLE, Problem, warning
from halfcard.quota.gpu_quota_mistakes import gpu_quota_mistakes
from halfcard.quota.tke_quota_map import UNREADABLE as NO_MAP
from halfcard.quota.tke_quota_map import read_map

from ..judge import kind_of

_SLICING: Final = "timeSlicing"
_SENTENCE: Final = re.compile(r'(?P<where>.+?): (?:got "(?P<got>.*)"|is missing); (?P<fix>.*)', re.DOTALL)
_OWN_GROUP: Final = names.QUOTA_API.split("/")[2]
_QUOTAS: Final = frozenset({names.GPU_QUOTA, names.CLUSTER_GPU_QUOTA})


def configuration_verdict(obj: Mapping[str, Any], namespace: str) -> Verdict | None:
    """Returns the verdict on an object that Halfcard reads; None for any other."""
    kind, data = kind_of(obj), obj.get("data")
    if kind.group == _OWN_GROUP and kind.kind in _QUOTAS:
        return Verdict(tuple(gpu_quota_mistakes(obj)))
    if kind != ObjectKind("ConfigMap") or not isinstance(data, dict):
        return None
    name = obj["metadata"].get("name") if isinstance(obj.get("metadata"), dict) else None
    if (namespace, name) == (names.KUBE_SYSTEM, names.GPU_QUOTA_MAP):
        return Verdict(tuple(_of_map(data.get(names.GPU_QUOTA_KEY))))
    return _of_slicing({key: text for key, text in data.items() if isinstance(text, str) and _SLICING in text})


def _of_map(text: object) -> list[Problem]:
    where = f"data.{names.GPU_QUOTA_KEY}"
    read = read_map(text) if isinstance(text, str) else None
    if read is None:
        return [UNREADABLE.broken(where, text, NO_MAP.rpartition("; ")[2])]
    return [_of_namespace(where, *each.split(" limits nothing: ", 1)) for each in read.unreadable]


def _of_namespace(where: str, title: str, why: str) -> Problem:
    return UNREADABLE.broken(where, title.rpartition(": ")[2].strip('"'), f"this namespace has no limit now: {why}")


def _of_slicing(texts: Mapping[str, str]) -> Verdict | None:
    if not texts:
        return None
    problems, warnings = [], []
    for key, text in texts.items():
        where = field_path(("data", key))
        read = read_slicing(text, where)
        if read.slicing is None:
            problems += [_of_text(where, each) for each in read.problems]
        else:
            warnings += [warning(each) for each in read.problems]
    return Verdict(tuple(problems), tuple(warnings))


def _of_text(where: str, sentence: str) -> Problem:
    found = _SENTENCE.fullmatch(sentence)
    if found is None:
        return UNREADABLE.broken(where, sentence, "correct it")
    return UNREADABLE.broken(found["where"], found["got"], found["fix"])

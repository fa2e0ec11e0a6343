"""Decodes and encodes kube-scheduler's extender protocol v1: the only module that knows its JSON.

Invariant: errors are part of an answer with status 200, because the scheduler drops the text of any other. Field names
are the Go names; old peers also write them in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, Final, NamedTuple

import msgspec

from halfcard.pod.stored_pod import StoredPod
from halfcard.problems import printable

MAX_BODY_BYTES: Final = 256 * 2**20
"""Full Node objects of a large cluster; they are read as they come and not taken apart."""

_LONGEST_ERROR: Final = 900
_MANY: Final = 500
_LOW: Final = range(4)
_UNTOLD: Final = 255
_LESS: Final = [bytes([score - crowd if score > crowd else _UNTOLD for score in range(256)]) for crowd in _LOW]
_ARE_TOLD: Final = bytes([score != _UNTOLD for score in range(256)])
_PER_CENT: Final = re.compile(r" ?%")


class MalformedCall(Exception):
    """The caller broke the protocol; the text is a sentence for its log."""


class _NodeMetadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Node(msgspec.Struct):
    metadata: _NodeMetadata = _NodeMetadata()


class _NodeList(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class NodesCall(NamedTuple):
    """A call of filter or prioritize.

    Attributes:
        full: the same nodes as objects, None where only names came.
        known: whether all names are certainly of known nodes.
    """

    pod: StoredPod
    names: Sequence[str]
    full: list[msgspec.Raw] | None
    known: bool = False


class _Asked(msgspec.Struct, rename="pascal"):
    pod: StoredPod | None = None
    nodes: _NodeList | None = None
    node_names: msgspec.Raw = msgspec.Raw(b"null")


class _LowerAsked(msgspec.Struct):
    pod: StoredPod | None = None
    nodes: _NodeList | None = None
    nodenames: msgspec.Raw = msgspec.Raw(b"null")


class Binding(msgspec.Struct, rename="pascal"):
    pod_name: str = ""
    pod_namespace: str = ""
    pod_uid: str = msgspec.field(default="", name="PodUID")
    node: str = ""


class MetaPod(msgspec.Struct):
    uid: str = msgspec.field(default="", name="UID")


class MetaVictims(msgspec.Struct):
    pods: list[MetaPod] | None = msgspec.field(default=None, name="Pods")
    violations: int = msgspec.field(default=0, name="NumPDBViolations")


class _VictimPods(msgspec.Struct):
    pods: list[StoredPod] | None = msgspec.field(default=None, name="Pods")
    violations: int = msgspec.field(default=0, name="NumPDBViolations")


class _Preemption(msgspec.Struct, rename="pascal"):
    pod: StoredPod | None = None
    node_name_to_victims: dict[str, _VictimPods] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class _Score(msgspec.Struct, rename="pascal", gc=False):
    host: str
    score: int


_ASKED: Final = msgspec.json.Decoder(_Asked)
_LOWER: Final = msgspec.json.Decoder(_LowerAsked)
_BINDING: Final = msgspec.json.Decoder(Binding)
_PREEMPTION: Final = msgspec.json.Decoder(_Preemption)
_NODE: Final = msgspec.json.Decoder(_Node)
_encode: Final = msgspec.json.Encoder().encode
_BETWEEN: Final = b"},{"


ReadNames = Callable[[msgspec.Raw], tuple[Sequence[str] | None, bool]]
"""As `Roll.read` does."""


def _decoded(decode: Callable[[Any], Any], body: bytes | msgspec.Raw) -> Any:
    try:
        return decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedCall(f"the body is not what kube-scheduler sends: {error}") from error


def read_nodes_call(body: bytes, read_names: ReadNames) -> NodesCall:
    """Decodes a call of filter or prioritize.

    Raises:
        MalformedCall: the pod or the nodes are missing, or the body is not JSON.
    """
    asked: _Asked = _decoded(_ASKED.decode, body)
    if asked.pod is None:
        lower = _decoded(_LOWER.decode, body)
        asked = _Asked(lower.pod, lower.nodes, lower.nodenames)
    if asked.pod is None:
        raise MalformedCall('the body holds no "Pod"; send the arguments of a scheduler extender, v1')
    names, known = _decoded(read_names, asked.node_names)
    if names is not None:
        return NodesCall(asked.pod, names, None, known)
    if asked.nodes is None or asked.nodes.items is None:
        raise MalformedCall('the body holds neither "NodeNames" nor "Nodes"; send one of them')
    names = [_decoded(_NODE.decode, raw).metadata.name for raw in asked.nodes.items]
    return NodesCall(asked.pod, names, asked.nodes.items)


def read_binding(body: bytes) -> Binding:
    binding: Binding = _decoded(_BINDING.decode, body)
    missing = [name for name in ("PodName", "PodNamespace", "PodUID", "Node") if not _value(binding, name)]
    if missing:
        raise MalformedCall(f"the body holds no {', '.join(missing)}; send the arguments of a binding, v1")
    return binding


def _value(binding: Binding, name: str) -> str:
    values = dict(zip(("PodName", "PodNamespace", "PodUID", "Node"), msgspec.structs.astuple(binding), strict=True))
    return str(values[name])


def read_preemption(body: bytes) -> tuple[StoredPod, dict[str, MetaVictims]]:
    """The pod that would preempt, and by node whom the scheduler would end; whole victims become their uids."""
    found: _Preemption = _decoded(_PREEMPTION.decode, body)
    if found.pod is None:
        raise MalformedCall('the body holds no "Pod"; send the arguments of a preemption, v1')
    victims = dict(found.node_name_to_meta_victims or {})
    for name, each in (found.node_name_to_victims or {}).items():
        uids = [MetaPod(pod.meta.uid) for pod in each.pods or ()]
        victims.setdefault(name, MetaVictims(uids, each.violations))
    return found.pod, victims


def filter_answer(question: NodesCall, feasible: Sequence[str], refused: Mapping[str, Sequence[str]]) -> bytes:
    """Encodes the answer in the form in which the nodes came; `refused` are the other nodes by reason."""
    reasons = b",".join([_said_of_each(names, reason) for reason, names in refused.items()])
    if question.full is None:
        return _filtered(b"null", _listed(feasible), reasons)
    kept = set(feasible)
    items = [raw for raw, name in zip(question.full, question.names, strict=True) if name in kept]
    return _filtered(_encode({"metadata": {}, "items": items}), b"null", reasons)


def _filtered(nodes: bytes, listed: bytes, reasons: bytes, error: bytes = b'""') -> bytes:
    """Joined, not formatted: what is larger than a hundred kilobytes would be moved again and again as it grows."""
    failed = b',"FailedNodes":{},"FailedAndUnresolvableNodes":{'
    return b"".join((b'{"Nodes":', nodes, b',"NodeNames":', listed, failed, reasons, b'},"Error":', error, b"}"))


class SharedNames(tuple[str, ...]):  # noqa: SLOT001 - it keeps what it writes
    """Names that get the same answer call after call: what is written of them is kept."""

    @cached_property
    def listed(self) -> bytes:
        return _encode(self)

    @cached_property
    def said(self) -> dict[str, bytes]:
        return {}


def _listed(names: Sequence[str]) -> bytes:
    return names.listed if isinstance(names, SharedNames) else _encode(names)


def _said_of_each(names: Sequence[str], reason: str) -> bytes:
    if not isinstance(names, SharedNames):
        return _put_between(names, reason)
    if (said := names.said.get(reason)) is None:
        said = names.said[reason] = _put_between(names, reason)
    return said


def _put_between(names: Sequence[str], reason: str) -> bytes:
    """Thousands of nodes share a reason: to put it between their names takes a fifth of the time of a dict."""
    if b"\\" in _encode("".join(names)):  # somebody asks for what is no name
        return _encode(dict.fromkeys(names, reason))[1:-1]
    said = f'":{_encode(reason).decode()}'
    between = f'{said},"'
    return f'"{between.join(names)}{said}'.encode()


def escape_percent(text: str) -> str:
    """kube-scheduler makes events as if we sent it a format: "50 % free" became "50 %!f(MISSING)ree"."""
    return _PER_CENT.sub(" per cent", text)


def filter_error(why: str) -> bytes:
    return _filtered(b"null", b"null", b"", _encode(_error(why)))


def prioritize_answer(names: Iterable[str], scores: bytes) -> bytes:
    return _scored(names, _worth_telling(scores))


def _worth_telling(scores: bytes) -> bytes:
    """Omits the scores of nodes with 0: the scheduler takes a missing score as 0, and decoding thousands takes
    milliseconds.

    Only comparisons matter. Where many nodes share a low score, all scores are sent relative to it, and the few that
    are even lower are sent as equal to it.
    """
    crowd = max(_LOW, key=scores.count)
    return scores.translate(_LESS[crowd]) if scores.count(crowd) > _MANY else scores


def _scored(names: Iterable[str], told: bytes) -> bytes:
    if _UNTOLD in told:
        names = compress(names, told.translate(_ARE_TOLD))
        told = told.replace(bytes([_UNTOLD]), b"")
    return _encode([*map(_Score, names, told)])


class PrioritizeEncoder:
    """`prioritize_answer` for the same names again and again: what has not changed is not written again."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._told = b""
        self._written: dict[str, bytes] = {}

    def of(self, scores: bytes, changed: Collection[int]) -> bytes:
        """`changed` are the positions that may have another score than last time, unless many have."""
        told = _worth_telling(scores)
        if not self._has_only(changed, told):
            return self._write_all(told)
        self._told = told
        for at in changed:
            self._write(self._names[at], told[at])
        return b"".join((b"[{", _BETWEEN.join(self._written.values()), b"}]")) if self._written else b"[]"

    def _has_only(self, changed: Collection[int], told: bytes) -> bool:
        if not self._written:
            return False
        patched = bytearray(self._told)
        for at in changed:
            patched[at] = told[at]
        return patched == told

    def _write(self, name: str, told: int) -> None:
        if told == _UNTOLD:
            self._written.pop(name, None)
        else:
            self._written[name] = _encode(_Score(name, told))[1:-1]

    def _write_all(self, told: bytes) -> bytes:
        """Taken apart again, which costs less than to write each alone; a name that looks like two is no name."""
        whole = _scored(self._names, told)
        parts = whole[2:-2].split(_BETWEEN)
        names = [*compress(self._names, told.translate(_ARE_TOLD))]
        self._told, self._written = told, dict(zip(names, parts, strict=True)) if len(parts) == len(names) else {}
        return whole


def bind_answer(why: str = "") -> bytes:
    return _encode({"Error": _error(why)})


def _error(why: str) -> str:
    return printable(escape_percent(why), _LONGEST_ERROR)


def preempt_answer(victims: dict[str, MetaVictims]) -> bytes:
    return _encode({"NodeNameToMetaVictims": victims})

"""Decodes and encodes kube-scheduler's extender protocol v1; no other module knows its JSON.

Invariant: errors are part of an answer with status 200, because the scheduler drops the text of any other status. Field
names are the Go names; peers of older versions write them in lower case.
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

from ..bind.pod_requests import BindCall

MAX_BODY_BYTES: Final = 256 * 2**20
"""A large cluster may send full Node objects; they stay encoded."""

MAX_PREEMPTION_BYTES: Final = 32 * 2**20
"""A pod, and the victims on some hundred nodes: names, or the pods themselves where the scheduler is configured so."""

MAX_BINDING_BYTES: Final = 64 * 2**10
"""Four names."""

_MAX_ERROR_CHARS: Final = 900
_MANY: Final = 500
_LOW_SCORES: Final = range(4)
_OMITTED: Final = 255
_MINUS: Final = [
    bytes([score - common if score > common else _OMITTED for score in range(256)]) for common in _LOW_SCORES
]
_IS_SENT: Final = bytes([score != _OMITTED for score in range(256)])
_PER_CENT: Final = re.compile(r" ?%")


class MalformedCall(Exception):
    """A body that is no call of the protocol; the text is a sentence for the caller's log."""


class _NodeMetadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Node(msgspec.Struct):
    metadata: _NodeMetadata = _NodeMetadata()


class _NodeList(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class NodesCall(NamedTuple):
    """A call of filter or prioritize.

    Attributes:
        full: the same nodes as encoded objects; None where the call has only names.
        known: True if all names are known for certain.
    """

    pod: StoredPod
    names: Sequence[str]
    full: list[msgspec.Raw] | None
    known: bool = False


class _CallBody(msgspec.Struct, rename="pascal"):
    pod: StoredPod | None = None
    nodes: _NodeList | None = None
    node_names: msgspec.Raw = msgspec.Raw(b"null")


class _LowerCaseCallBody(msgspec.Struct):
    pod: StoredPod | None = None
    nodes: _NodeList | None = None
    nodenames: msgspec.Raw = msgspec.Raw(b"null")


class _Binding(msgspec.Struct, rename="pascal"):
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


_CALL: Final = msgspec.json.Decoder(_CallBody)
_LOWER_CASE_CALL: Final = msgspec.json.Decoder(_LowerCaseCallBody)
_BINDING: Final = msgspec.json.Decoder(_Binding)
_PREEMPTION: Final = msgspec.json.Decoder(_Preemption)
_NODE: Final = msgspec.json.Decoder(_Node)
_encode: Final = msgspec.json.Encoder().encode
_BETWEEN: Final = b"},{"


ReadNames = Callable[[msgspec.Raw], tuple[Sequence[str] | None, bool]]
"""Decodes a list of names, like `NodeNames.read`."""


def _decode(decode: Callable[[Any], Any], body: bytes | msgspec.Raw) -> Any:
    try:
        return decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedCall(f"the body is not what kube-scheduler sends: {error}") from error


def read_nodes_call(body: bytes, read_names: ReadNames) -> NodesCall:
    """Decodes a call of filter or prioritize.

    Raises:
        MalformedCall: the pod or the nodes are missing, or the body is not JSON.
    """
    call: _CallBody = _decode(_CALL.decode, body)
    if call.pod is None:
        lower = _decode(_LOWER_CASE_CALL.decode, body)
        call = _CallBody(lower.pod, lower.nodes, lower.nodenames)
    if call.pod is None:
        raise MalformedCall('the body holds no "Pod"; send the arguments of a scheduler extender, v1')
    names, known = _decode(read_names, call.node_names)
    if names is not None:
        return NodesCall(call.pod, names, None, known)
    if call.nodes is None or call.nodes.items is None:
        raise MalformedCall('the body holds neither "NodeNames" nor "Nodes"; send one of them')
    names = [_decode(_NODE.decode, raw).metadata.name for raw in call.nodes.items]
    return NodesCall(call.pod, names, call.nodes.items)


def read_binding(body: bytes) -> BindCall:
    call = BindCall(*msgspec.structs.astuple(_decode(_BINDING.decode, body)))
    missing = [
        name for name, value in zip(("PodName", "PodNamespace", "PodUID", "Node"), call, strict=True) if not value
    ]
    if missing:
        raise MalformedCall(f"the body holds no {', '.join(missing)}; send the arguments of a binding, v1")
    return call


def read_preemption(body: bytes) -> tuple[StoredPod, dict[str, MetaVictims]]:
    """Decodes the preempting pod and the proposed victims of each node; victims that came as pods become their uids."""
    found: _Preemption = _decode(_PREEMPTION.decode, body)
    if found.pod is None:
        raise MalformedCall('the body holds no "Pod"; send the arguments of a preemption, v1')
    victims = dict(found.node_name_to_meta_victims or {})
    for name, each in (found.node_name_to_victims or {}).items():
        uids = [MetaPod(pod.meta.uid) for pod in each.pods or ()]
        victims.setdefault(name, MetaVictims(uids, each.violations))
    return found.pod, victims


def filter_answer(call: NodesCall, feasible: Sequence[str], refused: Mapping[str, Sequence[str]]) -> bytes:
    """Encodes names for a call with names, objects for a call with objects; `refused` are the other nodes by reason."""
    reasons = b",".join([_refusals(names, reason) for reason, names in refused.items()])
    if call.full is None:
        return _filter_body(b"null", _encoded_names(feasible), reasons)
    kept = set(feasible)
    items = [raw for raw, name in zip(call.full, call.names, strict=True) if name in kept]
    return _filter_body(_encode({"metadata": {}, "items": items}), b"null", reasons)


def _filter_body(nodes: bytes, listed: bytes, reasons: bytes, error: bytes = b'""') -> bytes:
    """Joins the parts instead of formatting them, which copies a body of more than 100 kB again and again."""
    failed = b',"FailedNodes":{},"FailedAndUnresolvableNodes":{'
    return b"".join((b'{"Nodes":', nodes, b',"NodeNames":', listed, failed, reasons, b'},"Error":', error, b"}"))


class SharedNames(tuple[str, ...]):  # noqa: SLOT001 - has cached properties
    """Names that get the same answer in many calls, with their encoded form."""

    @cached_property
    def encoded(self) -> bytes:
        return _encode(self)

    @cached_property
    def encoded_refusals(self) -> dict[str, bytes]:
        return {}


def _encoded_names(names: Sequence[str]) -> bytes:
    return names.encoded if isinstance(names, SharedNames) else _encode(names)


def _refusals(names: Sequence[str], reason: str) -> bytes:
    if not isinstance(names, SharedNames):
        return _encode_refusals(names, reason)
    if (encoded := names.encoded_refusals.get(reason)) is None:
        encoded = names.encoded_refusals[reason] = _encode_refusals(names, reason)
    return encoded


def _encode_refusals(names: Sequence[str], reason: str) -> bytes:
    """Joins the names with their common reason: for thousands of names a fifth of the time of encoding a dict."""
    if b"\\" in _encode("".join(names)):  # a string that is no node name and must be escaped
        return _encode(dict.fromkeys(names, reason))[1:-1]
    value = f'":{_encode(reason).decode()}'
    between = f'{value},"'
    return f'"{between.join(names)}{value}'.encode()


def escape_percent(text: str) -> str:
    """Removes per cent signs: kube-scheduler formats event texts, and "50 % free" became "50 %!f(MISSING)ree"."""
    return _PER_CENT.sub(" per cent", text)


def filter_error(why: str) -> bytes:
    return _filter_body(b"null", b"null", b"", _encode(_error(why)))


def prioritize_answer(names: Iterable[str], scores: bytes) -> bytes:
    return _encode_scores(names, _omit_common(scores))


def _omit_common(scores: bytes) -> bytes:
    """Replaces a low score of many nodes by `_OMITTED`: to kube-scheduler a missing score is 0.

    Decoding thousands of scores takes it milliseconds, and only comparisons matter. The other scores are sent relative
    to the omitted one; the few that are even lower are omitted too.
    """
    common = max(_LOW_SCORES, key=scores.count)
    return scores.translate(_MINUS[common]) if scores.count(common) > _MANY else scores


def _encode_scores(names: Iterable[str], scores: bytes) -> bytes:
    if _OMITTED in scores:
        names = compress(names, scores.translate(_IS_SENT))
        scores = scores.replace(bytes([_OMITTED]), b"")
    return _encode([*map(_Score, names, scores)])


class PrioritizeEncoder:
    """Encodes answers for the same names again and again; only changed scores are encoded again."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._sent = b""
        self._parts: dict[str, bytes] = {}

    def encode(self, scores: bytes, changed: Collection[int]) -> bytes:
        """Encodes the scores; `changed` are the positions that may differ, which is checked."""
        sent = _omit_common(scores)
        if not self._changes_only(changed, sent):
            return self._encode_all(sent)
        self._sent = sent
        for at in changed:
            self._update(self._names[at], sent[at])
        return b"".join((b"[{", _BETWEEN.join(self._parts.values()), b"}]")) if self._parts else b"[]"

    def _changes_only(self, changed: Collection[int], sent: bytes) -> bool:
        """Returns whether no other position differs: another common score changes them all."""
        if not self._parts:
            return False
        patched = bytearray(self._sent)
        for at in changed:
            patched[at] = sent[at]
        return patched == sent

    def _update(self, name: str, score: int) -> None:
        if score == _OMITTED:
            self._parts.pop(name, None)
        else:
            self._parts[name] = _encode(_Score(name, score))[1:-1]

    def _encode_all(self, sent: bytes) -> bytes:
        """Encodes all scores at once and splits the result, which costs less than encoding each score.

        If a name contains the separator, the parts are too many and none are kept.
        """
        whole = _encode_scores(self._names, sent)
        parts = whole[2:-2].split(_BETWEEN)
        names = [*compress(self._names, sent.translate(_IS_SENT))]
        self._sent, self._parts = sent, dict(zip(names, parts, strict=True)) if len(parts) == len(names) else {}
        return whole


def bind_answer(why: str = "") -> bytes:
    return _encode({"Error": _error(why)})


def _error(why: str) -> str:
    return printable(escape_percent(why), _MAX_ERROR_CHARS)


def preempt_answer(victims: dict[str, MetaVictims]) -> bytes:
    return _encode({"NodeNameToMetaVictims": victims})

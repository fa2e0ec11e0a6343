"""Requests that no API server sends, made from valid reviews: each is known again by seed and number alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from admission.entry.body_bounds import MAX_BODY_BYTES
from halfcard import names

from . import reviews

_METHODS: Final = ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "POST")
_TYPES: Final = ("application/json", "text/plain", "application/x-www-form-urlencoded", "", "application/\x7f", "Ж")
_ODD: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1e308, 2**63, 10**40, "", "\x00", "💥" * 20, "1e9999", "-1", "NaN", "0x10",
    [], {}, [[]], [None], {"": None}, "x" * 5000, "\u202e", "10E", "1e127", "1e-128", ".", "+", "1.5",
)  # fmt: skip
_ODD_TEXTS: Final = (
    b"NaN", b"-Infinity", b"1" * 5000, b"1e400", b"-0", b"01", b'"\\ud800"', b'"\\ud83d\\ud83d"', b'"\xff\xfe"', b"nul",
    b'"\\u0000"', b"'x'", b"1_000", b"// x", b"\x00", b'"\x01"',
)  # fmt: skip


_JUDGED: Final = frozenset({"annotations", "containers", "hard", "labels", "volumes"})


@dataclass(frozen=True, slots=True)
class Case:
    """One request and how it was made."""

    kind: str
    method: str
    path: str
    content_type: str
    body: bytes

    def request(self) -> bytes:
        head = (
            f"{self.method} {self.path}?timeout=10s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n\r\n"
        )
        return head.encode() + self.body


Valid = Sequence[tuple[str, bytes]]
"""Paths, and bodies that are good there."""


def case(seed: int, number: int, valid: Valid = ()) -> Case:
    """Makes a request from one of the valid bodies, by default reviews."""
    random = Random(f"{seed}:{number}")
    kind = next((each for each, every in _COSTLY.items() if number % every == 0), "") or random.choice(_KINDS)
    path, body = random.choice(valid or _VALID)
    method, content_type = "POST", "application/json"
    if kind == "wrong method or type":
        method, content_type = random.choice(_METHODS), random.choice(_TYPES)
    return Case(kind, method, path, content_type, _DAMAGES[kind](random, body))


Damage = Callable[[Random, bytes], bytes]


def _truncated(random: Random, valid: bytes) -> bytes:
    return valid[: random.randrange(len(valid))]


def _flipped(random: Random, valid: bytes) -> bytes:
    damaged = bytearray(valid)
    for _ in range(random.randint(1, 8)):
        damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    return bytes(damaged)


def _spliced(random: Random, valid: bytes) -> bytes:
    """Moves, repeats or removes a piece of the body."""
    first, second = sorted(random.randrange(len(valid)) for _ in range(2))
    where = random.randrange(len(valid))
    return random.choice((valid[:where] + valid[first:second] + valid[where:], valid[:first] + valid[second:]))


def _duplicated_key(random: Random, valid: bytes) -> bytes:
    """Changes `{"a":1` to `{"a":…,"a":1` somewhere."""
    braces = [at for at in range(len(valid) - 1) if valid[at : at + 2] == b'{"']
    at = random.choice(braces) + 1
    key = valid[at : valid.index(b'"', at + 1) + 1]
    return valid[:at] + key + b":" + random.choice((b"null", b"1", b'"x"', b"{}", b"[]")) + b"," + valid[at:]


def _other_value(random: Random, valid: bytes) -> bytes:
    review = json.loads(valid)
    for _ in range(random.randint(1, 3)):
        parent, key = _somewhere(random, review)
        parent[key] = copy.deepcopy(random.choice(_ODD))  # or the next one is put into it for all cases to come
    return json.dumps(review).encode()


def _other_text(random: Random, valid: bytes) -> bytes:
    """Writes a value that Python's encoder would not write."""
    review = json.loads(valid)
    parent, key = _somewhere(random, review)
    parent[key] = "PUT-IT-HERE"
    return json.dumps(review).encode().replace(b'"PUT-IT-HERE"', random.choice(_ODD_TEXTS))


def _gone_or_renamed(random: Random, valid: bytes) -> bytes:
    review = json.loads(valid)
    parent, key = _somewhere(random, review)
    value = parent.pop(key)
    if isinstance(parent, dict) and random.random() < 0.5:
        parent[random.choice(("", "x" * 300, str(key).upper(), "__class__", "$ref"))] = value
    return json.dumps(review).encode()


def _somewhere(random: Random, review: Any) -> tuple[Any, Any]:
    """Chooses the parent and the key of a value, mostly one that decisions read, or one around it."""
    everywhere = list(_places(review, within=False))
    judged = [(parent, key) for parent, key, is_judged in everywhere if is_judged]
    if judged and random.random() < 0.6:
        return random.choice(judged)
    parent, key, _ = random.choice(everywhere)
    return parent, key


def _places(node: Any, *, within: bool) -> Iterator[tuple[Any, Any, bool]]:
    for key in node if isinstance(node, dict) else range(len(node)):
        judged = within or key in _JUDGED
        yield node, key, judged
        if isinstance(node[key], dict | list):
            yield from _places(node[key], within=judged)


def _deep(random: Random, valid: bytes) -> bytes:
    depth = random.choice((30, 150, 200, 1000, 20_000, 100_000))
    opening, closing = random.choice(((b"[", b"]"), (b'{"a":', b"}")))
    nested = opening * depth + b"0" + closing * (depth if random.random() < 0.5 else 0)
    return random.choice((nested, valid.replace(b'"dryRun":false', b'"dryRun":' + nested)))


def _marked(random: Random, valid: bytes) -> bytes:
    """Adds a byte order mark, another encoding, or random bytes before or after."""
    choices = (
        b"\xef\xbb\xbf" + valid, valid.decode().encode("utf-16"), valid.decode().encode("utf-32"), valid + valid,
        valid + b"\x00", b"\x1f\x8b\x08" + valid, b"\n" * 1000 + valid, valid.replace(b'"', b"'"), b"", b" ", b"null",
    )  # fmt: skip
    return random.choice(choices)


def _random_bytes(random: Random, _valid: bytes) -> bytes:
    return random.randbytes(random.randrange(2000))


def _enlarged(_random: Random, valid: bytes) -> bytes:
    return valid + b" " * MAX_BODY_BYTES


_DENSE_PARTS: Final = (b"[],", b"[[[[[]]]]],", b"{},", b'"a",', b"1000,", b'{"f:name":{},"f:value":{}},', b'{"":0},')


def _dense(random: Random, valid: bytes) -> bytes:
    """Puts a large list into a field that is not judged, or that is."""
    part = random.choice(_DENSE_PARTS)
    many = b"[" + part * (random.randrange(2**17, MAX_BODY_BYTES) // len(part)) + b"0]"
    field = random.choice((b'"dryRun":false', b'"containers":', b'"metadata":', b'"Pods":'))
    return valid.replace(field, field.split(b":")[0] + b":" + many + b',"b":', 1) if field in valid else many


def _unchanged(_random: Random, valid: bytes) -> bytes:
    return valid


_DAMAGES: Final[Mapping[str, Damage]] = {
    "truncated": _truncated,
    "flipped bits": _flipped,
    "spliced": _spliced,
    "duplicated key": _duplicated_key,
    "other value": _other_value,
    "value that is no JSON": _other_text,
    "field gone or renamed": _gone_or_renamed,
    "deep nesting": _deep,
    "marked or encoded": _marked,
    "random bytes": _random_bytes,
    "wrong method or type": _unchanged,
    "too large": _enlarged,
    "large and dense": _dense,
}
_COSTLY: Final = {"too large": 5000, "large and dense": 199}
"""These occur once in so many cases."""
_KINDS: Final = tuple(kind for kind in _DAMAGES if kind not in _COSTLY)


def _valid() -> tuple[tuple[str, bytes], ...]:
    """One review for each webhook, and updates, which carry two objects."""
    pod, accepted = reviews.pod(), reviews.accepted_pod()
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    workload = {"metadata": {"name": "trainer"}, "spec": {"replicas": 2, "template": template}}
    hard = {f"limits.{names.VCUDA_CORE}": "1.5", f"requests.{names.VCUDA_MEMORY}": "5Gi", "pods": "10"}
    quota = {"metadata": {"name": "gpu", "annotations": {names.QUOTA_TWINS: "{}"}}, "spec": {"hard": hard}}
    return (
        (names.MUTATE_PODS_PATH, _review("Pod", pod)),
        (names.VALIDATE_PODS_PATH, _review("Pod", accepted)),
        (names.MUTATE_PODS_PATH, _review("Pod", pod, accepted)),
        (names.VALIDATE_PODS_PATH, _review("Pod", accepted, pod)),
        (names.MUTATE_WORKLOADS_PATH, _review("Deployment", workload)),
        (names.VALIDATE_WORKLOADS_PATH, _review("Deployment", workload, workload)),
        (names.MUTATE_QUOTAS_PATH, _review("ResourceQuota", quota)),
    )


def _review(kind: str, obj: reviews.Json, old: reviews.Json | None = None) -> bytes:
    review = reviews.pod_review(obj)
    changed = {"operation": "CREATE" if old is None else "UPDATE", "oldObject": old, "kind": {"kind": kind}}
    return reviews.body(review | {"request": review["request"] | changed})


_VALID: Final = _valid()

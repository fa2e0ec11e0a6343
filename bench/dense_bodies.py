"""What reading dense bodies costs that are not refused, against a plain body of their size, in this process."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from admission import wire
from admission.entry.body_bounds import MAX_BODY_BYTES, check_cost
from serving.request_body import RefusedRequest

from . import reviews
from .figures import Figure, Part

MOST_OF_PLAIN: Final = 12.0
"""Time per byte. Nested lists take 10: they are the smallest values, and only bodies below 0.5 MB may have so many."""

_HEAD: Final = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1",'

BodyOfSize = Callable[[int], bytes]


def review(inside: bytes, operation: str = "UPDATE") -> bytes:
    return _HEAD + b'"operation":"%s","object":{"a":[%s1]}}}' % (operation.encode(), inside)


def _repeated(part: bytes) -> BodyOfSize:
    return lambda size: review(part * (size // len(part)))


def _keys(size: int) -> bytes:
    """Keys that differ, so that none is stored once for all."""
    return review(b"{%s}," % b",".join(b'"%06x":1' % number for number in range(size // 11)))


DENSE: Final[Mapping[str, BodyOfSize]] = {
    "empty lists": _repeated(b"[],"),
    "nested lists": _repeated(b"[[[[[]]]]],"),
    "empty objects": _repeated(b"{},"),
    "managed fields": _repeated(b'{"f:name":{},"f:value":{}},'),
    "short texts": _repeated(b'"a",'),
    "numbers": _repeated(b"1000,"),
    "variables": _repeated(b'{"name":"FOO_BAR","value":"some"},'),
    "keys": _keys,
    "pods": _repeated(reviews.body(reviews.pod()) + b","),
    "a text of wide characters": _repeated(b'"' + b"x" * 60 + "💥".encode() + b'",'),
}


def largest(kind: str) -> bytes:
    """Returns about the largest body of a kind that is not refused."""
    sizes = (int(MAX_BODY_BYTES / 1.25**step) - 200 for step in range(20))
    return next(body for body in map(DENSE[kind], sizes) if is_accepted(body))


def is_accepted(body: bytes) -> bool:
    try:
        check_cost(body)
    except RefusedRequest:
        return False
    return True


def measure(*, repeats: int = 7, kinds: Mapping[str, BodyOfSize] = DENSE) -> Part:
    ratios = {kind: _against_plain(largest(kind), repeats) for kind in kinds}
    slowest = max(ratios, key=lambda kind: ratios[kind])
    print("  dense bodies done", file=sys.stderr)
    title = f"CPU time of reading a dense body, per byte, against a plain pod of its size (best of {repeats})"
    figures = [Figure(kind, ratio, "x") for kind, ratio in ratios.items()]
    return Part(title, [*figures, Figure(f"the slowest: {slowest}", ratios[slowest], "x", MOST_OF_PLAIN)])


def _against_plain(dense: bytes, repeats: int) -> float:
    """Returns the ratio of times per byte; the bodies are read in turns."""
    plain = reviews.body(reviews.pod_review(reviews.pod_of_size(len(dense))))
    taken = [(_seconds(dense) / len(dense), _seconds(plain) / len(plain)) for _ in range(repeats)]
    return min(each for each, _ in taken) / min(each for _, each in taken)


def _seconds(body: bytes) -> float:
    gc.collect()
    began = time.process_time()
    wire.read(body)
    return time.process_time() - began

"""Cards that do not exist, for people who try Halfcard on a machine without any."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from threading import Event
from typing import Final

from halfcard import names
from halfcard.capacity import MAX_CARD_MIB
from halfcard.exit_codes import UnusableInputError
from halfcard.problems import printable

from .interface import Gpu, GpusError, Incident, Load, NoMemoryLimitsError

MOST_CARDS: Final = 64
_MODEL: Final = r"[A-Za-z][A-Za-z0-9._-]{0,62}"
_MIB: Final = r"[1-9][0-9]{0,8}"
_GROUP: Final = re.compile(rf"(?P<count>[1-9][0-9]?)x(?P<model>{_MODEL})(:(?P<mib>{_MIB}))?")
EXAMPLE: Final = "such as 4xT4, or 2xT4,1xMyCard:16160 with the MiB of a card"

_MODELS: Final = {
    "P4": ("Tesla P4", 7611),
    "P40": ("Tesla P40", 22919),
    "T4": ("Tesla T4", 15109),
    "V100-SXM2-16GB": ("Tesla V100-SXM2-16GB", 16160),
    "V100-SXM2-32GB": ("Tesla V100-SXM2-32GB", 32510),
    "A10": ("NVIDIA A10", 23028),
    "A30": ("NVIDIA A30", 24576),
    "A40": ("NVIDIA A40", 46068),
    "A100-SXM4-40GB": ("NVIDIA A100-SXM4-40GB", 40960),
    "A100-SXM4-80GB": ("NVIDIA A100-SXM4-80GB", 81920),
    "L4": ("NVIDIA L4", 23034),
    "L40S": ("NVIDIA L40S", 46068),
    "H100-80GB-HBM3": ("NVIDIA H100 80GB HBM3", 81559),
    "H200": ("NVIDIA H200", 143771),
}
"""The driver's names of the models, with their MiB."""

MODEL_RULE: Final = f"a model is one of {', '.join(_MODELS)}, or has its MiB behind a colon"

_KNOWN: Final = _MODELS | {name.replace(" ", "-"): (name, mib) for name, mib in _MODELS.values()}


_CARDS: Final = rf"[1-9][0-9]?x(({'|'.join(map(re.escape, sorted(_KNOWN)))})|{_MODEL}:{_MIB})"
SPEC: Final = rf"{_CARDS}(, *{_CARDS})*"
"""Matches every spec that is read; such a spec may still name too many cards, or too large ones."""


class SpecError(UnusableInputError):
    """The specification of the cards is invalid; the text says what, got, rule, example."""


class FakeGpus:
    """The fake cards of `spec`; their uuids stay the same on a node and differ between nodes.

    Raises:
        SpecError: the spec is invalid.
    """

    is_made_up = True

    def __init__(self, spec: str, node: str) -> None:
        self._gpus = made_up_gpus(spec, node)
        self._ended = Event()

    def read(self) -> tuple[Gpu, ...]:
        return self._gpus

    def load(self, uuid: str) -> Load:
        if uuid not in {gpu.uuid for gpu in self._gpus}:
            raise GpusError(f'no card "{uuid}" was made up')
        return Load(0, 0, ())

    def limit_memory(self, uuid: str, cgroup: str, mib: int) -> None:
        raise NoMemoryLimitsError("made-up cards have no memory")

    def wait(self, timeout_s: float) -> tuple[Incident, ...]:
        self._ended.wait(timeout_s)
        return ()

    def close(self) -> None:
        self._ended.set()


def made_up_gpus(spec: str, node: str) -> tuple[Gpu, ...]:
    cards = [card for group in spec.split(",") for card in _cards(group.strip(), spec)]
    if len(cards) > MOST_CARDS:
        raise _refused(spec, f"a node has at most {MOST_CARDS} cards")
    return tuple(_gpu(minor, model, mib, node) for minor, (model, mib) in enumerate(cards))


def _gpu(minor: int, model: str, mib: int, node: str) -> Gpu:
    name = f"{names.MADE_UP_LABEL}/{node}/{minor}"
    return Gpu(minor, f"GPU-{uuid.uuid5(uuid.NAMESPACE_URL, name)}", model, mib, f"00000000:{minor + 1:02X}:00.0")


def _cards(group: str, spec: str) -> Iterator[tuple[str, int]]:
    read = _GROUP.fullmatch(group)
    if read is None:
        raise _refused(spec, f'"{printable(group, 60)}" is no COUNTxMODEL[:MIB]')
    model, mib = _KNOWN.get(read["model"], (read["model"], 0))
    mib = int(read["mib"] or mib)
    if not mib:
        raise _refused(spec, MODEL_RULE)
    if mib > MAX_CARD_MIB:
        raise _refused(spec, f"a card has at most {MAX_CARD_MIB} MiB")
    yield from [(model, mib)] * int(read["count"])


def _refused(spec: str, rule: str) -> SpecError:
    return SpecError(f'--fake-gpus: got "{printable(spec, 100)}"; {rule}; {EXAMPLE}')

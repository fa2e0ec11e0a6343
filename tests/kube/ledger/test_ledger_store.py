"""Ledgers as objects: what is written is read again, and the largest is far from what an API server takes."""

from __future__ import annotations

import random
import string
from typing import Final
from uuid import uuid4

import msgspec
import pytest

from halfcard.quota.ledger import MAX_LABEL_VALUES, MAX_RESERVATIONS, Entry, Ledger
from kube.ledger.ledger_store import ConfigMap, ConfigMapMetadata, WatchedLedger, to_config_map

MOST_BYTES: Final = 2**20
"""Of a ConfigMap."""

LABEL: Final = f"{'x' * 253}/{'y' * 63}"
KEYS: Final = ("cores", "memory", "cards", "shares")


def reservations(many: int) -> dict[str, Entry]:
    cost = dict.fromkeys(KEYS, 2**40)
    return {str(uuid4()): Entry(f"{number:063}", f"{number:0253}", cost) for number in range(many)}


def stored(ledger: Ledger) -> bytes:
    return msgspec.json.encode(to_config_map(ConfigMapMetadata("gpuquota.a.b", "7"), ledger))


@pytest.mark.parametrize("many", [0, 3, MAX_RESERVATIONS])
def test_a_written_ledger_is_read_unchanged(many: int) -> None:
    ledger = Ledger({"cores": 9}, committed={"cores": 5}, reservations=reservations(many), lent={"b": {"cores": 1}})
    kept = WatchedLedger("gpuquota.a.b", msgspec.json.decode(stored(ledger), type=ConfigMap)).read()
    assert kept is not None and kept.ledger == ledger and kept.version == "7"


def test_the_largest_ledger_is_accepted_by_the_api_server() -> None:
    chance = random.Random(7)
    letters = string.ascii_letters + string.digits
    values = ["".join(chance.choices(letters, k=63)) for _ in range(MAX_LABEL_VALUES)]
    committed = {f"{key} per {LABEL}={value}": 2**40 for value in values for key in KEYS}
    largest = Ledger({}, committed=committed, reservations=reservations(MAX_RESERVATIONS))
    assert len(stored(largest)) < MOST_BYTES * 0.8


@pytest.mark.parametrize("content", [{"data": {"ledger": "{}"}}, {"binaryData": {"ledger": "bm9wZQ=="}}, {}])
def test_an_invalid_config_map_is_not_read_as_a_ledger(content: dict[str, object]) -> None:
    found = msgspec.convert({"metadata": {"name": "x", "resourceVersion": "1"}, **content}, ConfigMap)
    assert WatchedLedger("x", found).read() is None

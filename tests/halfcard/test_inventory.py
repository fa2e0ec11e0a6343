from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from halfcard import names
from halfcard.capacity import MAX_CARD_MIB, ImplausibleError
from halfcard.cards import Card
from halfcard.inventory import Inventory, read_inventory, write_inventory


def test_a_card_is_read_as_it_is_written() -> None:
    text = (
        '[{"index":1,"uuid":"GPU-1a","model":"NVIDIA A10","memory_mib":23028,"numa":1,"links":{"0":40},"replicas":4,'
        '"unhealthy":"Xid 79","not_held":"no libcuda"}]'
    )
    card = Card(1, "NVIDIA A10", 23028, "GPU-1a", 1, ((0, 40),), 4, "Xid 79", "no libcuda")
    assert read_inventory(text) == ((card,), names.NVIDIA_GPU)
    assert json.loads(write_inventory([card])) == json.loads(text)


def test_absent_fields_are_unknown() -> None:
    assert read_inventory('[{"index":0,"sold_by":"somebody"}]') == ((Card(0, "", None),), "")
    assert write_inventory([Card(0, "", None)]) == '[{"index":0}]'


SLICED: Final = {
    "one piece": ('[{"index":0}]', ""),
    "under the cards' own name": ('[{"index":0,"replicas":4},{"index":1}]', names.NVIDIA_GPU),
    "under another name": ('[{"index":0,"replicas":4,"sold_as":"nvidia.com/gpu.shared"}]', names.NVIDIA_GPU_SHARED),
    "what is in one piece has no slices to name": ('[{"index":0,"sold_as":"nvidia.com/gpu.shared"}]', ""),
}


@pytest.mark.parametrize(("text", "slices"), SLICED.values(), ids=SLICED)
def test_time_slices_are_recognised_by_their_replicas(text: str, slices: str) -> None:
    assert read_inventory(text).slices == slices


REFUSED: Final = {
    "nothing": ("", "a JSON list of cards"),
    "no JSON": ("GPU-0", "a JSON list of cards"),
    "one card": ('{"index":0}', "a JSON list of cards"),
    "no index": ('[{"uuid":"GPU-0"}]', "a JSON list of cards"),
    "half a byte": ("\ud800", "a JSON list of cards"),
    "lists in lists": ('[{"index":0,"x":' + "[" * 100_000, "a JSON list of cards"),
    "too long": ("[" + " " * 300_000 + "]", "at most 262144 characters"),
    "too many cards": (json.dumps([{"index": 0}] * 1025), "at most 1024 cards"),
    "an index below 0": ('[{"index":-1}]', "the index of a card is from 0 to 1023"),
    "an index beyond": ('[{"index":1024}]', 'got "1024"'),
    "a card without memory": ('[{"index":0,"memory_mib":0}]', "memory of a card in MiB is from 1"),
    "a card of less than none": ('[{"index":0,"memory_mib":-1}]', 'got "-1"'),
    "a huge card": (f'[{{"index":0,"memory_mib":{MAX_CARD_MIB + 1}}}]', "memory of a card"),
    "a number of thousands of digits": ('[{"index":0,"memory_mib":%s}]' % ("9" * 4000), "memory of a card"),
    "no slice": ('[{"index":0,"replicas":0}]', "time slices of a card is from 1 to 1024"),
    "slices under any name": ('[{"index":0,"replicas":2,"sold_as":"a/b"}]', "one of nvidia.com/gpu, nvidia"),
    "slices under two names": (
        '[{"index":0,"replicas":2,"sold_as":"nvidia.com/gpu.shared"},{"index":1,"replicas":2}]',
        "one of nvidia.com/gpu, nvidia",
    ),
    "a link to nowhere": ('[{"index":0,"links":{"-1":1}}]', "index of a linked card"),
    "a link to a name": ('[{"index":0,"links":{"x":1}}]', "a JSON list of cards"),
    "a link of no strength": ('[{"index":0,"links":{"1":-1}}]', "strength of a link"),
    "one index twice": ('[{"index":0},{"index":0}]', "an index and a uuid of its own"),
    "one uuid twice": ('[{"index":0,"uuid":"a"},{"index":1,"uuid":"a"}]', "an index and a uuid of its own"),
    "a uuid that is an index": ('[{"index":0,"uuid":"1"},{"index":1}]', "begins with a letter"),
    "a uuid of two words": ('[{"index":0,"uuid":"GPU-0,GPU-1"}]', "begins with a letter"),
}


@pytest.mark.parametrize(("text", "rule"), REFUSED.values(), ids=REFUSED)
def test_an_impossible_inventory_is_refused_with_a_sentence(text: str, rule: str) -> None:
    with pytest.raises(ImplausibleError) as refused:
        read_inventory(text)
    assert str(refused.value).startswith('metadata.annotations["halfcard.dev/inventory"]: got "')
    assert rule in str(refused.value)


NUMBERS: Final = st.integers(0, 1023)
INVENTORIES: Final = st.lists(
    st.builds(
        Card,
        index=NUMBERS,
        model=st.sampled_from(["", "NVIDIA A100-SXM4-80GB", "特斯拉"]),
        memory_mib=st.none() | st.integers(1, MAX_CARD_MIB),
        uuid=st.just("") | st.from_regex(r"GPU-[0-9a-f]{4}", fullmatch=True),
        numa=st.none() | st.integers(-1, 7),
        links=st.dictionaries(NUMBERS, st.integers(0, 100), max_size=4).map(lambda links: tuple(sorted(links.items()))),
        replicas=st.integers(1, 1024),
        why_not=st.sampled_from(["", "Xid 79", "gone"]),
    ),
    max_size=8,
    unique_by=(lambda card: card.index, lambda card: card.uuid or card.index),
).map(tuple)


@given(INVENTORIES, st.sampled_from([names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED]))
def test_a_written_inventory_is_read_back(cards: tuple[Card, ...], slices: str) -> None:
    sliced = any(card.replicas > 1 for card in cards)
    assert read_inventory(write_inventory(cards, slices)) == (cards, slices if sliced else "")


JSON: Final[st.SearchStrategy[Any]] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
FIELDS: Final = st.sampled_from(
    ["index", "uuid", "model", "memory_mib", "numa", "links", "replicas", "sold_as", "unhealthy", "x"]
)
NEARLY: Final = st.lists(st.dictionaries(FIELDS, JSON | st.integers(-1, 2000), max_size=8) | JSON, max_size=4).map(
    json.dumps
)


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """A real inventory with a few changed characters."""
    text = list(write_inventory(draw(INVENTORIES)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 3))] = draw(st.text(max_size=2) | st.sampled_from('0-9"{}[],:eE.'))
    return "".join(text)


@settings(max_examples=500)
@given(spoilt() | NEARLY | st.text())
@example("[" * 200_000)
def test_any_text_is_an_inventory_or_refused(text: str) -> None:
    read, sentence = read_or_refused(text)
    assert sentence.isprintable() and len(sentence) < 500
    assert read_inventory(write_inventory(*read)) == read


def read_or_refused(text: str) -> tuple[Inventory, str]:
    try:
        return read_inventory(text), ""
    except ImplausibleError as refused:
        return Inventory(()), str(refused)

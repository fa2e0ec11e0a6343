"""Fake cards: what a spec means, and with which messages invalid ones are refused."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from deviceplugin.gpus.driver_cards import cards
from deviceplugin.gpus.fake_gpus import SPEC, FakeGpus, SpecError, made_up_gpus
from deviceplugin.gpus.interface import Gpus, GpusError, Load
from deviceplugin.gpus.nvml import Nvml
from halfcard.inventory import read_inventory, write_inventory

SPECS: Final = {
    "4xT4": [("Tesla T4", 15109)] * 4,
    "8xA100-SXM4-80GB": [("NVIDIA A100-SXM4-80GB", 81920)] * 8,
    "1xTesla-T4": [("Tesla T4", 15109)],
    "2xT4:15360,1xV100:16160": [("Tesla T4", 15360)] * 2 + [("V100", 16160)],
    "1xT4, 1xMy_Card.2:1": [("Tesla T4", 15109), ("My_Card.2", 1)],
}


@pytest.mark.parametrize(("spec", "wanted"), SPECS.items())
def test_a_spec_names_count_model_and_memory(spec: str, wanted: list[tuple[str, int]]) -> None:
    gpus = made_up_gpus(spec, "node-1")
    assert [(gpu.model, gpu.memory_mib) for gpu in gpus] == wanted
    assert [gpu.minor for gpu in gpus] == list(range(len(wanted)))
    found = cards(gpus, {})
    assert read_inventory(write_inventory(found)).cards == found


def test_a_16_gb_card_has_59_units_as_gpu_manager_counts() -> None:
    assert made_up_gpus("1xT4", "node-1")[0].memory_mib // 256 == 59


REFUSED: Final = {
    "nothing": ("", '"" is no COUNTxMODEL'),
    "no count": ("T4", '"T4" is no COUNTxMODEL'),
    "none": ("0xT4", '"0xT4" is no COUNTxMODEL'),
    "a group without one": ("1xT4,", '"" is no COUNTxMODEL'),
    "no memory": ("1xT4:0", '"1xT4:0" is no COUNTxMODEL'),
    "a unit": ("1xT4:16Gi", '"1xT4:16Gi" is no COUNTxMODEL'),
    "digits of another script": ("٣xT4", "is no COUNTxMODEL"),
    "an unknown model": ("1xV1000", "a model is one of P4, P40, T4"),
    "more memory than there is": ("1xT4:99999999", "a card has at most 16777216 MiB"),
    "more cards than a node has": ("60xT4,5xT4", "a node has at most 64 cards"),
}


@pytest.mark.parametrize(("spec", "rule"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_spec_is_refused_with_a_sentence(spec: str, rule: str) -> None:
    with pytest.raises(SpecError) as refused:
        FakeGpus(spec, "node-1")
    said = str(refused.value)
    assert said.startswith(f'--fake-gpus: got "{spec}"; ') and rule in said and said.endswith("the MiB of a card")


@pytest.mark.parametrize("spec", [*SPECS, *(f"1x{model}:{mib}" for model in ("T4", "T4x", "x") for mib in (1, 999999))])
def test_the_pattern_for_the_chart_matches_what_is_read(spec: str) -> None:
    assert made_up_gpus(spec, "node-1") and re.fullmatch(SPEC, spec)


def test_the_pattern_for_the_chart_leaves_only_sums_and_sizes_to_the_agent() -> None:
    left = {name for name, (spec, _) in REFUSED.items() if re.fullmatch(SPEC, spec)}
    assert left == {"more memory than there is", "more cards than a node has"}


def test_uuids_are_stable_and_differ_between_nodes() -> None:
    first, again, elsewhere = (
        {gpu.uuid for gpu in made_up_gpus("4xT4", node)} for node in ("node-1", "node-1", "node-2")
    )
    assert first == again and len(first | elsewhere) == 8


def test_fake_cards_have_no_processes_and_no_incidents() -> None:
    made_up = FakeGpus("1xT4", "node-1")
    assert made_up.is_made_up and not Nvml.is_made_up
    assert made_up.load(made_up.read()[0].uuid) == Load(0, 0, ())
    assert made_up.wait(0.01) == ()
    with pytest.raises(GpusError, match='no card "GPU-1" was made up'):
        made_up.load("GPU-1")


def test_closing_ends_a_wait() -> None:
    made_up: Gpus = FakeGpus("1xT4", "node-1")
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(made_up.wait, 30.0)
        made_up.close()
        assert waiting.result(5) == ()


def test_nvml_has_the_interface_of_fake_cards() -> None:
    nvml: Gpus = Nvml()
    nvml.close()

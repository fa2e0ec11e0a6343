"""The extender's benchmark end to end on a few nodes. What it measures is not judged here, only that it does."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench import extender
from bench import extender_cluster as cluster
from bench.extender_cluster import Size
from extender.state import State
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects

from .printed import parts_of


def test_the_benchmark_prints_a_table_and_writes_it_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parts = parts_of(extender.main, "--quick", "--nodes", "40", folder=tmp_path, capfd=capfd)
    assert len(parts) == 10
    figures = [figure for part in parts for figure in part["figures"]]
    assert all(figure["name"] and math.isfinite(figure["value"]) for figure in figures)


def test_no_card_of_the_cluster_is_overcommitted() -> None:
    size = Size(nodes=10, pods=40, pods_later=400)
    state = State(Dialects(), CapacityRules())
    state.replace_nodes([cluster.node(number) for number in range(size.nodes)])
    state.replace_pods([*cluster.placed(size), *cluster.later(size)])
    assert state.inconsistencies() == ()
    assert sum(1 for _ in state.pods()) == size.pods_later


def test_a_full_node_is_about_as_large_as_a_real_one() -> None:
    assert 10_000 <= len(json.dumps(cluster.full_node(7))) < 10_500

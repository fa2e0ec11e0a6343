"""A policy is added by the steps of "To add": pods, `halfcard simulate` and the settings accept it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from halfcard import names
from tests.simulation.trace import node_table, pod_table

from .tree import Tree, copy_of_the_product

_MODULE: Final = '''"""Prefers nodes with the most free cards."""

from __future__ import annotations

from collections.abc import Iterable

from halfcard.placing.demand import Demand
from halfcard.placing.room import Room

from ..fleet import Fleet
from ..workload_mix import WorkloadMix


class Widest:
    name = "widest"

    def value(self, room: Room) -> float:
        return -float(len(room.usable))

    def asked(self, room: Room, demand: Demand) -> float:
        return 0.0

    def rank(self, gain: float) -> float:
        return gain

    def adapted(self, rooms: Iterable[Room]) -> Widest:
        return self


def make_policy(_mix: WorkloadMix, _fleet: Fleet) -> Widest:
    return Widest()
'''
_POD: Final = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, annotations: {%s: %s}}
spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""
_PACKED_BY: Final = """
from extender.packing.policy_cache import PolicyCache
from extender.packing.workload_stats import WorkloadStats
from extender.state import State
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from halfcard.pod.card_preferences import read_preferences
from settings.installation import Settings

wanted = read_preferences({"%s": "widest"})
policies = PolicyCache(Settings(packing="widest").packing, WorkloadStats().mix, State(Dialects(), CapacityRules()))
print(policies.policy(wanted.policy).name, policies.policy("").name)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = copy_of_the_product(tmp_path_factory.mktemp("policy"))
    tree.add("extender/packing/policies/widest.py", _MODULE)
    tree.edit("halfcard/pod/card_preferences.py", '"spread", "fgd")', '"spread", "fgd", "widest")')
    return tree


def test_the_webhook_admits_a_pod_that_names_it_and_no_other(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(_POD % (names.ASK_POLICY, "widest"))
    (tmp_path / "bad.yaml").write_text(_POD % (names.ASK_POLICY, "wide"))
    good = tree.python("-m", "cli", "review", "-f", str(tmp_path / "good.yaml"))
    assert (good.returncode, good.stderr) == (0, "")
    bad = tree.python("-m", "cli", "review", "-f", str(tmp_path / "bad.yaml"))
    assert bad.returncode == 1
    assert "fgd or widest" in " ".join(bad.stdout.split())


def test_the_extender_places_by_it_where_the_pod_or_the_settings_name_it(tree: Tree) -> None:
    done = tree.python("-c", _PACKED_BY % names.ASK_POLICY)
    assert (done.stdout.strip(), done.stderr) == ("widest widest", "")


def test_halfcard_simulate_replays_by_it(tree: Tree, tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(node_table())
    pods.write_text(pod_table())
    done = tree.python(
        *("-m", "cli", "simulate", "--nodes", str(nodes), "--pods", str(pods)), "--policy", "widest", "-o", "json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["policy"] == "widest"

from __future__ import annotations

from typing import Final

import pytest

from extender.packing.policies.binpack import Binpack
from extender.packing.policies.spread import Spread
from halfcard.placing.demand import Demand
from halfcard.placing.room import Room

from .rooms import chosen, room, share, whole

PLACES: Final[dict[str, tuple[list[Room], Demand, int, int]]] = {
    "a share": ([room(100, 100), room(100, 60), room(100, 30)], share(30), 2, 0),
    "a share that fits on few cards": ([room(100, 100), room(20, 60), room(20, 20)], share(30), 1, 0),
    "a whole card": ([room(100, 100), room(100, 0), room(100, 50)], whole(1), 1, 0),
}
"""Nodes and a pod; where it is packed, and where it is spread to."""


@pytest.mark.parametrize("name", PLACES)
def test_binpack_prefers_the_fullest_node_and_spread_the_emptiest(name: str) -> None:
    nodes, demand, packed, spread = PLACES[name]
    assert chosen(Binpack(), nodes, demand) == packed
    assert chosen(Spread(), nodes, demand) == spread


@pytest.mark.parametrize("policy", [Binpack(), Spread()])
def test_equal_nodes_rank_alike(policy: Binpack | Spread) -> None:
    assert chosen(policy, [room(100, 70), room(70, 100)], share(30)) == 0


@pytest.mark.parametrize("policy", [Binpack(), Spread()])
def test_binpack_and_spread_do_not_adapt_to_the_cluster(policy: Binpack | Spread) -> None:
    assert policy.adapted([room(0)]) is policy

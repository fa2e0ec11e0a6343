"""Pods come and go, and the cards are counted again by other means."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.packing.placement import POLICIES, PackingPolicy, rank_of
from halfcard.placing.room import empty_room
from simulation.simulated_cluster import SimulatedCluster, SimulatedPod
from simulation.workload import ReplayWorkload, TracePod

from .trace import workload

SMALL = workload(nodes=6, pods=40)
each_policy = pytest.mark.parametrize("policy", POLICIES)


def cluster_of(policy: str, base: ReplayWorkload = SMALL) -> SimulatedCluster:
    return SimulatedCluster(base.nodes, POLICIES[policy](base.mix, base.fleet))


def check_nothing_is_given_twice(base: ReplayWorkload, stays: list[tuple[TracePod, SimulatedPod]]) -> None:
    """From what the pods ask for and where they are, without the code that places them."""
    shares: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    cpu: defaultdict[int, int] = defaultdict(int)
    memory: defaultdict[int, int] = defaultdict(int)
    for pod, stay in stays:
        cards = sum(need.claim.cards for need in pod.demand.needs)
        assert len(stay.uses) == cards
        for card in stay.uses:
            shares[stay.at, card].append(pod.milli // cards)
            assert pod.demand.wanted.allows(base.nodes[stay.at].cards[card])
        cpu[stay.at] += pod.demand.cpu_milli
        memory[stay.at] += pod.demand.memory_mib
    assert all(sum(milli) <= 1000 for milli in shares.values())
    for at, node in enumerate(base.nodes):
        assert cpu[at] <= node.cpu_milli and memory[at] <= node.memory_mib


@each_policy
def test_no_amount_is_granted_twice_in_a_fill_up(policy: str) -> None:
    base = SMALL.drawn(1, 2.0)
    cluster = cluster_of(policy, base)
    stays = [(pod, stay) for pod in base.pods if (stay := cluster.arrive(pod.demand)) is not None]
    assert len(stays) > len(base.pods) // 4
    check_nothing_is_given_twice(base, stays)


@each_policy
@given(steps=st.lists(st.tuples(st.integers(0, 39), st.booleans()), max_size=80))
def test_arriving_and_leaving_pods_never_overlap_and_restore_the_rooms(
    policy: str, steps: list[tuple[int, bool]]
) -> None:
    cluster = cluster_of(policy)
    stays: list[tuple[TracePod, SimulatedPod]] = []
    for number, leaves in steps:
        if leaves and stays:
            cluster.leave(stays.pop(number % len(stays))[1])
        elif (stay := cluster.arrive(SMALL.pods[number].demand)) is not None:
            stays.append((SMALL.pods[number], stay))
    check_nothing_is_given_twice(SMALL, stays)
    for _, stay in stays:
        cluster.leave(stay)
    assert cluster.rooms == [empty_room(node) for node in SMALL.nodes]


@each_policy
@given(numbers=st.lists(st.integers(0, 39), max_size=50))
def test_cached_ranks_equal_new_ones(policy: str, numbers: list[int]) -> None:
    cluster = cluster_of(policy)
    cluster.policy = cluster.policy.adapted(cluster.rooms)
    for number in numbers:
        ranked = [_rank(cluster, at, number) for at in range(len(cluster.rooms))]
        expected = ranked.index(max(ranked)) if max(ranked) > float("-inf") else None
        stay = cluster.arrive(SMALL.pods[number].demand)
        assert (stay.at if stay else None) == expected


def _rank(cluster: SimulatedCluster, at: int, number: int) -> float:
    policy: PackingPolicy = cluster.policy
    room, demand = cluster.rooms[at], SMALL.pods[number].demand
    if room.cpu_milli < demand.cpu_milli or room.memory_mib < demand.memory_mib:
        return float("-inf")
    return rank_of(room, demand, policy)


@each_policy
def test_equal_nodes_take_pods_in_their_order(policy: str) -> None:
    alike = tuple(node for node in workload(nodes=36).nodes if len(node.cards) == 8)
    cluster = SimulatedCluster(alike, POLICIES[policy](SMALL.mix, SMALL.fleet))
    stay = cluster.arrive(next(pod.demand for pod in SMALL.pods if pod.milli == 8000))
    assert stay is not None and stay.at == 0

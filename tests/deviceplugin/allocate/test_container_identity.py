"""From device ids back to pod and container."""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from deviceplugin.allocate.container_identity import (
    StartingContainer,
    candidates,
    identity_error,
    pods_holding,
)
from deviceplugin.kubelet.messages import ListedDevices
from halfcard import names
from halfcard.claims import ContainerStage
from halfcard.placing.indistinguishable import same_cards_as
from tests.builders import pod
from tests.halfcard.placing.examples import HAMI, WRITTEN, Written, facts, stored

from ..device_manager import AllocatedIds, DeviceManager, asks_of

GPU: Final = names.NVIDIA_GPU
INIT, APP, SIDECAR = ContainerStage.INIT, ContainerStage.APP, ContainerStage.SIDECAR


def held(name: str, container: str, *ids: str, resource: str = GPU) -> ListedDevices:
    return ListedDevices("team", name, container, resource, frozenset(ids))


def test_pod_and_container_are_found_by_their_device_ids() -> None:
    everybody = [held("a", "main", "hc-0", "hc-1"), held("b", "main", "hc-2"), held("b", "side", "hc-3")]
    ids = frozenset({"hc-3"})
    assert pods_holding(everybody, GPU, ids) == (StartingContainer("team", "b", GPU, ids, "side"),)


def test_an_init_container_may_have_more_ids_than_the_containers_after_it() -> None:
    ids = frozenset({"hc-0", "hc-1", "hc-2"})
    assert pods_holding([held("a", "main", "hc-1")], GPU, ids) == (StartingContainer("team", "a", GPU, ids),)


def test_ids_of_another_resource_do_not_match() -> None:
    everybody = [held("a", "main", "hc-0", resource=names.VCUDA_CORE), held("b", "main", "hc-0")]
    assert [each.pod for each in pods_holding(everybody, GPU, frozenset({"hc-0"}))] == ["b"]


def test_ids_that_no_pod_has_are_refused() -> None:
    ids = frozenset({"hc-7"})
    assert pods_holding([held("a", "main", "hc-0")], GPU, ids) == ()
    assert str(identity_error((), GPU, ids)).startswith(
        "kubelet does not report which pod holds 1 of nvidia.com/gpu (hc-7)"
    )


def test_an_id_that_kubelet_allocated_twice_names_both_pods() -> None:
    everybody = [held("a", "main", "hc-0", "hc-1"), held("b", "side", "hc-1"), held("b", "main", "hc-2")]
    ids = frozenset({"hc-1"})
    both = pods_holding(everybody, GPU, ids)
    assert both == (StartingContainer("team", "a", GPU, ids), StartingContainer("team", "b", GPU, ids, "side"))
    assert str(identity_error(both, GPU, ids)) == (
        "kubelet allocated 1 of nvidia.com/gpu (hc-1) to both team/a and team/b; delete the one that does not run yet"
    )


def test_kubelet_allocates_to_init_containers_first() -> None:
    asks = pod().asks(gpu=1).init(gpu="2").sidecar(gpu=1).asks(memory=3).init(gpu=0)
    assert asks_of(stored(asks), GPU) == (
        AllocatedIds("initContainers-0", INIT, 2),
        AllocatedIds("initContainers-1", SIDECAR, 1),
        AllocatedIds("containers-0", APP, 1),
    )


def test_the_candidates_are_the_listed_container_and_init_containers_with_as_many_ids() -> None:
    asking = facts(pod().init(gpu=3).init(gpu=2).asks(gpu=2).asks(gpu=1))

    def named(listed: str, count: int) -> tuple[str, ...]:
        ids = frozenset(f"hc-{number}" for number in range(count))
        return candidates(asking, StartingContainer("team", "p", GPU, ids, listed))

    assert named("containers-0", 2) == ("initContainers-1", "containers-0")
    assert named("containers-1", 1) == ("containers-1",)
    assert named("unknown", 2) == ("unknown",)
    assert named("", 3) == ("initContainers-0",)


CONTAINERS: Final = st.tuples(st.sampled_from(["init", "init", "sidecar", "asks"]), st.one_of(WRITTEN, HAMI))


@settings(max_examples=200)
@given(st.lists(CONTAINERS, min_size=1, max_size=6), st.data())
def test_indistinguishable_containers_with_the_same_cards_are_never_refused(
    containers: list[tuple[str, Written]], data: st.DataObject
) -> None:
    """Whichever ids kubelet reuses, all containers that they may belong to have the same cards."""
    again = st.sampled_from([written for _, written in containers])  # containers of a pod often ask for the same
    asking = pod()
    for word, _ in containers:
        asking = getattr(asking, word)(**dict(data.draw(again).amounts))
    kept, seen = stored(asking), facts(asking)
    needs = seen.demand.needs
    cards: list[int] = []
    for number in range(len(needs)):
        tied = same_cards_as(needs, number)
        cards.append(number if tied is None else cards[tied])
    cards_of = dict(zip(seen.containers, cards, strict=True))
    kubelet = DeviceManager(data.draw(st.integers()), frozenset(resource for need in needs for resource, _ in need.ids))
    given_ids = kubelet.admit(kept)
    for (container, resource), ids in given_ids.items():
        listed = "".join(each.listed for each in pods_holding(kubelet.held(), resource, ids))
        named = candidates(seen, StartingContainer("team", "p", resource, ids, listed))
        assert container in named
        assert len({cards_of[each] for each in named}) == 1

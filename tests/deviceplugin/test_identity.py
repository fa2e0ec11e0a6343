"""From device ids back to pod and container."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.identity import Ask, Starting, UnservedError, asks_of, candidates, may_be_handed_on, starting
from deviceplugin.kubelet.pod_resources import Held
from halfcard import names
from halfcard.placing.demand import Stage
from tests.builders import pod
from tests.halfcard.placing.examples import stored

from .device_manager import DeviceManager

GPU: Final = names.NVIDIA_GPU
INIT, APP, SIDECAR = Stage.INIT, Stage.APP, Stage.SIDECAR


def held(name: str, container: str, *ids: str, resource: str = GPU) -> Held:
    return Held("team", name, container, resource, frozenset(ids))


def test_the_pod_is_the_one_that_holds_the_ids_and_the_container_the_one_with_exactly_these() -> None:
    everybody = [held("a", "main", "hc-0", "hc-1"), held("b", "main", "hc-2"), held("b", "side", "hc-3")]
    ids = frozenset({"hc-3"})
    assert starting(everybody, GPU, ids) == Starting("team", "b", GPU, ids, "side")


def test_an_init_container_may_hold_more_than_the_containers_after_it() -> None:
    ids = frozenset({"hc-0", "hc-1", "hc-2"})
    assert starting([held("a", "main", "hc-1")], GPU, ids) == Starting("team", "a", GPU, ids)


def test_the_same_ids_of_another_resource_are_somebody_elses() -> None:
    everybody = [held("a", "main", "hc-0", resource=names.VCUDA_CORE), held("b", "main", "hc-0")]
    found = starting(everybody, GPU, frozenset({"hc-0"}))
    assert found is not None and found.pod == "b"


def test_ids_that_nobody_holds_are_nobodys() -> None:
    assert starting([held("a", "main", "hc-0")], GPU, frozenset({"hc-7"})) is None


def test_ids_that_two_pods_hold_are_a_sentence() -> None:
    with pytest.raises(UnservedError, match=r"team/a, team/b all hold 1 of nvidia.com/gpu \(hc-0\); it tries again"):
        starting([held("a", "main", "hc-0"), held("b", "main", "hc-0")], GPU, frozenset({"hc-0"}))


def test_asks_are_in_the_order_in_which_kubelet_gives() -> None:
    asks = pod().asks(gpu=1).init(gpu="2").sidecar(gpu=1).asks(memory=3).init(gpu=0)
    assert asks_of(stored(asks), GPU) == (
        Ask("initContainers-0", INIT, 2),
        Ask("initContainers-1", SIDECAR, 1),
        Ask("containers-0", APP, 1),
    )


CANDIDATES: Final[dict[str, tuple[list[tuple[Stage, int]], str, int, tuple[str, ...]]]] = {
    "one app": ([(APP, 1)], "0", 1, ("0",)),
    "an init hands on": ([(INIT, 1), (APP, 1)], "1", 1, ("0", "1")),
    "to the first that asks for as many": ([(INIT, 1), (APP, 1), (APP, 1)], "2", 1, ("2",)),
    "an init that asked for more": ([(INIT, 2), (APP, 1)], "1", 1, ("1",)),
    "and starts itself": ([(INIT, 2), (APP, 1)], "", 2, ("0",)),
    "somebody between took some": ([(INIT, 2), (APP, 1), (APP, 2)], "2", 2, ("2",)),
    "a sidecar before": ([(SIDECAR, 1), (INIT, 1), (APP, 1)], "0", 1, ("0",)),
    "a larger pool may leave them": ([(INIT, 2), (INIT, 1), (APP, 1), (APP, 1)], "3", 1, ("1", "3")),
    "two inits": ([(INIT, 1), (INIT, 1)], "", 1, ("0", "1")),
}


@pytest.mark.parametrize(("written", "listed", "amount", "wanted"), CANDIDATES.values(), ids=CANDIDATES)
def test_containers_that_may_hold_exactly_these_ids(
    written: list[tuple[Stage, int]], listed: str, amount: int, wanted: tuple[str, ...]
) -> None:
    asks = [Ask(str(number), stage, count) for number, (stage, count) in enumerate(written)]
    assert candidates(asks, listed, amount) == wanted


@given(st.lists(st.tuples(st.sampled_from(["init", "sidecar", "asks"]), st.integers(1, 3)), max_size=5), st.integers())
def test_whatever_kubelet_hands_on_was_expected(words: list[tuple[str, int]], seed: int) -> None:
    asking = pod()
    for word, amount in words:
        asking = getattr(asking, word)(gpu=amount)
    asks = asks_of(stored(asking), GPU)
    given_ids = DeviceManager(seed, frozenset({GPU})).admit(stored(asking))
    for first, one in enumerate(asks):
        for last, other in enumerate(asks[first + 1 :], first + 1):
            same = given_ids[one.container, GPU] == given_ids[other.container, GPU]
            assert not same or (one.stage is INIT and may_be_handed_on(asks, first, last))

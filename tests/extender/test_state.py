"""The state equals a rebuild, and cached answers equal new ones, after any events in any order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.packing.fleet import fleet_of
from extender.packing.placement import POLICIES
from extender.packing.workload_mix import WorkloadMix
from extender.scheduler_api.answer_cache import AnswerCache
from extender.state import Changes, State
from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.pod.stored_pod import StoredPod
from tests.builders import PodBuilder, pod

from .populated import node, state_of, stored

DIALECTS = Dialects()
NAMES = ["n0", "n1", "n2"]
SHAPES = [
    pod().asks(core="30", memory="10"),
    pod().asks(core="100"),
    pod().asks(sgpu="2"),
    pod().asks(gpu="2", gpumem="3000"),
    pod().asks(core="50", memory="20").asks(core="30", memory="5"),
    pod().asks(cpu="2"),
    pod().asks(core="150", memory="1"),
    pod().asks(core="50").annotated({names.ASK_UUID: "n1-0"}),
]
ASKED = [demand for shape in SHAPES if (demand := read_facts(stored(shape), DIALECTS).demand).needs]


NODE_LISTS = [NAMES, [*NAMES, "unknown"], ["n2", "n0", "n1"], ["n2", "n1"], ["n1"], []]


def implausible_node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {names.INVENTORY: "no list"}}}


def plain_policy() -> Any:
    return POLICIES["binpack"](WorkloadMix(()), fleet_of([]))


@dataclass
class World:
    """The cluster, the events so far, and a state that is built from these events."""

    state: State = field(default_factory=lambda: state_of([]))
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: dict[str, StoredPod] = field(default_factory=dict)
    assumed: dict[str, PodFacts] = field(default_factory=dict)
    events: list[StoredPod] = field(default_factory=list)
    version: int = 100
    answers: AnswerCache = field(init=False)

    def __post_init__(self) -> None:
        self.answers = AnswerCache(self.state, lambda _name: plain_policy())

    # --- events -------------------------------------------------------------------------------------------------------

    def put_node(self, number: int, cards: int) -> None:
        name = NAMES[number % len(NAMES)]
        self.nodes[name] = node(name, cards) if cards else implausible_node(name)
        self.state.put_node(self.nodes[name])

    def drop_node(self, number: int, _: int) -> None:
        name = NAMES[number % len(NAMES)]
        self.nodes.pop(name, None)
        self.state.drop_node(name)

    def create(self, shape: int, _: int) -> None:
        self.version += 1
        self._put(self._named(SHAPES[shape % len(SHAPES)], f"u{self.version}"))

    def _named(self, shape: PodBuilder, uid: str) -> StoredPod:
        found = stored(replace(shape, metadata={**shape.metadata, "name": uid}))
        return self._newer(found)

    def _newer(self, found: StoredPod, **changes: Any) -> StoredPod:
        self.version += 1
        metadata = msgspec.structs.replace(found.meta, resource_version=str(self.version), uid=found.meta.name)
        return msgspec.structs.replace(found, metadata=metadata, **changes)

    def _put(self, found: StoredPod) -> None:
        self.events.append(found)
        self.pods[found.meta.uid] = found
        if found.node:
            self.assumed.pop(found.meta.uid, None)
        self.state.put_pod(found)

    def bind(self, number: int, how: int) -> None:
        """Binds a pod with a record, without one, or with one that names a missing card."""
        found = self._some(number, lambda each: not each.node)
        if found is None or found.spec is None:
            return
        where = NAMES[how % len(NAMES)]
        spec = msgspec.structs.replace(found.spec, node_name=where)
        containers = [each.name for each in found.spec.containers or ()]
        record = {"node": where, "cards": {name: [f"{where}-{how % 4}"] for name in containers}}
        annotations = {**found.annotations, **({names.PLACEMENT: json.dumps(record)} if how % 3 else {})}
        changed = msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.meta, annotations=annotations))
        self._put(self._newer(changed, spec=spec))

    def touch(self, number: int, _: int) -> None:
        if (found := self._some(number)) is not None:
            self._put(self._newer(found))

    def finish(self, number: int, _: int) -> None:
        if (found := self._some(number)) is not None:
            over = self._newer(found, status=msgspec.convert({"phase": "Succeeded"}, type(found.status)))
            self._remove(over.meta.uid)
            self.events.append(over)
            self.state.put_pod(over)

    def delete(self, number: int, _: int) -> None:
        if (found := self._some(number)) is not None:
            self._remove(found.meta.uid)
            self.state.end_pod(found.meta.uid)

    def repeat(self, number: int, _: int) -> None:
        """Delivers an old event again: it is late."""
        if self.events:
            self.state.put_pod(self.events[number % len(self.events)])

    def assume(self, number: int, where: int) -> None:
        found = self._some(number, lambda each: not each.node and bool(self._facts(each).demand.needs))
        if found is not None:
            facts = replace(self._facts(found), node=NAMES[where % len(NAMES)])
            self.assumed[facts.uid] = facts
            self.state.assume(facts)

    def forget(self, number: int, _: int) -> None:
        if self.assumed:
            uid = [*self.assumed][number % len(self.assumed)]
            del self.assumed[uid]
            self.state.forget(uid)

    def list_again(self, number: int, _: int) -> None:
        """Lists all objects after the watch missed a deletion."""
        if (found := self._some(number)) is not None:
            self._remove(found.meta.uid)
        self.state.replace_pods(self.pods.values())
        self.state.replace_nodes(self.nodes.values())

    def ask(self, number: int, _: int) -> None:
        """Fills the caches, so that later events have to update them."""
        demand = ASKED[number % len(ASKED)]
        feasible, ranked = self.answers.feasible(demand), self.answers.ranked(demand)
        for asked in NODE_LISTS:
            feasible.by_reason(asked)
        ranked.answer(NAMES)

    def _some(self, number: int, which: Callable[[StoredPod], bool] = lambda _: True) -> StoredPod | None:
        found = [each for each in self.pods.values() if which(each)]
        return found[number % len(found)] if found else None

    def _remove(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.assumed.pop(uid, None)

    def _facts(self, found: StoredPod) -> PodFacts:
        return read_facts(found, DIALECTS)

    def rebuilt(self) -> State:
        state = state_of(self.nodes.values(), self.pods.values())
        for facts in self.assumed.values():
            state.assume(facts)
        return state


STEPS = [
    World.put_node,
    World.drop_node,
    World.create,
    World.create,
    World.bind,
    World.bind,
    World.touch,
    World.finish,
    World.delete,
    World.repeat,
    World.assume,
    World.forget,
    World.list_again,
    World.ask,
]
STORIES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 11), st.integers(0, 4)), max_size=40)


def after(story: list[tuple[Callable[[World, int, int], None], int, int]], asked: int = 0) -> World:
    """Returns the world after all steps; the caches are filled for `asked` demands after each step."""
    world = World()
    for number in range(len(NAMES)):
        world.put_node(number, 2)
    for step, first, second in story:
        step(world, first, second)
        for number in range(asked):
            world.ask(number, 0)
    return world


@given(STORIES)
def test_the_state_equals_a_rebuild_from_the_same_objects(story: Any) -> None:
    world = after(story)
    rebuilt = world.rebuilt()
    assert world.state.nodes() == rebuilt.nodes()
    for name in NAMES:
        assert world.state.room(name) == rebuilt.room(name)
        assert {facts.uid for facts in world.state.pods_on(name)} == {facts.uid for facts in rebuilt.pods_on(name)}
    assert sorted(world.state.inconsistencies()) == sorted(rebuilt.inconsistencies())
    assert {facts.uid for facts in world.state.pods()} == {facts.uid for facts in rebuilt.pods()}


@given(STORIES)
def test_cached_answers_equal_new_ones(story: Any) -> None:
    assert_fresh(after(story, asked=2))


@given(STORIES)
def test_cached_answers_equal_new_ones_after_the_ranks_are_cleared(story: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("extender.scheduler_api.answer_cache._MAX_RANKS", 0)
        assert_fresh(after(story, asked=2))


def assert_fresh(world: World) -> None:
    """Compares each cached answer with that of a new cache, which is asked about one node at a time."""
    fresh = AnswerCache(world.rebuilt(), lambda _name: plain_policy())
    for demand in ASKED:
        feasible, ranked = world.answers.feasible(demand), world.answers.ranked(demand)
        for asked in NODE_LISTS:
            one_by_one = [(name, reason) for name in asked for reason in fresh.feasible(demand).by_reason([name])]
            assert sorted(one_by_one) == sorted(by_node(feasible.by_reason(asked)))
            assert ranked.ranks(asked) == pytest.approx(fresh.ranked(demand).ranks(asked))
            assert ranked.answer(asked) == fresh.ranked(demand).answer(asked)


def by_node(groups: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(name, reason) for reason, names in groups.items() for name in names]


@given(STORIES)
def test_a_pod_that_ends_restores_the_room(story: Any) -> None:
    world = after(story)
    for uid in [*world.pods]:
        world.delete(0, 0)
        assert world.state.pod(uid) is None
    untouched = state_of(world.nodes.values())
    for name in NAMES:
        assert world.state.room(name) == untouched.room(name)


def test_on_arrival_is_called_once_and_only_for_pods_with_claims() -> None:
    arrived: list[str] = []
    state = State(DIALECTS, CapacityRules(), on_arrival=lambda facts: arrived.append(facts.uid))
    state.replace_nodes([node("n1")])
    for _ in range(2):
        state.put_pod(stored(pod("a").asks(core="10", memory="1")))
        state.put_pod(stored(pod("b").asks(cpu="1"), on="n1"))
    state.put_pod(stored(pod("a").asks(core="10", memory="1"), on="n1"))
    assert arrived == ["a"]


def test_a_heartbeat_changes_nothing() -> None:
    state = state_of([node("n1")])
    then = state.changes.now
    state.put_node(node("n1"))
    assert state.changes.since(then) == set()


def test_changes_before_the_start_of_the_log_are_unknown() -> None:
    changes = Changes()
    then = changes.now
    for number in range(200_001):
        changes.add(f"n{number % 7}")
    assert changes.since(then) is None
    recent = changes.now
    changes.add("n9")
    assert changes.since(recent) == {"n9"}

"""Two controllers, killed at any call, while other programs damage their objects: no handshake fails, all is repaired.

The model is as hostile as a real cluster: replicas may show any pair that stood in the Secret in the last two minutes
(and the last one that was a pair, where it holds none), and API servers may verify by any bundle of those minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from certs.certificate_checks import certificates, is_signed_by, key_problem
from certs.chains import CONFIGURATIONS, ObjectPath, chains
from certs.lifetimes import KNOWN_AFTER, LEAF_LIFE, RETIREMENT
from certs.objects import CA_CRT, CA_KEY, TLS_CRT, TLS_KEY, bundles, entry, written
from certs.reconcile import ReconcileResult, reconcile
from certs.steps import Keep
from halfcard import names

from .memory_store import MemoryStore, finished

LAG: Final = timedelta(minutes=2)
START: Final = datetime(2026, 3, 1, tzinfo=UTC)
CHAIN: Final = chains(names.NAMESPACE)[0]
(LEAF,) = CHAIN.leaves

T = TypeVar("T")


@dataclass
class History(Generic[T]):
    """The values, and when each began."""

    values: list[tuple[datetime, T]] = field(default_factory=list)

    def add(self, now: datetime, value: T) -> None:
        if not self.values or self.values[-1][1] != value:
            self.values.append((now, value))

    def lately(self, now: datetime) -> Iterator[T]:
        """Returns the last value, and each earlier one that ended less than a lag ago."""
        for at, (_, value) in enumerate(self.values):
            if at + 1 == len(self.values) or self.values[at + 1][0] >= now - LAG:
                yield value


class World:
    def __init__(self) -> None:
        self.now = START
        self.shown: History[bytes] = History()
        self.trusted: dict[object, History[bytes]] = {}
        self.made: set[bytes] = set()
        self.store = MemoryStore(self._wrote)
        self.store.register(b"", b"")
        self._passes: dict[int, Coroutine[Any, Any, ReconcileResult]] = {}
        self._verified: dict[tuple[bytes, bytes], bool] = {}

    # --- what is watched

    def _wrote(self) -> None:
        secret, authority = self.store.items.get(LEAF), self.store.items.get(CHAIN.authority)
        crt, key = entry(secret, TLS_CRT), entry(secret, TLS_KEY)
        leaf = next(iter(certificates(crt)), None)
        if crt and leaf and key_problem("tls", key, leaf) is None:  # else servers go on with what they have
            self.shown.add(self.now, crt)
        for place in CONFIGURATIONS:
            for at, bundle in enumerate(bundles(self.store.items.get(place))):
                self.trusted.setdefault((place, at), History()).add(self.now, bundle)
        self.made |= {each.public_bytes(Encoding.PEM) for each in certificates(entry(authority, CA_CRT))[:1]}
        self.check()

    def check(self) -> None:
        """Ignores an empty bundle, which another program emptied."""
        for leaf in self.shown.lately(self.now):
            for history in self.trusted.values():
                for bundle in filter(None, history.lately(self.now)):
                    assert self._verifies(leaf, bundle), f"{self.now}: what is shown is not trusted"

    def _verifies(self, leaf: bytes, bundle: bytes) -> bool:
        if (leaf, bundle) not in self._verified:
            (shown, *_) = certificates(leaf)
            self._verified[leaf, bundle] = any(is_signed_by(shown, authority) for authority in certificates(bundle))
        return self._verified[leaf, bundle]

    # --- what happens

    def step(self, controller: int, calls: int) -> None:
        for _ in range(calls):
            if controller not in self._passes:
                self._passes[controller] = reconcile(self.store, CHAIN, lambda: self.now)
            try:
                self._passes[controller].send(None)
            except StopIteration:
                del self._passes[controller]

    def kill(self, controller: int) -> None:
        if controller in self._passes:
            self._passes.pop(controller).close()

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.check()

    def ask(self, what: str) -> None:
        if LEAF in self.store.items:
            self.store.annotate(LEAF, what, written(self.now))

    def spoil(self, act: Callable[[MemoryStore], None]) -> None:
        """Returns whether the damage leaves a trace of what replicas serve; otherwise no repair is possible."""
        before = dict(self.store.items)
        act(self.store)
        (shown, *_) = certificates(self.shown.values[-1][1])
        if not any(
            is_signed_by(shown, authority) for bundle in self._all_bundles() for authority in certificates(bundle)
        ):
            self.store.items.update(before)
        self._wrote()

    def _all_bundles(self) -> Iterator[bytes]:
        for place in CONFIGURATIONS:
            yield from bundles(self.store.items.get(place))
        for place in (LEAF, CHAIN.authority):
            yield entry(self.store.items.get(place), CA_CRT) or b""

    def settle(self) -> ReconcileResult:
        """Runs one controller until all delays are over."""
        for controller in [*self._passes]:
            self.kill(controller)
        for _ in range(3):
            for patience in (KNOWN_AFTER, RETIREMENT):
                found = finished(reconcile(self.store, CHAIN, lambda: self.now))
                self.wait(patience.total_seconds() + 1)
        return found


def garbage(place: ObjectPath, key: str) -> Callable[[MemoryStore], None]:
    def spoil(store: MemoryStore) -> None:
        if place in store.items:
            store.set_entry(place, key, b"garbage")

    return spoil


def deleted(place: ObjectPath) -> Callable[[MemoryStore], None]:
    return lambda store: store.delete(place)


def registered_anew(store: MemoryStore) -> None:
    store.register(b"", b"")


KEEPERS: Final = st.integers(0, 1)
STEPS: Final = st.tuples(st.just(World.step), KEEPERS, st.integers(1, 15))
KILLS: Final = st.tuples(st.just(World.kill), KEEPERS)
WAITS: Final = st.tuples(st.just(World.wait), st.sampled_from([1, 60, 301, 3601]))
ASKED: Final = st.tuples(st.just(World.ask), st.sampled_from([names.NEW_CA_ASKED, names.NEW_LEAF_ASKED]))
SPOILT: Final = st.tuples(
    st.just(World.spoil),
    st.sampled_from(
        [
            *(garbage(CHAIN.authority, key) for key in (CA_CRT, CA_KEY)),
            *(garbage(LEAF, key) for key in (CA_CRT, TLS_CRT, TLS_KEY)),
            *(deleted(place) for place in (CHAIN.authority, LEAF)),
            registered_anew,
        ]
    ),
)


def play(world: World, actions: list[tuple[Any, ...]]) -> None:
    for act, *arguments in actions:
        act(world, *arguments)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.one_of(STEPS, STEPS, KILLS), max_size=30))
def test_controllers_on_an_empty_cluster_create_one_ca_whichever_is_killed(actions: list[tuple[Any, ...]]) -> None:
    world = World()
    play(world, actions)
    assert isinstance(world.settle().last, Keep)
    assert len(world.made) == 1


@settings(max_examples=25, deadline=None, phases=[Phase.generate])
@given(st.lists(st.one_of(STEPS, STEPS, STEPS, KILLS, WAITS, WAITS, ASKED, SPOILT), max_size=60))
def test_no_handshake_fails_and_one_ca_remains_in_any_interleaving(actions: list[tuple[Any, ...]]) -> None:
    world = World()
    finished(reconcile(world.store, CHAIN, lambda: world.now))
    play(world, actions)
    last = world.settle()
    assert isinstance(last.last, Keep) and last.last.reason.startswith("valid until")
    (authority,) = certificates(last.state.contents().ca_crt)
    for place in CONFIGURATIONS:
        assert [certificates(bundle) for bundle in bundles(world.store.items[place])] == [[authority]] * 2


def test_a_rotation_takes_three_steps_with_their_delays() -> None:
    world = World()
    first = world.settle().state.contents().ca_crt
    world.ask(names.NEW_CA_ASKED)
    world.wait(1)
    finished(reconcile(world.store, CHAIN, lambda: world.now))
    both = entry(world.store.items[CHAIN.authority], CA_CRT) or b""
    assert first and both.endswith(first) and len(certificates(both)) == 2
    shown = entry(world.store.items[LEAF], TLS_CRT)
    for seconds, has_followed in ((299, False), (2, True)):
        world.wait(seconds)
        finished(reconcile(world.store, CHAIN, lambda: world.now))
        assert (entry(world.store.items[LEAF], TLS_CRT) != shown) is has_followed
    world.wait(RETIREMENT.total_seconds() - 3)
    finished(reconcile(world.store, CHAIN, lambda: world.now))
    assert entry(world.store.items[CHAIN.authority], CA_CRT) == both
    world.wait(4)
    finished(reconcile(world.store, CHAIN, lambda: world.now))
    assert entry(world.store.items[CHAIN.authority], CA_CRT) == both.removesuffix(first)


def test_leaves_are_renewed_for_years() -> None:
    world = World()
    for _ in range(40):
        finished(reconcile(world.store, CHAIN, lambda: world.now))
        world.wait((LEAF_LIFE / 3).total_seconds())
    assert len(world.made) == 1
    assert len(world.shown.values) > 10


def leaf_follows(world: World, seconds: float) -> bool:
    """Returns whether the certificate changed after that time."""
    before = world.shown.values[-1]
    world.wait(seconds)
    finished(reconcile(world.store, CHAIN, lambda: world.now))
    return world.shown.values[-1] != before


def rotating() -> World:
    world = World()
    world.settle()
    world.ask(names.NEW_CA_ASKED)
    world.wait(1)
    finished(reconcile(world.store, CHAIN, lambda: world.now))
    return world


def test_a_copy_that_loses_the_new_ca_restarts_the_delay() -> None:
    world = rotating()
    world.wait(250)
    world.store.register(b"", b"")
    finished(reconcile(world.store, CHAIN, lambda: world.now))
    assert not leaf_follows(world, 51)
    assert leaf_follows(world, 250)


def test_the_delay_of_one_ca_does_not_apply_to_the_next() -> None:
    world = rotating()
    world.wait(250)
    world.ask(names.NEW_CA_ASKED)
    assert not leaf_follows(world, 1)
    assert not leaf_follows(world, 60)
    assert leaf_follows(world, 241)


@pytest.mark.parametrize("is_blank", [False, True])
@pytest.mark.parametrize("calls", range(6))
def test_a_delayed_controller_removes_no_ca(calls: int, *, is_blank: bool) -> None:
    """Interrupts a controller at any call while another one adds a CA: what it has read may be outdated."""
    world = World()
    world.settle()
    if is_blank:
        world.store.register(b"", b"")
    world.step(0, calls)
    world.ask(names.NEW_CA_ASKED)
    world.wait(1)
    finished(reconcile(world.store, CHAIN, lambda: world.now))
    both = entry(world.store.items[CHAIN.authority], CA_CRT)
    seen = len(world.trusted[CONFIGURATIONS[0], 0].values)
    world.step(0, 30)
    for place in CONFIGURATIONS:
        assert {bundle for _, bundle in world.trusted[place, 0].values[seen:]} <= {both}

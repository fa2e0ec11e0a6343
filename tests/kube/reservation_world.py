"""Calls that reserve in several ledgers, on two replicas, beside the real leader: in virtual time, over a network that
delays and loses what it carries.

The API server and the clients are simulated; whether all is well is said by `wrong`, by independent sums.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec

from halfcard.quota.budgets import Budget, deleted_budget
from halfcard.quota.ledger import (
    Busy,
    Contended,
    Crowded,
    Entry,
    create_reservation,
    is_bind_reservation,
    pod_uid,
    used,
)
from kube.api.calls import Answer, ApiCalls, NoAnswerError, NotSentError
from kube.ledger.joint_reservation import LedgerCharge, NotReservedError, Reservation, reserve_in_all
from kube.ledger.ledger_store import LedgerError, LedgerStore
from kube.ledger.ledger_writer import LedgerWriter
from quota.ledger_controller import LedgerController
from quota.usage_index import CountedPod
from tests.kube.ledger_server import NAMESPACE, PATH, LedgerServer

SHARES: Final = "shares"
OF: Final = "uid-of-the-quota"
WEBHOOK_S: Final = 5.0
"""So long the API server waits for a webhook; the webhook answers within `ANSWER_S`."""

ANSWER_S: Final = 4.0
COMMITS_EVERY_S: Final = 0.2
LOOKS_EVERY_S: Final = 3.0

Fate = Literal["stored", "refused afterwards", "caller hangs up", "replica dies"]
End = Literal["stored", "full", "try again", "no answer", "not stored"]


class Create(NamedTuple):
    """A pod that a client creates at some time, and again if it is asked to."""

    at: float
    replica: int
    ledgers: tuple[str, ...]
    shares: int
    fate: Fate = "stored"


@dataclass
class Network:
    """The calls of one process to the API server."""

    world: World
    is_dead: bool = False

    async def get(self, path: str, timeout_s: float = 10.0) -> Answer:
        return await self._call("GET", path, b"null", timeout_s)

    async def put(self, path: str, body: bytes, timeout_s: float = 10.0) -> Answer:
        return await self._call("PUT", path, body, timeout_s)

    async def post(self, path: str, body: bytes, timeout_s: float = 10.0) -> Answer:
        return await self._call("POST", path, body, timeout_s)

    async def _call(self, method: str, path: str, body: bytes, timeout_s: float) -> Answer:
        try:
            async with asyncio.timeout(timeout_s):
                await self._travel()
                status, found = self.world.carry_out(method, path.removeprefix(PATH).strip("/"), body)
                await self._travel()
        except TimeoutError:
            raise NoAnswerError(f"no answer to {method}") from None
        return Answer(status, msgspec.json.encode(found))

    async def _travel(self) -> None:
        chance = self.world.chance
        await asyncio.sleep(chance.uniform(0, self.world.slowest_s))
        if self.is_dead:
            raise NotSentError("this process is dead")
        if chance.random() < self.world.loses:
            await asyncio.Event().wait()


@dataclass
class World:
    hard: dict[str, int]
    seed: int = 0
    slowest_s: float = 0.03
    loses: float = 0.0
    """The part of requests, and of answers, that is lost."""

    server: LedgerServer = field(default_factory=LedgerServer)
    wrong: list[str] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    tries: list[int] = field(default_factory=list)
    stored: dict[str, Create] = field(default_factory=dict)
    coming: dict[str, Create] = field(default_factory=dict)
    """Pods that were admitted and are not stored yet."""

    is_settled: bool = False
    """All creates have ended, and the leader has counted them."""

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        self._networks = [Network(self), Network(self)]
        self._writers = [{name: self._writer(network, name) for name in self.hard} for network in self._networks]
        calm = LedgerStore(cast(ApiCalls, Network(self)), NAMESPACE)
        self._controllers = {name: LedgerController(calm, self._budget(name)) for name in self.hard}
        self._uids = 0

    def _writer(self, network: Network, name: str) -> LedgerWriter:
        store = LedgerStore(cast(ApiCalls, network), NAMESPACE)
        return LedgerWriter(store, name, lambda: asyncio.get_running_loop().time())

    def _budget(self, name: str) -> Budget:
        return deleted_budget(name)._replace(uid=OF, hard={SHARES: self.hard[name]})

    async def run(self, creates: Sequence[Create], settle_s: float) -> None:
        """Runs all creates to their ends, and then the leader alone for some time."""
        loses, self.loses = self.loses, 0.0
        await self._each(LedgerController.take_over)
        await self._each(self._commit)
        self.loses = loses
        leading = [asyncio.create_task(self._commit_again()), asyncio.create_task(self._expire_again())]
        await asyncio.gather(*map(self._create, creates))
        self.loses = 0.0
        await asyncio.sleep(COMMITS_EVERY_S * 10)
        self.is_settled = True
        await asyncio.sleep(settle_s)
        for each in leading:
            each.cancel()

    # --- the API server -----------------------------------------------------------------------------------------------

    def carry_out(self, method: str, name: str, body: bytes) -> tuple[int, dict[str, Any]]:
        status, found = self.server.carry_out(method, name, msgspec.json.decode(body))
        if method != "GET" and status < 300:
            name = found["metadata"]["name"]
            self._check(name)
            for writers in self._writers:
                self._later(writers[name].ledger_changed, self.server.seen(name))
            self._later(self._controllers[name].ledger_changed, self.server.seen(name))
        return status, found

    def _later(self, deliver: Callable[..., None], *seen: object) -> None:
        asyncio.get_running_loop().call_later(self.chance.uniform(0, 2 * self.slowest_s), deliver, *seen)

    def _check(self, name: str) -> None:
        ledger, hard = self.server.ledger(name), self.hard[name]
        held = self.charged(name, self.stored) + self.charged(name, self.coming)
        names = {pod_uid(each) for each in ledger.reservations}
        if used(ledger)[SHARES] > hard:
            self.wrong.append(f"{used(ledger)[SHARES]} of {hard} are reserved in {name}")
        if held > hard:
            self.wrong.append(f"{held} of {hard} are stored or may be in {name}")
        if bare := [uid for uid, pod in self.coming.items() if name in pod.ledgers and uid not in names]:
            self.wrong.append(f"{bare} may be stored without a reservation in {name}")

    def charged(self, name: str, pods: dict[str, Create]) -> int:
        return sum(each.shares for each in pods.values() if name in each.ledgers)

    # --- clients ------------------------------------------------------------------------------------------------------

    async def _create(self, pod: Create) -> None:
        """A client that heeds the time after which it may try again."""
        await asyncio.sleep(pod.at)
        end, tries, retry_s = "try again", 0, 0.0
        while end == "try again" and tries < 2:
            await asyncio.sleep(retry_s)
            end, retry_s = await self._try(pod)
            tries += 1
        self.ends.append(cast(End, end))
        self.tries.append(tries)

    async def _try(self, pod: Create) -> tuple[End, float]:
        self._uids += 1
        uid = f"u{self._uids}"
        began = asyncio.get_running_loop().time()
        waits_s = self.chance.uniform(0, 1) if pod.fate == "caller hangs up" else WEBHOOK_S
        try:
            async with asyncio.timeout(waits_s):
                await self._reserve(uid, pod, began + ANSWER_S)
        except NotReservedError as refusal:
            return self._refused(pod, refusal)
        except TimeoutError:
            return "no answer", 0.0
        finally:
            if asyncio.get_running_loop().time() > began + ANSWER_S + 0.01:
                self.wrong.append("a call lasted longer than its deadline")
        return await self._admitted(uid, pod), 0.0

    async def _reserve(self, uid: str, pod: Create, until: float) -> Reservation:
        entry = Entry("team", uid, {SHARES: pod.shares})
        charges = [LedgerCharge(self._writers[pod.replica][name], entry, OF) for name in pod.ledgers]
        name = create_reservation(uid, "call")
        reservation = await reserve_in_all(name, charges, is_unique=True, until=until)
        self.coming[uid] = pod
        return reservation

    def _refused(self, pod: Create, refusal: NotReservedError) -> tuple[End, float]:
        name, why = pod.ledgers[refusal.at], refusal.why
        if isinstance(why, Contended | Crowded):
            return "try again", self._writers[pod.replica][name].retry_s(Entry("team", "", {SHARES: pod.shares}))
        if isinstance(why, Busy):
            return "try again", 1.0
        if self.charged(name, self.stored) + pod.shares <= self.hard[name]:
            self.wrong.append(f"a pod was refused for good by what is only reserved in {name}")
        return "full", 0.0

    async def _admitted(self, uid: str, pod: Create) -> End:
        if pod.fate == "replica dies":
            self._networks[pod.replica].is_dead = True
            del self.coming[uid]
            return "no answer"
        await asyncio.sleep(self.chance.uniform(0, 0.3))
        del self.coming[uid]
        if pod.fate == "refused afterwards":
            return "not stored"
        self.stored[uid] = pod
        return "stored"

    # --- the leader ---------------------------------------------------------------------------------------------------

    async def _each(self, step: Callable[[LedgerController], Awaitable[None]]) -> None:
        for controller in self._controllers.values():
            with suppress(NoAnswerError, LedgerError):
                await step(controller)

    async def _commit(self, controller: LedgerController) -> None:
        name = controller.budget.ledger
        for uid, pod in self.stored.items():
            if name in pod.ledgers:
                controller.usage.put(uid, CountedPod(Entry("team", uid, {SHARES: pod.shares})))
        await controller.commit(lambda _: False)

    async def _commit_again(self) -> None:
        while True:
            await self._each(self._commit)
            await asyncio.sleep(LOOKS_EVERY_S if self.is_settled else COMMITS_EVERY_S)

    async def _expire_again(self) -> None:
        async def is_stored(_entry: Entry, name: str) -> bool:
            assert not is_bind_reservation(name)
            return pod_uid(name) in self.stored

        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            await self._each(lambda each: each.expire(asyncio.get_running_loop().time, is_stored))

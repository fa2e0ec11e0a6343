"""Handles the calls of kube-scheduler: the bytes of a call in, the bytes of its answer out."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.types import Scope

from serving.large_bodies import check_density

from ..bind.binder import NotBound, NotLeading
from ..bind.forwarding import Forwarding, NotForwarded
from ..bind.pod_requests import BindCall
from ..bind.quota_reservations import NoBudgetError, QuotaReservations
from ..state import State
from ..unplaceable import Unplaceable
from . import verbs, wire
from .answer_cache import AnswerCache
from .contact_log import ContactLog
from .endpoint import DeclinedCall
from .verbs import OnUnschedulable

FORWARDED: Final = b"forwarded=1"
_NOT_READY: Final = "Halfcard is still reading the nodes and pods of the cluster; the scheduler will try again"
_NO_LEADER: Final = "no replica of Halfcard's extender is the leader now; the scheduler will try again"


class Binds(Protocol):
    """Binds pods; see Binder."""

    budgets: QuotaReservations

    async def bind(self, call: BindCall) -> None: ...


@dataclass(frozen=True, slots=True)
class VerbHandlers:
    """Handles the calls; `ready` is True once all nodes and pods are known, `may_decide` while this replica leads.

    Attributes:
        is_mutual: whether every caller has shown a certificate.
        on_unschedulable: called with pods that fit on none of the nodes, and with the nodes.
        contact: where calls are remembered of callers that may bind.
    """

    state: State
    answers: AnswerCache
    binder: Binds
    forwarding: Forwarding
    ready: Callable[[], bool]
    may_decide: Callable[[], bool]
    is_mutual: bool
    on_unschedulable: OnUnschedulable
    contact: ContactLog

    async def filter(self, body: bytes, scope: Scope) -> bytes:
        call = self._read_call(body)
        if self._is_trusted(scope):
            self.contact.asked()
        try:
            return verbs.filter_nodes(self.state, self.answers, call, self.on_unschedulable, self.binder.budgets.limits)
        except (Unplaceable, NoBudgetError) as why:
            raise DeclinedCall(str(why)) from None

    async def prioritize(self, body: bytes, _scope: Scope) -> bytes:
        call = self._read_call(body)
        try:
            return verbs.prioritize_nodes(self.state, self.answers, call)
        except Unplaceable as why:
            raise DeclinedCall(str(why)) from None

    async def preempt(self, body: bytes, _scope: Scope) -> bytes:
        check_density(body)
        pod, victims = wire.read_preemption(body)
        self._check_ready()
        try:
            return verbs.preempt(self.state, pod, victims, self.binder.budgets.limits)
        except NoBudgetError as why:
            raise DeclinedCall(str(why)) from None

    async def bind(self, body: bytes, scope: Scope) -> bytes:
        wanted = wire.read_binding(body)
        self.contact.bound()
        self._check_ready()
        try:
            if self.may_decide():
                await self.binder.bind(wanted)
                return wire.bind_answer()
        except NotBound as why:
            raise DeclinedCall(str(why)) from None
        except NotLeading:
            pass
        return await self._forward(body, scope)

    async def _forward(self, body: bytes, scope: Scope) -> bytes:
        """Forwards a call once: two replicas that take each other for the leader would never stop."""
        if FORWARDED in scope.get("query_string", b""):
            raise DeclinedCall(_NO_LEADER)
        try:
            return await self.forwarding.bind(body)
        except NotForwarded as why:
            raise DeclinedCall(f"{_NO_LEADER} ({why})") from None

    def _read_call(self, body: bytes) -> wire.NodesCall:
        call = wire.read_nodes_call(body, self.state.node_names.read)
        self._check_ready()
        return call

    def _check_ready(self) -> None:
        """Declines calls until all pods are known: used cards would look free."""
        if not self.ready():
            raise DeclinedCall(_NOT_READY)

    def check_caller(self, scope: Scope) -> None:
        """Checks the caller of verbs that act with our rights, before the body is read."""
        if not self._is_trusted(scope):
            host = _host(scope)
            raise DeclinedCall(
                f"got a call from {host or 'an unknown address'}; only calls from this machine or with a "
                f"client certificate are accepted; start the extender with --client-ca, or call it at 127.0.0.1"
            )

    def _is_trusted(self, scope: Scope) -> bool:
        return self.is_mutual or _is_loopback(_host(scope))


def _host(scope: Scope) -> str:
    return str((scope.get("client") or ("", 0))[0])


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback

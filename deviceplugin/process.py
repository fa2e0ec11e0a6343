"""Runs the agent: connects its parts, and starts and stops its jobs."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry

from halfcard import names
from halfcard.cards import Card
from halfcard.node_changes import without_heartbeat
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.api.informer import Informer, follow_jobs
from kube.token_access import TokenAccess
from serving.background_jobs import Job, report_problems, run_in_background
from serving.lifecycle import Lifecycle
from serving.listener import Listener, StopTimings, serve
from serving.log import Log, utc_now

from .adoption.adoption_records import AdoptionRecords
from .advertise.node_writer import NodeWriter
from .advertiser import Advertiser
from .allocate.allocator import Allocator, Injector, NodeContext
from .allocate.holding_records import HoldingRecords
from .allocate.metered_allocator import MeteredAllocator
from .allocate.slots import Slots
from .app import UsagePages, plain_app, usage_app
from .arguments import NodePaths
from .card_watch import CardWatch
from .failed_admissions import failed_admissions
from .gpus.health_file import HealthFile
from .gpus.interface import Gpus
from .inject.card_files import CardFiles, NvidiaDescriptions
from .inject.cdi import CdiInjector, runtime_supports_cdi, without_cdi
from .inject.symlinks import SymlinkInjector
from .isolation.share_files import ShareFiles
from .kubelet.channel import KubeletError
from .kubelet.checkpoint import Checkpoint
from .kubelet.id_holders import IdHolders
from .kubelet.plugins import Plugins
from .kubelet.pod_resources import PodResources
from .metrics import AgentMetrics
from .node_isolation import NodeIsolation
from .node_pods import NodePods, WatchedObject
from .node_view import NodeView
from .options import AgentOptions
from .rejection_events import RejectionEvents
from .self_signed import self_signed
from .slot_limits import SlotLimits
from .usage.cgroups import Cgroups
from .usage.driver_limits import DriverLimits
from .usage.held_accounts import HeldSlot
from .usage.meter import Meter
from .usage.misuse_reports import MisuseReports
from .usage.process_names import ProcessNames
from .usage.process_owners import ProcessOwners
from .usage.share_meter import ShareMeter
from .usage.usage_report import IsolationState

AGENT: Final = "agent"
USAGE: Final = "usage"
_SWEEP_EVERY_S: Final = 10.0
_RECORD_EVERY_S: Final = 1.0
_CUT_EVERY_S: Final = 1.0
_MEASURE_EVERY_S: Final = 1.0
_AT_ONCE: Final = StopTimings(grace_s=0.0, drain_s=0.0, finish_s=1.0)
"""No load balancer needs a grace period, and kubelet rejects pods while no agent runs: a restart must be short."""


class Agent:
    """All parts of a running agent; must be created on the event loop that runs it."""

    def __init__(self, access: Access, gpus: Gpus, options: AgentOptions, paths: NodePaths, log: Log) -> None:
        self._options, self._paths, self._log = options, paths, log
        self._gpus = gpus
        self._stale = asyncio.Event()
        self._calls = ApiCalls(access)
        self._health_file = HealthFile(paths.state)
        self._cards = CardWatch(gpus, self._stale.set, time.monotonic, self._health_file)
        self._pods = NodePods(access, paths.node, options.dialects, self._pods_changed)
        self._node = WatchedObject(access, "/api/v1/nodes", paths.node, self._node_changed)
        self._config = self._watched_config(access)
        self._last_news: object = None
        checkpoint = Checkpoint(paths.plugins)
        self._view = self._node_view(checkpoint)
        self._adoption_records = AdoptionRecords(self._calls, options, log, time.time_ns)
        self._holding_records = HoldingRecords(self._calls, log)
        self._node_writer = NodeWriter(self._calls, paths.node, log, utc_now)
        self._rejections = RejectionEvents(self._calls, paths.node, log, utc_now)
        self._registry = CollectorRegistry()
        self._metrics = AgentMetrics(self._registry, is_made_up=gpus.is_made_up)
        self._failed: set[str] = set()
        self._cgroups = Cgroups()
        self._pod_resources = PodResources(paths.pod_resources)
        self._holders = IdHolders(checkpoint.entries, self._pod_resources.listed_devices, self._pods.unfinished)
        self._shares = ShareFiles(paths.run / "shares")
        owners = ProcessOwners(self._cgroups).of
        self._share_meter = ShareMeter(self._shares, gpus.load, owners, ProcessNames())
        descriptions = paths.state / "by-symlinks" if paths.by_symlinks else paths.cdi
        self._slots = Slots(descriptions, paths.state, self._shares)
        self._slot_limits = SlotLimits(self._slots, self._cgroups, lambda: self._view.granted_cards().pods)
        self._driver_limits = DriverLimits(gpus.limit_memory)
        self._meter = Meter(
            gpus.load,
            self._cgroups,
            self._view.granted_cards,
            is_made_up=gpus.is_made_up,
            accounts=lambda: self._share_meter.accounts,
            isolation=self._isolation_state,
        )
        self._misuse = self._misuse_reports()
        self._card_files = self._described_files()
        self._isolation = self._node_isolation()
        self._allocator = Allocator(self._context(), options, self._slots, self._injector())
        metered = MeteredAllocator(self._allocator, self._metrics, log)
        self._plugins = Plugins(metered, paths.plugins, self._pod_resources, self._metrics.count_registration)
        self._advertiser = self._made_advertiser()

    def _watched_config(self, access: Access) -> WatchedObject | None:
        if self._options.slicing_config is None:
            return None
        namespace, name = self._options.slicing_config
        return WatchedObject(access, f"/api/v1/namespaces/{namespace}/configmaps", name, self._stale.set)

    def _node_view(self, checkpoint: Checkpoint) -> NodeView:
        return NodeView(
            self._paths.node,
            self._options,
            cards=self._cards,
            pods=self._pods,
            node=self._node,
            config=self._config,
            checkpoint=checkpoint,
            closed_to_shares=self._closed_to_shares,
        )

    def _closed_to_shares(self, card: Card) -> str:
        return self._isolation.closed(card)

    def _isolation_state(self) -> IsolationState:
        return self._isolation.state()

    def _node_isolation(self) -> NodeIsolation:
        return NodeIsolation(
            self._view, self._card_files, self._gpus, self._paths, shares=self._shares, changed=self._stale.set
        )

    def _misuse_reports(self) -> MisuseReports:
        return MisuseReports(
            self._meter.usage,
            self._pods.unfinished,
            self._calls,
            self._paths.node,
            self._options.exempt,
            self._options.marks_misuse,
            self._log,
            utc_now,
        )

    def _made_advertiser(self) -> Advertiser:
        return Advertiser(
            self._view,
            self._cards,
            self._plugins,
            self._node_writer,
            held=self._holders.held_ids,
            until_known=self._until_known,
            isolation=self._isolation.condition,
            stale=self._stale,
            is_made_up=self._gpus.is_made_up,
        )

    def _described_files(self) -> CardFiles:
        folders = () if self._paths.by_symlinks else names.CDI_FOLDERS  # a runtime without CDI reads no description
        descriptions = NvidiaDescriptions([Path(folder) for folder in folders])
        return CardFiles(self._paths.devices, descriptions, self._gpus.is_made_up)

    def _context(self) -> NodeContext:
        return NodeContext(
            listed_devices=self._holders.listed_devices,
            pods_with_ids=self._holders.pods_with_ids,
            calls=self._calls,
            node=self._view.node,
            pods=self._pods,
            with_processes=self._cgroups.pods_with_processes,
            card_files=self._card_files,
            hold=self._isolation.hold,
            single_id_resources=self._single_id_resources,
            now_ns=time.time_ns,
        )

    def _single_id_resources(self) -> frozenset[str]:
        slicing = self._view.slicing
        return frozenset({slicing.resource} if slicing.fail_above_one else ())

    def _injector(self) -> Injector:
        if not self._paths.by_symlinks:
            return CdiInjector()
        return SymlinkInjector(
            self._paths.devices,
            self._slots.folder,
            lambda: [card.index for card in self._view.node().cards],
            () if self._gpus.is_made_up else names.CUDA_DEVICE_FILES,
        )

    # --- what is seen -------------------------------------------------------------------------------------------------

    def _pods_changed(self) -> None:
        self._stale.set()
        for each in failed_admissions(self._pods):
            if each.uid not in self._failed:
                self._failed.add(each.uid)
                self._rejections.add(each)
                self._metrics.count_rejected_pod(each.reason)
                self._log.warning("pod rejected by kubelet", pod=each.pod, reason=each.reason, why=each.message)
        self._failed &= {facts.uid for _, facts in self._pods}

    def _node_changed(self) -> None:
        found = without_heartbeat(self._node.object)
        self._node_writer.observe(self._node.object, is_news=found != self._last_news)
        if found != self._last_news:
            self._last_news = found
            self._stale.set()

    def _informers(self) -> list[Informer[Any]]:
        watched = (self._node, self._config) if self._config is not None else (self._node,)
        return [self._pods.informer, *[each.informer for each in watched]]

    async def _until_known(self) -> None:
        await asyncio.gather(*[each.wait_until_ready() for each in self._informers()], self._cards.read())
        await self._isolation.try_due()
        await self._adopt()

    async def _adopt(self) -> None:
        """Records adopted pods: before anything is offered, and while another plugin still starts pods."""
        self._view.read_slicing()
        await self._adoption_records.record(self._view.node(), self._view.adopted())

    def _problems(self) -> tuple[str, ...]:
        watches = tuple(each.trouble for each in self._informers() if each.trouble)
        cards = tuple(trouble for trouble in (self._cards.trouble, self._health_file.trouble) if trouble)
        settings = (self._options.mistake,) if self._options.mistake else ()
        return (*settings, *cards, *watches, *self._plugins.problems(), *self._node_writer.foreign)

    def _checks(self) -> Mapping[str, Any]:
        return {
            "settings": lambda: self._options.mistake or None,  # not ready, so a rollout stops at the first node
            "driver": lambda: self._cards.trouble or None,
            "state": lambda: None if self._advertiser.is_known else "pods, node and cards are not all known yet",
            "kubelet": lambda: "; ".join(self._plugins.problems()) or None,
        }

    # --- what is done -------------------------------------------------------------------------------------------------

    async def _serve_kubelet(self) -> None:
        for spoiled in self._slots.load():
            self._log.warning("slot removed", why=spoiled)
        await self._until_runtime_supports_cdi()
        jobs = (
            ("serve kubelet's calls", self._plugins.run),
            ("publish devices", self._advertiser.run),
            ("remove unused slots", self._sweep),
            ("record what holds pods", self._record_holdings),
        )
        async with run_in_background(jobs, self._log):
            await asyncio.Event().wait()

    async def _until_runtime_supports_cdi(self) -> None:
        """Waits: a runtime without CDI would start every container without its cards, and report a success.

        Where slots exist, the runtime has read some, and containers that restart need not wait for the API server.
        """
        if self._paths.by_symlinks or any(self._slots):
            return
        reported = ""
        await self._node.informer.wait_until_ready()
        while not runtime_supports_cdi(self._view.runtime()):
            if reported != (reported := self._view.runtime()) and reported:
                self._log.error("nothing is offered to kubelet", why=without_cdi(reported))
            await asyncio.sleep(1.0)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_EVERY_S)
            if self._advertiser.is_known:
                await self._adopt()
            with suppress(KubeletError):
                if await self._allocator.sweep():
                    self._stale.set()

    async def _record_holdings(self) -> None:
        while True:
            await asyncio.sleep(_RECORD_EVERY_S)
            if self._advertiser.is_known:  # else a record would lose the driver for a moment after each restart
                await self._limit_memory()
                pods = self._pods.unfinished() or {}
                await self._holding_records.record([*self._slots], pods, self._driver_limits.slots)

    async def _limit_memory(self) -> None:
        if any(self._driver_limits.can(card.uuid) for card in self._view.node().cards):
            await asyncio.to_thread(self._driver_limits.hold, self._slot_limits(self._driver_limits.can))

    async def _cut_accounts(self) -> None:
        while True:
            await asyncio.sleep(_CUT_EVERY_S)
            self._shares.cut()

    async def _measure_shares(self) -> None:
        while True:
            await asyncio.sleep(_MEASURE_EVERY_S)
            slots = self._held_slots()
            if slots or self._share_meter.accounts:
                await asyncio.to_thread(self._share_meter.measure, slots)

    def _held_slots(self) -> list[HeldSlot]:
        held = set(self._shares.slots())
        found = [slot for slot in self._slots if slot.name in held]
        return [HeldSlot(each.name, each.uid, each.only_container) for each in found]

    async def _report_misuse(self) -> None:
        await self._pods.informer.wait_until_ready()
        await self._misuse.run()

    async def run(self, lifecycle: Lifecycle) -> None:
        jobs: Sequence[Job] = (
            *follow_jobs(self._informers()),
            ("watch cards", self._cards.run),
            ("serve kubelet", self._serve_kubelet),
            ("write the node object", self._node_writer.run),
            ("report pods that kubelet rejected", self._rejections.run),
            ("report misuse of cards", self._report_misuse),
            ("try whether shares hold", self._isolation.run),
            ("cut accounts that grew", self._cut_accounts),
            ("measure shares", self._measure_shares),
            report_problems(self._problems, self._log),
        )
        gc.freeze()
        async with run_in_background(jobs, self._log):
            await serve(await self._listeners(lifecycle), lifecycle=lifecycle, log=self._log, stopping=_AT_ONCE)
            self._gpus.close()
        self._slots.show_all(time.time_ns())
        await self._pod_resources.close()
        self._calls.close()

    async def _listeners(self, lifecycle: Lifecycle) -> Sequence[Listener]:
        ports, pages = self._paths.ports, UsagePages(self._meter.usage, self._registry)
        plain = plain_app(pages, checks=self._checks(), lifecycle=lifecycle, plain_metrics=ports.plain_metrics)
        usage = usage_app(pages, TokenAccess(self._calls, time.monotonic))
        tls = await self_signed(self._paths.node)
        return (
            Listener(AGENT, ports.http.host, ports.http.port, plain),
            Listener(USAGE, ports.https.host, ports.https.port, usage, tls),
        )

"""GpuQuotas at admission: new pods reserve their charge or wait behind a gate, and workloads get a warning."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import pytest

from admission.gates import Gate
from admission.policy import AdmissionPolicy
from admission.quota.budget_ledgers import BudgetLedgers
from admission.quota.budget_reservation import BudgetReservation
from admission.quota.refusal_events import RefusingQuota
from admission.quota.scheduling_gate import QueueGate
from admission.quota.workload_hints import WorkloadHints
from admission.verdict import ALLOWED, Verdict
from admission.wire import ObjectKind, ReviewRequest, UserInfo
from admission.writes import decode_write
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN
from halfcard.pod.spec import PodMetadata
from halfcard.problems import DEVICE_CLASS, Severity
from halfcard.quota.budgets import Budget
from halfcard.quota.ledger import Amounts, Ledger, StoredPods, commit, pod_uid, sum_of
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import LedgerStore
from kube.quota.budget_source import BudgetSource
from tests.builders import Json, container, gpu, pod_of
from tests.halfcard.quota.test_budgets import budget, own
from tests.kube.ledger_server import LedgerServer, serving_ledgers
from tests.waiting import until

from ..judging import POLICY

BUDGET: Final = budget(own({"hard": {"cores": 100}, "onExceeded": "Gate"}))
GATE: Final = {"name": names.QUOTA_GATE}


@dataclass
class Budgets:
    """One budget in the namespace team."""

    ready: bool = True
    is_suspended: bool = False

    def of(self, namespace: str) -> Sequence[Budget]:
        return [BUDGET] if namespace == "team" else []

    def reach(self, budget: Budget) -> Amounts:
        return {} if self.is_suspended else budget.hard


@dataclass
class Site:
    server: LedgerServer
    budgets: Budgets
    calls: ApiCalls
    ledgers: BudgetLedgers
    patience_s: float = 10.0
    reported: list[str] = field(default_factory=list)

    def with_severity(self, severity: Severity) -> Site:
        """The same where HC017 has another severity."""
        policy = replace(POLICY, severities={DEVICE_CLASS.code: severity})
        return replace(self, ledgers=ledgers_of(self.server, self.budgets, self.calls, policy))

    async def reserve(self, obj: Json, **more: Any) -> str:
        """Returns the message of the refusal; empty where the pod is admitted."""
        return (await self.ask(BudgetReservation(self.ledgers, self._refused), obj, **more)).message

    async def ask(self, gate: Gate, obj: Json, *, kind: str = "Pod", old: Json | None = None, **more: Any) -> Verdict:
        usual = {"operation": "CREATE" if old is None else "UPDATE", "namespace": "team", "old_object": old}
        write = decode_write(ReviewRequest("1", kind=ObjectKind(kind), object=obj, **(usual | more)), POLICY)
        deadline = asyncio.get_running_loop().time() + self.patience_s
        return ALLOWED if write is None else await gate(write, ALLOWED, deadline)

    def charges(self) -> list[Amounts]:
        return [each.charge for each in self.server.ledger(BUDGET.ledger).reservations.values()]

    def store(self) -> None:
        """Stores the pods of all reservations, as the leader counts them."""
        ledger = self.server.ledger(BUDGET.ledger)
        live = {pod_uid(name): entry for name, entry in ledger.reservations.items()}
        total = sum_of(entry.charge for entry in live.values())
        self.server.put(BUDGET.ledger, commit(ledger, 0, StoredPods(live, total)))

    def _refused(self, quota: RefusingQuota, namespace: str, pod: PodMetadata, _message: str) -> None:
        self.reported.append(f"{quota.title}: {namespace}/{pod.title}")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    with serving_ledgers() as server:
        server.put(BUDGET.ledger, commit(Ledger(BUDGET.hard, quota_uid=BUDGET.uid), 0, StoredPods({}, {})))
        calls, budgets = ApiCalls(Access("127.0.0.1", server.port)), Budgets()
        yield Site(server, budgets, calls, ledgers_of(server, budgets, calls, POLICY))
        calls.close()


def ledgers_of(server: LedgerServer, budgets: Budgets, calls: ApiCalls, policy: AdmissionPolicy) -> BudgetLedgers:
    store = LedgerStore(calls, names.NAMESPACE)
    ledgers = BudgetLedgers(cast("BudgetSource", budgets), store, policy, lambda: NOTHING_KNOWN)
    ledgers.update(BUDGET.ledger, server.seen(BUDGET.ledger))
    return ledgers


def named(obj: Json, uid: str) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "uid": uid}}


async def test_a_new_pod_reserves_its_charge_until_the_budget_is_exhausted(site: Site) -> None:
    assert await site.reserve(named(pod_of(gpu("60")), "a")) == ""
    assert [each["cores"] for each in site.charges()] == [60]
    site.store()
    refused = await site.reserve(named(pod_of(gpu("50")), "b"))
    assert "exceeded quota: team/gpu, requested: cores=50, used: cores=60, limited: cores=100" in refused
    assert site.charges() == []
    assert site.reported == ["team/gpu: team/train"]


async def test_a_pod_waits_while_only_a_reservation_is_in_the_way(site: Site) -> None:
    assert await site.reserve(named(pod_of(gpu("60")), "a")) == ""
    waiting = asyncio.create_task(site.reserve(named(pod_of(gpu("50")), "b")))
    await until(lambda: site.server.calls[-1] == "GET", what="the read before a refusal")
    site.server.put(BUDGET.ledger, site.server.ledger(BUDGET.ledger)._replace(reservations={}))
    site.ledgers.update(BUDGET.ledger, site.server.seen(BUDGET.ledger))
    assert await waiting == ""
    assert [each["cores"] for each in site.charges()] == [50]


async def test_a_pod_that_waited_in_vain_for_a_reservation_may_be_created_again(site: Site) -> None:
    assert await site.reserve(named(pod_of(gpu("60")), "a")) == ""
    site.patience_s = 0.1
    no_room = (await site.ask(BudgetReservation(site.ledgers, site._refused), pod_of(gpu("50")))).no_room
    assert no_room is not None and (no_room.retry_s, no_room.code) == (3, "busy")
    assert no_room.message.endswith("pods that are about to be stored take the rest; try again in 3 s")
    assert site.reported == []
    dry = await site.ask(BudgetReservation(site.ledgers, site._refused), pod_of(gpu("50")), dry_run=True)
    assert dry.no_room == no_room


async def test_a_controller_is_asked_to_try_again_soon_since_a_worker_of_it_waits_until_then(site: Site) -> None:
    assert await site.reserve(named(pod_of(gpu("60")), "a")) == ""
    site.patience_s = 0.1
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    owned = pod_of(gpu("50"))
    owned["metadata"]["ownerReferences"] = [owner]
    no_room = (await site.ask(BudgetReservation(site.ledgers, site._refused), owned)).no_room
    assert no_room is not None and no_room.retry_s == 1


async def test_a_dry_run_gets_the_same_answer_and_changes_nothing(site: Site) -> None:
    assert await site.reserve(pod_of(gpu("60")), dry_run=True) == ""
    assert "exceeded" in await site.reserve(pod_of(gpu("200", None)), dry_run=True)
    assert (site.charges(), site.reported) == ([], [])


@pytest.mark.parametrize(
    "more",
    [
        {"old": pod_of(gpu("60"))},
        {"old": pod_of(gpu("60")), "sub_resource": "resize"},
        {"kind": "Binding"},
        {"namespace": "other"},
        {"namespace": "kube-system"},
        {"user_info": UserInfo("system:node:n1")},
    ],
    ids=str,
)
async def test_only_new_pods_reserve_and_mirrors_of_static_pods_do_not(site: Site, more: dict[str, Any]) -> None:
    assert await site.reserve(pod_of(gpu("60"), annotations={names.MIRROR_POD: "hash"}), **more) == ""
    assert site.charges() == []


@pytest.mark.parametrize("more", [{}, {"dry_run": True}], ids=str)
@pytest.mark.parametrize("spec", [{}, {"schedulingGates": [GATE]}], ids=str)
async def test_a_pod_whose_cores_nothing_says_is_refused_where_they_are_limited(
    more: dict[str, Any], spec: Json, site: Site
) -> None:
    slices = pod_of(container({names.NVIDIA_GPU_SHARED: "1"}), **spec)
    wanted = (
        "quota team/gpu limits cores, and this pod's depends on its card; request cores, not slices, or whole cards"
    )
    assert await site.reserve(slices, **more) == wanted
    assert site.charges() == []


DEVICES: Final = names.DEVICE_CLASS_PREFIX + names.GPU_DEVICE_CLASSES[0]
BY_CLAIM: Final = pod_of(container(), resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
BY_CLASS: Final = pod_of(container(), container({"cpu": "1", DEVICES: "8"}))


@pytest.mark.parametrize("more", [{}, {"dry_run": True}], ids=str)
@pytest.mark.parametrize(("obj", "field"), [(BY_CLAIM, "spec.resourceClaims"), (BY_CLASS, f"resources: {DEVICES}")])
async def test_devices_that_no_quota_counts_are_refused_where_they_are_allowed_and_a_quota_stands(
    more: dict[str, Any], obj: Json, field: str, site: Site
) -> None:
    allowing = site.with_severity(Severity.WARN)
    refused = await allowing.reserve(obj, **more)
    assert refused.startswith("quota team/gpu cannot count devices of Dynamic Resource Allocation (")
    assert field in refused
    assert await allowing.reserve(obj, **more, namespace="other") == ""
    assert await allowing.reserve(pod_of(container({f"{names.DEVICE_CLASS_PREFIX}nic.example.com": "1"})), **more) == ""
    assert site.charges() == []


async def test_claims_of_other_devices_pass_a_quota_where_claims_of_gpus_are_refused_when_they_are_made(
    site: Site,
) -> None:
    assert await site.reserve(BY_CLAIM) == ""


async def test_a_suspended_quota_refuses_no_devices(site: Site) -> None:
    site.budgets.is_suspended = True
    assert await site.with_severity(Severity.OFF).reserve(BY_CLASS) == ""


async def test_two_pods_with_all_memory_of_their_cards_do_not_pass_a_quota_of_one_card(site: Site) -> None:
    eight = pod_of(container({names.NVIDIA_GPU: "8", names.HAMI_GPUMEM_PERCENTAGE: "100"}))
    assert "requested: cores=800" in await site.reserve(named(eight, "a"))


async def test_pods_are_refused_and_may_be_created_again_while_budgets_are_unknown(site: Site) -> None:
    site.budgets.ready = False
    verdict = await site.ask(BudgetReservation(site.ledgers, site._refused), pod_of(gpu()))
    assert verdict.no_room is not None and verdict.no_room.retry_s == 1


async def test_a_pod_that_waits_reserves_nothing_and_is_refused_where_it_can_never_fit(site: Site) -> None:
    assert await site.reserve(pod_of(gpu("60"), schedulingGates=[GATE])) == ""
    assert "exceeded" in await site.reserve(pod_of(gpu("200", None), schedulingGates=[GATE]))
    assert site.charges() == []


@pytest.mark.parametrize(
    ("obj", "gated"),
    [
        (pod_of(gpu()), True),
        (pod_of(container()), False),
        (pod_of(gpu(), nodeName="n1"), False),  # the API server refuses gates on such a pod
        (pod_of(gpu(), schedulingGates=[GATE]), False),
    ],
)
async def test_pods_get_the_gate_where_their_budget_lets_them_wait(site: Site, obj: Json, gated: bool) -> None:  # noqa: FBT001
    changes = (await site.ask(QueueGate(site.ledgers), obj)).changes
    assert [each.value for each in changes] == ([[GATE]] if gated else [])
    assert (await site.ask(QueueGate(site.ledgers), obj, old=obj)).changes == ()


async def test_a_new_workload_gets_a_warning_where_not_all_of_its_pods_fit(site: Site) -> None:
    workload = {"spec": {"replicas": 5, "template": pod_of(gpu("30"))}}
    (hint,) = (await site.ask(WorkloadHints(site.ledgers), workload, kind="Deployment")).warnings
    assert hint == "team/gpu: only 3 of 5 pods fit: cores=100 free"
    assert (await site.ask(WorkloadHints(site.ledgers), workload, kind="Deployment", old=workload)).warnings == ()

"""Default quotas and exemptions on a real API server."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from cli.__main__ import main as halfcard
from devcluster.control_plane.client import ApiResponse
from devcluster.services.quota_installation import QuotaInstallation, cluster_with_quotas, quota, refusal
from devcluster.waiting import wait_until
from halfcard import names

from .contention import create_all, slowed
from .manifests import share

NAMESPACES: Final = int(os.environ.get("HALFCARD_QUOTA_NAMESPACES", "30"))
PODS_OF_EACH: Final = 3

say: Final = print


@pytest.fixture(scope="module")
def quotas() -> Iterator[QuotaInstallation]:
    with cluster_with_quotas() as service:
        yield service


@pytest.fixture
def tier(request: pytest.FixtureRequest) -> str:
    return f"tier-{abs(hash(request.node.name)) % 10**8}"


def apply(quotas: QuotaInstallation, item: dict[str, Any]) -> None:
    done = quotas.cluster.kubectl("apply", "--server-side", "-f-", stdin=json.dumps(item))
    assert done.code == 0, done.stderr


def default(quotas: QuotaInstallation, tier: str, **spec: Any) -> None:
    selector = {"selector": {"matchLabels": {"tier": tier}}}
    apply(quotas, quota(tier, {"asDefault": True, "namespaces": selector, **spec}))


def space(quotas: QuotaInstallation, tier: str, name: str) -> str:
    """Creates a namespace that has its label from the start."""
    made = f"{tier}-{name}"
    apply(quotas, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made, "labels": {"tier": tier}}})
    return made


def create(quotas: QuotaInstallation, team: str, name: str) -> ApiResponse:
    """Creates a pod, and retries after 429 as clients do."""
    answers: list[ApiResponse] = []

    def answered() -> bool:
        answers.append(quotas.webhook.create(team, share(name)))
        return answers[-1].status != 429

    wait_until(answered, what=f"an answer for {team}/{name}", seconds=60)
    return answers[-1]


def test_the_default_applies_to_each_namespace_without_a_quota(
    quotas: QuotaInstallation, tier: str, capsys: pytest.CaptureFixture[str]
) -> None:
    default(quotas, tier, hard={"cores": 60})
    teams = [space(quotas, tier, name) for name in "ab"]
    for team in teams:
        with ThreadPoolExecutor(8) as pool:
            stored = [each.ok for each in pool.map(lambda number, to=team: create(quotas, to, f"p{number}"), range(8))]
        assert sum(stored) == 2, "in a burst into a new namespace"
        message = refusal(quotas.webhook.create(team, share("more")))
        assert f"exceeded quota: {tier} for {team}, requested: cores=30, used: cores=60, limited: cores=60" in message
    path = f"{names.QUOTA_API}/{names.CLUSTER_GPU_QUOTAS}/{tier}"
    quotas.cluster.wait_until(
        lambda: quotas.cluster.request("GET", path).must().get("status", {}).get("cores") == "120/60",
        what="the status: the usage of both namespaces and the limit of each",
    )
    arguments = ["quota", "explain", teams[0], "--kubeconfig", str(quotas.cluster.admin.kubeconfig)]
    assert halfcard(arguments) == 0
    assert f"ClusterGpuQuota {tier} for {teams[0]}" in capsys.readouterr().out
    assert halfcard([*arguments, "--pod", "cores=30"]) == 1
    assert "used: cores=60, limited: cores=60" in " ".join(capsys.readouterr().out.split())


def test_exactly_as_many_pods_as_fit_in_each_of_many_namespaces_are_all_stored_by_a_slow_webhook(
    quotas: QuotaInstallation, tier: str
) -> None:
    with ThreadPoolExecutor(8) as pool:
        teams = [*pool.map(lambda at: quotas.cluster.create_namespace(f"{tier}-{at}"), range(NAMESPACES))]
    default(quotas, tier, hard={"shares": PODS_OF_EACH}, namespaces={"names": teams})
    with slowed([each.program for each in quotas.webhook.replicas], 0.5):
        outcomes = create_all(quotas, teams, PODS_OF_EACH * NAMESPACES, tries=2)
    say(Counter(each.statuses for each in outcomes))
    assert [each for each in outcomes if not each.stored] == []


def test_a_namespace_quota_replaces_the_default_until_it_is_deleted(quotas: QuotaInstallation, tier: str) -> None:
    default(quotas, tier, hard={"cores": 30})
    team = space(quotas, tier, "a")
    assert create(quotas, team, "one").ok
    assert f"quota: {tier} for {team}," in refusal(create(quotas, team, "two"))
    quotas.allow(team, hard={"cores": 60})
    quotas.cluster.wait_until(lambda: create(quotas, team, "two").ok, what="its own quota to be enforced")
    assert f"quota: {team}/gpu," in refusal(create(quotas, team, "three"))
    assert quotas.webhook.kubectl(team, "delete", "gpuquota", "gpu").code == 0
    quotas.cluster.wait_until(
        lambda: "used: cores=60, limited: cores=30" in create(quotas, team, "three").body.get("message", ""),
        what="the default to be enforced again, with all existing pods",
    )


def test_a_default_that_lends_is_refused(quotas: QuotaInstallation, tier: str) -> None:
    spec = {"hard": {"cores": 30}, "onExceeded": "Gate", "borrowing": {"cohort": "c"}, "asDefault": True}
    item = quota(tier, {**spec, "namespaces": {"names": ["a"]}})
    done = quotas.cluster.kubectl("apply", "--server-side", "-f-", stdin=json.dumps(item))
    assert done.code and "a default quota cannot lend" in done.stderr


def test_an_exemption_suspends_a_quota_and_usage_is_still_counted(
    quotas: QuotaInstallation, tier: str, capsys: pytest.CaptureFixture[str]
) -> None:
    team = quotas.cluster.create_namespace(tier)
    hard = {"cores": 30}
    quotas.allow(team, hard=hard)
    assert create(quotas, team, "one").ok
    refusal(create(quotas, team, "two"))
    end = datetime.now(UTC) + timedelta(seconds=12)
    exemption = {"until": f"{end:%Y-%m-%dT%H:%M:%SZ}", "reason": "the paper is due"}
    ledger = quotas.allow(team, hard=hard, exemption=exemption)
    quotas.cluster.wait_until(lambda: create(quotas, team, "two").ok, what="the exemption to begin")
    quotas.cluster.wait_until(lambda: quotas.status(team).get("cores") == "60/30", what="the status")
    quotas.cluster.wait_until(lambda: "Exempt" in describe(quotas, team), what="its Event")
    assert "the quota limits nothing until" in describe(quotas, team) and "the paper is due" in describe(quotas, team)
    assert halfcard(["quota", "explain", team, "--kubeconfig", str(quotas.cluster.admin.kubeconfig)]) == 0
    assert "over by cores=30, and exempt" in capsys.readouterr().out
    exempt = "halfcard_quota_exempt 1.0"
    assert exempt in quotas.wait_led().status(names.METRICS_PATH)[1]

    quotas.cluster.wait_until(lambda: quotas.ledger(ledger).hard == hard, what="the exemption to end")
    assert datetime.now(UTC) >= end.replace(microsecond=0)
    assert "used: cores=60, limited: cores=30" in refusal(create(quotas, team, "three"))
    quotas.cluster.wait_until(lambda: "ExemptionEnded" in describe(quotas, team), what="its second Event")
    quotas.cluster.wait_until(
        lambda: [each["type"] for each in quotas.status(team)["conditions"]] == ["Ready", "Exceeded"], what="the status"
    )
    assert exempt not in quotas.wait_led().status(names.METRICS_PATH)[1]


def describe(quotas: QuotaInstallation, team: str) -> str:
    return quotas.webhook.kubectl(team, "describe", "gpuquota", "gpu").stdout


@pytest.mark.parametrize("exemption", [{"until": "tomorrow", "reason": "x"}, {"until": "2026-11-22T12:00:00Z"}])
def test_an_exemption_without_an_end_or_a_reason_is_refused(
    quotas: QuotaInstallation, tier: str, exemption: dict[str, str]
) -> None:
    item = quota(tier, {"hard": {"cores": 30}, "exemption": exemption}, "default")
    done = quotas.cluster.kubectl("apply", "--server-side", "-f-", stdin=json.dumps(item))
    assert done.code and "exemption" in done.stderr


def test_a_manipulated_ledger_is_repaired_and_reported(quotas: QuotaInstallation, tier: str) -> None:
    team = quotas.cluster.create_namespace(tier)
    name = quotas.allow(team, hard={"cores": 60})
    assert create(quotas, team, "one").ok
    quotas.cluster.wait_until(lambda: not quotas.ledger(name).reservations, what="the reservation to be settled")
    path = f"/api/v1/namespaces/{names.NAMESPACE}/configmaps/{name}"
    stored = quotas.cluster.request("GET", path).must()
    right = quotas.ledger(name).committed
    wrong = stored["data"]["ledger"].replace('"cores":30', '"cores":7')
    assert wrong != stored["data"]["ledger"]
    quotas.cluster.request("PUT", path, {**stored, "data": {"ledger": wrong}}).must()
    quotas.cluster.wait_until(lambda: "cores=7 instead of 30" in describe(quotas, team), what="its Event")
    assert quotas.ledger(name).committed == right
    assert "halfcard_quota_repaired 1.0" in quotas.wait_led().status(names.METRICS_PATH)[1]

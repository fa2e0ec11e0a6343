"""ResourceQuotas with limits keys count: Halfcard adds requests keys, and a refusal names the missing amount."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cli.__main__ import main as halfcard
from devcluster.objects import Object
from devcluster.services.installation import Installation, collection
from devcluster.services.quota_installation import QuotaInstallation, refusal
from halfcard import names
from tests.builders import pod

from .manifests import complete, resource_quota, share

CORE, MEMORY = names.VCUDA_CORE, names.VCUDA_MEMORY


def only_limits(cores: str = "50", memory: str = "10Gi") -> Object:
    """Returns a quota as users of gpu-manager write it: Kubernetes accepts it and counts nothing."""
    return resource_quota("gpu", {f"limits.{CORE}": cores, f"limits.{MEMORY}": memory})


def hard(webhook: Installation, space: str) -> dict[str, str]:
    amounts: dict[str, str] = webhook.get(space, "resourcequota", "gpu")["spec"]["hard"]
    return amounts


def used(webhook: Installation, space: str) -> dict[str, str]:
    amounts: dict[str, str] = webhook.get(space, "resourcequota", "gpu").get("status", {}).get("used", {})
    return amounts


def wait_for_used(webhook: Installation, space: str, amounts: dict[str, str]) -> None:
    webhook.cluster.wait_until(
        lambda: amounts.items() <= used(webhook, space).items(), what=f"the quota to count {amounts}"
    )


def test_describe_shows_the_added_key_counted_beside_the_written_key(webhook: Installation, space: str) -> None:
    written = webhook.kubectl(space, "apply", "-f-", item=only_limits())
    assert written.code == 0, written.stderr
    assert f"Warning: requests.{CORE}=50 was added: Kubernetes counts only this key" in written.stderr
    wait_for_used(webhook, space, {f"requests.{CORE}": "0"})
    webhook.create(space, share("one")).must()
    wait_for_used(webhook, space, {f"requests.{CORE}": "30", f"requests.{MEMORY}": "20"})
    described = webhook.kubectl(space, "describe", "quota", "gpu").stdout
    lines = {tuple(line.split()) for line in described.splitlines()}
    assert {(f"requests.{CORE}", "30", "50"), (f"requests.{MEMORY}", "20", "40")} <= lines
    assert {(f"limits.{CORE}", "0", "50"), (f"limits.{MEMORY}", "0", "40")} <= lines


def test_a_quota_of_limits_alone_refuses_the_pod_that_exceeds_it(webhook: Installation, space: str) -> None:
    webhook.create(space, only_limits()).must()
    wait_for_used(webhook, space, {f"requests.{CORE}": "0"})
    webhook.create(space, share("one")).must()
    second = webhook.kubectl(space, "create", "-f-", item=share("two"))
    assert second.code == 1
    assert f"exceeded quota: {space}/gpu, requested: requests.{CORE}=30" in second.stderr
    assert f"used: requests.{CORE}=30" in second.stderr
    assert f"limited: requests.{CORE}=50" in second.stderr


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_a_change_of_the_written_key_changes_the_added_key(
    webhook: Installation, space: str, how: tuple[str, ...]
) -> None:
    for cores in ("50", "80", "20"):
        applied = webhook.kubectl(space, "apply", *how, "-f-", item=only_limits(cores))
        assert applied.code == 0, applied.stderr
        assert hard(webhook, space)[f"requests.{CORE}"] == cores


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_the_same_file_applies_twice_and_shows_no_difference(
    webhook: Installation, space: str, how: tuple[str, ...]
) -> None:
    item = only_limits("0.5", "10Gi")
    for _ in range(2):
        applied = webhook.kubectl(space, "apply", *how, "-f-", item=item)
        assert applied.code == 0, applied.stderr
    assert hard(webhook, space) == {f"{side}.{CORE}": "50" for side in ("limits", "requests")} | {
        f"{side}.{MEMORY}": "40" for side in ("limits", "requests")
    }
    diff = webhook.kubectl(space, "diff", *how, "-f-", item=item)
    assert (diff.code, diff.stdout) == (0, "")


def test_replace_works_with_a_file_without_added_keys(webhook: Installation, space: str) -> None:
    webhook.create(space, only_limits("50")).must()
    replaced = webhook.kubectl(space, "replace", "-f-", item=only_limits("70"))
    assert replaced.code == 0, replaced.stderr
    assert hard(webhook, space)[f"requests.{CORE}"] == "70"


def test_an_added_key_is_removed_with_the_written_key(webhook: Installation, space: str) -> None:
    webhook.kubectl(space, "apply", "-f-", item=only_limits())
    memory_alone = resource_quota("gpu", {f"limits.{MEMORY}": "10Gi"})
    applied = webhook.kubectl(space, "apply", "-f-", item=memory_alone)
    assert applied.code == 0, applied.stderr
    assert hard(webhook, space) == {f"limits.{MEMORY}": "40", f"requests.{MEMORY}": "40"}


def test_a_requests_key_that_the_user_wrote_is_not_changed(webhook: Installation, space: str) -> None:
    both = resource_quota("gpu", {f"limits.{CORE}": "80", f"requests.{CORE}": "50"})
    webhook.kubectl(space, "apply", "-f-", item=both)
    assert hard(webhook, space) == {f"limits.{CORE}": "80", f"requests.{CORE}": "50"}


def test_a_quota_without_gpu_is_left_alone(webhook: Installation, space: str) -> None:
    item = resource_quota("gpu", {"pods": "10", "requests.cpu": "4"})
    webhook.create(space, item).must()
    assert hard(webhook, space) == {"pods": "10", "requests.cpu": "4"}


def test_an_invalid_amount_is_refused_with_its_field(webhook: Installation, space: str) -> None:
    refused = webhook.kubectl(space, "create", "-f-", item=resource_quota("gpu", {f"requests.{CORE}": "1.005"}))
    assert refused.code == 1
    assert f'spec.hard["requests.{CORE}"]: got "1.005"' in refused.stderr
    assert "[HC030]" in refused.stderr


def test_a_quota_is_charged_once_for_init_containers_and_sidecars(webhook: Installation, space: str) -> None:
    webhook.create(space, only_limits("100", "100Gi")).must()
    wait_for_used(webhook, space, {f"requests.{CORE}": "0"})
    built = pod("one").init(core="60", memory="4").sidecar(core="10", memory="4").asks(core="30", memory="4")
    webhook.create(space, complete(built)).must()
    wait_for_used(webhook, space, {f"requests.{CORE}": "60", f"requests.{MEMORY}": "8"})


# --- the refusal ------------------------------------------------------------------------------------------------------


def allow(webhook: Installation, space: str, cores: str, name: str = "gpu", **spec: Any) -> None:
    """Creates a quota and waits until Kubernetes counts it."""
    quota = resource_quota(name, {f"requests.{CORE}": cores})
    quota["spec"] |= spec
    assert webhook.kubectl(space, "apply", "-f-", item=quota).code == 0
    path = f"{collection(space, quota)}/{name}"

    def counted() -> bool:
        status = webhook.cluster.request("GET", path).must().get("status", {})
        return bool(status.get("hard") == quota["spec"]["hard"] and status.get("used"))

    webhook.cluster.wait_until(counted, what="the quota to be counted")


def wait_for_refusal(webhook: Installation, space: str, item: Object) -> str:
    """Waits for Halfcard's refusal, which needs the watch of the quota, and returns its message."""
    webhook.cluster.wait_until(
        lambda: "more needed" in str(webhook.create(space, item, dry_run=True).body.get("message")), what="a refusal"
    )
    return refusal(webhook.create(space, item, dry_run=True)).partition("denied the request: ")[2]


def test_a_pod_that_exceeds_the_quota_is_refused_with_the_missing_amount(webhook: Installation, space: str) -> None:
    allow(webhook, space, "100")
    for name, cores in (("a", 50), ("b", 30)):
        webhook.create(space, complete(pod(name).asks(core=cores, memory=4))).must()
    wait_for_refusal(webhook, space, share("c"))
    assert refusal(webhook.create(space, share("c"))).partition("denied the request: ")[2] == (
        f"exceeded quota: {space}/gpu, requested: requests.{CORE}=30, used: requests.{CORE}=80, "
        f"limited: requests.{CORE}=100 (10 more needed: 0.30 card asked, 0.20 card free)"
    )
    webhook.create(space, complete(pod("c").asks(core=20, memory=4))).must()

    def has_event() -> bool:
        shown = webhook.kubectl(space, "describe", "resourcequota", "gpu").stdout
        events = webhook.kubectl(space, "events", "--for", "resourcequota/gpu").stdout
        return "Resource" in shown and "QuotaExceeded" in events and f"{space}/c: exceeded quota: {space}/gpu" in events

    webhook.cluster.wait_until(has_event, what="an Event of the quota")


def test_all_exceeded_quotas_are_named(webhook: Installation, space: str) -> None:
    for name, cores in (("a", "20"), ("b", "100"), ("c", "0")):
        allow(webhook, space, cores, name)
    wait_for_refusal(webhook, space, share("x"))
    webhook.cluster.wait_until(
        lambda: (
            [part.partition(",")[0] for part in wait_for_refusal(webhook, space, share("x")).split(" | ")]
            == [f"exceeded quota: {space}/a", f"exceeded quota: {space}/c"]
        ),
        what="both quotas to be named",
    )


def test_a_quota_with_scopes_counts_only_matching_pods(webhook: Installation, space: str) -> None:
    allow(webhook, space, "0", "ending", scopes=["Terminating"])
    ending = complete(pod("ending").asks(core=30, memory=4).specified(activeDeadlineSeconds=600))
    assert f"exceeded quota: {space}/ending" in wait_for_refusal(webhook, space, ending)
    webhook.create(space, share("staying")).must()
    deadline = json.dumps({"spec": {"activeDeadlineSeconds": 600}})
    late = webhook.kubectl(space, "patch", "pod", "staying", "--type=merge", "-p", deadline)
    assert late.code == 1 and f"exceeded quota: {space}/ending" in late.stderr and "more needed" in late.stderr


def test_a_quota_raised_a_moment_ago_refuses_no_pod(webhook: Installation, space: str) -> None:
    """Kubernetes may refuse with the old limit for a moment; Halfcard must not."""
    allow(webhook, space, "30")
    webhook.create(space, share("p0")).must()
    wait_for_refusal(webhook, space, share("x"))
    for at in range(1, 6):
        allow(webhook, space, str(30 * at + 30))
        webhook.cluster.wait_until(
            lambda each=at: is_created(webhook, space, f"p{each}"),  # type: ignore[misc]
            what="the raised quota to be enforced",
        )
        wait_for_refusal(webhook, space, share("x"))


def is_created(webhook: Installation, space: str, name: str) -> bool:
    """Creates a pod, which Kubernetes may refuse and Halfcard must not."""
    answer = webhook.create(space, share(name))
    assert "more needed" not in str(answer.body.get("message"))
    return answer.ok


def test_a_burst_uses_the_whole_quota_and_no_more(webhook: Installation, space: str) -> None:
    allow(webhook, space, "300")
    wait_for_refusal(webhook, space, complete(pod("x").asks(core=400)))
    with ThreadPoolExecutor(20) as pool:
        answers = [*pool.map(lambda at: webhook.create(space, share(f"p{at}")), range(60))]
    assert sum(answer.ok for answer in answers) == 10
    refused = [str(answer.body["message"]) for answer in answers if not answer.ok]
    assert all("exceeded quota" in message for message in refused)
    assert any("more needed" in message for message in refused)


def test_many_refusals_cost_few_reads(webhook: Installation, space: str) -> None:
    """Refusals cause at most one list request every 100 ms."""
    allow(webhook, space, "0")
    wait_for_refusal(webhook, space, share("x"))
    began, before = time.monotonic(), lists_of_quotas(webhook)
    for _ in range(12):
        refusal(webhook.create(space, share("x"), dry_run=True))
    assert lists_of_quotas(webhook) - before <= (time.monotonic() - began) * 10 + 2


def lists_of_quotas(webhook: Installation) -> int:
    """Returns how often any client has listed quotas."""
    text = webhook.cluster.kubectl("get", "--raw", "/metrics").stdout
    wanted = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
    lists = [line for line in wanted if 'resource="resourcequotas"' in line and 'verb="LIST"' in line]
    return int(sum(float(line.rpartition(" ")[2]) for line in lists))


# --- quotas older than Halfcard ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(webhook: Installation) -> Iterator[QuotaInstallation]:
    service = QuotaInstallation(webhook)
    service.add_replica()
    service.wait_led()
    yield service
    for replica in service.replicas:
        replica.program.terminate()


def create_unregistered(webhook: Installation, space: str, item: Object) -> None:
    with webhook.unregistered():
        webhook.create(space, item).must()


def repair(space: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = halfcard(["quota", "repair", *([space] if space else []), "-o", "json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def uncounted(service: QuotaInstallation) -> int:
    """Returns the number in the whole cluster, with those of other tests."""
    metrics = service.replicas[0].status(names.METRICS_PATH)[1]
    (line,) = re.findall(r"^halfcard_quota_native_uncounted (\d+)", metrics, re.MULTILINE)
    return int(line)


def test_a_quota_that_counts_nothing_is_reported_and_repaired(
    webhook: Installation, service: QuotaInstallation, space: str, capsys: pytest.CaptureFixture[str]
) -> None:
    create_unregistered(webhook, space, only_limits())
    webhook.create(space, share("one")).must()
    found: list[Any] = []

    def has_events() -> bool:
        events = json.loads(webhook.kubectl(space, "get", "events", "-o=json").stdout)["items"]
        found[:] = [each for each in events if each["reason"] == "NeverCounted"]
        return bool(found)

    webhook.cluster.wait_until(has_events, what="the event")
    (event,) = found
    assert (event["involvedObject"]["kind"], event["involvedObject"]["name"], event["count"]) == (
        "ResourceQuota",
        "gpu",
        1,
    )
    assert f"accepts limits.{CORE}=50, limits.{MEMORY}=10Gi and never counts it" in event["message"]
    before = uncounted(service)
    assert before >= 1

    access = ("--kubeconfig", str(webhook.cluster.admin.kubeconfig))
    assert halfcard(["quota", "explain", space, *access]) == 0
    assert "never counts it, so it limits nothing" in " ".join(capsys.readouterr().out.split())
    code, report = repair(space, capsys, "--dry-run", *access)
    assert code == 1 and f"requests.{CORE}" not in hard(webhook, space)
    (quota,) = report["quotas"]
    assert quota["in_use"] == {CORE: "30", MEMORY: "20"}
    assert f"requests.{CORE}=50 was added: Kubernetes counts only this key" in quota["done"]

    assert repair(space, capsys, *access)[0] == 0
    assert hard(webhook, space) == {f"{side}.{CORE}": "50" for side in ("limits", "requests")} | {
        f"{side}.{MEMORY}": "40" for side in ("limits", "requests")
    }
    wait_for_used(webhook, space, {f"requests.{CORE}": "30", f"requests.{MEMORY}": "20"})
    webhook.cluster.wait_until(lambda: uncounted(service) == before - 1, what="the metric of the quota service")
    assert "30 more needed: 0.50 card asked, 0.20 card free" in wait_for_refusal(
        webhook, space, complete(pod("two").asks(core=50, memory=4))
    )
    _, all_namespaces = repair("", capsys, *access)
    assert [each["name"] for each in all_namespaces["quotas"] if each["name"].startswith(f"{space}/")] == []
    applied = webhook.kubectl(space, "apply", "-f-", item=only_limits("20"))
    assert applied.code == 0 and hard(webhook, space)[f"requests.{CORE}"] == "20", (
        "the added key follows the written key"
    )


def test_after_halfcard_is_removed_quotas_can_be_reverted(
    webhook: Installation, space: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written = only_limits()
    webhook.create(space, written).must()
    access = ("--kubeconfig", str(webhook.cluster.admin.kubeconfig))
    assert halfcard(["quota", "revert", space, *access]) == 1
    assert "the webhook added it again: remove Halfcard first" in " ".join(capsys.readouterr().out.split())
    with webhook.unregistered():
        assert halfcard(["quota", "revert", space, "--dry-run", *access]) == 1
        assert f"requests.{CORE}" in hard(webhook, space)
        assert halfcard(["quota", "revert", space, *access]) == 0
        assert {key for key in hard(webhook, space) if key.startswith("requests.")} == set()
        capsys.readouterr()
        assert halfcard(["quota", "revert", space, "-o", "json", *access]) == 0
    assert json.loads(capsys.readouterr().out) == {"dry_run": False, "quotas": []}


def test_a_user_without_rights_on_quotas_repairs_none(
    webhook: Installation, space: str, capsys: pytest.CaptureFixture[str]
) -> None:
    create_unregistered(webhook, space, only_limits())
    alice = webhook.cluster.tenant(space, "alice")
    webhook.cluster.wait_until(
        lambda: webhook.cluster.request("GET", f"/api/v1/namespaces/{space}/resourcequotas", user=alice).ok,
        what="the rights of the tenant",
    )
    code, report = repair(space, capsys, "--kubeconfig", str(alice.kubeconfig))
    assert code == 1
    assert "the API server answered 403" in report["quotas"][0]["why_not"]


@pytest.fixture
def may_repair(webhook: Installation) -> Iterator[None]:
    """Grants the right that the setting needs."""
    role, account = "repairs", f"{names.NAMESPACE}:{names.QUOTA_SERVICE}"
    webhook.cluster.kubectl("create", "clusterrole", role, "--verb=patch", "--resource=resourcequotas")
    webhook.cluster.kubectl(
        "create", "clusterrolebinding", role, f"--clusterrole={role}", f"--serviceaccount={account}"
    )
    yield
    webhook.cluster.kubectl("delete", "clusterrolebinding", role)


@pytest.mark.usefixtures("may_repair")
def test_a_setting_makes_the_quota_service_repair_quotas_at_its_start(
    webhook: Installation, service: QuotaInstallation, space: str
) -> None:
    create_unregistered(webhook, space, only_limits())
    before = webhook.settings.read_text()
    webhook.settings.write_text(json.dumps({**json.loads(before), "repair_quotas_at_start": True}))
    try:
        service.replicas.pop().program.terminate()
        service.add_replica()
    finally:
        webhook.settings.write_text(before)
    webhook.cluster.wait_until(
        lambda: hard(webhook, space).get(f"requests.{CORE}") == "50", what="the quota to be repaired"
    )


def test_explain_shows_native_quotas_and_their_wrong_usage(
    webhook: Installation, space: str, capsys: pytest.CaptureFixture[str]
) -> None:
    allow(webhook, space, "100")
    webhook.create(space, share("one")).must()
    wait_for_used(webhook, space, {f"requests.{CORE}": "30"})
    access = ("--kubeconfig", str(webhook.cluster.admin.kubeconfig))
    assert halfcard(["quota", "explain", space, "--pod", "cores=70,memory=1Gi", *access]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        ["ResourceQuota", f"{space}/gpu"],
        ["USED", "ALLOWED", "FREE"],
        [f"requests.{CORE}", "30", "100", "70"],
    ]
    assert halfcard(["quota", "explain", space, "--pod", "cores=71", *access]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert f"a pod like this would be refused: exceeded quota: {space}/gpu, requested: requests.{CORE}=71" in printed
    assert "wrong usage" not in printed

    wrong = json.dumps({"status": {"used": {f"requests.{CORE}": "90"}}})
    done = webhook.kubectl(space, "patch", "quota", "gpu", "--subresource=status", "--type=merge", "-p", wrong)
    assert done.code == 0, done.stderr
    assert halfcard(["quota", "explain", space, *access]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Kubernetes reports requests.{CORE}=90, but its pods use 30" in printed

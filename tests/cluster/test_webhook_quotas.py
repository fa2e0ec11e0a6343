"""ResourceQuotas as people write them really count: the requests twin is there, and it follows the file."""

from __future__ import annotations

import pytest

from halfcard import names
from tests.builders import pod

from .installation import Installation
from .manifests import complete, resource_quota, share
from .objects import Object

CORE, MEMORY = names.VCUDA_CORE, names.VCUDA_MEMORY


def only_limits(cores: str = "50", memory: str = "10Gi") -> Object:
    """As gpu-manager's users write it: Kubernetes accepts it and counts nothing."""
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


def test_describe_shows_the_twin_counted_beside_what_was_written(webhook: Installation, space: str) -> None:
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
    assert f"exceeded quota: gpu, requested: requests.{CORE}=30" in second.stderr
    assert f"used: requests.{CORE}=30" in second.stderr
    assert f"limited: requests.{CORE}=50" in second.stderr


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_what_is_raised_in_the_file_raises_the_twin(webhook: Installation, space: str, how: tuple[str, ...]) -> None:
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


def test_replace_carries_a_file_without_twins(webhook: Installation, space: str) -> None:
    webhook.create(space, only_limits("50")).must()
    replaced = webhook.kubectl(space, "replace", "-f-", item=only_limits("70"))
    assert replaced.code == 0, replaced.stderr
    assert hard(webhook, space)[f"requests.{CORE}"] == "70"


def test_a_twin_goes_with_the_key_it_followed(webhook: Installation, space: str) -> None:
    webhook.kubectl(space, "apply", "-f-", item=only_limits())
    memory_alone = resource_quota("gpu", {f"limits.{MEMORY}": "10Gi"})
    applied = webhook.kubectl(space, "apply", "-f-", item=memory_alone)
    assert applied.code == 0, applied.stderr
    assert hard(webhook, space) == {f"limits.{MEMORY}": "40", f"requests.{MEMORY}": "40"}


def test_a_twin_that_people_wrote_themselves_stays_theirs(webhook: Installation, space: str) -> None:
    both = resource_quota("gpu", {f"limits.{CORE}": "80", f"requests.{CORE}": "50"})
    webhook.kubectl(space, "apply", "-f-", item=both)
    assert hard(webhook, space) == {f"limits.{CORE}": "80", f"requests.{CORE}": "50"}


def test_a_quota_without_gpu_is_left_alone(webhook: Installation, space: str) -> None:
    item = resource_quota("gpu", {"pods": "10", "requests.cpu": "4"})
    webhook.create(space, item).must()
    assert hard(webhook, space) == {"pods": "10", "requests.cpu": "4"}


def test_a_budget_that_means_nothing_is_refused_with_its_field(webhook: Installation, space: str) -> None:
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

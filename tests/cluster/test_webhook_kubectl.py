"""Common kubectl commands with the shipped webhooks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from devcluster.services.installation import Installation
from halfcard import names
from tests.builders import pod

from .manifests import SHARE, bad, complete, resources, share

REPAIRED = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}


def test_create_stores_a_repaired_pod(webhook: Installation, space: str) -> None:
    assert webhook.kubectl(space, "create", "-f-", item=share("one")).code == 0
    stored = webhook.get(space, "pod", "one")
    assert resources(stored) == {"limits": REPAIRED, "requests": REPAIRED}
    limit = names.TENCENT + names.CORE_LIMIT_SUFFIX
    assert stored["metadata"]["annotations"][limit] == "30"


def test_limits_are_added_to_requests_before_kubernetes_refuses_them(webhook: Installation, space: str) -> None:
    written = {names.VCUDA_CORE: "0.3", names.VCUDA_MEMORY: "5Gi"}
    item = complete(pod("one").container(requests=written))
    assert webhook.kubectl(space, "create", "-f-", item=item).code == 0
    assert resources(webhook.get(space, "pod", "one")) == {"limits": REPAIRED, "requests": REPAIRED}


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_the_same_file_applies_twice(webhook: Installation, space: str, how: tuple[str, ...]) -> None:
    first = webhook.kubectl(space, "apply", *how, "-f-", item=share("one"))
    assert first.code == 0, first.stderr
    version = webhook.get(space, "pod", "one")["metadata"]["resourceVersion"]
    second = webhook.kubectl(space, "apply", *how, "-f-", item=share("one"))
    assert second.code == 0, second.stderr
    stored = webhook.get(space, "pod", "one")
    assert resources(stored) == {"limits": REPAIRED, "requests": REPAIRED}
    assert stored["metadata"]["resourceVersion"] == version


def test_a_label_can_be_added_to_the_file_of_a_running_pod(webhook: Installation, space: str) -> None:
    assert webhook.kubectl(space, "apply", "-f-", item=share("one")).code == 0
    labelled = complete(pod("one").asks(**SHARE).labelled({"team": "a"}))
    again = webhook.kubectl(space, "apply", "-f-", item=labelled)
    assert again.code == 0, again.stderr
    stored = webhook.get(space, "pod", "one")
    assert stored["metadata"]["labels"] == {"team": "a"}
    assert resources(stored) == {"limits": REPAIRED, "requests": REPAIRED}


def test_replace_with_the_same_file_changes_no_amount(webhook: Installation, space: str) -> None:
    """The file has no annotations, so that those which Halfcard added are removed."""
    defaults = {"automountServiceAccountToken": False, "serviceAccountName": "default", "nodeSelector": {"no": "node"}}
    item = complete(pod("one").asks(**SHARE).specified(**defaults))
    webhook.create(space, item).must()
    replaced = webhook.kubectl(space, "replace", "-f-", item=item)
    assert replaced.code == 0, replaced.stderr
    assert resources(webhook.get(space, "pod", "one")) == {"limits": REPAIRED, "requests": REPAIRED}


def test_another_amount_is_refused_by_kubernetes(webhook: Installation, space: str) -> None:
    webhook.create(space, share("one")).must()
    more = complete(pod("one").asks(core="0.5", memory="5Gi"))
    refused = webhook.kubectl(space, "replace", "-f-", item=more)
    assert refused.code == 1
    assert "pod updates may not change fields other than" in refused.stderr


def test_diff_of_an_applied_file_is_empty(webhook: Installation, space: str) -> None:
    webhook.kubectl(space, "apply", "-f-", item=share("one"))
    diff = webhook.kubectl(space, "diff", "-f-", item=share("one"))
    assert (diff.code, diff.stdout) == (0, ""), diff.stdout + diff.stderr


def test_diff_of_a_new_file_shows_what_will_be_stored(webhook: Installation, space: str) -> None:
    diff = webhook.kubectl(space, "diff", "-f-", item=share("new"))
    assert diff.code == 1
    assert f'{names.VCUDA_CORE}: "30"' in diff.stdout


def test_a_server_dry_run_repairs_and_stores_nothing(webhook: Installation, space: str) -> None:
    done = webhook.kubectl(space, "create", "--dry-run=server", "-o=json", "-f-", item=share("one"))
    assert done.code == 0, done.stderr
    assert resources(json.loads(done.stdout))["limits"] == REPAIRED
    assert webhook.kubectl(space, "get", "pods", "-o=name").stdout == ""


def test_a_pod_with_a_generated_name_is_repaired(webhook: Installation, space: str) -> None:
    item: dict[str, Any] = share("unused")
    item["metadata"] = {"generateName": "train-"}
    done = webhook.kubectl(space, "create", "-o=json", "-f-", item=item)
    assert done.code == 0, done.stderr
    stored = json.loads(done.stdout)
    assert stored["metadata"]["name"].startswith("train-")
    assert resources(stored)["limits"] == REPAIRED


def test_a_refusal_shows_the_whole_message(webhook: Installation, space: str) -> None:
    done = webhook.kubectl(space, "create", "-f-", item=bad("wrong"))
    assert done.code == 1
    assert done.stderr.strip() == (
        'Error from server (Forbidden): error when creating "STDIN": '
        'admission webhook "mutate-pods.halfcard.dev" denied the request: '
        f'spec.containers[0].resources.limits["{names.VCUDA_CORE}"]: got "150"; cores must be 1-99 for a share of one'
        " card, or a multiple of 100 for whole cards; use 100 or 200 [HC002]"
    )


def test_several_mistakes_are_reported_together(webhook: Installation, space: str) -> None:
    all_cards = [{"name": names.VISIBLE_DEVICES, "value": "all"}]
    item = complete(pod("wrong").asks(core="150", memory="20").container(env=all_cards))
    done = webhook.kubectl(space, "create", "-f-", item=item)
    assert "[HC002]" in done.stderr
    assert "[HC021]" in done.stderr


def test_rounding_up_an_amount_gives_a_warning(webhook: Installation, space: str) -> None:
    item = complete(pod("odd").asks(core="0.3", memory="1000Mi"))
    done = webhook.kubectl(space, "create", "-f-", item=item)
    assert done.code == 0
    assert "Warning: spec.containers[0]" in done.stderr
    assert "was rounded up to 4 units of 256 MiB" in done.stderr


def test_the_webhook_knows_the_cards_of_the_nodes(webhook: Installation, space: str) -> None:
    """The webhook reads nodes by list and watch, with the shipped rights."""
    webhook.cluster.add_node("gpu-1", {names.VCUDA_CORE: "800", names.VCUDA_MEMORY: str(8 * 64)})
    too_large = complete(pod("large").asks(core="30", memory="65"))

    def refusal() -> str:
        return str(webhook.create(space, too_large, dry_run=True).body.get("message", ""))

    webhook.cluster.wait_until(lambda: "[HC008]" in refusal(), what="the node's cards to be known")
    assert "use at most 16384 MiB a card (64 units of 256 MiB)" in refusal()

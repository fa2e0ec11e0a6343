"""What `helm test` asks a real API server with a real webhook; `tests/node/test_chart.py` runs all of it in its pod."""

from __future__ import annotations

import asyncio

from admission.policy_settings import policy_of
from cli.installation_test import webhooks
from cli.judge import Judge
from devcluster.services.installation import Installation
from halfcard.cluster_view import ClusterView
from kube.api.calls import ApiCalls
from kube.api.kubeconfig import from_kubeconfig
from settings.settings_file import load_settings


async def wrong_answers(webhook: Installation) -> dict[str, str]:
    calls = ApiCalls(from_kubeconfig(webhook.cluster.admin.kubeconfig))
    judge = Judge(policy_of(load_settings(webhook.settings)), ClusterView())
    found = {what: why async for what, why in webhooks(calls, judge)}
    calls.close()
    return {what.rpartition("-")[2]: why for what, why in found.items()}


def test_an_installation_that_checks_pods_passes_its_test(webhook: Installation) -> None:
    assert asyncio.run(wrong_answers(webhook)) == {"repaired": "", "refused": ""}


def test_an_installation_whose_webhooks_are_not_registered_fails_its_test(webhook: Installation) -> None:
    with webhook.unregistered():
        wrong = asyncio.run(wrong_answers(webhook))
    assert "it must be refused" in wrong["refused"] and "[HC021]" in wrong["refused"]
    assert wrong["repaired"]

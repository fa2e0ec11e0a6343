"""Replicas are replaced one by one, as a Deployment does it, and no call fails."""

from __future__ import annotations

from devcluster.control_plane.client import ApiResponse
from devcluster.services.installation import Installation

from .hammer import Hammer
from .manifests import share


def test_a_rolling_restart_of_two_replicas_fails_no_call(webhook: Installation, space: str) -> None:
    webhook.add_replica()

    def once() -> ApiResponse:
        return webhook.create(space, share("good"), dry_run=True)

    with Hammer(once) as hammer:
        hammer.wait_for(30)
        for old in list(webhook.replicas):
            webhook.add_replica()
            assert webhook.end(old) == 0
        hammer.wait_for(30)
    webhook.end(webhook.replicas[-1])
    assert [answer.body for answer in hammer.answers if not answer.ok] == []

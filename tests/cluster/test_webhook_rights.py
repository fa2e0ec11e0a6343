"""The service account that is shipped may do what the webhook does, and nothing else."""

from __future__ import annotations

import pytest

from .installation import Installation


def may(webhook: Installation, verb: str, what: str) -> bool:
    done = webhook.cluster.kubectl("auth", "can-i", verb, what, "--all-namespaces", user=webhook.account)
    return done.stdout.strip() == "yes"


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_it_follows_the_nodes(webhook: Installation, verb: str) -> None:
    assert may(webhook, verb, "nodes")


@pytest.mark.parametrize(
    ("verb", "what"),
    [("get", "nodes"), ("patch", "nodes"), ("list", "pods"), ("get", "secrets"), ("list", "configmaps"), ("*", "*")],
)
def test_it_may_do_nothing_more(webhook: Installation, verb: str, what: str) -> None:
    assert not may(webhook, verb, what)


def test_no_right_is_ever_missing(webhook: Installation) -> None:
    """What it is refused, it reports."""
    assert "may be out of date" not in webhook.replicas[0].program.log.read_text()

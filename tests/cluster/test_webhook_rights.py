"""The shipped service accounts have the rights that their process needs, and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
import yaml

from cli.__main__ import main as halfcard
from deploy.chart.made import CHART
from devcluster.control_plane.users import User
from devcluster.services.installation import Installation
from deviceplugin.certificate import issue
from deviceplugin.usage.usage_json import usage_json
from halfcard import names
from serving.log import utc_now
from serving.tls_context import server_context
from tests.builders import pod
from tests.deviceplugin.usages import usage
from tests.kube.listening import JsonHandler, listening

from .manifests import complete

_RBAC: Final = CHART / "rbac"
_EVERYWHERE: Final = "--all-namespaces"
_HOME: Final = f"--namespace={names.NAMESPACE}"
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")


def may(webhook: Installation, user: User, verb: str, what: str, where: str = _EVERYWHERE) -> bool:
    done = webhook.cluster.kubectl("auth", "can-i", verb, *what.split(), where, user=user)
    return done.stdout.strip() == "yes"


# --- admission ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_admission_may_watch_nodes(webhook: Installation, verb: str) -> None:
    assert may(webhook, webhook.account, verb, "nodes")


@pytest.mark.parametrize("verb", ["list", "watch"])
@pytest.mark.parametrize(
    "what", ["namespaces", "resourcequotas", "gpuquotas.halfcard.dev", "clustergpuquotas.halfcard.dev"]
)
def test_admission_may_watch_quotas(webhook: Installation, verb: str, what: str) -> None:
    assert may(webhook, webhook.account, verb, what)


def test_admission_may_update_ledgers_but_not_create_them(webhook: Installation) -> None:
    home = f"--namespace={names.NAMESPACE}"
    assert [verb for verb in _VERBS if may(webhook, webhook.account, verb, "configmaps", home)] == [
        "get",
        "list",
        "watch",
        "update",
    ]


@pytest.mark.parametrize(
    ("verb", "what"),
    [
        ("get", "nodes"),
        ("patch", "nodes"),
        ("list", "pods"),
        ("get", "secrets"),
        ("list", "configmaps"),
        ("patch", "resourcequotas"),
        ("*", "*"),
    ],
)
def test_admission_has_no_other_rights(webhook: Installation, verb: str, what: str) -> None:
    assert not may(webhook, webhook.account, verb, what)


def test_admission_lacks_no_right(webhook: Installation) -> None:
    """The process logs each refused request."""
    assert "may be out of date" not in webhook.replicas[0].program.log.read_text()


# --- extender -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "what"),
    [
        *((verb, what) for what in ("nodes", "pods") for verb in ("get", "list", "watch")),
        ("patch", "pods"),
        ("create", "pods --subresource=binding"),
        ("patch", "events"),
    ],
)
def test_the_extender_may_watch_nodes_and_pods_fence_and_bind(webhook: Installation, verb: str, what: str) -> None:
    assert may(webhook, webhook.extender, verb, what)


@pytest.mark.parametrize("verb", ["get", "update"])
def test_the_extender_may_use_only_its_own_lease(webhook: Installation, verb: str) -> None:
    mine, other = f"leases/{names.EXTENDER_SERVICE}", "leases/other"
    assert may(webhook, webhook.extender, verb, mine, f"--namespace={names.NAMESPACE}")
    assert not may(webhook, webhook.extender, verb, other, f"--namespace={names.NAMESPACE}")
    assert not may(webhook, webhook.extender, verb, mine, f"--namespace={names.KUBE_SYSTEM}")


def test_the_extender_may_create_its_lease(webhook: Installation) -> None:
    assert may(webhook, webhook.extender, "create", "leases", f"--namespace={names.NAMESPACE}")
    assert not may(webhook, webhook.extender, "create", "leases", f"--namespace={names.KUBE_SYSTEM}")


@pytest.mark.parametrize(
    ("verb", "what"),
    [
        ("create", "pods"),
        ("update", "pods"),
        ("delete", "pods"),
        ("create", "pods --subresource=eviction"),
        ("patch", "pods --subresource=status"),
        ("create", "pods --subresource=exec"),
        ("patch", "nodes"),
        ("list", "leases.coordination.k8s.io"),
        ("get", "secrets"),
        ("list", "configmaps"),
        ("*", "*"),
    ],
)
def test_the_extender_has_no_other_rights(webhook: Installation, verb: str, what: str) -> None:
    assert not may(webhook, webhook.extender, verb, what)


# --- agent --------------------------------------------------------------------------------------------------------

_SLICES: Final = "configmaps/time-slicing-config"


@pytest.mark.parametrize(
    ("verb", "what"),
    [
        *((verb, "pods") for verb in ("get", "list", "watch", "patch")),
        *((verb, "nodes") for verb in ("list", "watch", "patch")),
        ("patch", "nodes --subresource=status"),
    ],
)
def test_the_agent_may_watch_and_patch_nodes_and_pods(webhook: Installation, verb: str, what: str) -> None:
    assert may(webhook, webhook.agent, verb, what)


def test_the_agent_may_create_events_only_where_events_of_nodes_are(webhook: Installation) -> None:
    assert may(webhook, webhook.agent, "create", "events", "--namespace=default")
    assert not may(webhook, webhook.agent, "patch", "events", "--namespace=default")


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_the_agent_reads_one_config_map(webhook: Installation, verb: str) -> None:
    assert may(webhook, webhook.agent, verb, _SLICES, f"--namespace={names.NAMESPACE}")
    assert not may(webhook, webhook.agent, verb, "configmaps/other", f"--namespace={names.NAMESPACE}")
    assert not may(webhook, webhook.agent, verb, _SLICES, f"--namespace={names.KUBE_SYSTEM}")


@pytest.mark.parametrize(
    ("verb", "what"),
    [
        ("create", "pods"),
        ("update", "pods"),
        ("delete", "pods"),
        ("create", "pods --subresource=eviction"),
        ("create", "pods --subresource=binding"),
        ("patch", "pods --subresource=status"),
        ("create", "pods --subresource=exec"),
        ("update", "nodes"),
        ("delete", "nodes"),
        ("update", "nodes --subresource=status"),
        ("get", "nodes --subresource=proxy"),
        ("patch", "events"),
        ("delete", "events"),
        ("get", "secrets"),
        ("list", "configmaps"),
        ("*", "*"),
    ],
)
def test_the_agent_has_no_other_rights(webhook: Installation, verb: str, what: str) -> None:
    assert not may(webhook, webhook.agent, verb, what)


# --- what is shipped ----------------------------------------------------------------------------------------------


def shipped() -> Iterator[Any]:
    for file in sorted(_RBAC.glob("*.yaml")):
        yield from yaml.safe_load_all(file.read_text(encoding="utf-8"))


def test_every_shipped_account_is_in_halfcards_namespace() -> None:
    subjects = [each for item in shipped() for each in item.get("subjects", [])]
    accounts = [item["metadata"] for item in shipped() if item["kind"] == "ServiceAccount"]
    assert {each["namespace"] for each in (*subjects, *accounts)} == {names.NAMESPACE}
    assert {each["name"] for each in subjects} == {each["name"] for each in accounts}


def test_admission_trusts_the_shipped_accounts_by_their_names(webhook: Installation) -> None:
    assert {webhook.extender.name, webhook.agent.name} == names.OWN_USERS
    assert names.EXTENDER_SERVICE in {item["metadata"]["name"] for item in shipped()}


# --- quota ------------------------------------------------------------------------------------------------------------


def test_the_quota_service_may_write_ledgers_and_statuses_and_open_gates(webhook: Installation) -> None:
    quota = webhook.cluster.service_account(names.NAMESPACE, names.QUOTA_SERVICE)
    home = f"--namespace={names.NAMESPACE}"
    assert [verb for verb in _VERBS if may(webhook, quota, verb, "pods")] == ["get", "list", "watch", "patch"]
    assert [verb for verb in _VERBS if may(webhook, quota, verb, "configmaps")] == []
    assert [verb for verb in _VERBS if may(webhook, quota, verb, "resourcequotas")] == ["list", "watch"]
    assert [verb for verb in _VERBS if may(webhook, quota, verb, "events")] == ["get", "create", "patch"]
    assert "patch" not in [verb for verb in _VERBS if may(webhook, quota, verb, "configmaps", home)]
    for what in ("gpuquotas.halfcard.dev", "clustergpuquotas.halfcard.dev"):
        assert [verb for verb in _VERBS if may(webhook, quota, verb, what)] == ["get", "list", "watch"]
        assert [verb for verb in _VERBS if may(webhook, quota, verb, f"{what} --subresource=status")] == ["patch"]


# --- people ----------------------------------------------------------------------------------------------------------


class _Agent(JsonHandler):
    tokens: Final[list[str]] = []

    def do_GET(self) -> None:  # noqa: N802 - the name is http.server's
        self.tokens.append(self.headers[names.TOKEN_HEADER])
        self.answer(200, json.loads(usage_json(usage([]))))


@contextmanager
def agent(webhook: Installation) -> Iterator[None]:
    """Runs an agent in a pod of Halfcard's namespace; where its program is makes no difference to the API server."""
    cluster = webhook.cluster
    labels = {names.NAME_LABEL: names.AGENT}
    cluster.add_node("with-agent", {"cpu": "4", "pods": "10"})
    built = complete(pod("agent-1").container().labelled(labels).specified(nodeName="with-agent"))
    webhook.create(names.NAMESPACE, built).must()
    path = f"/api/v1/namespaces/{names.NAMESPACE}/pods/agent-1"
    host = cluster.network.host_address
    with listening(_Agent, (host, names.AGENT_TLS_PORT), server_context(issue("with-agent", utc_now()))):
        status = {"podIP": host, "podIPs": [{"ip": host}], "phase": "Running"}
        cluster.client.merge(cluster.admin, f"{path}/status", {"status": status})
        yield
    cluster.request("DELETE", f"{path}?gracePeriodSeconds=0").must()
    cluster.request("DELETE", "/api/v1/nodes/with-agent").must()


def owner(webhook: Installation, token: str) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = webhook.cluster.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).must()
    name: str = answer["status"]["user"]["username"]
    return name


def top(user: User) -> int:
    return halfcard(["top", "--kubeconfig", str(user.kubeconfig)])


def test_agents_are_read_with_a_role_in_halfcards_namespace_and_not_with_those_of_tenants(
    webhook: Installation, space: str, capsys: pytest.CaptureFixture[str]
) -> None:
    person = webhook.cluster.tenant(space, "reader-of-usage")
    with agent(webhook):
        assert top(webhook.cluster.admin) == 0
        assert owner(webhook, _Agent.tokens[-1]) == f"system:serviceaccount:{names.NAMESPACE}:{names.TOP}"
        assert top(person) == 2
        bound = ("--user=reader-of-usage", "--clusterrole=view")
        webhook.kubectl(names.NAMESPACE, "create", "rolebinding", "sees", *bound)
        webhook.cluster.wait_until(lambda: may(webhook, person, "list", "pods", _HOME), what="the right to see pods")
        assert top(person) == 2
        assert 'cannot create resource "serviceaccounts/token"' in " ".join(capsys.readouterr().err.split())
        bound = ("--user=reader-of-usage", "--clusterrole=halfcard-top")
        webhook.kubectl(names.NAMESPACE, "create", "rolebinding", "reads-usage", *bound)
        webhook.cluster.wait_until(lambda: top(person) == 0, what="the right to read usage")
        assert "with-agent" in capsys.readouterr().out
    assert not may(webhook, person, "get", "nodes --subresource=proxy")
    webhook.kubectl(names.NAMESPACE, "delete", "rolebinding", "sees", "reads-usage")

"""An agent may write only to its own node and the pods there, and only the fields that it needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from devcluster.control_plane.client import ApiResponse
from devcluster.control_plane.users import User
from devcluster.objects import Object
from devcluster.services.installation import Installation
from halfcard import names
from tests.deploy.rendered import every

from .manifests import plain

HERE, THERE = "node-here", "node-there"
RECORDS: Final = {names.PLACEMENT: '{"node": "x", "cards": {}}', "tencent.com/predicate-gpu-idx-0": "1"}
_MERGE: Final = "application/merge-patch+json"
_AGENT: Final = names.AGENT_SERVICE_ACCOUNT.rpartition(":")[2]
_ACCOUNTS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/serviceaccounts"


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent of a node, with the token of its pod, or with a token without a pod."""

    webhook: Installation
    space: str
    user: User

    def patch(self, path: str, change: Object) -> ApiResponse:
        return self.webhook.cluster.client.request(self.user, "PATCH", path, change, content_type=_MERGE)

    def annotate(self, path: str, annotations: Mapping[str, str | None]) -> ApiResponse:
        return self.patch(path, {"metadata": {"annotations": annotations}})

    def pod_on(self, node: str) -> str:
        """Creates a pod on the node, and returns its path."""
        spec = {"nodeName": node} if node else {"schedulerName": "no-scheduler"}
        return create(self.webhook, self.space, f"pod-of-{node or 'none'}", spec)


def create(webhook: Installation, space: str, name: str, spec: Mapping[str, Any]) -> str:
    pod = plain(name)
    pod["spec"] |= spec
    webhook.cluster.client.request(webhook.cluster.admin, "POST", f"/api/v1/namespaces/{space}/pods", pod).must()
    return f"/api/v1/namespaces/{space}/pods/{name}"


@pytest.fixture(scope="module", autouse=True)
def nodes(webhook: Installation) -> None:
    for node in (HERE, THERE):
        webhook.cluster.add_node(node, {})


@pytest.fixture(scope="module")
def token(webhook: Installation) -> str:
    """A token that is bound to the agent's pod on its node."""
    path = create(webhook, names.NAMESPACE, "agent-here", {"nodeName": HERE, "serviceAccountName": _AGENT})
    uid = webhook.cluster.request("GET", path).must()["metadata"]["uid"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "agent-here", "uid": uid}
    asked = webhook.cluster.request("POST", f"{_ACCOUNTS}/{_AGENT}/token", {"spec": {"boundObjectRef": bound}})
    return str(asked.must()["status"]["token"])


@pytest.fixture
def agent(webhook: Installation, space: str, token: str) -> Agent:
    return Agent(webhook, space, webhook.cluster.users.by_token(names.AGENT_SERVICE_ACCOUNT, token))


@pytest.fixture
def unbound(webhook: Installation, space: str) -> Agent:
    return Agent(webhook, space, webhook.cluster.service_account(names.NAMESPACE, _AGENT))


def refusal(answer: ApiResponse) -> str:
    assert answer.status in {403, 422}, answer
    return str(answer.body["message"])


def test_an_agent_may_write_and_remove_records_on_pods_of_its_node(agent: Agent) -> None:
    pod = agent.pod_on(HERE)
    assert agent.annotate(pod, RECORDS).ok
    assert agent.annotate(pod, dict.fromkeys(RECORDS)).ok


@pytest.mark.parametrize(("node", "called"), [(THERE, THERE), ("", "no node yet")])
def test_an_agent_may_not_write_records_on_other_pods(agent: Agent, node: str, called: str) -> None:
    why = refusal(agent.annotate(agent.pod_on(node), RECORDS))
    assert f"the node agent of {HERE} may only write about its own node; this is of {called}" in why


def test_an_agent_may_write_the_inventory_of_its_own_node_only(agent: Agent) -> None:
    inventory = {names.INVENTORY: "[]"}
    assert agent.annotate(f"/api/v1/nodes/{HERE}", inventory).ok
    assert f"this is of {THERE}" in refusal(agent.annotate(f"/api/v1/nodes/{THERE}", inventory))


def test_an_agent_may_write_the_capacity_of_its_own_node_only(agent: Agent) -> None:
    totals = {"status": {"capacity": {names.VOLCANO_GPU_MEMORY: "15109"}}}
    assert agent.patch(f"/api/v1/nodes/{HERE}/status", totals).ok
    assert f"this is of {THERE}" in refusal(agent.patch(f"/api/v1/nodes/{THERE}/status", totals))


def test_an_agent_may_not_change_a_spec(agent: Agent) -> None:
    assert "changes no spec" in refusal(agent.patch(agent.pod_on(HERE), {"spec": {"activeDeadlineSeconds": 1}}))
    assert "changes no spec" in refusal(agent.patch(f"/api/v1/nodes/{HERE}", {"spec": {"unschedulable": True}}))


def test_an_agent_may_change_nothing_of_a_pod_but_its_record(agent: Agent) -> None:
    pod = agent.pod_on(HERE)
    assert "changes no label" in refusal(agent.patch(pod, {"metadata": {"labels": {"app": "x"}}}))
    assert "this is note" in refusal(agent.annotate(pod, {**RECORDS, "note": "x"}))


def test_an_agent_may_not_write_finalizers_or_owners(agent: Agent) -> None:
    pod = agent.pod_on(HERE)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "0d0e2a3c-5f7c-4d38-9a53-6a4f6d0a9f11"}
    for tie in ({"finalizers": ["example.com/kept"]}, {"ownerReferences": [owner]}):
        for path in (pod, f"/api/v1/nodes/{HERE}"):
            assert "changes no finalizer and no owner" in refusal(agent.patch(path, {"metadata": tie}))


@pytest.mark.parametrize("path", [f"/api/v1/nodes/{HERE}", f"/api/v1/nodes/{HERE}/status"])
def test_an_agent_may_write_nothing_but_cards_to_its_node(agent: Agent, path: str) -> None:
    """Labels attract pods: kubelet may not set these either."""
    restricted = "node-restriction.kubernetes.io/secrets"
    assert f"this is {restricted}" in refusal(agent.patch(path, {"metadata": {"labels": {restricted: "x"}}}))
    assert "this is note" in refusal(agent.annotate(path, {"note": "x"}))
    labels = {names.NVIDIA_LABEL_COUNT: "2", names.MADE_UP_LABEL: "true"}
    assert agent.patch(path, {"metadata": {"labels": labels}}).ok
    assert agent.patch(path, {"metadata": {"labels": dict.fromkeys(labels)}}).ok


def test_a_token_without_a_node_may_write_the_same_fields_of_any_node(unbound: Agent) -> None:
    pod = unbound.pod_on(THERE)
    assert unbound.annotate(pod, RECORDS).ok
    assert unbound.annotate(f"/api/v1/nodes/{HERE}", {names.INVENTORY: "[]"}).ok
    assert "this is note" in refusal(unbound.annotate(pod, {"note": "x"}))


def test_the_api_server_accepts_the_agents_daemon_set(webhook: Installation) -> None:
    (daemon_set,) = every("DaemonSet").values()
    done = webhook.cluster.kubectl("apply", "--dry-run=server", "-f-", stdin=json.dumps(daemon_set))
    assert done.code == 0 and "Warning" not in done.stderr, done.stderr


def test_these_rules_apply_only_to_agents(agent: Agent) -> None:
    admin = Agent(agent.webhook, agent.space, agent.webhook.cluster.admin)
    assert admin.annotate(admin.pod_on(THERE), {"note": "x"}).ok


def event(space: str, kind: str, name: str, host: str) -> Object:
    about = {"kind": kind, "name": name, "namespace": space}
    metadata = {"generateName": "e.", "namespace": space}
    return {"metadata": metadata, "involvedObject": about, "source": {"host": host}, "reason": "Test", "message": "m"}


def test_an_agent_may_write_events_of_its_own_node_only(agent: Agent) -> None:
    def create_event(space: str, *words: str) -> ApiResponse:
        client, path = agent.webhook.cluster.client, f"/api/v1/namespaces/{space}/events"
        return client.request(agent.user, "POST", path, event(space, *words))

    assert create_event(agent.space, "Pod", "any", HERE).ok
    assert create_event("default", "Node", HERE, HERE).ok
    assert f'this has the host "{THERE}"' in refusal(create_event(agent.space, "Pod", "any", THERE))
    assert "about its own node and about pods" in refusal(create_event("default", "Node", THERE, HERE))
    assert "about its own node and about pods" in refusal(create_event(agent.space, "Deployment", "any", HERE))

"""Asks the agents of nodes for the usage of their cards, through the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

import msgspec

from deviceplugin.usage.usage_json import read_usage
from deviceplugin.usage.usage_report import NodeUsageReport
from halfcard import names
from halfcard.pod.spec import PodMetadata
from halfcard.problems import printable
from kube.api.access import Access
from kube.api.calls import ApiCalls, NoAnswerError
from kube.api.list_watch import ApiError
from kube.node_source import NODES

from .cluster_state import NoClusterError, everything

_AT_ONCE: Final = 16
_PATIENCE_S: Final = 5.0
_WHY_CHARS: Final = 200
_UNREACHED: Final = "error trying to reach service"  # how the API server begins
PORT_ADVICE: Final = (
    f"the API server must reach port {names.AGENT_TLS_PORT} of the agents: check that their pods run, and that no"
    " NetworkPolicy and no firewall is between"
)
_PODS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/pods"
_TOKEN: Final = f"/api/v1/namespaces/{names.NAMESPACE}/serviceaccounts/{names.TOP}/token"
_TOKEN_REQUEST: Final = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "TokenRequest",
    "spec": {"expirationSeconds": 600},  # the shortest that exists
}
_NO_AGENT: Final = (
    f"no pod in namespace {names.NAMESPACE} is an agent; agents without a pod are found by their nodes, which you may"
    " not list"
)


class _Node(msgspec.Struct):
    metadata: PodMetadata


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: PodMetadata
    spec: _Spec

    @property
    def is_agent(self) -> bool:
        return bool(self.spec.node_name) and (self.metadata.labels or {}).get(names.NAME_LABEL) == names.AGENT


class _TokenStatus(msgspec.Struct):
    token: str


class _TokenRequest(msgspec.Struct):
    status: _TokenStatus


@dataclass(frozen=True, slots=True)
class SilentAgent:
    """A node whose agent did not answer; `is_reached` if something else did."""

    node: str
    why: str
    is_reached: bool = True

    def __str__(self) -> str:
        return f"{self.node}: its agent does not answer: {self.why}"


def ask_agents(access: Access, node: str | None) -> Sequence[NodeUsageReport | SilentAgent]:
    """Asks the agent of the node, or all agents; some of them may be silent, but not all."""
    answers = asyncio.run(_ask_all(access, _only(_agents(access), node)))
    if (
        answers
        and isinstance(answers[0], SilentAgent)
        and not any(isinstance(each, NodeUsageReport) for each in answers)
    ):
        advice = "" if answers[0].is_reached else f"; {PORT_ADVICE}"
        raise NoClusterError(f"no agent answers; {answers[0]}{advice}")
    return answers


def _agents(access: Access) -> Mapping[str, str]:
    """Returns the path to the agent of each node: its pod, or the node where agents run without pods."""
    pods = (each for each in everything(access, _PODS, _Pod, []) if each.is_agent)
    if found := {each.spec.node_name: f"{_PODS}/https:{each.metadata.title}" for each in pods}:
        return dict(sorted(found.items()))
    try:
        nodes = [each.metadata for each in everything(access, NODES, _Node, [])]
    except ApiError:
        raise NoClusterError(_NO_AGENT) from None
    having = sorted(each.title for each in nodes if names.INVENTORY in (each.annotations or {}))
    return {node: f"{NODES}/https:{quote(node, safe='')}" for node in having}


def _only(agents: Mapping[str, str], wanted: str | None) -> Mapping[str, str]:
    if wanted is None:
        return agents
    if wanted not in agents:
        raise NoClusterError(f"node {wanted} does not exist, or has no agent; `halfcard top` lists those that have one")
    return {wanted: agents[wanted]}


async def _ask_all(access: Access, agents: Mapping[str, str]) -> list[NodeUsageReport | SilentAgent]:
    """Asks a few agents at a time; a node that hangs delays no others."""
    if not agents:
        return []
    headers = {names.TOKEN_HEADER: await _token(access)}
    calls, turns = ApiCalls(access, _AT_ONCE, headers), asyncio.Semaphore(_AT_ONCE)

    async def ask(node: str, path: str) -> NodeUsageReport | SilentAgent:
        async with turns:
            return await _ask(calls, node, f"{path}:{names.AGENT_TLS_PORT}/proxy")

    try:
        return await asyncio.gather(*(ask(*each) for each in agents.items()))
    finally:
        calls.close()


async def _token(access: Access) -> str:
    """Returns a token of the account that may read usage and nothing else: agents never see the user's own credentials.

    Raises:
        ApiError: the account does not exist, or the user may not create its tokens.
    """
    calls = ApiCalls(access, 1)
    try:
        answer = await calls.post(_TOKEN, msgspec.json.encode(_TOKEN_REQUEST))
    finally:
        calls.close()
    if answer.status != 201:
        raise ApiError(f"POST {_TOKEN}: HTTP {answer.status}: {printable(answer.message(), _WHY_CHARS)}")
    return msgspec.json.decode(answer.body, type=_TokenRequest).status.token


async def _ask(calls: ApiCalls, node: str, proxy: str) -> NodeUsageReport | SilentAgent:
    try:
        answer = await calls.get(f"{proxy}{names.USAGE_PATH}?output=json", _PATIENCE_S)
        if answer.status != 200:
            why = answer.message() or f"HTTP {answer.status}"
            return SilentAgent(node, printable(why, _WHY_CHARS), is_reached=_UNREACHED not in why)
        return replace(read_usage(answer.body), node=node)
    except NoAnswerError as error:
        return SilentAgent(node, printable(str(error), _WHY_CHARS), is_reached=False)
    except msgspec.MsgspecError as error:
        return SilentAgent(node, printable(f"the answer is not an agent's: {error}", _WHY_CHARS))

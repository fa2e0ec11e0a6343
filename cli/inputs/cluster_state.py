"""Reads all nodes and pods once, from an API server or from manifests, into the state that commands use."""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from extender.packing.placement import PackingPolicy
from extender.packing.policy_cache import PolicyCache
from extender.packing.workload_stats import WorkloadStats
from extender.state import State
from halfcard.dra.driver_nodes import DriverNodes
from halfcard.exit_codes import UnusableInputError
from halfcard.placing.node_totals import Offer, offers
from halfcard.pod.reported_pod import ReportedPod
from halfcard.problems import printable
from kube.api.access import Access, AccessError
from kube.api.calls import ApiCalls
from kube.api.impersonation import Impersonation
from kube.api.kubeconfig import from_kubeconfigs, from_server
from kube.api.list_watch import ApiError, Collection, Undecodable
from kube.driver_watches import COLLECTIONS as OF_DRIVERS
from kube.manifests.documents import Document, read_path, to_json
from kube.manifests.gather import add_published, stored_pod
from kube.node_source import NODES
from settings.settings_file import load_settings

_POD: Final = msgspec.json.Decoder(ReportedPod)
_PODS: Final = "/api/v1/pods"
_A_PAGE: Final = 500
_DEFAULT_NAMESPACE: Final = "default"
_KUBECONFIG: Final = "KUBECONFIG"

T = TypeVar("T")


class NoClusterError(UnusableInputError):
    """The cluster cannot be read; the text says why and how to fix it."""


More = Callable[[Sequence[Document], list[str]], Iterable[Document]]
"""Yields objects that follow from manifests, such as the pods of a Deployment; appends a warning for each skipped
one."""


@dataclass(slots=True)
class ClusterState:
    """The state of a cluster at one moment.

    Attributes:
        pods: all of them by namespace/name, also those that request no card.
        table: what each resource's name counts.
        policy_of: the policy by name; the default for an empty name.
        schedulers: those that ask the extender.
        left_out: objects that could not be read, a sentence each.
        has_nodes: whether the nodes and the pods of all namespaces are in it.
    """

    state: State
    table: Mapping[str, Offer]
    aliyun_unit_mib: int
    policy_of: Callable[[str], PackingPolicy]
    schedulers: frozenset[str]
    pods: dict[str, ReportedPod] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    has_nodes: bool = True

    def doubts(self) -> tuple[str, ...]:
        return (*self.left_out, *self.state.inconsistencies())


def add_access_arguments(parser: argparse.ArgumentParser, *, impersonates: bool = True) -> None:
    """Adds the options that name a cluster; `--as` only where it cannot be taken for another option of the command."""
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: those that kubectl uses")
    parser.add_argument("--context", metavar="NAME", help="of the kubeconfig (default: its current one)")
    parser.add_argument("--server", metavar="URL", help="instead of a kubeconfig: where `kubectl proxy` listens")
    parser.set_defaults(as_user="", as_groups=None)
    if impersonates:
        parser.add_argument("--as", dest="as_user", metavar="USER", help="act as this user, as with kubectl")
        parser.add_argument(
            "--as-group", dest="as_groups", action="append", metavar="GROUP", help="and in this group; repeatable"
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_access_arguments(parser)
    parser.add_argument(
        "--state", type=Path, metavar="PATH", help="instead of a cluster: a file or folder of its nodes and pods"
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")


def read_cluster(arguments: argparse.Namespace, more: More = lambda _documents, _left_out: ()) -> ClusterState:
    """Reads all nodes and pods of the source in the arguments.

    Raises:
        NoClusterError, AccessError, ApiError: the cluster cannot be read.
        ManifestError, SettingsError: a file cannot be read.
    """
    cluster = _empty(arguments.settings)
    if arguments.state is not None:
        documents = [*read_path(arguments.state)]
        _add_documents(cluster, [*documents, *more(documents, cluster.left_out)])
    else:
        _add_collections(cluster, find_access(arguments))
    return cluster


def read_namespace(arguments: argparse.Namespace, namespace: str) -> ClusterState:
    """Reads the pods of one namespace, for users who may read no more; raises as `read_cluster`."""
    cluster = _empty(arguments.settings)
    cluster.has_nodes = False
    for pod in everything(find_access(arguments), pods_path(namespace), ReportedPod, cluster.left_out):
        _add_pod(cluster, pod)
    return cluster


def _empty(settings_file: Path | None) -> ClusterState:
    settings = load_settings(settings_file)
    dealings, learning = settings.capacity_rules(), WorkloadStats()
    state = State(settings.enabled_dialects(), dealings, learning.observe)
    expectations = PolicyCache(settings.packing, learning.mix, state, settings.strengths())
    return ClusterState(
        state,
        offers(settings.enabled_dialects().known),
        dealings.aliyun_unit_mib,
        expectations.policy,
        settings.served_schedulers(),
    )


def _add_pod(cluster: ClusterState, pod: ReportedPod) -> None:
    cluster.pods[f"{pod.meta.namespace}/{pod.meta.name}"] = pod
    cluster.state.put_pod(pod)


# --- manifests -------------------------------------------------------------------------------------------------------


def _add_documents(cluster: ClusterState, documents: Iterable[Document]) -> None:
    for document in documents:
        if document.kind == "Node":
            cluster.state.put_node(msgspec.json.decode(to_json(document.obj)))
        elif document.kind == "Pod":
            _add_document(cluster, document)
        else:
            add_published(cluster.state.driver_nodes, document)


def _add_document(cluster: ClusterState, document: Document) -> None:
    try:
        pod = _POD.decode(to_json(stored_pod(document.obj)))
    except msgspec.MsgspecError as error:
        where = f"{document.source_file}:{document.line}"
        cluster.left_out.append(f"{where}: the pod is left out: {printable(str(error))}")
    else:
        _add_pod(cluster, pod)


# --- an API server ---------------------------------------------------------------------------------------------------


def find_access(arguments: argparse.Namespace) -> Access:
    """Reads the kubeconfig; raises AccessError if there is none."""
    impersonation = Impersonation(arguments.as_user, groups=tuple(arguments.as_groups or ()))
    if arguments.server is not None:
        return from_server(arguments.server, impersonation=impersonation)
    instead = ", or a dump with --state" if "state" in arguments else ""
    named = [arguments.kubeconfig] if arguments.kubeconfig else None
    files = named or _as_kubectl_finds_them(os.environ.get(_KUBECONFIG, ""), instead)
    return from_kubeconfigs(files, arguments.context, impersonation=impersonation)


def default_namespace(arguments: argparse.Namespace) -> str:
    """Returns the namespace of the kubeconfig's context, as kubectl uses it; a dump and `kubectl proxy` have none."""
    from_dump = "state" in arguments and arguments.state is not None
    return _DEFAULT_NAMESPACE if from_dump else find_access(arguments).namespace or _DEFAULT_NAMESPACE


def _as_kubectl_finds_them(listed: str, instead: str) -> list[Path]:
    """Returns the kubeconfigs that exist."""
    files = [Path(file) for file in listed.split(os.pathsep) if file] or [Path.home() / ".kube" / "config"]
    found = [file for file in dict.fromkeys(files) if file.exists()]
    if not found:
        raise AccessError(f"{', '.join(map(str, files))}: found no kubeconfig; name one with --kubeconfig{instead}")
    return found


def ask(arguments: argparse.Namespace, question: Callable[[ApiCalls], Awaitable[T]]) -> T:
    """Runs a coroutine that calls the API server of the arguments; raises what it raises, and AccessError."""

    async def asked() -> T:
        with closing(ApiCalls(find_access(arguments))) as calls:
            return await question(calls)

    return asyncio.run(asked())


def _add_collections(cluster: ClusterState, access: Access) -> None:
    for node in everything(access, NODES, dict[str, Any], cluster.left_out):
        cluster.state.put_node(node)
    for pod in everything(access, _PODS, ReportedPod, cluster.left_out):
        _add_pod(cluster, pod)
    add_drivers(cluster.state.driver_nodes, access)


def add_drivers(nodes: DriverNodes, access: Access) -> None:
    """Reads what drivers publish; a user who may not, or an older API server, has no nodes of drivers."""
    for path, kind in OF_DRIVERS.items():
        with suppress(ApiError):
            nodes.replace(kind, everything(access, path, kind, []))


def pods_path(namespace: str | None) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods" if namespace else _PODS


def everything(access: Access, path: str, item: type[T], left_out: list[str]) -> Iterator[T]:
    """Returns all objects of a collection; those that cannot be read are named in `left_out`.

    Raises:
        NoClusterError: no API server answers.
        ApiError: it refuses.
    """
    try:
        for page, _ in Collection(access, path, item, _A_PAGE).pages():
            for found in page:
                if isinstance(found, Undecodable):
                    left_out.append(f"pod {found}" if found.namespace else f"node {found}")
                else:
                    yield found
    except (OSError, http.client.HTTPException) as error:
        raise NoClusterError(
            f"{access.host}:{access.port}: the API server cannot be reached: {error}; check the server of the context"
        ) from None
    except msgspec.MsgspecError as error:
        raise NoClusterError(f"{access.host}:{access.port}: this is not an API server: {error}") from None

"""`halfcard version`: the version of this command, and the images that run in the cluster."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

import halfcard
from halfcard import names
from halfcard.exit_codes import EXIT_OK
from kube.api.calls import ApiCalls

from .inputs.cluster_state import NoClusterError, add_access_arguments, ask
from .output.structured import TEXT, add_output_argument, print_document

_SELECTOR: Final = "labelSelector=app.kubernetes.io%2Fpart-of%3Dhalfcard"
_WORKLOADS: Final = tuple(f"/apis/apps/v1/{kind}?{_SELECTOR}" for kind in ("deployments", "daemonsets"))

Facts = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--client", action="store_true", help="only of this command: ask no cluster")
    add_access_arguments(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    client = {"version": halfcard.__version__, "python": platform.python_version()}
    if arguments.output == TEXT:
        print(f"halfcard {client['version']} (Python {client['python']})", flush=True)
    cluster = None if arguments.client else ask(arguments, _read)
    if arguments.output != TEXT:
        print_document(arguments.output, {"client": client} | ({} if cluster is None else {"cluster": cluster}))
    elif cluster is not None:
        _print(cluster)
    return EXIT_OK


async def _read(calls: ApiCalls) -> Facts:
    server = await _answer(calls, names.VERSION_PATH)
    lists = [await _answer(calls, path) for path in _WORKLOADS]
    processes = [_process(each) for found in lists for each in found["items"]]
    return {"kubernetes": server["gitVersion"], "processes": processes}


async def _answer(calls: ApiCalls, path: str) -> Facts:
    answer = await calls.get(path)
    if answer.status != HTTPStatus.OK:
        raise NoClusterError(f"the API server answered {answer.status} to GET {path}: {answer.message()}")
    found: Facts = msgspec.json.decode(answer.body)
    return found


def _process(workload: Mapping[str, Any]) -> Facts:
    (container, *_) = workload["spec"]["template"]["spec"]["containers"]
    metadata = workload["metadata"]
    return {"name": metadata["name"], "namespace": metadata["namespace"], "image": container["image"]}


def _print(cluster: Facts) -> None:
    print(f"Kubernetes {cluster['kubernetes']}")
    for each in cluster["processes"]:
        print(f"{each['namespace']}/{each['name']} {each['image']}")
    if not cluster["processes"]:
        print("Halfcard is not installed in this cluster, or without the label app.kubernetes.io/part-of=halfcard")

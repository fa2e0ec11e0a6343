"""`halfcard quota import`: prints the quotas of TKE's ConfigMap as GpuQuota objects, for `kubectl apply -f -`.

Exit codes: 0 all were read, 1 some were not, 2 there is nothing to read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from halfcard import names
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED
from halfcard.quota.tke_quota_map import UNREADABLE, GpuQuotaMap, read_map
from kube.api.calls import ApiCalls
from kube.manifests.documents import read_path

from ..inputs.cluster_state import NoClusterError, add_access_arguments, ask

SUMMARY: Final = f"the quotas of the ConfigMap {names.KUBE_SYSTEM}/{names.GPU_QUOTA_MAP} as {names.GPU_QUOTA} objects"
_PATH: Final = f"/api/v1/namespaces/{names.KUBE_SYSTEM}/configmaps/{names.GPU_QUOTA_MAP}"

Object = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="read this manifest instead of the cluster")
    add_access_arguments(parser)
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")
    parser.set_defaults(does=run, title="halfcard quota import")


def run(arguments: argparse.Namespace) -> int:
    found = _read(arguments)
    objects = [*_objects(found)]
    if arguments.output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        print(msgspec.json.format(msgspec.json.encode(listed)).decode())
    else:
        print(yaml.safe_dump_all(objects, sort_keys=False, width=100), end="")
    for problem in found.unreadable:
        print(f"{arguments.title}: {problem}", file=sys.stderr)
    return EXIT_REFUSED if found.unreadable else EXIT_OK


def _objects(found: GpuQuotaMap) -> Iterator[Object]:
    for namespace, spec in found.specs.items():
        metadata = {"name": names.GPU_QUOTA_MAP, "namespace": namespace}
        version = names.QUOTA_API.removeprefix("/apis/")
        yield {"apiVersion": version, "kind": names.GPU_QUOTA, "metadata": metadata, "spec": _plain(spec)}


def _plain(spec: Object) -> Object:
    """Copies the spec, so that the YAML has no anchors: people edit it."""
    return {key: {name: dict(hard) for name, hard in named.items()} for key, named in spec.items()}


def _read(arguments: argparse.Namespace) -> GpuQuotaMap:
    found = _in_file(arguments.file) if arguments.file else ask(arguments, _in_cluster)
    text = (found.get("data") or {}).get(names.GPU_QUOTA_KEY)
    read = read_map(text) if isinstance(text, str) else None
    if read is None:
        raise NoClusterError(UNREADABLE)
    return read


def _in_file(file: Path) -> Object:
    found = [each.obj for each in read_path(file) if each.kind == "ConfigMap"]
    if len(found) != 1:
        raise NoClusterError(
            f"{file}: got {len(found)} ConfigMaps; name a manifest with only the one that has the quotas"
        )
    return found[0]


async def _in_cluster(calls: ApiCalls) -> Object:
    answer = await calls.get(_PATH)
    if answer.status != HTTPStatus.OK:
        raise NoClusterError(f"the API server answered {answer.status} to GET {_PATH}: {answer.message()}")
    found: Object = msgspec.json.decode(answer.body)
    return found

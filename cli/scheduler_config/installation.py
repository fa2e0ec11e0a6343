"""Reads what the scheduler's configuration depends on from a cluster with Halfcard."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from halfcard import names
from kube.api.calls import ApiCalls
from settings.installation import Settings, read_settings

from ..diagnosis.nodes.node_versions import MinorVersion, minor_version
from ..inputs.cluster_state import NoClusterError

_OURS: Final = f"/api/v1/namespaces/{names.NAMESPACE}"
_SERVICE: Final = f"{_OURS}/services/{names.EXTENDER_SERVICE}"
_SETTINGS: Final = f"{_OURS}/configmaps/{names.SETTINGS_MAP}"


class SchedulersInstallation(NamedTuple):
    """The facts that the configuration depends on; `host` is the address of the extender's Service."""

    version: MinorVersion
    host: str
    settings: Settings


async def read_installation(calls: ApiCalls, own: Settings | None) -> SchedulersInstallation:
    written = str((await _read(calls, names.VERSION_PATH)).get("gitVersion"))
    version = minor_version(written)
    if version is None:
        raise NoClusterError(f"the API server's version is {written!r}; say which one it is with --kubernetes")
    service = await _read(calls, _SERVICE)
    host = str(service["spec"]["clusterIP"])
    return SchedulersInstallation(version, f"[{host}]" if ":" in host else host, own or await _settings(calls))


async def _settings(calls: ApiCalls) -> Settings:
    data = (await _read(calls, _SETTINGS)).get("data") or {}
    return read_settings(yaml.safe_load(data.get(names.SETTINGS_ENTRY, "")) or {})


async def _read(calls: ApiCalls, path: str) -> Mapping[str, Any]:
    answer = await calls.get(path)
    if answer.status == HTTPStatus.NOT_FOUND:
        raise NoClusterError(f"{path} is missing: install Halfcard first, or name a version with --kubernetes")
    if answer.status != HTTPStatus.OK:
        raise NoClusterError(f"the API server answered {answer.status} to GET {path}: {answer.message()}")
    found: Mapping[str, Any] = msgspec.json.decode(answer.body)
    return found

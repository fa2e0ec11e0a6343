"""Makes the owners of refused pods retry when a budget has room again.

Their controllers back off up to 16 minutes. A change of the owner makes them retry at once, so it gets an annotation.
The owners' own status shows which of them wait, so that no list of refused pods has to be kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.placing.demand import needs_of
from halfcard.pod.requests import read_pod
from halfcard.pod.spec import Pod
from halfcard.quota.charge import charge
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log, utc_now

_EVERY_S: Final = 1.0
_AGAIN_S: Final = 3.0
"""The pause between two lookups of waiting owners in one namespace, where pods may end all the time."""

_NAMESPACES_AT_ONCE: Final = 10
_OWNERS_AT_ONCE: Final = 20
"""The most owners that are annotated at once in one namespace; the others follow with the next free amount."""

Object = Mapping[str, Any]


def _by_replicas(spec: Object, status: Object) -> bool:
    return int(spec.get("replicas", 1)) > int(status.get("replicas", 0))


def _by_nodes(_spec: Object, status: Object) -> bool:
    return int(status.get("desiredNumberScheduled", 0)) > int(status.get("currentNumberScheduled", 0))


def _by_parallelism(spec: Object, status: Object) -> bool:
    left = int(spec.get("completions", 1)) - int(status.get("succeeded", 0))
    is_over = any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in status.get("conditions") or ()
    )
    wanted = min(int(spec.get("parallelism", 1)), left)
    return not is_over and not spec.get("suspend") and wanted > int(status.get("active", 0))


OWNERS: Final[Mapping[str, Callable[[Object, Object], bool]]] = {
    "apis/apps/v1/{}/replicasets": _by_replicas,
    "apis/apps/v1/{}/statefulsets": _by_replicas,
    "apis/apps/v1/{}/daemonsets": _by_nodes,
    "apis/batch/v1/{}/jobs": _by_parallelism,
    "api/v1/{}/replicationcontrollers": _by_replicas,
}
"""Whether an owner has fewer pods than it wants."""


class OwnerRetry:
    """`freed` receives namespaces that may have gained room; `run` makes their owners retry."""

    def __init__(self, calls: ApiCalls, dialects: Dialects, may_decide: Callable[[], bool], log: Log) -> None:
        self._calls = calls
        self._dialects = dialects
        self._may_decide = may_decide
        self._log = log
        self._due: dict[str, None] = {}
        self._looked: dict[str, float] = {}

    def freed(self, namespaces: Iterable[str]) -> None:
        self._due |= dict.fromkeys(namespaces)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            due = self._take_due(asyncio.get_running_loop().time())
            if self._may_decide():
                await asyncio.gather(*[self._retry_in(namespace) for namespace in due])

    def _take_due(self, now: float) -> list[str]:
        self._looked = {namespace: at for namespace, at in self._looked.items() if now - at < _AGAIN_S}
        due = [namespace for namespace in self._due if namespace not in self._looked][:_NAMESPACES_AT_ONCE]
        for namespace in due:
            del self._due[namespace]
            self._looked[namespace] = now
        return due

    async def _retry_in(self, namespace: str) -> None:
        left = _OWNERS_AT_ONCE
        try:
            for template, is_short in OWNERS.items():
                collection = "/" + template.format(f"namespaces/{quote(namespace, safe='')}")
                waiting = [*self._waiting(await self._calls.get(collection), is_short)][:left]
                for name in waiting:
                    await self._touch(f"{collection}/{name}")
                left -= len(waiting)
        except NoAnswerError as error:
            self._log.warning("owner retry failed", namespace=namespace, why=str(error))

    def _waiting(self, answer: Any, is_short: Callable[[Object, Object], bool]) -> Iterator[str]:
        if answer.status != HTTPStatus.OK:
            self._log.warning("owner retry failed", why=answer.refusal())
            return
        for each in msgspec.json.decode(answer.body).get("items") or ():
            if is_short(each["spec"], each.get("status") or {}) and self._asks(each["spec"].get("template") or {}):
                yield each["metadata"]["name"]

    def _asks(self, template: Object) -> bool:
        try:
            pod = msgspec.convert(template, Pod)
        except msgspec.ValidationError:
            return False
        return bool(charge(needs_of(read_pod(pod, self._dialects))[1]))

    async def _touch(self, path: str) -> None:
        mark = {"metadata": {"annotations": {names.NUDGED: f"{utc_now():%Y-%m-%dT%H:%M:%S.%fZ}"}}}
        await self._calls.patch(path, msgspec.json.encode(mark))

"""Restarts the chart's own kube-scheduler after the extender got a new CA.

kube-scheduler reads a renewed certificate by itself, but the CA only when it starts. A rollout begins as soon as the
new CA stands beside the old one, weeks before the extender shows a certificate of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

import msgspec

from certs.certificate_checks import certificates, pem
from certs.chains import ObjectPath
from certs.objects import CA_CRT, Object, annotation, entry
from certs.store import Store, StoreError
from halfcard import names
from kube.api.calls import NoAnswerError
from serving.log import Log

_HASH_CHARS: Final = 16


def plan_restart(deployment: Object, secret: Object | None) -> tuple[bytes, bool] | None:
    """Returns the JSON patch that notes the current CA, and whether it restarts the pods; None if it is noted.

    The first note restarts nothing: the pods were created with this CA, or wait for it.
    """
    newest = certificates(entry(secret, CA_CRT))[:1]
    if not newest:
        return None
    current, noted = sha256(pem(newest)).hexdigest()[:_HASH_CHARS], annotation(deployment, names.SCHEDULERS_CA)
    if current == noted:
        return None
    template = deployment["spec"]["template"]
    changed = [_noting("", deployment, current), *([_noting("/spec/template", template, current)] if noted else ())]
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": deployment["metadata"]["resourceVersion"]}
    return msgspec.json.encode([version, *changed]), bool(noted)


def _noting(path: str, item: Object, authority: str) -> Object:
    annotations = {**(item["metadata"].get("annotations") or {}), names.SCHEDULERS_CA: authority}
    return {"op": "add", "path": f"{path}/metadata/annotations", "value": annotations}


@dataclass(slots=True, eq=False)
class SchedulerRestart:
    """`reconcile` makes one pass; a failure is logged once, and tried again in the next."""

    store: Store
    namespace: str
    log: Log
    _logged: str = field(default="", init=False)

    async def reconcile(self) -> None:
        try:
            await self._reconcile()
        except (StoreError, NoAnswerError) as error:
            if str(error) != self._logged:
                self.log.warning("scheduler not restarted", reason=str(error))
            self._logged = str(error)
        else:
            self._logged = ""

    async def _reconcile(self) -> None:
        place = ObjectPath(f"/apis/apps/v1/namespaces/{self.namespace}/deployments", names.SCHEDULER)
        deployment = await self.store.read(place)
        if deployment is None:
            return
        secret = await self.store.read(ObjectPath(f"/api/v1/namespaces/{self.namespace}/secrets", names.SCHEDULER_TLS))
        step = plan_restart(deployment, secret)
        if step is not None and await self.store.patch(place, step[0]) and step[1]:
            self.log.event("scheduler restarted", object=place.name, reason="the extender has a new CA")

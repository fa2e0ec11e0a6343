"""The API server of the demonstration: sends reviews over TLS, applies the patch, and says what kubectl prints."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from halfcard import names
from halfcard.patches import PatchOperation, apply, from_json

from .tls_service import TlsService

_PATHS: Final = {
    "Pod": (names.MUTATE_PODS_PATH, names.VALIDATE_PODS_PATH),
    "Deployment": (names.MUTATE_WORKLOADS_PATH, names.VALIDATE_WORKLOADS_PATH),
    "ResourceQuota": (names.MUTATE_QUOTAS_PATH,),
}


@dataclass(frozen=True, slots=True)
class CreateOutcome:
    """The result of a create; `denied` is the whole message of the webhook that refused."""

    stored: Mapping[str, Any]
    changes: tuple[PatchOperation, ...] = ()
    warnings: tuple[str, ...] = ()
    denied: str = ""


class ApiServer(TlsService):
    def create(self, obj: Mapping[str, Any], *, user: str) -> CreateOutcome:
        outcome = CreateOutcome(obj)
        for path in _PATHS[str(obj["kind"])]:
            outcome = self._consult(path, outcome, user)
            if outcome.denied:
                break
        return outcome

    def _consult(self, path: str, so_far: CreateOutcome, user: str) -> CreateOutcome:
        response = self.post(f"{path}?timeout=5s", _review(so_far.stored, user))["response"]
        warnings = tuple(dict.fromkeys((*so_far.warnings, *response.get("warnings", ()))))
        if not response["allowed"]:
            text = f'admission webhook "{names.webhook_name(path)}" denied the request: {response["status"]["message"]}'
            return CreateOutcome(so_far.stored, (), warnings, text)
        changes = tuple(map(from_json, json.loads(base64.b64decode(response.get("patch", "W10=")))))
        return CreateOutcome(apply(so_far.stored, changes), (*so_far.changes, *changes), warnings)


def _review(obj: Mapping[str, Any], user: str) -> dict[str, Any]:
    metadata = obj["metadata"]
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": str(uuid.uuid4()),
            "kind": {"kind": obj["kind"]},
            "operation": "CREATE",
            "namespace": metadata.get("namespace"),
            "name": metadata.get("name"),
            "userInfo": {"username": user},
            "object": obj,
        },
    }

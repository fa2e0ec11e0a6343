"""AdmissionReviews as a real API server sends them: defaults filled in, managedFields and service account included."""

from __future__ import annotations

import json
from typing import Any, Final

from halfcard import names

Json = dict[str, Any]

SERIAL: Final = b"00000000"
"""Stands in every name and uid, to be replaced by a number of the same length."""

TEMPLATE: Final = b"6d4cf56db6"
"""The same for the template that a pod comes from."""

_SERIAL: Final = SERIAL.decode()
_TEMPLATE: Final = TEMPLATE.decode()
_TOKEN_MOUNT: Final = {
    "name": "kube-api-access-7xk2p",
    "readOnly": True,
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
}
_POD_KIND: Final = {"group": "", "version": "v1", "kind": "Pod"}
_POD_RESOURCE: Final = {"group": "", "version": "v1", "resource": "pods"}


def body(review: Json) -> bytes:
    return json.dumps(review, separators=(",", ":")).encode()


def numbered(request: bytes, number: int) -> bytes:
    """Another pod, from the same template."""
    return request.replace(SERIAL, b"%08d" % number)


def unlike(request: bytes, number: int) -> bytes:
    """Another pod from its own template, so that no remembered verdict applies."""
    return numbered(request, number).replace(TEMPLATE, b"%010d" % number)


def pod_review(pod: Json) -> Json:
    """The creation of a pod by its ReplicaSet."""
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": f"705ab4f5-6393-11e8-b7cc-0000{_SERIAL}",
            "kind": _POD_KIND,
            "resource": _POD_RESOURCE,
            "requestKind": _POD_KIND,
            "requestResource": _POD_RESOURCE,
            "namespace": "team-vision",
            "operation": "CREATE",
            "userInfo": {
                "username": "system:serviceaccount:kube-system:replicaset-controller",
                "uid": "5f0f4d3c-8e9c-4ed5-a6ff-1e2c5b4c0f11",
                "groups": [
                    "system:serviceaccounts",
                    "system:serviceaccounts:kube-system",
                    "system:authenticated",
                ],
            },
            "object": pod,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def pod(*, containers: int = 1, annotations: dict[str, str] | None = None) -> Json:
    """A trainer that requests 30 % of a card and 5 GiB of its memory, with a sidecar that requests none."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": _metadata(annotations or {}),
        "spec": {
            "volumes": [_token_volume(), {"name": "cache", "emptyDir": {"sizeLimit": "2Gi"}}],
            "containers": [*(_trainer(number) for number in range(containers)), _sidecar()],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "trainer",
            "serviceAccount": "trainer",
            "securityContext": {"fsGroup": 2000},
            "schedulerName": "default-scheduler",
            "tolerations": [
                _toleration("node.kubernetes.io/not-ready"),
                _toleration("node.kubernetes.io/unreachable"),
                {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {},
    }


def accepted_pod() -> Json:
    """The same pod at the validating call: mutated, with nothing left to refuse."""
    limit = names.TENCENT + names.CORE_LIMIT_SUFFIX
    changed = pod(annotations={limit: "30", names.CORE_LIMIT_DEFAULTED: f"{limit}=30"})
    changed["spec"]["containers"][-1]["env"].append({"name": names.VISIBLE_DEVICES, "value": names.SEES_NOTHING})
    return changed


def pod_of_size(size: int) -> Json:
    """A pod whose review is about `size` bytes: annotations up to their limit, then env and managedFields."""
    large = pod(annotations={"example.com/notes": "n" * min(size // 4, 200_000)})
    rest = size - len(body(pod_review(large)))
    large["metadata"]["managedFields"][0]["fieldsV1"] |= _fields(rest // 2)
    large["spec"]["containers"][0]["env"] += _variables(rest - rest // 2)
    return large


def _fields(size: int) -> Json:
    """Nested like managedFields: many small objects, none with thousands of keys."""
    leaves: Json = {f"f:field-{number:02}": {"f:inner": {}, "f:value": {}} for number in range(50)}
    return {f"f:group-{number:06}": leaves for number in range(max(size, 0) // len(body(leaves)))}


def _variables(size: int) -> list[Json]:
    return [{"name": f"OPTION_{number:06}", "value": "v" * 60} for number in range(max(size, 0) // 98)]


def _metadata(annotations: dict[str, str]) -> Json:
    stamped = {"kubectl.kubernetes.io/restartedAt": "2025-03-01T10:00:00+08:00", "prometheus.io/scrape": "true"}
    return {
        "name": f"trainer-{_TEMPLATE}-{_SERIAL}",
        "generateName": f"trainer-{_TEMPLATE}-",
        "namespace": "team-vision",
        "labels": {"app": "trainer", "pod-template-hash": _TEMPLATE, "team": "vision"},
        "annotations": stamped | annotations,
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"trainer-{_TEMPLATE}",
                "uid": "d9607e19-f88f-11e6-a518-42010a800195",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [_managed_fields()],
    }


def _managed_fields() -> Json:
    container: Json = {
        ".": {},
        "f:args": {},
        "f:env": {".": {}, 'k:{"name":"EPOCHS"}': {".": {}, "f:name": {}, "f:value": {}}},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
        "f:resources": {".": {}, "f:limits": {".": {}}, "f:requests": {".": {}}},
        "f:volumeMounts": {".": {}, 'k:{"mountPath":"/cache"}': {".": {}, "f:mountPath": {}, "f:name": {}}},
    }
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2025-03-01T02:00:01Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:annotations": {".": {}}, "f:generateName": {}, "f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:containers": {'k:{"name":"trainer-0"}': container},
                "f:dnsPolicy": {},
                "f:restartPolicy": {},
                "f:schedulerName": {},
            },
        },
    }


def _trainer(number: int) -> Json:
    asked = {"cpu": "4", "memory": "16Gi", names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}
    return {
        "name": f"trainer-{number}",
        "image": "registry.example.com/vision/trainer:1.14.2",
        "args": ["--epochs=90", "--data=/cache/imagenet"],
        "env": [
            {"name": "EPOCHS", "value": "90"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "tracker", "key": "token"}}},
        ],
        "resources": {"limits": asked, "requests": asked},
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}, _TOKEN_MOUNT],
        **_DEFAULTS,
    }


def _sidecar() -> Json:
    asked = {"cpu": "100m", "memory": "64Mi"}
    return {
        "name": "log-shipper",
        "image": "registry.example.com/platform/shipper:2.0.1",
        "env": [{"name": "TARGET", "value": "logs.example.com:9000"}],
        "resources": {"limits": asked, "requests": asked},
        "volumeMounts": [_TOKEN_MOUNT],
        **_DEFAULTS,
    }


_DEFAULTS: Final = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}


def _toleration(key: str) -> Json:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _token_volume() -> Json:
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    authority = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    namespace = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}
    sources = [token, authority, {"downwardAPI": {"items": [namespace]}}]
    return {"name": _TOKEN_MOUNT["name"], "projected": {"sources": sources, "defaultMode": 420}}

"""Builds objects as users write them, and asks for verdicts on them like the API server."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import jsonpatch

from admission.dispatch import decide
from admission.policy import AdmissionPolicy
from admission.verdict import Verdict
from admission.wire import ObjectKind, ReviewRequest, UserInfo
from admission.writes import decode_write
from halfcard import names
from halfcard.cards import Card, Node
from halfcard.cluster_view import NOTHING_KNOWN, ClusterView
from halfcard.patches import as_json
from tests.builders import Json

POLICY: Final = AdmissionPolicy()
TENANT: Final = "alice"
AGENT: Final = "system:serviceaccount:kube-system:gpu-manager"
TRUSTING: Final = AdmissionPolicy(trusted_users=frozenset({AGENT}))

CORE, MEMORY = names.VCUDA_CORE, names.VCUDA_MEMORY
CORE_LIMIT: Final = names.TENCENT + names.CORE_LIMIT_SUFFIX
MARK: Final = names.CORE_LIMIT_DEFAULTED
VOID: Final = {"name": names.VISIBLE_DEVICES, "value": "void"}

# --- objects ------------------------------------------------------------------------------------------------------


def changed(obj: Json, *path: Any, to: Any) -> Json:
    """Returns a copy with another value at the path."""
    result = copy.deepcopy(obj)
    parent: Any = result
    for part in path[:-1]:
        parent = parent[part] if isinstance(parent, list) else parent.setdefault(part, {})
    parent[path[-1]] = to
    return result


def cards(*sizes_mib: int) -> ClusterView:
    return ClusterView(nodes=(Node("n", tuple(Card(i, "T4", size) for i, size in enumerate(sizes_mib))),))


# --- verdicts -----------------------------------------------------------------------------------------------------


def judge(
    path: str,
    obj: Any,
    *,
    old: Any = None,
    kind: str = "Pod",
    user: str = TENANT,
    policy: AdmissionPolicy = POLICY,
    cluster: ClusterView = NOTHING_KNOWN,
    namespace: str | None = "team-a",
    subresource: str | None = None,
    operation: str | None = None,
) -> Verdict:
    request = ReviewRequest(
        uid="1",
        operation=operation or ("CREATE" if old is None else "UPDATE"),
        kind=ObjectKind(kind),
        sub_resource=subresource,
        namespace=namespace,
        user_info=UserInfo(user),
        object=copy.deepcopy(obj),
        old_object=copy.deepcopy(old),
    )
    return decide(path, decode_write(request, policy), policy, cluster)


def mutate(obj: Any, **context: Any) -> Verdict:
    return judge(names.MUTATE_PODS_PATH, obj, **context)


def validate(obj: Any, **context: Any) -> Verdict:
    return judge(names.VALIDATE_PODS_PATH, obj, **context)


def operations(verdict: Verdict) -> list[Json]:
    return as_json(verdict.changes)


def patched(obj: Json, verdict: Verdict) -> Json:
    """Returns the patched object, by an independent implementation of JSON Patch."""
    result: Json = jsonpatch.apply_patch(copy.deepcopy(obj), operations(verdict))
    return result


def mutated(obj: Json, **context: Any) -> Json:
    verdict = mutate(obj, **context)
    assert verdict.allowed, verdict.message
    return patched(obj, verdict)


def codes(verdict: Verdict) -> list[str]:
    """Returns the codes of the problems, each once."""
    return sorted({problem.code for problem in verdict.problems})


def warned_codes(verdict: Verdict) -> list[str]:
    return sorted({line[1:6] for line in verdict.warnings if line.startswith("[HC")})


def amounts(obj: Json, number: int = 0, field: str = "containers") -> Mapping[str, Any]:
    """Returns limits and requests of one container."""
    resources: Mapping[str, Any] = obj["spec"][field][number]["resources"]
    return resources

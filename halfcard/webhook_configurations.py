"""Builds the webhook configurations: which objects the API server sends, and which it never sends.

`matchConditions` exclude objects that neither request nor reach a GPU: an outage of Halfcard affects, and a slow
webhook delays, only GPU pods. Mutating fails open (Kubernetes itself refuses what would be repaired), validating pods
fails closed, because it protects neighbours. Halfcard's own writes are excluded: while the webhook is down, the
extender still binds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from halfcard import names, node_folders
from halfcard.caller_tokens import WITHOUT, path_with
from halfcard.dialects import Dialects
from halfcard.dra.resource_claims import CLAIM_GROUP, CLAIM_KINDS
from halfcard.pod import foreign_requests
from halfcard.pod.holders import WELL_KNOWN
from halfcard.ways_to_cards import ANNOTATION_HINTS, DEVICE_LIST, NVIDIA_RUNTIME, VARIABLES, Effect

_TIMEOUT_S: Final = 5
_POD_CHANGES: Final = ("CREATE", "UPDATE")
_WORKLOADS: Final = (
    ("", ["replicationcontrollers", "podtemplates"]),
    ("apps", ["deployments", "statefulsets", "daemonsets", "replicasets"]),
    ("batch", ["jobs", "cronjobs"]),
)
_MARKS: Final = ("annotations", "labels")


CONFIGURATION: Final = "halfcard"
"""The name of both objects."""


def configurations(
    dialects: Dialects,
    *,
    exempt: Iterable[str],
    ca_bundle: str = "",
    token: str = WITHOUT,
    fails: str = "Fail",
    custom: Iterable[str] = WELL_KNOWN,
) -> list[dict[str, Any]]:
    """Returns both configuration objects.

    Args:
        dialects: the resources that are checked.
        exempt: namespaces that are not checked.
        ca_bundle: base64, and empty where something else writes it.
        token: the caller token of the paths; `WITHOUT` where something else writes it.
        fails: the failure policy of the webhooks that protect neighbours.
        custom: the custom resources that contain pods.
    """
    client = _Client(exempt, ca_bundle, token)
    concerned = f"{concerns_us(dialects, pods='[object]')} || {_removes_record()}"
    mentioned = f"{concerned} || {_asks_others('[object]')}"
    templates = f"!({_OF_BUILT_IN}) || {concerns_us(dialects, pods=_TEMPLATE)} || {_asks_others(_TEMPLATE)}"
    pods, added = _rule("", ["pods"]), _rule("", ["pods/ephemeralcontainers"], ["UPDATE"])
    resized = _rule("", ["pods/resize"], ["UPDATE"])
    bound, reported = _rule("", ["pods/binding", "bindings"], ["CREATE"]), _rule("", ["pods/status"], ["UPDATE"])
    workloads = [*(_rule(group, resources) for group, resources in _WORKLOADS), *_custom_rules(custom)]
    quotas = [_rule("", ["resourcequotas"])]
    claims = _rule(CLAIM_GROUP, [plural(kind) for kind in CLAIM_KINDS], ["CREATE"])
    mutating = [
        client.webhook(names.MUTATE_PODS_PATH, [pods, added], mentioned),
        client.webhook(names.MUTATE_WORKLOADS_PATH, workloads, templates),
        client.webhook(names.MUTATE_QUOTAS_PATH, quotas, _limits_gpus(dialects)),
    ]
    for each in mutating:
        each["reinvocationPolicy"] = "IfNeeded"
    validating = [
        client.webhook(names.VALIDATE_PODS_PATH, [pods, added, resized], concerned, fails=fails),
        client.webhook(names.VALIDATE_RECORDS_PATH, [bound, reported], _changes_record(), fails=fails),
        client.webhook(names.VALIDATE_WORKLOADS_PATH, workloads, templates),
        client.webhook(names.VALIDATE_CLAIMS_PATH, [claims], _BY_PEOPLE, fails=fails),
    ]
    validating[0]["sideEffects"] = "NoneOnDryRun"  # the charge of a pod that is to be stored is reserved
    return [_configuration("Mutating", mutating), _configuration("Validating", validating)]


class _Client:
    """The fields that all webhooks share."""

    def __init__(self, exempt: Iterable[str], ca_bundle: str, token: str) -> None:
        self._exempt = sorted(exempt)
        self._token = token
        self._ca_bundle = ca_bundle

    def webhook(
        self,
        path: str,
        rules: list[dict[str, Any]],
        concerned: str,
        *,
        fails: str = "Ignore",
    ) -> dict[str, Any]:
        called = path_with(self._token, path)
        service = {"namespace": names.NAMESPACE, "name": names.ADMISSION_SERVICE, "path": called, "port": 443}
        trust = {"caBundle": self._ca_bundle} if self._ca_bundle else {}
        return {
            "name": names.webhook_name(path),
            "clientConfig": {"service": service, **trust},
            "rules": rules,
            "namespaceSelector": not_in(self._exempt),
            "failurePolicy": fails,
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": _TIMEOUT_S,
            "admissionReviewVersions": ["v1", "v1beta1"],
            "matchConditions": [
                {"name": "not-halfcard-itself", "expression": NOT_HALFCARD},
                {"name": "reaches-for-a-gpu", "expression": concerned},
            ],
        }


def not_in(namespaces: Iterable[str]) -> dict[str, Any]:
    """Returns a selector of all other namespaces."""
    exempt = {"key": names.NAMESPACE_LABEL, "operator": "NotIn", "values": sorted(namespaces)}
    return {"matchExpressions": [exempt]}


def _configuration(sort: str, webhooks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{sort}WebhookConfiguration",
        "metadata": {"name": CONFIGURATION, "labels": {names.AKS_LEAVES_ALONE: "true"}},
        "webhooks": webhooks,
    }


def _rule(
    group: str, resources: list[str], operations: Sequence[str] = _POD_CHANGES, *, versions: Sequence[str] = ("v1",)
) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": list(operations),
        "resources": resources,
    }


def _custom_rules(kinds: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yields a rule for each group, in all versions. The API server ignores a rule whose resource does not exist."""
    by_group: dict[str, list[str]] = {}
    for each in sorted(kinds):
        group, _, kind = each.rpartition("/")
        by_group.setdefault(group, []).append(plural(kind))
    return (_rule(group, resources, versions=["*"]) for group, resources in by_group.items())


def plural(kind: str) -> str:
    """Returns the resource of a kind, as Kubernetes' own tools guess it."""
    word = kind.lower()
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


_OF_BUILT_IN: Final = "request.kind.group in ['', 'apps', 'batch']"
"""Of other groups every object is sent: CEL finds no templates by a path with `*`, and these objects are few."""

_TEMPLATE: Final = (
    "(object.kind == 'CronJob' ? [object.spec.jobTemplate.spec.template]"
    " : object.kind == 'PodTemplate' ? [object.template]"
    " : has(object.spec.template) ? [object.spec.template] : [])"
)


def _any(items: str, variable: str, test: str) -> str:
    """Returns the CEL expression of whether the test is true of any item of a list, or of any key of a map.

    The API server tracks costs on a stack that grows with every step of a loop, and looks through all of it for most
    operands: `exists` takes quadratic time. `in` with constants leaves its operand on the stack, where the next step
    finds it and drops what lies above. No item is the empty text.
    """
    return f"{items}.filter({variable}, {variable} in [''] || {test}) != []"


def _any_of_optional(holder: str, field: str, variable: str, test: str) -> str:
    return f"(has({holder}.{field}) && {_any(f'{holder}.{field}', variable, test)})"


def concerns_us(dialects: Dialects, *, pods: str) -> str:
    """Returns a CEL expression: false only where no pod of the list `pods` requests a GPU or could reach one."""
    reasons = (
        _any_container(_asks(dialects)),
        _any_container(_chooses_devices(), also_ephemeral=True),
        _mounts_host_path(),
        _NAMES_RUNTIME,
        "has(p.spec.resourceClaims)",
        _carries_record("p"),
    )
    return _any(pods, "p", " || ".join(reasons))


def _asks_others(pods: str) -> str:
    """Returns the CEL expression of requests that no dialect reads: a warning is all that they get, so only webhooks
    that fail open see them.
    """
    test = " || ".join(f"r.startsWith('{beginning}')" for beginning in foreign_requests.BEGINNINGS)
    marked = _any_of_optional("p.metadata", "annotations", "k", f"k in {cel_list(_FOREIGN_ANNOTATIONS)}")
    return _any(pods, "p", f"{_any_container(_requests(test))} || (has(p.metadata) && {marked})")


_FOREIGN_ANNOTATIONS: Final = [row.name for row in foreign_requests.ANNOTATIONS]


def _mounts_host_path() -> str:
    test = f"has(v.hostPath) && v.hostPath.path.matches('{node_folders.pattern()}')"
    return _any_of_optional("p.spec", "volumes", "v", test)


def _any_container(test: str, *, also_ephemeral: bool = False) -> str:
    kinds = ["initContainers", *(["ephemeralContainers"] if also_ephemeral else [])]
    lists = [_any("p.spec.containers", "c", test)]
    lists += [_any_of_optional("p.spec", kind, "c", test) for kind in kinds]
    return f"({' || '.join(lists)})"


def _asks(dialects: Dialects) -> str:
    wanted = cel_list(sorted(dialects.resources | {names.SLOT}))
    return _requests(f"r in {wanted} || {_IS_COUNTED}")


def _requests(test: str) -> str:
    """Returns the CEL expression of whether the test is true of any resource of a container."""
    sides = (_any_of_optional("c.resources", side, "r", test) for side in ("limits", "requests"))
    return f"has(c.resources) && ({' || '.join(sides)})"


_IS_COUNTED: Final = " || ".join(
    f"r.startsWith('{group}')" for group in (f"{names.DERIVED_GROUP}/", names.DEVICE_CLASS_PREFIX)
)


def _chooses_devices() -> str:
    watched = sorted(row.name for row in VARIABLES if row.effect in (Effect.CHOOSES, Effect.BRINGS))
    beginnings = f"'={'='.join(watched)}'.contains('=' + f.prefix)"  # no name of a variable contains =
    return " || ".join(
        (
            _any_of_optional("c", "env", "e", f"e.name in {cel_list(watched)}"),
            _any_of_optional("c", "envFrom", "f", f"has(f.prefix) && f.prefix != '' && {beginnings}"),
            _any_of_optional("c", "volumeMounts", "m", f"m.mountPath.contains('{DEVICE_LIST}')"),
        )
    )


_NAMES_RUNTIME: Final = f"(has(p.spec.runtimeClassName) && p.spec.runtimeClassName.contains('{NVIDIA_RUNTIME}'))"


def _carries_record(holder: str) -> str:
    texts = (*(_BETWEEN + prefix for prefix in names.OWNED_PREFIXES), *names.OWNED_SUFFIXES, *ANNOTATION_HINTS)
    is_record = " || ".join(_contains("t", text) for text in texts)
    fields = [f"{holder}.metadata.{field}" for field in _MARKS]
    carries = " || ".join(f"(has({field}) && {_any(f'[{_keys(field)}]', 't', is_record)})" for field in fields)
    return f"(has({holder}.metadata) && ({carries}))"


_BETWEEN: Final = " "
"""Separates keys, which contain no space."""


def _keys(field: str) -> str:
    """Returns the CEL expression of all keys of a map in one text: ten searches in it cost less than ten per key."""
    return f"'{_BETWEEN}' + {field}.filter(k, !(k in [''])).join('{_BETWEEN}')"


def _contains(text: str, wanted: str) -> str:
    """Returns the CEL expression of a search. The API server counts it as the product of both lengths in tens, and
    refuses a pod at a million, so a long text is looked for only where its beginning is found.
    """
    whole = f"{text}.contains('{wanted}')"
    return whole if len(wanted) <= _TEN else f"{text}.contains('{wanted[:_TEN]}') && {whole}"


_TEN: Final = 10


def _changes_record() -> str:
    """Returns the CEL expression of a changed record: most statuses that kubelets write leave the metadata as is;
    a Binding has no old object.
    """
    changed = " || ".join(f"{_entries('object', field)} != {_entries('oldObject', field)}" for field in _MARKS)
    return f"({_carries_record('object')} || {_removes_record()}) && (oldObject == null || {changed})"


def _entries(holder: str, field: str) -> str:
    return f"(has({holder}.metadata.{field}) ? {holder}.metadata.{field} : {{}})"


def _removes_record() -> str:
    """Returns the CEL expression of an update that removes a record."""
    return f"(oldObject != null && {_carries_record('oldObject')})"


def cel_list(texts: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


_BY_PEOPLE: Final = f"!(request.userInfo.username in {cel_list(sorted(names.CLAIM_MAKERS))})"
NOT_HALFCARD: Final = f"!(request.userInfo.username in {cel_list(sorted(names.OWN_USERS))})"


def _limits_gpus(dialects: Dialects) -> str:
    keys = [side + resource for side in ("", "limits.", "requests.") for resource in sorted(dialects.resources)]
    marked = f"(has(object.metadata.annotations) && '{names.QUOTA_TWINS}' in object.metadata.annotations)"
    return f"{_any_of_optional('object.spec', 'hard', 'k', f'k in {cel_list(keys)}')} || {marked}"

"""The rights that each process needs: those of the chart's folder rbac, which a test compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from certs.objects import injector
from halfcard import names
from settings.installation import Settings

from ..own_objects import MissingRight
from ..snapshot import Object

_OURS: Final = names.NAMESPACE


class RoleGrant(NamedTuple):
    """Verbs on resources, as one role grants them to one account.

    Attributes:
        resources: in one API group; `pods/binding` is a subresource.
        namespace: where a Role grants them; empty for a ClusterRole.
        only: names of objects; empty for all.
        role: its name where that differs from the account's.
        file: in the chart's folder rbac, where its name differs from the account's.
    """

    account: str
    group: str
    resources: str
    verbs: str
    namespace: str = ""
    only: str = ""
    role: str = ""
    file: str = ""

    @property
    def role_name(self) -> str:
        return self.role or self.account

    @property
    def file_name(self) -> str:
        return self.file or self.account.removeprefix("halfcard-")

    def rights(self) -> Iterator[Right]:
        for resource in self.resources.split():
            for verb in self.verbs.split():
                for name in self.only.split() or [""]:
                    yield Right(self, verb, resource, name)


class Right(NamedTuple):
    """One verb on one resource; `name` is that of the only object, empty for all."""

    grant: RoleGrant
    verb: str
    resource: str
    name: str

    def missing(self) -> MissingRight:
        grant = self.grant
        kind = "Role" if grant.namespace else "ClusterRole"
        what = self.resource + (f" {self.name}" if self.name else "")
        return MissingRight(
            grant.account, self.verb, what, grant.namespace, f"{kind} {grant.role_name}", grant.file_name
        )


_QUOTAS: Final = f"{names.GPU_QUOTAS} {names.CLUSTER_GPU_QUOTAS}"
_QUOTA_STATUSES: Final = f"{names.GPU_QUOTAS}/status {names.CLUSTER_GPU_QUOTAS}/status"
_AUTHORITIES: Final = f"{names.ADMISSION_CA} {names.ADMISSION_TLS} {names.EXTENDER_CA} {names.EXTENDER_TLS}"
_A, _E, _Q, _C, _N = (
    names.ADMISSION_SERVICE,
    names.EXTENDER_SERVICE,
    names.QUOTA_SERVICE,
    names.CERTS_SERVICE,
    names.AGENT,
)
_FOLLOW: Final = "list watch"
_LEASES: Final = "coordination.k8s.io"

SECRETS: Final = (
    RoleGrant(_C, "", "secrets", "get update", _OURS, f"{_AUTHORITIES} {names.SCHEDULER_TLS}"),
    RoleGrant(_C, "apps", "deployments", "get patch", _OURS, names.SCHEDULER),
)
"""What only the issuer of certificates needs."""

SLICES: Final = RoleGrant(_N, "", "configmaps", _FOLLOW, _OURS, "time-slicing-config")
"""What the setting `time_slicing` needs, if its ConfigMap has this name."""

ALWAYS: Final = (
    *(RoleGrant(each, "resource.k8s.io", "deviceclasses resourceslices", _FOLLOW) for each in (_A, _E, _Q)),
    RoleGrant(_A, "", "nodes namespaces resourcequotas", _FOLLOW),
    RoleGrant(_A, names.OWN_DOMAIN, _QUOTAS, _FOLLOW),
    RoleGrant(_A, "", "events", "create patch"),
    RoleGrant(_A, "apps", "replicasets", "get"),
    RoleGrant(_A, "batch", "jobs", "get"),
    RoleGrant(_A, "", "configmaps", "get list watch update", _OURS),
    RoleGrant(_E, "", "nodes", "get list watch"),
    RoleGrant(_E, "", "pods", "get list watch patch"),
    RoleGrant(_E, "", "pods/binding", "create"),
    RoleGrant(_E, "", "events", "create patch"),
    RoleGrant(_E, "", "namespaces", _FOLLOW),
    RoleGrant(_E, names.OWN_DOMAIN, _QUOTAS, _FOLLOW),
    RoleGrant(_E, "", "configmaps", "get list watch update", _OURS),
    RoleGrant(_E, _LEASES, "leases", "create", _OURS),
    RoleGrant(_E, _LEASES, "leases", "get update", _OURS, _E),
    RoleGrant(_E, _LEASES, "leases", "get update", _OURS, names.SCHEDULER_CONTACT),
    RoleGrant(_Q, "", "pods", "get list watch patch"),
    RoleGrant(_Q, "", "namespaces nodes resourcequotas", _FOLLOW),
    RoleGrant(_Q, "apps", "replicasets statefulsets daemonsets", "list patch"),
    RoleGrant(_Q, "batch", "jobs", "list patch"),
    RoleGrant(_Q, "", "replicationcontrollers", "list patch"),
    RoleGrant(_Q, "", "events", "get create patch"),
    RoleGrant(_Q, names.OWN_DOMAIN, _QUOTAS, "get list watch"),
    RoleGrant(_Q, names.OWN_DOMAIN, _QUOTA_STATUSES, "patch"),
    RoleGrant(_Q, names.OWN_DOMAIN, names.GPU_QUOTA_USAGES, "list watch create patch delete"),
    RoleGrant(_Q, "", "configmaps", "get list watch create update delete", _OURS),
    RoleGrant(_Q, _LEASES, "leases", "create", _OURS),
    RoleGrant(_Q, _LEASES, "leases", "get update", _OURS, _Q),
    *(
        RoleGrant(each, "", "configmaps", _FOLLOW, names.KUBE_SYSTEM, names.GPU_QUOTA_MAP, f"{_Q}-map", "quota-map")
        for each in (_A, _E, _Q)
    ),
    RoleGrant(
        _C,
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations mutatingwebhookconfigurations",
        "get patch list watch",
        only="halfcard",
        file="registration",
    ),
    *(
        RoleGrant(_C, group, resource, verbs, _OURS, only, "halfcard-registration", "registration")
        for group, resource, verbs, only in (
            ("discovery.k8s.io", "endpointslices", _FOLLOW, ""),
            ("apps", "deployments", "get", names.ADMISSION_SERVICE),
            ("", "secrets", "create", ""),
            ("", "secrets", "get update", names.ADMISSION_CALLERS),
            ("", "secrets", "get", names.ADMISSION_TLS),
            ("", "events", "create", ""),
        )
    ),
    RoleGrant(_N, "", "nodes", "list watch patch"),
    RoleGrant(_N, "", "nodes/status", "patch"),
    RoleGrant(_N, "", "pods", "get list watch patch"),
    RoleGrant(_N, "", "events", "create"),
    RoleGrant(_N, "authentication.k8s.io", "tokenreviews", "create"),
    RoleGrant(_N, "authorization.k8s.io", "subjectaccessreviews", "create"),
)


def grants(settings: Settings, webhooks: tuple[Object, ...] | None) -> tuple[RoleGrant, ...]:
    """Returns the rights that an installation with these settings needs; cert-manager issues certificates itself."""
    is_injected = any(injector(each) for each in webhooks or ())
    slicing = settings.time_slicing
    is_sliced = slicing is not None and slicing.place == (SLICES.namespace, SLICES.only)
    return (*ALWAYS, *(() if is_injected else SECRETS), *((SLICES,) if is_sliced else ()))

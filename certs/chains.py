"""The certificate chains of an installation: a CA, the leaves it signs, and the objects that trust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from certs.certificate_checks import CLIENT, SERVER
from certs.lifetimes import COPIED_LEAF_LIFE, ChainRules, LeafRules
from certs.server_names import ServerNames, server_names
from halfcard import names

_REGISTRATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
_REGISTRATION: Final = "halfcard"
_CALLER: Final = "kube-scheduler"


class ObjectPath(NamedTuple):
    """An object, by the path of its collection and its name."""

    collection: str
    name: str

    def __str__(self) -> str:
        return f"{self.collection}/{self.name}"


@dataclass(frozen=True, slots=True)
class Chain:
    """One CA, its leaves, and the objects that trust it.

    Attributes:
        title: the process that uses the certificates.
        authority: the Secret of the CA.
        leaves: the Secrets of the leaves, in the order of `rules`.
        configurations: the webhook configurations that trust the CA.
    """

    title: str
    authority: ObjectPath
    leaves: tuple[ObjectPath, ...]
    configurations: tuple[ObjectPath, ...]
    rules: ChainRules


CONFIGURATIONS: Final = (
    ObjectPath(f"{_REGISTRATIONS}/validatingwebhookconfigurations", _REGISTRATION),
    ObjectPath(f"{_REGISTRATIONS}/mutatingwebhookconfigurations", _REGISTRATION),
)


def chains(namespace: str) -> tuple[Chain, Chain]:
    """Returns the chains of the webhook, and of the extender with its client, kube-scheduler."""
    return _admission(namespace), _extender(namespace)


def _admission(namespace: str) -> Chain:
    leaf = LeafRules(_service(names.ADMISSION_SERVICE, namespace))
    return Chain(
        "admission",
        _secret(namespace, names.ADMISSION_CA),
        (_secret(namespace, names.ADMISSION_TLS),),
        CONFIGURATIONS,
        ChainRules((leaf,)),
    )


def _extender(namespace: str) -> Chain:
    """Replicas forward binds, so they are clients too. The scheduler reads the CA only when it starts."""
    server = LeafRules(_service(names.EXTENDER_SERVICE, namespace), SERVER | CLIENT, outlives_ca=True)
    client = LeafRules(server_names([_CALLER]), CLIENT, life=COPIED_LEAF_LIFE)
    return Chain(
        "extender",
        _secret(namespace, names.EXTENDER_CA),
        (_secret(namespace, names.EXTENDER_TLS), _secret(namespace, names.SCHEDULER_TLS)),
        (),
        ChainRules((server, client), is_long_lived=True),
    )


def _secret(namespace: str, name: str) -> ObjectPath:
    return ObjectPath(f"/api/v1/namespaces/{namespace}/secrets", name)


def _service(name: str, namespace: str) -> ServerNames:
    whole = f"{name}.{namespace}"
    return server_names([name, whole, f"{whole}.svc", f"{whole}.svc.cluster.local"])

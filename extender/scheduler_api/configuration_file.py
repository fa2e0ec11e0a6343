"""The configuration file of kube-scheduler that names Halfcard's extender, with the reason for each of its lines.

`deploy/scheduler/halfcard.yaml`, the chart's ConfigMap and `halfcard scheduler-config` are all made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from halfcard import names
from halfcard.dialects import Dialect

FOLDER: Final = "/etc/kubernetes/halfcard"
"""Where `deploy/scheduler/copy-certificate.sh` copies the scheduler's certificate to."""

KUBECONFIG: Final = "/etc/kubernetes/scheduler.conf"

EXAMPLE_HOST: Final = "10.96.34.56"
"""Stands for the address of the extender's Service where that is unknown."""

_TEMPLATE: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{client}leaderElection:
  leaderElect: true
{lease}profiles:
{profiles}extenders:
  - urlPrefix: {url}
    filterVerb: filter
    prioritizeVerb: prioritize
    bindVerb: bind
    preemptVerb: preempt
    weight: 100 # above all other scores together
    enableHTTPS: true
    tlsConfig:
      serverName: {service}
      caFile: {folder}/ca.crt # without it the scheduler accepts any certificate
      certFile: {folder}/tls.crt # bind and preempt use Halfcard's rights, so they require a client certificate
      keyFile: {folder}/tls.key
    httpTimeout: 10s
    nodeCacheCapable: true # names instead of whole Node objects
    ignorable: false # true would bind without a record when the extender fails
    managedResources: # every resource that means GPU; pods that ask for none are never sent
{resources}"""

_PROFILE: Final = """\
  - schedulerName: {name}
    percentageOfNodesToScore: 100 # by default only a sample of a large cluster is scored
    pluginConfig:
      - name: NodeResourcesFit
        args:
          ignoredResourceGroups: [{group}] # what only ResourceQuotas count: no node offers it
"""

_IGNORED: Final = " # no node publishes it, so only Halfcard can count it\n        ignoredByScheduler: true"


@dataclass(frozen=True, slots=True)
class ConfigurationParts:
    """The parts that differ between installations, as text.

    Attributes:
        url: of the extender, up to the verb.
        folder: where the scheduler finds the certificate.
        client: how it reaches the API server; empty inside of a pod.
        lease: where it elects its leader; empty for the place of the cluster's own scheduler.
    """

    profiles: str
    resources: str
    url: str
    folder: str = FOLDER
    client: str = f"clientConnection:\n  kubeconfig: {KUBECONFIG}\n"
    lease: str = ""


def configuration(parts: ConfigurationParts) -> str:
    return _TEMPLATE.format(
        client=parts.client,
        lease=parts.lease,
        profiles=parts.profiles,
        url=parts.url,
        service=f"{names.EXTENDER_SERVICE}.{names.NAMESPACE}.svc",
        folder=parts.folder,
        resources=parts.resources,
    )


def extender_url(host: str) -> str:
    return f"https://{host}:443{names.FILTER_PATH.rpartition('/')[0]}"


def profile(scheduler: str) -> str:
    return _PROFILE.format(name=scheduler, group=names.DERIVED_GROUP)


def managed_resource(name: str, *, is_ignored: bool) -> str:
    return f"      - name: {name}{_IGNORED if is_ignored else ''}\n"


def managed_resources(dialects: Iterable[Dialect]) -> Mapping[str, bool]:
    """Returns the resources of some dialects, and whether the scheduler must ignore each: no node offers it."""
    table = [*dialects]
    unoffered = frozenset[str]().union(*(dialect.without_ids - {*dialect.offered} for dialect in table))
    return {name: name in unoffered for dialect in table for name in sorted(dialect.resources)}


def resource_lines(managed: Mapping[str, bool]) -> str:
    return "".join(managed_resource(name, is_ignored=is_ignored) for name, is_ignored in managed.items())

"""Makes the scheduler's configuration: the file for the cluster's scheduler, and the template for the chart's own."""

from __future__ import annotations

import json
from typing import Final

from extender.scheduler_api.configuration_file import (
    EXAMPLE_HOST,
    ConfigurationParts,
    configuration,
    extender_url,
    managed_resource,
    managed_resources,
    profile,
    resource_lines,
)
from halfcard import names
from halfcard.dialects import ALL

from .template_head import SAMPLE

_FILE_HEAD: Final = """\
# kube-scheduler --config: Halfcard chooses the card, binds and records it. docs/scheduler.md explains each line.
# `halfcard scheduler-config` prints it for your cluster. Here, replace by your own: the kubeconfig, the address of the
# Service halfcard-extender (the scheduler can seldom use the cluster's DNS, so its clusterIP), and the files of a
# client certificate for the scheduler.
"""

_MOUNTED: Final = "/etc/halfcard/tls"

_LEASE: Final = f"""\
  resourceNamespace: {names.NAMESPACE}
  resourceName: {names.SCHEDULER}
"""

_TEMPLATE: Final = """\
{{- /* Made by `python -m deploy.chart` from extender/scheduler_api/configuration_file.py: change that. */ -}}
{{- define "halfcard.schedulerConfiguration" -}}
{{- $words := fromJson `%(words)s` -}}
{{- $settings := .Values.settings -}}
{{- $spoken := keys $words -}}
{{- if hasKey $settings "dialects" }}{{ $spoken = $settings.dialects }}{{ end -}}
{{- $managed := dict -}}
{{- range $spoken }}{{ $managed = merge $managed (get $words .) }}{{ end -}}
{{- range $settings.vcuda_prefixes -}}
%(own)s
{{- end -}}
%(configuration)s
{{- end -}}
"""


def file() -> str:
    """Returns `deploy/scheduler/halfcard.yaml`."""
    parts = ConfigurationParts(
        profile(names.DEFAULT_SCHEDULER), resource_lines(managed_resources(ALL)), extender_url(EXAMPLE_HOST)
    )
    return f"{_FILE_HEAD}{configuration(parts)}"


def template() -> str:
    words = {dialect.name: managed_resources([dialect]) for dialect in ALL}
    own = "\n".join(
        f'{{{{- $_ := set $managed (print .prefix "{each.removeprefix(SAMPLE.prefix)}") false -}}}}'
        for each in sorted(SAMPLE.resources)
    )
    return _TEMPLATE % {"words": json.dumps(words, sort_keys=True), "own": own, "configuration": _of_the_chart()}


def _of_the_chart() -> str:
    """Returns the configuration in which helm repeats one profile and one resource; a pod can use the cluster's DNS."""
    each_name = 'range include "halfcard.schedulerNames" . | fromJsonArray'
    profiles = f"{{{{- {each_name} }}}}\n{profile('{{ . }}')}{{{{- end }}}}\n"
    ignored, counted = (managed_resource("{{ $name }}", is_ignored=each) for each in (True, False))
    resources = (
        "{{- range $name, $ignored := $managed }}\n"
        f"{{{{- if $ignored }}}}\n{ignored}{{{{- else }}}}\n{counted}{{{{- end }}}}\n{{{{- end }}}}"
    )
    service = f"{names.EXTENDER_SERVICE}.{names.NAMESPACE}.svc"
    parts = ConfigurationParts(profiles, resources, extender_url(service), _MOUNTED, client="", lease=_LEASE)
    return configuration(parts)

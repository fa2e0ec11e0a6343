"""Makes the chart's template of the webhook configurations, from the output of `halfcard webhooks`.

Only the parts that depend on settings are left to helm: the GPU resources, and the namespaces that are never checked.
"""

from __future__ import annotations

from typing import Any, Final

from admission.registration.webhook_configurations import cel_list, configurations
from halfcard import names
from halfcard.dialects import Dialects

from .template_head import EXEMPT, SAMPLE, head, in_blocks, with_namespaces

_HEAD: Final = """\
{{- $asked := append $resources "%s" | sortAlpha -}}
{{- $limited := list -}}
{{- range $side := list "" "limits." "requests." -}}
{{- range $resources }}{{ $limited = append $limited (print $side .) }}{{ end -}}
{{- end -}}
"""
_INJECTED: Final = """\
  {{- if eq .Values.certificates.from "cert-manager" }}
  annotations: {cert-manager.io/inject-ca-from: halfcard-system/halfcard-admission}
  {{- end }}
"""


def template() -> str:
    made = (_document(each) for each in configurations(Dialects((SAMPLE,)), exempt=[EXEMPT]))
    return "---\n".join([head() + _HEAD % names.SLOT, *made])


def _document(configuration: dict[str, Any]) -> str:
    text = with_namespaces(in_blocks(configuration))
    for said, chosen in _choices():
        text = text.replace(said, chosen)
    before, _, webhooks = text.partition("webhooks:\n")
    return f"{before}{_INJECTED}webhooks:\n{webhooks}"


def _choices() -> list[tuple[str, str]]:
    words = sorted(SAMPLE.resources)
    limited = [side + word for side in ("", "limits.", "requests.") for word in words]
    return [
        (cel_list([*words, names.SLOT]), '{{ include "halfcard.list" $asked }}'),
        (cel_list(limited), '{{ include "halfcard.list" $limited }}'),
        ("failurePolicy: Fail", "failurePolicy: {{ .Values.webhooks.failurePolicy }}"),
    ]

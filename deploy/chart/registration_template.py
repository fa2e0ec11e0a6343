"""The chart's template of the webhook configurations, made from what `halfcard webhooks` prints.

Only what an installation's settings change is left to helm: which resources mean GPU, and which namespaces are never
judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import yaml

from admission.registration import configurations
from halfcard import names
from halfcard.dialects import ALL, Dialects
from halfcard.dialects.vcuda import Vcuda

_SAMPLE: Final = Vcuda("sample", "THE-PREFIX", memory_alone=False)
"""Its words stand for those of all systems."""

_EXEMPT: Final = "THE-NAMESPACES"


_HEAD: Final = """\
{{{{- /* Made by `python -m deploy.chart` from admission/registration.py and halfcard/dialects: change those. */ -}}}}
{{{{- define "halfcard.quoted" -}}}}
{{{{- range $place, $each := . }}}}{{{{ if $place }}}}, {{{{ end }}}}'{{{{ $each }}}}'{{{{ end }}}}
{{{{- end -}}}}
{{{{- $words := fromJson `{words}` -}}}}
{{{{- $settings := .Values.settings -}}}}
{{{{- $spoken := keys $words -}}}}
{{{{- if hasKey $settings "dialects" }}}}{{{{ $spoken = $settings.dialects }}}}{{{{ end -}}}}
{{{{- $resources := list -}}}}
{{{{- range $spoken }}}}{{{{ $resources = concat $resources (get $words .) }}}}{{{{ end -}}}}
{{{{- range $settings.vcuda_prefixes -}}}}
{own}
{{{{- end -}}}}
{{{{- $resources = $resources | uniq | sortAlpha -}}}}
{{{{- $asked := append $resources "{slot}" | sortAlpha -}}}}
{{{{- $limited := list -}}}}
{{{{- range $side := list "" "limits." "requests." -}}}}
{{{{- range $resources }}}}{{{{ $limited = append $limited (print $side .) }}}}{{{{ end -}}}}
{{{{- end -}}}}
{{{{- $exempt := concat (list "{system}" "{own_namespace}") ($settings.exempt_namespaces | default list) -}}}}
{{{{- $exempt = $exempt | uniq | sortAlpha -}}}}
"""
_INJECTED: Final = """\
  {{- if eq .Values.certificates.from "cert-manager" }}
  annotations: {cert-manager.io/inject-ca-from: halfcard-system/halfcard-admission}
  {{- end }}
"""


class _Blocks(yaml.SafeDumper):
    """Expressions as blocks, so that nothing in them has to be escaped."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if " " in text else None)


_Blocks.add_representer(str, _text)


def template() -> str:
    made = (_document(each) for each in configurations(Dialects((_SAMPLE,)), exempt=[_EXEMPT]))
    return "---\n".join([_head(), *made])


def _document(configuration: dict[str, Any]) -> str:
    text = yaml.dump(configuration, Dumper=_Blocks, sort_keys=False, width=10**6)
    for said, chosen in _choices():
        text = text.replace(said, chosen)
    head, _, webhooks = text.partition("webhooks:\n")
    return f"{head}{_INJECTED}webhooks:\n{webhooks}"


def _choices() -> list[tuple[str, str]]:
    words = sorted(_SAMPLE.resources)
    limited = [side + word for side in ("", "limits.", "requests.") for word in words]
    return [
        (_listed([*words, names.SLOT]), '[{{ include "halfcard.quoted" $asked }}]'),
        (_listed(limited), '[{{ include "halfcard.quoted" $limited }}]'),
        (f"values:\n      - {_EXEMPT}", "values: {{ toJson $exempt }}"),
        ("failurePolicy: Fail", "failurePolicy: {{ .Values.webhooks.failurePolicy }}"),
    ]


def _listed(words: Iterable[str]) -> str:
    """As the expressions have it."""
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def _head() -> str:
    words = {dialect.name: sorted(dialect.resources) for dialect in ALL}
    own = "\n".join(
        f'{{{{- $resources = append $resources (print .prefix "{each.removeprefix(_SAMPLE.prefix)}") -}}}}'
        for each in sorted(_SAMPLE.resources)
    )
    return _HEAD.format(
        words=json.dumps(words, sort_keys=True),
        own=own,
        slot=names.SLOT,
        system=names.KUBE_SYSTEM,
        own_namespace=names.NAMESPACE,
    )

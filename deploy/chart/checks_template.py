"""Makes the chart's checks that a JSON schema cannot express, from the code that would refuse the values later."""

from __future__ import annotations

import json
from typing import Final

from deviceplugin.gpus.fake_gpus import EXAMPLE, MODEL_RULE, MOST_CARDS, SPEC
from halfcard.capacity import MAX_CARD_MIB
from halfcard.dialects import ALL
from halfcard.dialects.vcuda import Vcuda

from .template_head import SAMPLE

_TEMPLATE: Final = """\
{{- /* Made by `python -m deploy.chart` from halfcard/dialects and deviceplugin/gpus: change those. */ -}}
{{- define "halfcard.checkedByCode" -}}
{{- $settings := .Values.settings -}}
{{- $offered := fromJson `%(offered)s` -}}
{{- $prefixes := fromJson `%(prefixes)s` -}}
{{- $spoken := keys $offered -}}
{{- if hasKey $settings "dialects" }}{{ $spoken = $settings.dialects }}{{ end -}}
{{- $known := list -}}
{{- $taken := list -}}
{{- range $spoken }}
{{- $known = concat $known (get $offered .) }}
{{- if hasKey $prefixes . }}{{ $taken = append $taken (get $prefixes .) }}{{ end -}}
{{- end -}}
{{- range $settings.vcuda_prefixes -}}
{{- if has .prefix $taken }}
{{- fail (printf "settings.vcuda_prefixes: %%s is already a prefix; name it once" .prefix) }}
{{- end -}}
{{- $taken = append $taken .prefix -}}
%(own)s
{{- end -}}
{{- range $settings.node_resources -}}
{{- if not (has . $known) }}
{{- $use := $known | uniq | sortAlpha | join ", " }}
{{- fail (printf "settings.node_resources: unknown resource %%s; use %%s" . $use) }}
{{- end -}}
{{- end -}}
{{- range .Values.agent.arguments -}}
{{- if hasPrefix "--fake-gpus=" . }}
{{- include "halfcard.checkedCards" (trimPrefix "--fake-gpus=" .) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "halfcard.checkedCards" -}}
{{- $cards := 0 -}}
{{- $mib := 0 -}}
{{- range splitList "," . -}}
{{- $cards = add $cards (splitList "x" (trim .) | first | int) -}}
{{- $mib = max $mib (splitList ":" . | last | int) -}}
{{- end -}}
{{- if not (regexMatch `^%(spec)s$` .) }}
{{- fail (printf "agent.arguments: --fake-gpus=%%s: %(model)s; %(example)s" .) }}
{{- else if gt $mib %(most_mib)s }}
{{- fail (printf "agent.arguments: --fake-gpus=%%s: a card has at most %(most_mib)s MiB" .) }}
{{- else if gt $cards %(most_cards)s }}
{{- fail (printf "agent.arguments: --fake-gpus=%%s: a node has at most %(most_cards)s cards" .) }}
{{- end -}}
{{- end -}}
"""


def template() -> str:
    own = "\n".join(
        f'{{{{- $known = append $known (print .prefix "{each.removeprefix(SAMPLE.prefix)}") -}}}}'
        for each in sorted(SAMPLE.offered)
    )
    return _TEMPLATE % {
        "offered": json.dumps({dialect.name: sorted(dialect.offered) for dialect in ALL}, sort_keys=True),
        "prefixes": json.dumps({each.name: each.prefix for each in ALL if isinstance(each, Vcuda)}, sort_keys=True),
        "own": own,
        "spec": SPEC,
        "model": MODEL_RULE,
        "example": EXAMPLE,
        "most_mib": MAX_CARD_MIB,
        "most_cards": MOST_CARDS,
    }

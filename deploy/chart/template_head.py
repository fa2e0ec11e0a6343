"""Makes the head of the chart's generated templates: the enabled dialects, and the exempt namespaces."""

from __future__ import annotations

import json
import re
from typing import Final

import yaml

from halfcard import names
from halfcard.dialects import ALL
from halfcard.dialects.vcuda import Vcuda

SAMPLE: Final = Vcuda("sample", "THE-PREFIX", memory_alone=False)
"""A dialect whose resource names helm replaces with those of all enabled dialects."""

EXEMPT: Final = "THE-NAMESPACES"
"""A placeholder for the exempt namespaces of the settings."""

_HEAD: Final = """\
{{{{- /* Made by `python -m deploy.chart` from admission and halfcard/dialects: change those. */ -}}}}
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
{{{{- $exempt := concat (list "{system}" "{own_namespace}") ($settings.exempt_namespaces | default list) -}}}}
{{{{- $exempt = $exempt | uniq | sortAlpha -}}}}
"""


def head() -> str:
    words = {dialect.name: sorted(dialect.resources) for dialect in ALL}
    own = "\n".join(
        f'{{{{- $resources = append $resources (print .prefix "{each.removeprefix(SAMPLE.prefix)}") -}}}}'
        for each in sorted(SAMPLE.resources)
    )
    return _HEAD.format(
        words=json.dumps(words, sort_keys=True), own=own, system=names.KUBE_SYSTEM, own_namespace=names.NAMESPACE
    )


class _Blocks(yaml.SafeDumper):
    """Writes expressions as blocks, so that nothing needs escaping."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if " " in text else None)


_Blocks.add_representer(str, _text)


def with_namespaces(text: str) -> str:
    """Lets helm write the namespaces of the settings."""
    return re.sub(rf"values:\n *- {EXEMPT}\n", "values: {{ toJson $exempt }}\n", text)


def in_blocks(item: object) -> str:
    return yaml.dump(item, Dumper=_Blocks, sort_keys=False, width=10**6)

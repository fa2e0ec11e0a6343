"""Makes the chart's template of the static guard, from `admission/registration/static_guard.py`.

Only the parts that depend on settings are left to helm: the GPU resources, which rules refuse, and the namespaces
that are never checked.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any, Final

from admission.policy import AdmissionPolicy
from admission.registration.static_guard import GUARDED, GuardedRule, alone, guard
from halfcard import names
from halfcard.dialects import ALL, Dialects

from .template_head import EXEMPT, SAMPLE, head, in_blocks, with_namespaces

_HEAD: Final = """\
{{- if .Values.webhooks.guard -}}
{{- $severities := $settings.severities | default dict -}}
{{- $alone := list -}}
{{- $systems := list -}}
{{- range $spoken }}{{ $systems = append $systems (get $words . | include "halfcard.list") }}{{ end -}}
%(alone)s
{{- range $settings.vcuda_prefixes -}}
{{- $own := list (print .prefix "%(core)s") (print .prefix "%(memory)s") -}}
{{- $systems = append $systems (include "halfcard.list" $own) -}}
{{- if .memory_alone }}{{ $alone = append $alone (last $own) }}{{ end -}}
{{- end }}
"""
_CHOSEN: Final = {
    "words": '{{ include "halfcard.list" $resources }}',
    "systems": '[{{ $systems | sortAlpha | join ", " }}]',
    "alone": '{{ $alone | sortAlpha | include "halfcard.list" }}',
}


def template() -> str:
    sample = Dialects((SAMPLE,))
    rules, binding = guard(AdmissionPolicy(dialects=sample, exempt_namespaces=frozenset({EXEMPT})))
    return f"{head()}{_head()}{_rules(rules)}---\n{in_blocks(binding)}{{{{- end }}}}\n"


def _head() -> str:
    known = [(each.name, memory) for each in ALL for memory in sorted(alone(Dialects((each,))))]
    added = "\n".join(
        f'{{{{- if has "{name}" $spoken }}}}{{{{ $alone = append $alone "{memory}" }}}}{{{{ end -}}}}'
        for name, memory in known
    )
    return _HEAD % {"alone": added, "core": names.VCUDA_CORE_SUFFIX, "memory": names.VCUDA_MEMORY_SUFFIX}


def _rules(item: dict[str, Any]) -> str:
    spec = item["spec"]
    for variable in spec["variables"]:
        variable["expression"] = _CHOSEN.get(variable["name"], variable["expression"])
    text = with_namespaces(in_blocks({**item, "spec": {**spec, "validations": []}}))
    validations = "".join(map(_validation, GUARDED, spec["validations"]))
    return text.replace("  validations: []\n", f"  validations:\n{validations}")


def _validation(guarded: GuardedRule, validation: dict[str, str]) -> str:
    """Returns a validation for a rule that refuses; the guard admits what a rule only warns about."""
    rule = guarded.rule
    condition = f'{{{{- if eq "deny" (get $severities "{rule.code}" | default "{rule.severity}") }}}}\n'
    return f"  {condition}{indent(in_blocks([validation]), '  ')}  {{{{- end }}}}\n"

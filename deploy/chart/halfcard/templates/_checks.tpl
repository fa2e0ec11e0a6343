{{- /* Made by `python -m deploy.chart` from halfcard/dialects and deviceplugin/gpus: change those. */ -}}
{{- define "halfcard.checkedByCode" -}}
{{- $settings := .Values.settings -}}
{{- $offered := fromJson `{"aliyun": ["aliyun.com/gpu-mem"], "hami": ["nvidia.com/gpu"], "nvidia": ["nvidia.com/gpu"], "tencent": ["tencent.com/vcuda-core", "tencent.com/vcuda-memory"], "tuya": ["tuya.com/sgpu"], "tuya-vcuda": ["tuya.com/vcuda-core", "tuya.com/vcuda-memory"], "volcano": ["volcano.sh/gpu-memory", "volcano.sh/gpu-number"]}` -}}
{{- $prefixes := fromJson `{"tencent": "tencent.com", "tuya-vcuda": "tuya.com"}` -}}
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
{{- fail (printf "settings.vcuda_prefixes: %s is already a prefix; name it once" .prefix) }}
{{- end -}}
{{- $taken = append $taken .prefix -}}
{{- $known = append $known (print .prefix "/vcuda-core") -}}
{{- $known = append $known (print .prefix "/vcuda-memory") -}}
{{- end -}}
{{- range $settings.node_resources -}}
{{- if not (has . $known) }}
{{- $use := $known | uniq | sortAlpha | join ", " }}
{{- fail (printf "settings.node_resources: unknown resource %s; use %s" . $use) }}
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
{{- if not (regexMatch `^[1-9][0-9]?x((A10|A100\-SXM4\-40GB|A100\-SXM4\-80GB|A30|A40|H100\-80GB\-HBM3|H200|L4|L40S|NVIDIA\-A10|NVIDIA\-A100\-SXM4\-40GB|NVIDIA\-A100\-SXM4\-80GB|NVIDIA\-A30|NVIDIA\-A40|NVIDIA\-H100\-80GB\-HBM3|NVIDIA\-H200|NVIDIA\-L4|NVIDIA\-L40S|P4|P40|T4|Tesla\-P4|Tesla\-P40|Tesla\-T4|Tesla\-V100\-SXM2\-16GB|Tesla\-V100\-SXM2\-32GB|V100\-SXM2\-16GB|V100\-SXM2\-32GB)|[A-Za-z][A-Za-z0-9._-]{0,62}:[1-9][0-9]{0,8})(, *[1-9][0-9]?x((A10|A100\-SXM4\-40GB|A100\-SXM4\-80GB|A30|A40|H100\-80GB\-HBM3|H200|L4|L40S|NVIDIA\-A10|NVIDIA\-A100\-SXM4\-40GB|NVIDIA\-A100\-SXM4\-80GB|NVIDIA\-A30|NVIDIA\-A40|NVIDIA\-H100\-80GB\-HBM3|NVIDIA\-H200|NVIDIA\-L4|NVIDIA\-L40S|P4|P40|T4|Tesla\-P4|Tesla\-P40|Tesla\-T4|Tesla\-V100\-SXM2\-16GB|Tesla\-V100\-SXM2\-32GB|V100\-SXM2\-16GB|V100\-SXM2\-32GB)|[A-Za-z][A-Za-z0-9._-]{0,62}:[1-9][0-9]{0,8}))*$` .) }}
{{- fail (printf "agent.arguments: --fake-gpus=%s: a model is one of P4, P40, T4, V100-SXM2-16GB, V100-SXM2-32GB, A10, A30, A40, A100-SXM4-40GB, A100-SXM4-80GB, L4, L40S, H100-80GB-HBM3, H200, or has its MiB behind a colon; such as 4xT4, or 2xT4,1xMyCard:16160 with the MiB of a card" .) }}
{{- else if gt $mib 16777216 }}
{{- fail (printf "agent.arguments: --fake-gpus=%s: a card has at most 16777216 MiB" .) }}
{{- else if gt $cards 64 }}
{{- fail (printf "agent.arguments: --fake-gpus=%s: a node has at most 64 cards" .) }}
{{- end -}}
{{- end -}}

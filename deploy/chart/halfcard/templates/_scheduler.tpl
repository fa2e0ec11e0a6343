{{- /* Made by `python -m deploy.chart` from extender/scheduler_api/configuration_file.py: change that. */ -}}
{{- define "halfcard.schedulerConfiguration" -}}
{{- $words := fromJson `{"aliyun": {"aliyun.com/gpu-mem": false}, "hami": {"nvidia.com/gpu": false, "nvidia.com/gpucores": true, "nvidia.com/gpumem": true, "nvidia.com/gpumem-percentage": true}, "nvidia": {"nvidia.com/gpu": false, "nvidia.com/gpu.shared": false}, "tencent": {"tencent.com/vcuda-core": false, "tencent.com/vcuda-memory": false}, "tuya": {"tuya.com/sgpu": false}, "tuya-vcuda": {"tuya.com/vcuda-core": false, "tuya.com/vcuda-memory": false}, "volcano": {"volcano.sh/gpu-memory": false, "volcano.sh/gpu-number": false}}` -}}
{{- $settings := .Values.settings -}}
{{- $spoken := keys $words -}}
{{- if hasKey $settings "dialects" }}{{ $spoken = $settings.dialects }}{{ end -}}
{{- $managed := dict -}}
{{- range $spoken }}{{ $managed = merge $managed (get $words .) }}{{ end -}}
{{- range $settings.vcuda_prefixes -}}
{{- $_ := set $managed (print .prefix "/vcuda-core") false -}}
{{- $_ := set $managed (print .prefix "/vcuda-memory") false -}}
{{- end -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: halfcard-system
  resourceName: halfcard-scheduler
profiles:
{{- range include "halfcard.schedulerNames" . | fromJsonArray }}
  - schedulerName: {{ . }}
    percentageOfNodesToScore: 100 # by default only a sample of a large cluster is scored
    pluginConfig:
      - name: NodeResourcesFit
        args:
          ignoredResourceGroups: [quota.halfcard.dev] # what only ResourceQuotas count: no node offers it
{{- end }}
extenders:
  - urlPrefix: https://halfcard-extender.halfcard-system.svc:443/scheduler
    filterVerb: filter
    prioritizeVerb: prioritize
    bindVerb: bind
    preemptVerb: preempt
    weight: 100 # above all other scores together
    enableHTTPS: true
    tlsConfig:
      serverName: halfcard-extender.halfcard-system.svc
      caFile: /etc/halfcard/tls/ca.crt # without it the scheduler accepts any certificate
      certFile: /etc/halfcard/tls/tls.crt # bind and preempt use Halfcard's rights, so they require a client certificate
      keyFile: /etc/halfcard/tls/tls.key
    httpTimeout: 10s
    nodeCacheCapable: true # names instead of whole Node objects
    ignorable: false # true would bind without a record when the extender fails
    managedResources: # every resource that means GPU; pods that ask for none are never sent
{{- range $name, $ignored := $managed }}
{{- if $ignored }}
      - name: {{ $name }} # no node publishes it, so only Halfcard can count it
        ignoredByScheduler: true
{{- else }}
      - name: {{ $name }}
{{- end }}
{{- end }}
{{- end -}}

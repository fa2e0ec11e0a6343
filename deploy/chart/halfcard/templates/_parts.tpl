{{/* Certificates, RBAC and webhooks name the namespace. */}}
{{- define "halfcard.checked" -}}
{{- if ne .Release.Namespace "halfcard-system" -}}
{{- fail (printf "Halfcard is installed in the namespace halfcard-system, not in %s: add --namespace halfcard-system --create-namespace" .Release.Namespace) -}}
{{- end -}}
{{- /* lookup finds nothing where helm renders without a cluster. */ -}}
{{- with lookup "apps/v1" "Deployment" "halfcard-system" "halfcard-admission" -}}
{{- $by := index (.metadata.annotations | default dict) "meta.helm.sh/release-name" | default "" -}}
{{- if ne $by $.Release.Name -}}
{{- $fix := ternary "kubectl delete -f deploy/halfcard.yaml" (printf "helm upgrade %s, or first helm uninstall %s" $by $by) (empty $by) -}}
{{- fail (printf "Halfcard is installed already, %s: a cluster has one; %s" (ternary "without Helm" (printf "as the release %s" $by) (empty $by)) $fix) -}}
{{- end -}}
{{- end -}}
{{- include "halfcard.checkedByCode" . -}}
{{- if and .Values.scheduler.enabled (eq (.Values.settings.set_scheduler_name | default "") "default-scheduler") -}}
{{- fail "settings.set_scheduler_name: default-scheduler is the cluster's own; with scheduler.enabled name another one, or none" -}}
{{- end -}}
{{- $settings := include "halfcard.settings" . | fromYaml -}}
{{- with $settings.derived_resources -}}
{{- $ignoring := .schedulers | default list -}}
{{- $served := $settings.schedulers | default (list "default-scheduler") -}}
{{- range compact (append $served ($settings.set_scheduler_name | default "")) -}}
{{- if not (has . $ignoring) -}}
{{- fail (printf "settings.derived_resources: %s would find no node for GPU pods: have its profile ignore quota.halfcard.dev (docs/quota.md), and add it to schedulers there" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The profiles of the chart's own scheduler, as JSON: GPU pods without a scheduler's name get the first one. */}}
{{- define "halfcard.schedulerNames" -}}
{{ concat (list (.Values.settings.set_scheduler_name | default "halfcard-scheduler")) .Values.scheduler.alsoNamed | uniq | toJson }}
{{- end -}}

{{/* The settings of all processes. With its own scheduler, Halfcard serves its profiles, and all of them ignore what only quotas count. */}}
{{- define "halfcard.settings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- if .Values.scheduler.enabled -}}
{{- $names := include "halfcard.schedulerNames" . | fromJsonArray -}}
{{- $_ := set $settings "set_scheduler_name" (first $names) -}}
{{- $_ := set $settings "schedulers" (concat ($settings.schedulers | default list) $names | uniq) -}}
{{- with $settings.derived_resources -}}
{{- $_ := set . "schedulers" (concat (.schedulers | default list) $names | uniq) -}}
{{- end -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The image of kube-scheduler, by default in the cluster's own version: providers add a suffix to that, which no image has. */}}
{{- define "halfcard.schedulerImage" -}}
{{- $tag := regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version -}}
{{- with .Values.scheduler.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $tag }}{{ end }}
{{- end -}}
{{- end -}}

{{/* Strings as a CEL list. */}}
{{- define "halfcard.list" -}}
[{{ range $place, $each := . }}{{ if $place }}, {{ end }}'{{ $each }}'{{ end }}]
{{- end -}}

{{- define "halfcard.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{/* Without a registry an image can only be imported. Kubelet pulls it again for minutes after a failed attempt, even if it was imported meanwhile. */}}
{{- define "halfcard.pullPolicy" -}}
{{- $own := hasPrefix "halfcard.dev/" .Values.image.repository -}}
{{ .Values.image.pullPolicy | default (ternary "Never" "IfNotPresent" $own) }}
{{- end -}}

{{- define "halfcard.labels" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: halfcard
{{- end -}}

{{/* Labels and annotations of a component's pods. Processes read their settings only at the start: new settings need new pods. */}}
{{- define "halfcard.podMetadata" -}}
{{- $root := index . 0 }}{{ $values := index . 1 }}{{ $name := index . 2 -}}
labels:
  {{- include "halfcard.labels" $name | nindent 2 }}
  {{- with $values.labels }}{{ toYaml . | nindent 2 }}{{ end }}
annotations:
  halfcard.dev/settings: {{ include "halfcard.settings" $root | fromYaml | toJson | sha256sum | trunc 16 }}
  {{- with $values.annotations }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end -}}

{{/* The security context of every container except the agent's. */}}
{{- define "halfcard.weak" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* The status listener, which needs no certificate. */}}
{{- define "halfcard.status" -}}
startupProbe: # until the first lists have been read, which takes a while in a large cluster
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 1
  failureThreshold: 120
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 2
livenessProbe: # restart only a process that hangs for a minute: a busy one would be busier after a restart
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{/* Where the pods of a component run, and as which account; a list of the chart's root, the component's values and its name. */}}
{{- define "halfcard.placement" -}}
{{- $root := index . 0 }}{{ $values := index . 1 }}{{ $name := index . 2 -}}
serviceAccountName: {{ $name }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with $values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* The common part of a Deployment's pods; the same list. */}}
{{- define "halfcard.pod" -}}
{{- $values := index . 1 }}{{ $name := index . 2 -}}
{{ include "halfcard.placement" . }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532 # only this group can read the keys in Secrets
  seccompProfile: {type: RuntimeDefault}
{{- if gt (int $values.replicas) 1 }}
topologySpreadConstraints: # replicas on one node fail together with it
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app.kubernetes.io/name: {{ $name }}}}
{{- end }}
{{- end -}}

{{/* A drain evicts at most one replica at a time. */}}
{{- define "halfcard.disruption" -}}
{{- $values := index . 0 }}{{ $name := index . 1 -}}
{{- if gt (int $values.replicas) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: halfcard-system
  labels: {{- include "halfcard.labels" $name | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow # an unhealthy pod needs no protection
  selector: {matchLabels: {app.kubernetes.io/name: {{ $name }}}}
{{- end }}
{{- end -}}

{{/* A Secret with a certificate; its keys are named, so that a pod waits until they exist. */}}
{{- define "halfcard.tlsVolume" -}}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    items:
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
      - {key: ca.crt, path: ca.crt}
{{- end -}}

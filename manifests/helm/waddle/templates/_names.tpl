{{/* What the names of all objects begin with. Without overrides it is not the release's name: the
     manifests and the chart make the same objects. */}}
{{- define "waddle.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if not .Values.nameOverride }}
{{- "waddle" }}
{{- else if contains .Values.nameOverride .Release.Name }}
{{- .Release.Name | trunc 32 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name .Values.nameOverride | trunc 32 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Labels of every object. Selectors have others, which never change. */}}
{{- define "waddle.labels" -}}
app.kubernetes.io/name: waddle
{{ include "waddle.labels.release" . }}
{{- end }}

{{- define "waddle.labels.release" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: waddle
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "waddle.image" -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}
{{- else }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* Of each Pod, and of each container. By default what the restricted Pod Security level asks. */}}
{{- define "waddle.podSecurity" -}}
{{- toYaml .Values.podSecurityContext }}
{{- end }}

{{- define "waddle.containerSecurity" -}}
{{- toYaml .Values.securityContext }}
{{- end }}

{{/* A Prometheus that goes by annotations is told the port that there is. */}}
{{- define "waddle.podAnnotations" -}}
{{- $port := dict }}
{{- if hasKey .Values.podAnnotations "prometheus.io/scrape" }}
{{- $port = dict "prometheus.io/port" (toString .Values.ports.metrics) }}
{{- end }}
{{- with merge (dict) .Values.podAnnotations $port }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* What a server's own container mounts: (list root "webhook" or "audit"). */}}
{{- define "waddle.mounts" -}}
{{- $root := index . 0 }}
{{- include "waddle.decisions.mounts" $root }}
{{- if or $root.Values.certificates.existingSecret (eq (index . 1) "audit") }}
- {name: certificates, mountPath: /certs, readOnly: true}
{{- end }}
{{- with $root.Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Its Pod's volumes: (list root "webhook" or "audit"). */}}
{{- define "waddle.volumes" -}}
{{- $root := index . 0 }}
{{- include "waddle.decisions.volumes" . }}
{{- $ownSecret := printf "%s-webhook-server-cert" (include "waddle.fullname" $root) }}
{{- if eq (index . 1) "audit" }}
- name: certificates
  secret:
    secretName: {{ $root.Values.certificates.existingSecret | default $ownSecret | quote }}
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
    optional: true
    defaultMode: 0440
{{- else if $root.Values.certificates.existingSecret }}
- name: certificates
  secret: {secretName: {{ $root.Values.certificates.existingSecret | quote }}, defaultMode: 0440}
{{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Values that would do nothing, and nobody would know. */}}
{{- define "waddle.check" -}}
{{- if and .Values.reports.admission (not .Values.reports.audit) }}
{{- fail "reports.admission needs reports.audit: admissions alone report nothing that was there before, or that a policy changes since" }}
{{- end }}
{{- if and .Values.reports.audit (not .Values.audit.enabled) }}
{{- fail "reports.audit needs audit.enabled: the audit writes the reports" }}
{{- end }}
{{- if and (eq .Values.kyverno.policies "audit") (not .Values.audit.enabled) }}
{{- fail "kyverno.policies=audit needs audit.enabled: nothing else decides by them then" }}
{{- end }}
{{- if and .Values.networkPolicy.apiServers (not .Values.networkPolicy.enabled) }}
{{- fail "networkPolicy.apiServers needs networkPolicy.enabled: without it every Pod reaches the admission port" }}
{{- end }}
{{- if and .Values.networkPolicy.apiServers .Values.hostNetwork }}
{{- fail "networkPolicy.apiServers is of no use with hostNetwork: no NetworkPolicy holds for a Pod on its node's network. Close the port in the nodes' firewall" }}
{{- end }}
{{- if and .Values.console.oidc.clientID (not .Values.console.oidc.issuerURL) }}
{{- fail "console.oidc.clientID needs console.oidc.issuerURL: without it there is no login" }}
{{- end }}
{{- if and .Values.telemetry.endpoint (not .Values.telemetry.metrics) (not .Values.telemetry.tracing) }}
{{- fail "telemetry.endpoint needs telemetry.metrics or telemetry.tracing: without them nothing is sent" }}
{{- end }}
{{- if and .Values.externalData.trust.namespace .Values.certificates.existingSecret }}
{{- fail "externalData.trust needs Waddle's own certificate: with certificates.existingSecret whoever makes that one tells providers" }}
{{- end }}
{{- if not .Values.externalData.enabled }}
{{- if or .Values.imageProvider.enabled .Values.externalData.trust.namespace }}
{{- fail "imageProvider.enabled and externalData.trust need externalData.enabled: without it no provider is asked" }}
{{- end }}
{{- end }}
{{- range $label := list "app.kubernetes.io/name" "gatekeeper.sh/operation" "gatekeeper.sh/system" }}
{{- if hasKey $.Values.podLabels $label }}
{{- fail (printf "podLabels must not have %s: Services and replicas find Pods by it" $label) }}
{{- end }}
{{- end }}
{{- range .Values.extraEnv }}
{{- if has .name (list "POD_NAME" "POD_NAMESPACE" "POD_UID" "POD_SERVICE_ACCOUNT" "NODE_NAME" "DECISIONS_OF") }}
{{- fail (printf "extraEnv must not have %s: the chart sets it" .name) }}
{{- end }}
{{- end }}
{{- $replicas := ternary .Values.autoscaling.maxReplicas .Values.replicas .Values.autoscaling.enabled | int }}
{{- $pods := add $replicas (ternary (int .Values.audit.replicas) 0 .Values.audit.enabled) }}
{{- if and .Values.resourceQuota.enabled (gt $pods (int .Values.resourceQuota.pods)) }}
{{- fail (printf "resourceQuota.pods is less than the %d Pods of replicas and audits" $pods) }}
{{- end }}
{{- $taken := dict }}
{{- if eq .Values.decisions.mode "sidecar" }}
{{- $taken = dict "8889" "the decision log's sidecar" }}
{{- end }}
{{- range $name := list "admission" "health" "metrics" }}
{{- $port := toString (int (get $.Values.ports $name)) }}
{{- with get $taken $port }}
{{- fail (printf "ports.%s=%s is also the port of %s: each needs one of its own" $name $port .) }}
{{- end }}
{{- $_ := set $taken $port (printf "ports.%s" $name) }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
{{- fail "autoscaling.minReplicas is more than autoscaling.maxReplicas" }}
{{- end }}
{{- end }}

{{- /* The rules that the replicas keep in a webhook of a configuration: an upgrade leaves them. */}}
{{- define "waddle.liveRules" -}}
{{- $name := index . 1 }}
{{- range (index . 0).webhooks }}
{{- if and (eq .name $name) .rules }}
    rules:
      {{- toYaml .rules | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}

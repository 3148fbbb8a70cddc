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

{{/* What the restricted Pod Security level asks of a pod, and of each container. */}}
{{- define "waddle.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "waddle.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

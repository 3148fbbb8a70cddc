{{- define "waddle.decisions.check" -}}
{{- range list "sidecarURL" "tls" }}
{{- if hasKey $.Values.decisions.server . }}
{{- fail (printf "decisions.server.%s is the chart's: say decisions.mode" .) }}
{{- end }}
{{- end }}
{{- if and .Values.decisions.auditReport.enabled (ne .Values.decisions.mode "sidecar") }}
{{- fail "decisions.auditReport needs decisions.mode=sidecar" }}
{{- end }}
{{- if and .Values.decisions.auditReport.enabled (not .Values.audit.enabled) }}
{{- fail "decisions.auditReport needs audit.enabled" }}
{{- end }}
{{- if and .Values.decisions.queue.persistent (ne .Values.decisions.mode "sidecar") }}
{{- fail "decisions.queue.persistent needs decisions.mode=sidecar: the exporter has a volume of its own" }}
{{- end }}
{{- end }}

{{- define "waddle.decisions.sinks" -}}
{{- $format := .Values.decisions.format }}
{{- range .Values.decisions.sinks }}
- {{- toYaml (merge (dict) . (dict "format" $format)) | nindent 2 }}
{{- end }}
{{- end }}

{{/* The sidecar of a pod: (list root "webhook" or "audit"). */}}
{{- define "waddle.decisions.sidecar" -}}
{{- $root := index . 0 }}
{{- $of := index . 1 }}
- name: decisions
  image: {{ include "waddle.image" $root | quote }}
  {{- with $root.Values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  restartPolicy: Always
  args:
    - sidecar
    - --wait
    - --config=/etc/waddle/decisions/sidecar.yaml
    {{- if and $root.Values.decisions.auditReport.enabled (eq $of "audit") }}
    - --config=/etc/waddle/audit-report/sidecar.yaml
    {{- end }}
  env:
    - name: POD_UID
      valueFrom: {fieldRef: {fieldPath: metadata.uid}}
    - {name: DECISIONS_OF, value: {{ $of }}}
    {{- with $root.Values.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - {name: decisions, containerPort: 8889, protocol: TCP}
  livenessProbe:
    httpGet: {path: /healthz, port: decisions}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  resources:
    {{- toYaml $root.Values.decisions.sidecarResources | nindent 4 }}
  securityContext:
    {{- include "waddle.containerSecurity" $root | nindent 4 }}
  volumeMounts:
    {{- if and $root.Values.decisions.auditReport.enabled (eq $of "audit") }}
    - {name: audit-report, mountPath: /reports}
    - {name: audit-report-configuration, mountPath: /etc/waddle/audit-report, readOnly: true}
    {{- end }}
    - {name: decisions-socket, mountPath: /run/waddle}
    - {name: decisions-queue, mountPath: /queue}
    - {name: decisions-configuration, mountPath: /etc/waddle/decisions, readOnly: true}
    {{- if $root.Values.decisions.sinksSecret }}
    - {name: decisions-sinks, mountPath: /etc/waddle/sinks, readOnly: true}
    {{- end }}
    {{- with $root.Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* What the server's own container mounts. */}}
{{- define "waddle.decisions.mounts" -}}
{{- if eq .Values.decisions.mode "sidecar" }}
- {name: decisions-socket, mountPath: /run/waddle}
- {name: decisions-configuration, mountPath: /etc/waddle/decisions, readOnly: true}
{{- else if eq .Values.decisions.mode "exporter" }}
- {name: decisions-configuration, mountPath: /etc/waddle/decisions, readOnly: true}
- {name: exporter-client, mountPath: /etc/waddle/exporter-client, readOnly: true}
{{- end }}
{{- end }}

{{/* A pod's volumes: (list root "webhook" or "audit"). */}}
{{- define "waddle.decisions.volumes" -}}
{{- $root := index . 0 }}
{{- $of := index . 1 }}
{{- $decisions := $root.Values.decisions }}
{{- if and $decisions.auditReport.enabled (eq $of "audit") }}
- name: audit-report
  persistentVolumeClaim: {claimName: {{ $decisions.auditReport.existingClaim | default (printf "%s-audit-report" (include "waddle.fullname" $root)) | quote }}}
- name: audit-report-configuration
  configMap: {name: {{ include "waddle.fullname" $root }}-audit-report}
{{- end }}
{{- if eq $decisions.mode "sidecar" }}
- name: decisions-queue
  {{- if $decisions.queue.persistent }}
  persistentVolumeClaim: {claimName: {{ $decisions.queue.existingClaim | default (printf "%s-decisions" (include "waddle.fullname" $root)) | quote }}}
  {{- else }}
  emptyDir: {sizeLimit: {{ toJson $decisions.queue.sizeLimit }}}
  {{- end }}
- name: decisions-socket
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: decisions-configuration
  configMap: {name: {{ include "waddle.fullname" $root }}-decisions}
{{- with $decisions.sinksSecret }}
- name: decisions-sinks
  secret: {secretName: {{ . | quote }}, optional: true, defaultMode: 0440}
{{- end }}
{{- else if eq $decisions.mode "exporter" }}
- name: decisions-configuration
  configMap: {name: {{ include "waddle.fullname" $root }}-decisions}
- name: exporter-client
  secret: {secretName: {{ $decisions.exporter.clientSecret | quote }}, optional: true, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "waddle.decisions.claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .name | quote }}
  namespace: {{ .namespace | quote }}
  labels:
    {{- .labels | nindent 4 }}
spec:
  accessModes: [{{ .mode }}]
  {{- with .storageClassName }}
  storageClassName: {{ . | quote }}
  {{- end }}
  resources:
    requests: {storage: {{ toJson .storage }}}
{{- end }}

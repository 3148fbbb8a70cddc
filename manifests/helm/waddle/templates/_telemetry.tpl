{{- define "waddle.telemetry" -}}
{{- with .Values.telemetry }}
{{- if and (or .metrics .tracing) (not .endpoint) }}
{{- fail "telemetry.endpoint is needed: the address of an OpenTelemetry collector" }}
{{- end }}
{{- if or .metrics .tracing }}
- --otlp-endpoint={{ .endpoint }}
{{- end }}
{{- if .metrics }}
- --metrics-backend=opentelemetry
- --otlp-metric-interval={{ .metricInterval }}
{{- end }}
{{- end }}
{{- end }}

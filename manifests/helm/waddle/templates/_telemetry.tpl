{{- define "waddle.telemetry" -}}
{{- if or .Values.telemetry.metrics .Values.telemetry.tracing }}
- --otlp-endpoint={{ required "telemetry.endpoint is needed: the address of an OpenTelemetry collector" .Values.telemetry.endpoint }}
{{- end }}
{{- if .Values.telemetry.metrics }}
- --metrics-backend=opentelemetry
- --otlp-metric-interval={{ .Values.telemetry.metricInterval }}
{{- end }}
{{- end }}

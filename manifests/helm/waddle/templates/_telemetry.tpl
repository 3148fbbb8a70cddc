{{- define "waddle.telemetry" -}}
{{- if or .Values.telemetry.metrics .Values.telemetry.tracing }}
- {{ required "telemetry.endpoint is needed: the address of an OpenTelemetry collector" .Values.telemetry.endpoint | printf "--otlp-endpoint=%s" | quote }}
{{- end }}
{{- if .Values.telemetry.metrics }}
- --metrics-backend=opentelemetry
- {{ printf "--otlp-metric-interval=%s" .Values.telemetry.metricInterval | quote }}
{{- end }}
{{- end }}

"""The protocol of exporter and sidecar: frames, messages, checksums. It does no I/O."""

"""What exporter and sidecar say to one another: frames, messages, checksums. It does no I/O."""

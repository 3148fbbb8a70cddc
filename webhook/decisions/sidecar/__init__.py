"""The sidecar: receives records, makes them durable, drains them to sinks.

What enters is bytes on a socket and a configuration file; what leaves is
batches of records to sinks and acknowledgements to senders. It must know
neither Kubernetes nor policies: it shares a memory limit of 40 MiB with Python
itself.
"""

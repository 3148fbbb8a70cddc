"""The sidecar: receives records, makes them durable, drains them to sinks.

Input are bytes on a socket, and a configuration file. Output are batches of records to sinks, and
acknowledgements to senders. It is independent of Kubernetes and policies: it shares a memory limit
of 40 MiB with Python itself.
"""

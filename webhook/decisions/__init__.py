"""The decision log: every decision leaves the process without delaying an admission.

The client (``exporter/``) runs in the server and imports nothing of the sidecar. The sidecar
(``sidecar/``, ``sinks/``) is a process of its own, and must import neither Kubernetes nor the
policy engine. Both share the protocol (``wire/``). With the log off nothing here is imported.
"""

"""The decision log: every decision leaves the process without delaying an admission.

The client's half (:mod:`~webhook.decisions.exporter`) runs in the server and
imports nothing of the sidecar; the sidecar's half (``sidecar/``, ``sinks/``)
is a process of its own and must import neither Kubernetes nor the policy
engine. Both share the record, the framing and the back-off. With the log off
nothing here is imported at all.
"""

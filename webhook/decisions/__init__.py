"""The decision log: every decision leaves the process without delaying an admission.

The client's half (``exporter/``) runs in the server and imports nothing of the sidecar;
the sidecar's half (``sidecar/``, ``sinks/``) is a process of its own and must import
neither Kubernetes nor the policy engine. Both share ``wire/``, what they say to one
another. With the log off nothing here is imported at all.
"""

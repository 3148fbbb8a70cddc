"""The Rego language: source text in, Python functions out.

What enters is Rego source, JSON values as decoded by orjson (``input`` and
``data``) and limits; what leaves is values of the same kind, or an error with
OPA's code and position. Nothing here knows Kubernetes, templates or HTTP, and
nothing here does I/O, except the built-ins that exist for it and are off
unless a caller hands them a transport.
"""

"""The serving certificate: read from files, made here, or kept in the cluster's Secret.

Input are pairs in PEM and the objects that keep them. Output is the TLS context of the listener.
Planning is pure; only the keeper calls the API server. This package is independent of policies.
"""

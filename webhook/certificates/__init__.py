"""The serving certificate: read from files, made here, or kept in the cluster's Secret.

Input are pairs in PEM and the objects that keep them. Output is the TLS context of the listener.
Planning is pure; only the keeper calls the API server. This package is independent of policies.

For example, three replicas find no pair in the Secret, and each makes one. The first write wins;
the other two get a conflict, and serve the first pair once the watch brings it.
"""

"""The serving certificate: read from files, made here, or kept in the cluster's Secret.

What enters are pairs in PEM and the objects that keep them, what leaves is the context that the
listener has. Planning is pure; the keeper alone asks the API server. It must not know policies.
"""

"""OCI registries: references, credentials, and a client that believes nothing that it cannot check.

It must not know policies, Kubernetes objects other than image pull secrets, or the command line.
"""

"""OCI registries: references, credentials, and a client that verifies all content.

This package must not know policies, the command line, or Kubernetes objects other than image pull
secrets.
"""

"""OCI registries: references, credentials, and a client that verifies all content.

This package must not know policies, the command line, or Kubernetes objects other than image pull
secrets.

For example, ``registry.example/policies:v1`` leads to a manifest, and the manifest's digests lead to
layers. A layer whose bytes have another digest is an error.
"""

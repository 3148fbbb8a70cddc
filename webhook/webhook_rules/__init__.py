"""Webhook configurations: the requests that the API server sends, and policies without any.

The package is pure: it takes policies and configurations as written, and returns a verdict for each
policy. It must not know files or the API server.
"""

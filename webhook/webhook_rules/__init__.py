"""Webhook configurations: the requests that the API server sends, and policies that get none.

It is pure: policies and configurations as they are written in, a verdict for each policy out. It must
not know files or the API server.
"""

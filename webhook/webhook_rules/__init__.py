"""Webhook configurations: the requests that the API server sends, and policies without any.

The package is pure: it takes policies and configurations as written, and returns a verdict for each
policy: all, some or none of its requests are sent, and which rule is missing. Where a configuration
is not known, requests are assumed to be sent. It also computes the rules that policies need. It
must not know files or the API server.

For example, a constraint matches Ingresses, and the configuration has a rule for Pods alone: none
of its requests are sent, and the missing rule is that for ``ingresses``.
"""

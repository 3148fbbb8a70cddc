"""Tests files of any format by policies of ``deny``, ``violation`` and ``warn`` rules.

The package loads, evaluates, counts and prints as github.com/open-policy-agent/conftest does. It
must not know Kubernetes, templates or a server.
"""

"""conftest's ways: policies of ``deny``, ``violation`` and ``warn`` rules over files of any format.

What is loaded, evaluated, counted and printed is as github.com/open-policy-agent/conftest does it.
It must not know Kubernetes, templates or a server.
"""

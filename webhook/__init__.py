"""Waddle: a leaderless, horizontally scaled Kubernetes admission webhook.

Other programs use ``Policies`` and ``Rego`` of :mod:`webhook.library` (``docs/library.md``), which
they import from ``waddle``.
"""

__version__ = "0.1.0"

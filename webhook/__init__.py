"""Waddle: a leaderless, horizontally scaled Kubernetes admission webhook."""

__version__ = "0.1.0"

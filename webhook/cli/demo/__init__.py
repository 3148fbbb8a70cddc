"""waddle demo: a control plane, replicas, a balancer and traffic, as in an installation.

This package makes no decisions: each part is a command of this program, run as its own process.
"""

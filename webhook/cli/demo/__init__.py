"""waddle demo: a control plane, replicas, a balancer and traffic, put together as an installation would.

Nothing here decides: each part is a command of this program, run as a process of its own.
"""

"""Policy in: what the cluster holds becomes snapshots, and statuses say so.

What enters is objects as watches deliver them; what leaves is changes of a
:class:`~webhook.constraint.client.Client`, observations for readiness, and the
status objects that this replica should have. Deciding is apart from I/O: nothing
that decides here awaits anything.
"""

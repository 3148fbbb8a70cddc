"""What replicas say of policies, and what the policies' own statuses say of that.

A replica writes statuses of its own (``status_writers``); ``aggregation`` copies all replicas'
statuses into ``status.byPod`` and keeps conditions, roll-outs and audits beside them.
"""

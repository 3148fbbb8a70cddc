"""Statuses: each replica's own statuses of policies, and their sum in the policies' statuses.

A replica writes statuses of its own (``status_writers``). ``aggregation`` copies all replicas'
statuses into ``status.byPod``, and keeps conditions, roll-outs and audits beside them.
"""

"""Statuses: each replica's own about policies, and the policies' statuses that sum these up.

A replica writes statuses of its own (``status_writers``); ``aggregation`` copies all replicas'
statuses into ``status.byPod`` and keeps conditions, roll-outs and audits beside them.
"""

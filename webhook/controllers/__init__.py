"""Turns policies of the cluster into snapshots, and reports them in statuses.

Input are objects from watches. Output are changes of a :class:`~webhook.constraint.client.Client`,
observations for readiness, and the desired status objects of this replica. Decisions are separate
from I/O: no function that decides awaits.

For example, a new ConstraintTemplate becomes a new snapshot, an observation that readiness waited
for, and a ConstraintTemplatePodStatus of this replica.
"""

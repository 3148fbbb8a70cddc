"""Finds the set of paths that an evaluation can read, from a policy, without running it.

Both languages are interpreted over abstract values (:mod:`webhook.reads.abstract`): a value is the
places of the input or of data that it may be, or what a policy made of them. What a policy looks at
is recorded, and frozen into a :class:`~webhook.reads.read_set.ReadSet`. Two inputs that agree in it
have the same result: ``evaluate(x) == evaluate(reads.project(x))``.
"""

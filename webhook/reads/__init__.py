"""Finds the paths that a policy's evaluation can read, without running the policy.

Rego and CEL are interpreted over abstract values (:mod:`webhook.reads.abstract`). An abstract value
is a set of places in the input or data, or a value that the policy made from them. Each read is
recorded; the record is frozen into a :class:`~webhook.reads.read_set.ReadSet`. Two inputs that
agree in the read set have the same result: ``evaluate(x) == evaluate(reads.project(x))``. Of a text
that is only tested, they need to agree in the results of these tests
(:mod:`webhook.reads.text_tests`).
"""

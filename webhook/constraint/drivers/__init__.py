"""The drivers: the policy languages that templates may be written in.

A driver compiles the source of a template to an evaluator, which gets a constraint's parameters and
a review, and returns violations: ``rego`` by the rule ``violation``, ``cel`` by ``validations``.
"""

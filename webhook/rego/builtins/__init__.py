"""Rego's built-ins, one module per family, each registered by name in the registry.

A built-in is a Python function of Rego values. Apart from its
:class:`~webhook.rego.builtins.registry.Context` it must be pure, and it must not change its
operands. It raises :class:`~webhook.rego.errors.BuiltinError` if it has no answer.
"""

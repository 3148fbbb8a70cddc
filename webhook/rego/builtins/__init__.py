"""Rego's built-ins, one module a family, each registered by name in the registry.

A built-in is a Python function of Rego values. It must be pure but for what its
:class:`~webhook.rego.builtins.registry.Context` hands it, must not change its
operands, and raises :class:`~webhook.rego.errors.BuiltinError` for what it
cannot answer.
"""

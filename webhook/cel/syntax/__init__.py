"""The syntax of CEL: tokens, grammar, macros and tree.

For example, ``xs.all(x, x > 1)`` becomes a :class:`~webhook.cel.syntax.ast.Fold` over ``xs``.
"""

"""The fast form of CEL: Python functions that are exact whenever they return.

After any exception the exact form (:mod:`webhook.cel.exact.evaluator`) evaluates the expression.
So ``a && b`` is Python's ``a and b``: if ``a`` fails, the exact form decides.
"""

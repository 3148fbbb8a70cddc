"""The exact evaluation of CEL, node by node, with the errors and costs of cel-go.

``evaluator`` builds a function for each node: ``a && b`` evaluates ``b`` even if ``a`` fails, and
has no error if ``b`` is false.
"""

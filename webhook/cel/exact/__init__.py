"""The meaning of CEL: an expression is evaluated node by node, with its errors and its costs."""

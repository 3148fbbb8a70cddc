"""The exact evaluation of CEL, node by node, with the errors and costs of cel-go."""

"""The syntax of CEL: tokens, grammar, macros and tree."""

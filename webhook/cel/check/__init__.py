"""Types of expressions: declarations, overloads, unification."""

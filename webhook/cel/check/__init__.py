"""Types of expressions: declarations, overloads, unification.

For example, ``object.replicas < 3`` has the type bool where ``replicas`` is an int, and no matching
overload where it is a string.
"""

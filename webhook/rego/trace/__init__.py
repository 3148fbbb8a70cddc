"""How a query is evaluated, step by step: for explanations, coverage and profiles.

Answers come from generated code; this evaluates the same checked rules once more, as OPA's
evaluator does, and says of each step that it was taken.
"""

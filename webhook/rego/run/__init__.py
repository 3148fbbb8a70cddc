"""Runtime of generated code: values, numbers and texts, limits, and the steps that it calls.

For example, ``input.xs[_] > 1`` becomes a Python loop over the values of ``input["xs"]``; ``compare``
orders two of any types, and the context is charged for the turns of the loop.
"""

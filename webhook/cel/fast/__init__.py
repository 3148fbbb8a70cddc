"""The fast form of CEL: Python functions that are exact whenever they return.

Where one raises, whatever comes, the exact form (:mod:`webhook.cel.exact.evaluator`) is asked.
"""

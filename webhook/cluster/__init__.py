"""The client of the API server.

Input: paths, JSON bodies and kinds to watch. Output: JSON objects as dicts, ordered changes of a
kind, and :class:`~webhook.cluster.errors.ApiError`. It knows no policies. Everything runs on the
event loop of one thread.
"""

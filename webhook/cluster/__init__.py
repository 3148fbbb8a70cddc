"""The only door to the API server.

In go paths, JSON bodies and the intent to watch a kind; out come raw JSON
objects as dicts, changes of a kind in order, and :class:`~webhook.cluster.errors.ApiError`.
Nothing here knows policies. Everything runs on the event loop of one thread.
"""

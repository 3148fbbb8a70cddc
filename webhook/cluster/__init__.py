"""The client of the API server.

Input: paths, JSON bodies and kinds to watch. Output: JSON objects as dicts, ordered changes of a
kind, and :class:`~webhook.cluster.errors.ApiError`. It knows no policies. Everything runs on the
event loop of one thread.

For example, a Pod is deleted while a watch is interrupted. The new watch is answered with 410, so
the kind is listed again, and the Pod that is missing in the list comes out as deleted.
"""

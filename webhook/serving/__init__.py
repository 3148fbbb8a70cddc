"""Serves a revision: the values that loader, admission and audit share.

A loader puts a whole ``Revision`` into ``Serving.revision``, and each request reads that reference
once: neither waits for the other. It must not know where policies come from, nor who asks.

>>> from webhook.serving.revision import Serving
>>> Serving().revision is None
True
"""

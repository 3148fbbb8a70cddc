"""The revision in force: values that loader, admission and audit share.

A loader assigns a whole ``Revision`` to ``Serving.revision``, and each request reads that reference
once, so neither waits for the other. It must not know where policies come from.

>>> from webhook.serving.revision import Serving
>>> Serving().revision is None
True
"""

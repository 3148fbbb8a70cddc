"""Metrics; each is declared once, in the module of its subject.

A new metric needs only a declaration: :mod:`webhook.metrics.exposition` finds it, and adds it to
``/metrics`` and ``docs/metrics.md``. Labels have only bounded values: fixed words, and names of
kinds and constraints (checked names, with a limit of their number). They never hold free text. The
package must not know any other.

>>> from webhook.metrics.admission import SLOW_REVIEWS
>>> from webhook.metrics.registry import Registry
>>> Registry().count(SLOW_REVIEWS)
"""

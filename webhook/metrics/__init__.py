"""Metrics: each is declared once, in the module of its subject.

A declaration is all that a new metric takes: :mod:`webhook.metrics.exposition` finds it, and
``/metrics`` and ``docs/metrics.md`` have it from there. Labels hold only what cannot grow without
bound: fixed words, and names of kinds and constraints (checked names, with a cap on their
number). Never text. It must not know what anything else is.

>>> from webhook.metrics.admission import SLOW_REVIEWS
>>> from webhook.metrics.registry import Registry
>>> Registry().count(SLOW_REVIEWS)
"""

"""Imports every module of the library, so that its functions are registered.

This module registers conversions, and the getters of timestamps and durations.
"""

from functools import partial

from webhook.cel.library import (  # noqa: F401  # each registers its functions
    authorizers,
    formats,
    formatting,
    lists,
    networks,
    optionals,
    quantities,
    regex,
    semvers,
    strings,
    urls,
)
from webhook.cel.library.registry import direct, form, invoke, is_function, narrowed
from webhook.cel.run import times
from webhook.cel.run.conversions import CONVERSIONS
from webhook.cel.run.values import Duration, Timestamp

for _name, _conversion in CONVERSIONS.items():
    form(_name, None)(_conversion)
for _name in times.PARTS:
    form(_name, Timestamp)(partial(times.part, _name))
    form(_name, Timestamp, str)(partial(times.part, _name))
for _name in times.IS_SPAN:
    form(_name, Duration)(partial(times.span, _name))

__all__ = ["direct", "invoke", "is_function", "narrowed"]

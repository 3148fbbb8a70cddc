"""Every module of the library: imported, so that its functions are registered."""

from webhook.cel.library import (
    formats,
    formatting,
    lists,
    moments,
    networks,
    optionals,
    quantities,
    regex,
    semvers,
    strings,
    urls,
)
from webhook.cel.library.registry import direct, form, invoke, is_function, narrowed
from webhook.cel.run.conversions import CONVERSIONS

MODULES = (
    formats,
    formatting,
    lists,
    moments,
    networks,
    optionals,
    quantities,
    regex,
    semvers,
    strings,
    urls,
)
"""Each with the functions of one kind of value."""

for _name, _conversion in CONVERSIONS.items():
    form(_name, None)(_conversion)

__all__ = ["direct", "invoke", "is_function", "narrowed"]

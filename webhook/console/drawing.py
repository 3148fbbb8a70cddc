"""Draws documents as HTML: escapes every value, and makes all links in one place."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from webhook import __version__
from webhook.api.encoding import encode
from webhook.api.timestamp import seconds_of, text_of
from webhook.console.picture import CATEGORIES
from webhook.printable import quantity

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


# The templates escape HTML (autoescape). Right-to-left names are shown as they are, isolated by
# `<bdi>`. Characters that change the direction of surrounding text are written out.
def visible(value: Any) -> Any:
    """Returns a text with control characters written out, None as "", other values unchanged."""
    if value is None:
        return ""
    if type(value) is str and _UNSAFE.search(value):
        return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
    return value


def link(root: str, path: str, **parameters: Any) -> str:
    """Returns a path below ``root`` with a query; leaves out empty parameters."""
    query = {name: value for name, value in parameters.items() if value not in ("", None)}
    text = urlencode(query, errors="surrogatepass") if query else ""
    return f"{root}{path}?{text}" if text else f"{root}{path}"


_FOLDER: Final = Path(__file__).parent / "templates"

NAVIGATION: Final = (
    ("/", "Overview"),
    ("/policies", "Policies"),
    ("/violations", "Violations"),
    ("/exceptions", "Exceptions"),
    ("/decisions", "Decisions"),
    ("/rollouts", "Roll-outs"),
    ("/playground", "Playground"),
    ("/health", "Health"),
)


class Drawing:
    """The HTML templates, read once, for pages below ``root``."""

    def __init__(self, environment: type[Environment] = Environment, root: str = "") -> None:
        self._environment = environment(
            loader=FileSystemLoader(_FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=visible,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(tojson_text=_as_json, zip=zip, age=age, minute=minute)
        self._environment.globals.update(
            link=partial(link, root),
            quantity=quantity,
            shares=shares,
            version=__version__,
            categories=CATEGORIES,
        )

    def page(self, name: str, path: str, around: Mapping[str, Any], document: Any) -> str:
        """Returns a page; ``around`` is its frame (see :func:`webhook.console.application`)."""
        template = self._environment.get_template(f"{name}.html")
        return template.render(doc=document, around=around, path=path, navigation=NAVIGATION)


def age(since: str) -> str:
    """Returns the time since ``since``, in the largest unit that it fills."""
    seconds = max(0, int(time.time() - seconds_of(since)))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def minute(number: int) -> str:
    """Returns a minute, counted since 1970, in the form of a timestamp's beginning."""
    return text_of(number * 60)[:16]


def shares(numbers: Iterable[int]) -> list[float]:
    """Returns the lengths of bars, in percent of the longest."""
    listed = list(numbers)
    most = max(listed) or 1
    return [round(100 * number / most, 2) for number in listed]


def _as_json(value: Any) -> str:
    return encode(value, indent=True).decode("utf-8", "replace")

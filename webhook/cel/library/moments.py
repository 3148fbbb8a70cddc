"""Parts of times and durations."""

from __future__ import annotations

from functools import partial

from webhook.cel.library.registry import form
from webhook.cel.run import times
from webhook.cel.run.values import Duration, Timestamp


def _register() -> None:
    for name in times.PARTS:
        form(name, Timestamp)(partial(times.part, name))
        form(name, Timestamp, str)(partial(times.part, name))
    for name in times.IS_SPAN:
        form(name, Duration)(partial(times.span, name))


_register()

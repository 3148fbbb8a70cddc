"""``/debug/pprof``: samples the stacks of the threads that evaluate.

Python has no pprof format of its own. A profile consists of folded stacks, one line each with its
count, which flame graph tools read.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import Counter
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from types import FrameType

    from starlette.requests import Request

SLOW_REVIEWS: Final = "slow-reviews"
"""The name of the thread that carries on with reviews too slow for the main one."""

SAMPLE_SECONDS: Final = 0.005
PROFILE_SECONDS: Final = 30
"""The default of Go's pprof."""

PROFILE_SECONDS_MAX: Final = 300

_INDEX: Final = """\
/debug/pprof/profile?seconds=30   folded stacks of admission and slow reviews, with counts
/debug/pprof/goroutine            the stack of every thread, now
"""


def folded(frame: FrameType | None) -> str:
    """Returns a stack as one line, the outermost call first."""
    names: list[str] = []
    while frame is not None:
        code = frame.f_code
        line = frame.f_lineno or code.co_firstlineno  # code of policies has no lines
        names.append(f"{code.co_qualname} ({code.co_filename}:{line})")
        frame = frame.f_back
    return ";".join(reversed(names))


def stacks() -> str:
    """Returns the stack of every thread."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"{names.get(number, number)}:\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sys._current_frames().items()  # noqa: SLF001  # no public function lists them
    )


async def profile(seconds: float) -> str:
    """Returns folded stacks of the threads that evaluate policies, each with its count.

    The main thread answers admissions; other threads run slow reviews.
    """
    main = threading.main_thread()
    seen: Counter[str] = Counter()
    for _ in range(max(1, int(seconds / SAMPLE_SECONDS))):
        frames = sys._current_frames()  # noqa: SLF001  # no public function reads another thread's frame
        for thread in threading.enumerate():
            if thread is main or thread.name.startswith(SLOW_REVIEWS):
                seen[folded(frames.get(thread.ident or 0))] += 1
        await asyncio.sleep(SAMPLE_SECONDS)
    return "".join(f"{stack} {count}\n" for stack, count in seen.most_common())


def make_profiling_application() -> Starlette:
    """Returns the application of the profiling port."""

    async def index(_request: Request) -> Response:
        return PlainTextResponse(_INDEX)

    async def goroutine(_request: Request) -> Response:
        return PlainTextResponse(stacks())

    async def sampled(request: Request) -> Response:
        text = request.query_params.get("seconds", str(PROFILE_SECONDS))
        if not (text.isascii() and text.isdigit() and 0 < int(text) <= PROFILE_SECONDS_MAX):
            message = f"seconds must be between 1 and {PROFILE_SECONDS_MAX}\n"
            return PlainTextResponse(message, 400)
        return PlainTextResponse(await profile(int(text)))

    return Starlette(
        routes=[
            Route("/debug/pprof/", index),
            Route("/debug/pprof/profile", sampled),
            Route("/debug/pprof/goroutine", goroutine),
        ]
    )

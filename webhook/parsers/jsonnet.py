"""Evaluates Jsonnet by its own library, which the extra ``jsonnet`` installs.

One line of Jsonnet can use all memory, and the library then ends its process. So it runs in a
process of its own with limits by the system.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from typing import Any, Final

from webhook.extras import install_command
from webhook.parsers import json_text
from webhook.parsers.errors import ParseError

MEMORY_MAX: Final = 512 << 20
"""The address space of an evaluation; the largest libraries of dashboards take some 100 MiB."""

PROCESSOR_SECONDS_MAX: Final = 10
"""The processor time of an evaluation; the largest libraries of dashboards take two or three."""

_WAITED_MAX: Final = 120.0
"""The wall-clock limit of an evaluation in seconds, for one without processor time or waiting for a
file."""

_PLACE: Final = re.compile(r":(\d+):\d+")
_STACK_MAX: Final = 500
"""The most frames of an evaluation, as in Jsonnet's own command."""


def parse(raw: bytes, path: str = "") -> Any:
    """Evaluates the program; imports are relative to its folder, or to the current one."""
    if find_spec("_jsonnet") is None:
        raise ParseError(
            f"Jsonnet is read by a library that is not installed: {install_command('jsonnet')}"
        )
    try:
        done = subprocess.run(  # noqa: S603  # this interpreter, without a shell
            [sys.executable, "-P", "-m", __name__, path],
            input=raw,
            capture_output=True,
            timeout=_WAITED_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _fault(f"no answer within {_WAITED_MAX:.0f} s") from None
    if done.returncode:
        raise _fault(
            f"ended beyond {MEMORY_MAX >> 20} MiB of memory or {PROCESSOR_SECONDS_MAX} s of "
            "processor time"
        )
    answer = json.loads(done.stdout)
    if "written" in answer:
        return json_text.decode(answer["written"])
    message = answer["fault"].split("\n")[0]
    match = _PLACE.search(message)
    raise _fault(message, int(match[1]) if match else 0)


def _fault(message: str, line: int = 0) -> ParseError:
    return ParseError(f"evaluate anonymous snippet: {message}", line)


def _evaluate(raw: bytes, path: str) -> dict[str, str]:
    import _jsonnet  # noqa: PLC0415  # an extra

    try:
        return {
            "written": _jsonnet.evaluate_snippet(
                path or "-",
                raw.decode("utf-8", "replace"),
                jpathdir=["."],
                max_stack=_STACK_MAX,
            )
        }
    except (RuntimeError, ValueError) as error:
        return {"fault": str(error)}


def _main() -> None:
    """Evaluates standard input within the limits; prints the answer as JSON."""
    with contextlib.suppress(ImportError):  # Windows lacks these limits; the wall clock's remains
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS_MAX, PROCESSOR_SECONDS_MAX))
    json.dump(_evaluate(sys.stdin.buffer.read(), sys.argv[1]), sys.stdout)


if __name__ == "__main__":
    _main()

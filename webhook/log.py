"""The log: one JSON object a line, with the keys of Gatekeeper's (zap's) log.

Every line has ``level``, ``ts`` (seconds since 1970), ``logger`` and ``msg``. A terminal gets
words: time, level, message and fields, with multi-line fields below. Text of users and policies is
data: control characters of terminals are escaped, including C1 controls and line separators, which
JSON allows.

structlog filters, binds and chains; the format of a line and the write are Waddle's. Any thread may
log: one write has a whole line, and no caller waits for a reader.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import select
import stat
import sys
import threading
import time
import traceback
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson
import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence

    from structlog.typing import FilteringBoundLogger

LEVELS: Final = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40}

# DEL, the C1 controls, U+2028 and U+2029, which some readers take for line ends, and controls of
# the writing direction: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+206F.
_UNSAFE: Final = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xaf]"
)

_OPTIONS: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


def _escaped(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(match.group().decode())


def one_line(line: bytes) -> bytes:
    """Returns a line of JSON with escapes for characters that break or reorder displayed lines."""
    return line if line.isascii() and b"\x7f" not in line else _UNSAFE.sub(_escaped, line)


EVENT_BYTES: Final = 1024
"""The approximate size of an event without its message, in bytes."""

LINE_BYTES_MAX: Final = 64 * 1024
"""The longest line, in bytes. Container runtimes split at 16 KiB and join again; collectors
commonly take at most 256 KiB. Texts of users and policies would otherwise be unbounded."""

TEXT_CHARACTERS_MAX: Final = 4096
"""The longest text in a line that would be too long."""


def encode_line(event: dict[str, Any]) -> bytes:
    """Returns one event as a single line of bounded length, for any content."""
    for value in event.values():
        if type(value) is str and len(value) > LINE_BYTES_MAX:
            event = _shortened(event)
            break
    line = _encode(event)
    if len(line) > LINE_BYTES_MAX:
        line = _encode(_shortened(event))
        if len(line) > LINE_BYTES_MAX:
            line = _encode(_shortened(event, 256, drop=True))
    return one_line(line)


def _encode(event: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(event, default=_plain, option=_OPTIONS)
    except (TypeError, RecursionError):
        # Lone surrogates, integers beyond 64 bits, nesting beyond orjson's limit.
        return _encode_slowly(event)


_PLAIN: Final = re.compile(r"[\w./:@%+-]+")
"""The words that need no quotes."""

_WORDS_FIRST: Final = ("level", "ts", "logger", "msg")


def words_line(event: dict[str, Any]) -> bytes:
    """Returns one event, keyed as JSON's lines are by default, as a line for people.

    A multi-line field is in lines of its own below, so that its position marks align. Control
    characters are escaped, as in JSON: text of policies and users is data.
    """
    moment = time.strftime("%H:%M:%S", time.localtime(event["ts"]))
    words = [moment, event["level"].upper().ljust(7), event["msg"]]
    below = b""
    for key, value in event.items():
        if type(value) is str and "\n" in value and key not in _WORDS_FIRST:
            below += _lines_below(key, value)
        elif key not in _WORDS_FIRST:
            words.append(f" {key}={_word(value)}")
    line = _CONTROLS.sub(b" ", " ".join(words).encode(errors="replace")) + below
    return one_line(line[:LINE_BYTES_MAX]) + b"\n"


_CONTROLS: Final = re.compile(rb"[\x00-\x1f]+")
"""Control characters of a message; JSON escapes those of fields."""

_INDENT: Final = "\n    "
"""The indent of each line of a multi-line field: no such line can pass for an event."""


def _lines_below(key: str, value: str) -> bytes:
    """Returns a multi-line field unchanged, so that position marks stay below their columns."""
    shown = _INDENT.join([f"{key}:", *(line.expandtabs(4) for line in value.split("\n"))])
    text = (_INDENT + shown).encode(errors="replace")
    return b"\n".join(_CONTROLS.sub(_written_out, line) for line in text.split(b"\n"))


def _written_out(controls: re.Match[bytes]) -> bytes:
    return b"".join(b"\\u%04x" % code for code in controls.group())


def _word(value: Any) -> str:
    if type(value) is str and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _shortened(
    event: dict[str, Any], characters: int = TEXT_CHARACTERS_MAX, *, drop: bool = False
) -> dict[str, Any]:
    """Returns an event with long texts cut; with ``drop`` only texts and numbers stay."""
    shortened: dict[str, Any] = {}
    for name, value in event.items():
        shown = value
        if type(value) is str and len(value) > characters:
            shown = value[:characters] + "…"
        elif drop and not isinstance(value, str | int | float | None):
            shown = "…"
        shortened[name] = shown
    shortened["truncated"] = True
    return dict(list(shortened.items())[:100]) if drop else shortened


def _encode_slowly(event: dict[str, Any]) -> bytes:
    try:
        return json.dumps(event, default=_plain).encode() + b"\n"
    except (TypeError, ValueError, RecursionError):
        shallow = {
            key: value if type(value) is str else repr(type(value)) for key, value in event.items()
        }
        return json.dumps(shallow).encode() + b"\n"


def _plain(value: object) -> Any:
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return repr(value)


Form: TypeAlias = "Callable[[], list[bytes]]"
"""A function that formats earlier events as lines."""

WriteLater: TypeAlias = "Callable[[Form, int], bool]"
"""Schedules formatting and writing in another thread; False without room for so many bytes."""


class _Lines:
    """The end of structlog's chain: it writes whole lines."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self.debug = self.info = self.warning = self.error = write


class Log:
    """The destination of events, and their lowest level."""

    __slots__ = (
        *("_capital", "_form", "_level_key", "_root", "_write", "_write_later", "level"),
        "take_dropped",
    )

    def __init__(
        self,
        write: Callable[[bytes], object],
        *,
        level: str = "INFO",
        level_key: str = "level",
        encoder: str = "lower",
        words: bool = False,
        write_later: WriteLater | None = None,
    ) -> None:
        """With ``words`` lines are for people, and only then :meth:`say` writes.

        ``write_later`` takes lines for which this thread must not wait.
        """
        self.level = LEVELS[level]
        self._write = write
        self._write_later = write_later
        self.take_dropped: Callable[[], int] = lambda: 0
        """Returns the number of lines dropped since the last call."""
        self._form = words_line if words else encode_line
        self._level_key = "level" if words else level_key
        self._capital = encoder == "capital"
        self._root: FilteringBoundLogger = structlog.wrap_logger(
            _Lines(write),
            processors=[self._line],
            wrapper_class=structlog.make_filtering_bound_logger(self.level),
            context_class=dict,
            cache_logger_on_first_use=True,
        ).bind()

    def logger(self, name: str, **fields: Any) -> Logger:
        """Returns a logger with a name and fields that each of its events carries."""
        return Logger(self._root.bind(logger=name, **fields), self)

    def write_all(self, level: str, events: Sequence[dict[str, Any]], *, keeps: bool) -> None:
        """Writes many events of the present moment; the log's own thread does so if it has room.

        A hundred took the caller 3 ms, and each write released the interpreter. With ``keeps`` that
        thread formats the lines, too, and keeps references to the values.
        """
        if LEVELS[level.upper()] < self.level or not events:
            return
        moment = time.time()

        def form() -> list[bytes]:
            return list(_pieces([self._formed(moment, level, event) for event in events]))

        if keeps:
            size = sum(EVENT_BYTES + len(event["event"]) for event in events)
        else:
            pieces = form()
            size = sum(map(len, pieces))
        make = form if keeps else lambda: pieces
        if self._write_later is None or not self._write_later(make, size):
            for piece in make():
                self._write(piece)

    @property
    def is_words(self) -> bool:
        """Whether people read it as it is written."""
        return self._form is words_line

    def say(self, text: str) -> None:
        """Writes a text for people that is no event; JSON logs omit it."""
        if self.is_words:
            self._write(text.encode(errors="replace") + b"\n")

    def _line(self, _: object, level: str, event: MutableMapping[str, Any]) -> bytes:
        return self._formed(time.time(), level, event)

    def _formed(self, moment: float, level: str, event: MutableMapping[str, Any]) -> bytes:
        """Returns an event in zap's order: level, time, logger and message first."""
        first = {
            self._level_key: level.upper() if self._capital else level,
            "ts": moment,
            "logger": event.pop("logger"),
            "msg": event.pop("event"),
        }
        return self._form(first | dict(event))


def _pieces(lines: list[bytes]) -> Iterator[bytes]:
    """Yields joined lines, as long as a pipe accepts them in one write."""
    piece: list[bytes] = []
    size = 0
    for line in lines:
        if piece and size + len(line) > select.PIPE_BUF:
            yield b"".join(piece)
            piece, size = [], 0
        piece.append(line)
        size += len(line)
    if piece:
        yield b"".join(piece)


class Logger:
    """A named source of events."""

    __slots__ = ("_bound", "_log", "debug", "error", "info", "warning")

    def __init__(self, bound: FilteringBoundLogger, log: Log) -> None:
        """Each level takes the message and the event's fields.

        ``debug`` is for developers; ``info`` is of possible interest to an operator, ``warning``
        deserves attention, ``error`` needs action.
        """
        self._bound = bound
        self._log = log
        self.debug = bound.debug
        self.info = bound.info
        self.warning = bound.warning
        self.error = bound.error

    def log(self, level: int, message: str, **fields: Any) -> None:
        """An event of a level by number."""
        self._bound.log(level, message, **fields)

    def info_all(self, events: Sequence[Mapping[str, Any]], *, keeps: bool) -> None:
        """Logs many events with their messages as ``message``; see :meth:`Log.write_all`."""
        context = structlog.get_context(self._bound)
        renamed = []
        for fields in events:
            event = {**context, **fields}
            event["event"] = event.pop("message")
            renamed.append(event)
        self._log.write_all("info", renamed, keeps=keeps)

    def fault(self, message: str, error: BaseException, **fields: Any) -> None:
        """Logs a fault with its exception and traceback, each in one field."""
        self.error(
            message,
            error=f"{type(error).__name__}: {error}",
            stacktrace="".join(traceback.format_exception(error)),
            **fields,
        )


class StandardHandler(logging.Handler):
    """Converts log records of libraries (uvicorn, asyncio) to the same format."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a library's record."""
        level = max(10, min(40, record.levelno // 10 * 10))
        fields: dict[str, Any] = {}
        if record.exc_info and record.exc_info[1] is not None:
            fields["stacktrace"] = "".join(traceback.format_exception(record.exc_info[1]))
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        self._log.logger(record.name).log(level, message, **fields)


def adopt_standard_logging(log: Log) -> None:
    """Sends all records of :mod:`logging` to this log, warnings and up."""
    root = logging.root
    root.handlers[:] = [StandardHandler(log)]
    root.setLevel(max(log.level, logging.WARNING))


def open_log(
    path: str = "",
    *,
    level: str = "INFO",
    level_key: str = "level",
    encoder: str = "lower",
    form: str = "json",
) -> Log:
    """Opens a log on standard error, or appends to a file; raises OSError.

    ``form`` is ``json``, ``words``, or ``auto``: words on a terminal.
    """
    words = form == "words" or (form == "auto" and not path and sys.stderr.isatty())
    if path:
        number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    else:
        number = sys.stderr.fileno()
    writer = Writer(number)
    log = Log(
        writer.write,
        level=level,
        level_key=level_key,
        encoder=encoder,
        words=words,
        write_later=writer.write_later,
    )
    logger = log.logger("log")
    writer.notify = lambda lines: logger.warning(
        "lines of the log were dropped: nobody read them in time", lines=lines
    )
    log.take_dropped = writer.take_dropped
    return log


QUEUED_BYTES_MAX: Final = 4 << 20
"""The most queued bytes for a slow reader; further lines are dropped."""

END_SECONDS: Final = 2.0
"""The time that a process which ends waits for the reader of its log, in seconds."""


class Writer:
    """Writes whole lines to a file without waiting for the reader.

    Lines that the file accepts are written at once. Others wait in a bounded queue for a thread,
    which the first such line starts. Any thread may write. That thread also formats lines of many
    events, for callers that must not wait.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._is_file = stat.S_ISREG(os.fstat(number).st_mode)
        self._changed = threading.Condition(threading.RLock())  # a signal's handler may log
        self._queue: deque[tuple[Form, int]] = deque()
        """Lines or functions that format them, with their approximate size in bytes."""
        self._queued_bytes = 0
        self._dropped = self._unreported = 0
        self._thread: threading.Thread | None = None
        self.notify: Callable[[int], object] = lambda _: None
        """Receives the number of dropped lines when there is room again."""

    def write(self, lines: bytes) -> None:
        """Write, or queue, or drop."""
        with self._changed:
            if not self._queue and self._takes(len(lines)):
                self._out(lines)
            elif self._queued_bytes + len(lines) > QUEUED_BYTES_MAX:
                self._dropped += lines.count(b"\n")
                self._unreported += lines.count(b"\n")
            else:
                self._put(lambda: [lines], len(lines))

    def write_later(self, form: Form, size: int) -> bool:
        """Schedules formatting and writing; returns False without room for about so many bytes."""
        with self._changed:
            if self._queued_bytes + size > QUEUED_BYTES_MAX:
                return False
            self._put(form, size)
            return True

    def _put(self, form: Form, size: int) -> None:
        self._queue.append((form, size))
        self._queued_bytes += size
        self._begin()
        self._changed.notify_all()

    def take_dropped(self) -> int:
        """Returns the number of lines dropped since the last call."""
        with self._changed:
            dropped, self._dropped = self._dropped, 0
        return dropped

    def drain(self, seconds: float = END_SECONDS) -> bool:
        """Waits for the queue; returns whether everything was written."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue, seconds)

    def _takes(self, size: int) -> bool:
        """Returns whether a write would not block: a writable pipe accepts so much."""
        if self._is_file or not hasattr(select, "poll"):  # as on Windows
            return True
        if size > select.PIPE_BUF:
            return False
        ready = select.poll()
        ready.register(self._number, select.POLLOUT)
        return bool(ready.poll(0))

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._carry, name="log", daemon=True)
            self._thread.start()
            atexit.register(self.drain)

    def _carry(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._queue))
                form, size = self._queue[0]
            for lines in form():
                self._out(lines)
            del form  # A thread that waits must not keep events.
            with self._changed:
                self._queue.popleft()
                self._queued_bytes -= size
                unreported = 0 if self._queue else self._unreported
                self._unreported -= unreported
                self._changed.notify_all()
            if unreported:
                self.notify(unreported)

    def _out(self, lines: bytes) -> None:
        view = memoryview(lines)
        while view:
            try:
                view = view[os.write(self._number, view) :]
            except OSError:
                # A log that cannot be written (disk full, reader gone) must not stop a decision.
                return

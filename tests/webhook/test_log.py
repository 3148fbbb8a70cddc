"""Lines of the log: one event each, whatever it holds."""

import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS, until
from webhook.log import (
    EVENT_BYTES,
    QUEUED_BYTES_MAX,
    Log,
    StandardHandler,
    Writer,
    encode_line,
    open_log,
)


class Lines:
    """Keeps what is logged."""

    def __init__(self, **options: Any) -> None:
        self.raw: list[bytes] = []
        self.log = Log(self.raw.append, **options)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Returns the decoded log lines."""
        return [json.loads(line) for line in self.raw]


def test_an_event_has_zap_s_fields_first() -> None:
    lines = Lines()
    lines.log.logger("webhook", hookType="validation").info("hello", answer=42)
    event = lines.events[0]
    assert list(event) == ["level", "ts", "logger", "msg", "hookType", "answer"]
    assert (event["level"], event["logger"], event["msg"]) == ("info", "webhook", "hello")
    assert event["ts"] > 1.6e9


@pytest.mark.parametrize(
    ("level", "expected"),
    [("DEBUG", 4), ("INFO", 3), ("WARNING", 2), ("ERROR", 1)],
)
def test_lower_levels_are_left_out(level: str, expected: int) -> None:
    lines = Lines(level=level)
    log = lines.log.logger("x")
    log.debug("a")
    log.info("a")
    log.warning("a")
    log.error("a")
    assert len(lines.raw) == expected


def test_the_level_s_key_and_spelling_can_be_chosen() -> None:
    lines = Lines(level_key="severity", encoder="capital")
    lines.log.logger("x").warning("a")
    assert lines.events[0]["severity"] == "WARNING"


HOSTILE = "\x00\x07\x1b[31m\n\r\x7f\x85\x9b\u2028\u2029\u061c\u200e\u202e\u2066\u206f"


@pytest.mark.parametrize("fault", [HOSTILE.replace("\n", ""), HOSTILE])
def test_words_are_one_event_whatever_they_hold(fault: str) -> None:
    lines = Lines(words=True)
    lines.log.logger("x").error(f"it {HOSTILE} broke", fault=fault, count=3, where="a/b.yaml:1")
    (written,) = lines.raw
    line, *below = written.decode().removesuffix("\n").split("\n")
    assert line.endswith(" count=3  where=a/b.yaml:1")
    assert " ERROR   it " in line
    assert all(one.isprintable() for one in (line, *below))
    assert "".join((line, *below)).count("\\u202e") == 2
    assert len(below) == (3 if "\n" in fault else 0)
    assert all(one.startswith("    ") for one in below), "none is taken for an event"


def test_words_of_several_lines_keep_a_mark_below_what_it_is_about() -> None:
    lines = Lines(words=True)
    lines.log.logger("x").error("refused", fault="a.yaml:1: no rule\n\tp { q\n\t  ^")
    (written,) = lines.raw
    assert written.decode().partition("\n")[2] == (
        "    fault:\n    a.yaml:1: no rule\n        p { q\n          ^\n"
    )


def test_only_people_are_informed_what_is_no_event() -> None:
    people, program = Lines(words=True), Lines()
    for lines in (people, program):
        lines.log.say("hello")
    assert people.raw == [b"hello\n"]
    assert program.raw == []


def test_no_character_of_a_text_ends_a_line_or_commands_a_terminal() -> None:
    line = encode_line({"msg": HOSTILE, HOSTILE: [HOSTILE]})
    assert json.loads(line) == {"msg": HOSTILE, HOSTILE: [HOSTILE]}
    assert line.count(b"\n") == 1
    decoded = line.decode().removesuffix("\n")
    assert decoded.isprintable()


@pytest.mark.parametrize(
    "value", [10**400, "\ud800", {1, 2}, object(), {"a": 10**30}, float("nan"), b"x"]
)
def test_any_value_can_be_logged(value: object) -> None:
    line = encode_line({"msg": "x", "value": value})
    assert json.loads(line)["msg"] == "x"
    assert line.endswith(b"\n")


def test_values_too_deep_or_circular_do_not_lose_the_event() -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value in (circle, deep):
        assert json.loads(encode_line({"msg": "x", "value": value}))["msg"] == "x"


def test_a_fault_carries_its_traceback_in_one_field() -> None:
    lines = Lines()
    try:
        raise ValueError("no\nsuch")
    except ValueError as error:
        lines.log.logger("x").fault("failed", error)
    event = lines.events[0]
    assert event["level"] == "error"
    assert event["error"] == "ValueError: no\nsuch"
    assert "Traceback" in event["stacktrace"]
    assert len(lines.raw) == 1


def test_what_libraries_log_takes_the_same_form() -> None:
    lines = Lines()
    handler = StandardHandler(lines.log)
    handler.emit(
        logging.makeLogRecord({"name": "asyncio", "levelno": 30, "msg": "a %s", "args": ("b",)})
    )
    handler.emit(logging.makeLogRecord({"name": "x", "levelno": 50, "msg": "%d", "args": ("b",)}))
    assert [event["msg"] for event in lines.events] == ["a b", "%d"]
    assert [event["level"] for event in lines.events] == ["warning", "error"]


def test_a_file_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"before\n")
    open_log(str(path)).logger("x").info("after")
    first, second = path.read_bytes().splitlines()
    assert first == b"before"
    assert json.loads(second)["msg"] == "after"


def test_who_logs_does_not_wait_for_a_reader_and_what_is_dropped_is_reported() -> None:
    """A pipe that nobody reads, with more than the pipe and the queue hold."""
    reads, writes = os.pipe()
    writer = Writer(writes)
    log = Log(writer.write)
    logger = log.logger("x")
    counts: list[int] = []
    writer.notify = counts.append
    count = 2 * QUEUED_BYTES_MAX // 1000

    for number in range(count):
        logger.info("a denial", number=number, text="x" * 1000)

    dropped = writer.take_dropped()
    assert 0 < dropped < count
    assert writer.take_dropped() == 0
    lines = []
    with os.fdopen(reads) as reader:
        while len(lines) < count - dropped:
            lines.append(json.loads(reader.readline())["number"])
        assert lines == list(range(count - dropped))
        assert writer.drain(PATIENCE_SECONDS)
        until(lambda: counts == [dropped], "the count of dropped records arrives")
        logger.info("after")
        assert json.loads(reader.readline())["msg"] == "after"
    os.close(writes)


def events_of(count: int, size: int = 10) -> list[dict[str, Any]]:
    """Returns so many events, each with its number and a message of so many characters."""
    return [{"message": "x" * size, "number": number} for number in range(count)]


@pytest.mark.parametrize("keeps", [True, False])
def test_many_events_are_written_by_the_log_s_thread_in_their_order(keeps: bool) -> None:
    """A hundred denials took the thread that answers 3 ms, and 34 calls of the system."""
    reads, writes = os.pipe()
    writers: list[int] = []

    class Noting(Writer):
        def _out(self, lines: bytes) -> None:
            writers.append(threading.get_ident())
            super()._out(lines)

    writer = Noting(writes)
    logger = Log(writer.write, write_later=writer.write_later).logger("x", hookType="validation")
    logger.info_all(events_of(100), keeps=keeps)
    logger.info_all([], keeps=keeps)
    assert writer.drain(PATIENCE_SECONDS)
    logger.info("after")
    os.close(writes)
    with os.fdopen(reads) as reader:
        events = [json.loads(line) for line in reader]
    assert [event.get("number") for event in events] == [*range(100), None]
    assert list(events[0]) == ["level", "ts", "logger", "msg", "hookType", "number"]
    assert events[0]["msg"] == "x" * 10
    assert threading.get_ident() not in writers[:-1]
    assert writers[-1] == threading.get_ident()


def test_many_events_are_left_out_below_the_level_and_written_here_where_there_is_no_room() -> None:
    lines = Lines(level="WARNING")
    lines.log.logger("x").info_all(events_of(3), keeps=True)
    assert lines.raw == []

    written: list[bytes] = []
    sizes: list[int] = []

    def full(_: object, size: int) -> bool:
        sizes.append(size)
        return False

    Log(written.append, write_later=full).logger("x").info_all(events_of(3, 5_000), keeps=True)
    assert sizes == [3 * (EVENT_BYTES + 5_000)]
    assert [json.loads(line)["number"] for line in b"".join(written).splitlines()] == [0, 1, 2]


def test_a_queue_that_is_full_takes_no_events(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        writer = Writer(file.fileno())
        assert not writer.write_later(lambda: [b"x\n"], QUEUED_BYTES_MAX + 1)
        assert writer.write_later(lambda: [b"y\n"], 1)
        assert writer.drain(PATIENCE_SECONDS)
    assert (tmp_path / "log").read_bytes() == b"y\n"


def test_a_log_says_itself_that_lines_were_dropped(tmp_path: Path) -> None:
    script = tmp_path / "logs.py"
    script.write_text(SLOW)
    with subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        dropped = int(process.stdout.readline())
        drop_event = next(
            event for event in map(json.loads, process.stderr) if event["logger"] == "log"
        )
        process.stdin.close()
    assert dropped > 0
    assert (drop_event["level"], drop_event["lines"]) == ("warning", dropped)


SLOW = """
from webhook.log import open_log

log = open_log()
for number in range(9000):
    log.logger("x").info("kept", text="x" * 1000)
print(log.take_dropped(), flush=True)
import sys
sys.stdin.read()
"""


FULL = """
import resource, sys
from pathlib import Path
from webhook.log import open_log

file = Path(sys.argv[1])
log = open_log(str(file)).logger("x")
log.info("before")
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, most))
log.info("lost")
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
log.info("after")
"""


def test_a_full_disk_does_not_stop_the_caller_and_what_comes_after_it_is_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    subprocess.run([sys.executable, "-c", FULL, path], check=True, timeout=PATIENCE_SECONDS)
    assert [json.loads(line)["msg"] for line in path.read_text().splitlines()] == [
        "before",
        "after",
    ]

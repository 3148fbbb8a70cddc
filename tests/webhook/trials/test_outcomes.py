"""Messages over the pipe of a trial's process, sent in this one; the test records its bounds."""

from __future__ import annotations

import io
import marshal
import os
import resource
from types import SimpleNamespace
from typing import Any

import pytest

from webhook.trials import frames, outcomes
from webhook.trials.job import NO_MEMORY
from webhook.trials.outcomes import (
    TOGETHER_BYTES,
    TOGETHER_CPU_SECONDS,
    OutcomePipe,
    write_outcomes,
)
from webhook.trials.trial import written

BEGAN = 1000


class Machine:
    """The resources used by a process; each job says how much it takes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        self.bytes = BEGAN
        self.bounds: list[tuple[int, int]] = []
        monkeypatch.setattr(outcomes, "used_bytes", lambda: self.bytes)
        monkeypatch.setattr(outcomes, "bound", lambda *most: self.bounds.append(most))
        monkeypatch.setattr(resource, "getrusage", lambda _: self._usage())

    def _usage(self) -> Any:
        return SimpleNamespace(ru_utime=self.seconds, ru_stime=1 / 64, ru_maxrss=self.bytes)

    def answer(self, job: dict[str, Any]) -> bytes:
        """Take what the job does."""
        self.seconds += job.get("takes", 0.0)
        self.bytes += job.get("keeps", 0)
        if job.get("wants"):
            raise MemoryError
        data: bytes = job["said"]
        return data


def job(data: bytes = b"", **fields: Any) -> dict[str, Any]:
    return {"said": data, "cpuSeconds": 5, "memoryBytes": 70, **fields}


def answered(machine: Machine, *jobs: dict[str, Any]) -> list[tuple[tuple[float, int], bytes]]:
    """The outcomes, as the other end takes them."""
    file = io.BytesIO()
    write_outcomes(jobs, file, machine.answer)
    found, rest = [], file.getvalue()
    while rest:
        (length,) = frames.LENGTH.unpack_from(rest)
        found.append(marshal.loads(rest[frames.LENGTH.size :][:length]))
        rest = rest[frames.LENGTH.size + length :]
    return found


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_each_job_has_bounds_of_its_own_and_tells_what_it_took_itself(machine):
    jobs = job(b"a", takes=1 / 8, keeps=24), job(b"b", takes=1 / 16, cpuSeconds=1, memoryBytes=90)
    assert answered(machine, *jobs) == [((1 / 8, 1024 * 1024), b"a"), ((1 / 16, 1024 * 1024), b"b")]
    assert machine.bounds == [(5, BEGAN + 70), (1, BEGAN + 90)], "from what was taken at first"


@pytest.mark.parametrize(
    ("first", "count"),
    [
        ({"takes": TOGETHER_CPU_SECONDS - 1 / 64}, 2),
        ({"takes": TOGETHER_CPU_SECONDS}, 1),
        ({"keeps": TOGETHER_BYTES}, 2),
        ({"keeps": TOGETHER_BYTES + 1}, 1),
    ],
    ids=["within the time", "more time", "within the memory", "more memory"],
)
def test_where_much_was_taken_the_next_is_left_to_another_process(machine, first, count):
    found = answered(machine, job(b"a", **first), job(b"b"))
    assert [data for _, data in found] == [b"a", b"b"][:count]
    assert len(machine.bounds) == count, "it is not begun either"


@pytest.mark.parametrize(
    "wanting",
    [job(wants=True), job(written(NO_MEMORY))],
    ids=["the process", "the policy"],
)
def test_what_wants_more_memory_is_reported_only_if_it_had_all(machine, wanting):
    ((_, data),) = answered(machine, wanting)
    assert marshal.loads(data) == NO_MEMORY
    found = answered(machine, job(b"a"), wanting, job(b"b"))
    assert [data for _, data in found] == [b"a"], "it is to be asked for again, with all after it"


def test_what_was_reported_is_not_kept_until_the_next_is_known(machine):
    file = io.BytesIO()
    flushed = io.BufferedWriter(file)
    seen = []

    def answer(one: dict[str, Any]) -> bytes:
        seen.append(len(file.getvalue()))
        return machine.answer(one)

    write_outcomes([job(b"a"), job(b"b")], flushed, answer)
    assert seen == [0, len(file.getvalue()) // 2]


class Written:
    """A pipe whose parts are written when there is nothing else to read; who waits is written down."""

    def __init__(self, *parts: bytes, ends: bool = True) -> None:
        self._reading, self._writing = os.pipe()
        self._parts = [one for one in parts if one]
        self._ends = ends
        self.pipe = OutcomePipe(self._reading, self._waits_for)

    def __enter__(self) -> OutcomePipe:
        return self.pipe

    def __exit__(self, *_: object) -> None:
        os.close(self._reading)
        self._end()

    def _waits_for(self, source: int, seconds: float) -> bool:
        assert source == self._reading
        assert 0 < seconds <= 60
        if self._parts:
            os.write(self._writing, self._parts.pop(0))
        elif self._ends:
            self._end()
        else:
            return False
        return True

    def _end(self) -> None:
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1


def framed(*bodies: bytes) -> bytes:
    return b"".join(frames.LENGTH.pack(len(one)) + one for one in bodies)


WHOLE = framed(b"first", b"", b"second")


@pytest.mark.parametrize("size", [1, 3, 8, 13, len(WHOLE)])
def test_outcomes_are_whole_in_whatever_parts_they_come(size):
    parts = [WHOLE[start : start + size] for start in range(0, len(WHOLE), size)]
    with Written(*parts) as pipe:
        found = [pipe.read(60) for _ in range(4)]
    assert found == [(b"first", False), (b"", False), (b"second", False), (None, False)]


@pytest.mark.parametrize("cut", [0, 4, 8, 10], ids=["nothing", "in the length", "none", "in it"])
def test_of_one_that_is_not_whole_at_the_end_there_is_nothing(cut):
    with Written(framed(b"first")[:cut]) as pipe:
        assert pipe.read(60) == (None, False)


def test_what_does_not_come_in_time_is_late_and_what_has_come_is_not():
    with Written(framed(b"first", b"second")[:-1], ends=False) as pipe:
        assert pipe.read(60) == (b"first", False)
        assert pipe.read(60) == (None, True)
    with Written(framed(b"first", b"second"), ends=False) as pipe:
        assert pipe.read(60) == (b"first", False)
        assert pipe.read(0) == (b"second", False), "it is here: nobody has to wait for it"
        assert pipe.read(0) == (None, True)


def test_one_that_says_to_be_larger_than_any_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(outcomes, "OUTCOME_BYTES_MAX", 5)
    with Written(framed(b"first", b"second")[:-6], ends=False) as pipe:
        assert [pipe.read(60) for _ in range(2)] == [(b"first", False), (None, False)]

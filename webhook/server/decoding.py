"""Decodes large requests on other threads, within a bound of memory.

A decoded document takes up to thirty times its text. So the memory of large requests is bounded
together, from decoding until the answer; a request without room waits. Small requests are decoded
and answered in one go, and count only if they must wait for something.

The smallest waiting request is decoded first. Very large ones have a thread of their own, so that
others do not wait for 40 MB to be decoded.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Literal, NamedTuple

from webhook import heap
from webhook.api.admission import (
    AdmissionRequest,
    InvalidReview,
    UndecidableReview,
    decode_review,
    username_in,
)
from webhook.api.footprint import footprint
from webhook.server.http.limits import PREFIX_BYTES
from webhook.server.responsibility import (
    NOTHING_KNOWN,
    Delay,
    ProcessorTime,
    Responsible,
    decisive,
    requester_of,
    responsible_for,
)

LARGE_BYTES: Final = 64 * 1024
"""Bodies from this size are decoded on another thread: orjson takes 1.5 ms for a dense one, and 64
connections may send at once. Passing it over and back takes a tenth of a millisecond.
"""

HUGE_BYTES: Final = 1024 * 1024
"""Bodies from this size are decoded on the second thread: they take 100 ms and more."""

MEMORY_BYTES_MAX: Final = 192 * 1024 * 1024
"""The memory of all large decoded requests: twice 3 MiB of the JSON that grows most (32 times),
which one update may contain. With all waiting bodies (64 MiB) it is 256 MiB.
"""

RESERVE: Final = 8
"""The part that several huge requests leave to others; a single one may take everything."""

HOLDERS_MAX: Final = 1024
"""The most users whose decoded requests are remembered while others wait."""

HELD_SECONDS: Final = 0.02
"""The interval of checks whether an answered request is still referenced: its reviewing thread
drops it a moment later.
"""

HELD_SECONDS_MAX: Final = 1.0
"""The longest time, in seconds, that a decoded object counts for its user after the answer."""

REST_SECONDS_MAX: Final = 0.25
"""The longest pause, in seconds, after a request that took long to decode."""

PAUSE_SECONDS: Final = 0.0002
"""The pause of a thread after each piece of a huge request, or each millisecond of freeing. A
thread that gives up only the interpreter keeps the core: others waited up to 4 ms for it.
"""

IDLE_SECONDS: Final = 1.0
"""Memory of huge requests is returned to the system after this time without one."""


def _pause() -> None:
    time.sleep(PAUSE_SECONDS)


class Room(NamedTuple):
    """A reservation of memory."""

    size: int
    holder: str
    """The user of the request, if it is known before decoding."""
    large: list[Any] | None = None
    """The document's large arrays and objects, outermost first, which are freed in slices."""


NOTHING: Final = Room(0, "")


class NoRoom(Exception):
    """There was no memory in time."""

    def __init__(self, responsible: Responsible = "others") -> None:
        self.responsible = responsible
        """The party responsible for that."""
        super().__init__()


class Decoded(NamedTuple):
    """A decoded request with its memory, or the reason why it could not be decoded.

    The error is not raised: its traceback would keep the body alive, and in a cycle.
    """

    request: AdmissionRequest | None
    room: Room = NOTHING
    error: InvalidReview | NoRoom | None = None


class Memory:
    """The memory of all decoded requests. For any thread."""

    def __init__(self, bytes_max: int = MEMORY_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.taken = 0
        self.held: Counter[str] = Counter()
        """The memory of each user."""
        self.changed = threading.Condition()
        """The lock, notified when memory is returned."""

    def take(self, size: int, holder: str = "") -> Room:
        """Reserves memory; raises :class:`NoRoom`."""
        with self.changed:
            if not self.has_room(size):
                raise NoRoom(self.responsible(holder))
            return self.note(size, holder)

    def has_room(self, size: int, reserved: int = 0) -> bool:
        """Whether there is room; beside other requests only if ``reserved`` is left over."""
        return self.taken + size <= self.bytes_max - (reserved if self.taken else 0)

    def note(self, size: int, holder: str) -> Room:
        """Reserves memory that is known to be free."""
        self.taken += size
        self.held[holder] += size
        return Room(size, holder)

    def responsible(self, holder: str) -> Responsible:
        """Returns who is responsible for the lack of memory for this user."""
        return responsible_for(
            Delay(
                places_taken=self.held[holder],
                places=max(1, self.taken),
                requesters=len([size for size in self.held.values() if size]),
            )
        )

    def give(self, room: Room) -> None:
        """Takes memory back, and wakes those who wait for some."""
        if not room.size:
            return
        with self.changed:
            self.taken -= room.size
            self.held[room.holder] -= room.size
            if not self.held[room.holder]:
                del self.held[room.holder]
            self.changed.notify_all()


class _Job:
    """A body that waits to be decoded."""

    __slots__ = (
        "before",
        "body",
        "footprint",
        "future",
        "holder",
        "is_stranger",
        "number",
        "until",
    )

    def __init__(
        self, body: bytes | bytearray, until: float, number: int, holder: str, *, is_stranger: bool
    ) -> None:
        self.body = body
        self.until = until
        self.number = number
        self.holder = holder
        self.is_stranger = is_stranger
        self.before = NOTHING_KNOWN
        """The requests that waited when this one arrived, itself included, and its own user's
        share.
        """
        self.footprint = 0
        """The memory that it will take in bytes, once measured."""
        self.future: Future[Decoded] = Future()


class _Spent(NamedTuple):
    """The memory of an answered request that must be freed."""

    room: Room
    since: float
    looked_at: float = 0.0


class _Lane:
    """A decoding thread.

    It serves the user with the least work first, and of these the smallest body.
    """

    def __init__(self, decoding: Decoding, name: str, reserved: int) -> None:
        self._decoding = decoding
        self._memory = decoding.memory
        self._reserved = reserved
        """The memory that it leaves to others, in bytes."""
        self._jobs: list[_Job] = []
        self._bytes: dict[str, int] = {}
        """Bytes decoded for each waiting user; new users start at the least value."""
        self._least = 0
        self._rests: dict[str, float] = {}
        """The users that pause until this time, because others waited for their last request."""
        self._spent: deque[_Spent] = deque()
        self._name = name
        self._thread: threading.Thread | None = None
        self._grown = False

    def put(self, job: _Job) -> None:
        """Queues a body."""
        with self._memory.changed:
            self._jobs.append(job)
            if not job.footprint:
                job.before = self._delay(job)
            used = self._bytes.get(job.holder, 0)
            self._bytes[job.holder] = max(used, self._least)
            self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._memory.changed.notify_all()

    def free(self, room: Room) -> None:
        """Frees a decoded request once nothing references it, and returns its memory."""
        with self._memory.changed:
            self._spent.append(_Spent(room, time.monotonic()))
            self._wake()

    def _free(self, spent: _Spent) -> None:
        large, now = spent.room.large or [], time.monotonic()
        is_held = heap.is_held(large)
        if is_held and now - spent.since < HELD_SECONDS_MAX:
            with self._memory.changed:
                self._spent.append(spent._replace(looked_at=now))
            return
        if not is_held:
            heap.free_in_slices(large, _pause)
        self._memory.give(spent.room)

    def _run(self) -> None:
        self._decoding.begin()
        while (job := self._next()) is not None:
            if job == "idle":
                self._decoding.give_back()
            elif isinstance(job, _Spent):
                self._free(job)
            else:
                self._work(job)
            del job  # A thread that waits must not keep a body.

    def _work(self, job: _Job) -> None:
        """Measures or decodes a body; then its user's other bodies wait for reviews of other users."""
        began = time.thread_time()
        if job.footprint:
            self._decoding.carry_out(job)
            self._grown = self._grown or job.footprint > HUGE_BYTES
        elif self._decoding.measure(job):
            self.put(job)
        rests = self._decoding.rests_of(job.holder)
        if rests:
            seconds = min(rests * (time.thread_time() - began), REST_SECONDS_MAX)
            with self._memory.changed:
                self._rests[job.holder] = time.monotonic() + seconds

    def _next(self) -> _Job | _Spent | Literal["idle"] | None:
        """Returns the next job to free, measure or decode; None after the end."""
        memory = self._memory
        with memory.changed:
            while not self._decoding.closed:
                self._expire()
                if self._spent and self._spent[0].looked_at + HELD_SECONDS <= time.monotonic():
                    return self._spent.popleft()
                if jobs := self._due():
                    job = min(jobs, key=self._order)
                    if not job.footprint or memory.has_room(job.footprint, self._reserved):
                        self._take(job)
                        return job
                if memory.changed.wait(self._patience()) or self._jobs or self._spent:
                    continue
                if self._grown:
                    self._grown = False
                    return "idle"
            for job in self._jobs:
                job.future.cancel()
            return None

    def _due(self) -> list[_Job]:
        """Returns the waiting jobs whose users do not pause."""
        if not self._rests:
            return self._jobs
        now = time.monotonic()
        self._rests = {holder: until for holder, until in self._rests.items() if until > now}
        return [job for job in self._jobs if job.holder not in self._rests]

    def _order(self, job: _Job) -> tuple[bool, int, int, int]:
        return job.is_stranger, self._bytes[job.holder], len(job.body), job.number

    def _take(self, job: _Job) -> None:
        """Removes a job from the queue, to be measured or with its memory reserved."""
        self._jobs.remove(job)
        if job.footprint:
            self._memory.note(job.footprint, job.holder)
            self._least = max(self._least, self._bytes[job.holder])
            self._bytes[job.holder] += len(job.body)
            if not self._jobs:  # No queue is left to be fair in.
                self._bytes.clear()
            elif len(self._bytes) > HOLDERS_MAX:
                waiting = {other.holder for other in self._jobs}
                self._bytes = {name: self._bytes[name] for name in waiting}

    def _patience(self) -> float | None:
        """Returns how long the thread may sleep."""
        if self._spent:
            return HELD_SECONDS
        if self._jobs:
            next_at = min(
                min(job.until, self._rests.get(job.holder, job.until)) for job in self._jobs
            )
            return max(0.001, next_at - time.monotonic())
        return IDLE_SECONDS if self._grown else None

    def _expire(self) -> None:
        """Answers the jobs that waited too long, and drops cancelled ones."""
        now = time.monotonic()
        late = [job for job in self._jobs if job.until <= now or job.future.cancelled()]
        if not late:
            return
        for job in late:
            self._jobs.remove(job)
            if job.future.set_running_or_notify_cancel():
                error = NoRoom(self.responsible(job))
                job.future.set_result(Decoded(None, NOTHING, error))

    def responsible(self, late: _Job) -> Responsible:
        """Returns who is responsible for a body that was not decoded in time.

        The memory's lock is held.

        A user with half of the memory, or its share of the queue, is itself responsible.
        """
        responsible = responsible_for(decisive(self._delay(late), late.before))
        return self._memory.responsible(late.holder) if responsible == "others" else responsible

    def _delay(self, job: _Job) -> Delay:
        """Returns the queue before a job, and its own user's part of it."""
        waiting = Counter(other.holder for other in self._jobs if other is not job)
        waiting[job.holder] += 1
        return Delay(
            places_taken=waiting[job.holder], places=waiting.total(), requesters=len(waiting)
        )


class Decoding:
    """Two threads that decode large requests: one for huge ones, one for all others."""

    def __init__(
        self,
        *,
        body_max: int,
        memory: Memory | None = None,
        begin: Callable[[], None] = lambda: None,
        give_back: Callable[[], None] = lambda: None,
        times: ProcessorTime | None = None,
        rests_of: Callable[[str], int] = lambda _: 0,
    ) -> None:
        """``begin`` is called at the start of each thread.

        ``give_back`` after large requests are freed.

        ``times`` records the processor time of users. ``rests_of`` gives a user's pause as a
        multiple of its last decoding.
        """
        self.rests_of = rests_of
        self.times = times or ProcessorTime()
        self.memory = memory or Memory()
        self.body_max = body_max
        self.begin = begin
        self.give_back = give_back
        self.closed = False
        self._number = 0
        self._large = _Lane(self, "decode", 0)
        self._huge = _Lane(self, "decode_huge", self.memory.bytes_max // RESERVE)

    def decode(self, body: bytes | bytearray, until: float, stranger: str = "") -> Future[Decoded]:
        """Decodes a body by this moment on the monotonic clock; bodies of strangers come last."""
        return self._put(body, until, stranger)[1].future

    def _put(self, body: bytes | bytearray, until: float, stranger: str) -> tuple[_Lane, _Job]:
        self._number += 1
        holder = stranger or requester_of(username_in(body[:PREFIX_BYTES]))
        job = _Job(body, until, self._number, holder, is_stranger=bool(stranger))
        lane = self._huge if len(body) > HUGE_BYTES else self._large
        lane.put(job)
        return lane, job

    async def decode_in_time(
        self, body: bytes | bytearray, until: float, stranger: str = ""
    ) -> Decoded:
        """Decodes a body, and waits no longer than ``until``.

        A thread may be busy with a large one.
        """
        lane, job = self._put(body, until, stranger)
        decoding = job.future
        waiting = asyncio.wrap_future(decoding)
        await asyncio.wait((waiting,), timeout=max(0.0, until - time.monotonic()))
        if waiting.done():
            return waiting.result()
        responsible: Responsible = "object"
        if not decoding.running() or len(body) <= HUGE_BYTES:
            with self.memory.changed:
                responsible = lane.responsible(job)
        waiting.cancel()
        decoding.add_done_callback(self._give_back_room)
        return Decoded(None, NOTHING, NoRoom(responsible))

    def _give_back_room(self, decoding: Future[Decoded]) -> None:
        """Returns the memory of a request whose caller no longer waits."""
        if not decoding.cancelled() and decoding.exception() is None:
            self.free(decoding.result().room)

    def free(self, room: Room) -> None:
        """Returns memory, and frees large objects in slices."""
        if room.large:
            self._huge.free(room)
        else:
            self.memory.give(room)

    def measure(self, job: _Job) -> bool:
        """Measures the memory that a job will take; False if it was answered because of that."""
        size = job.footprint = footprint(job.body, bound=self.memory.bytes_max)
        if size <= self.memory.bytes_max:
            return True
        if job.future.set_running_or_notify_cancel():
            error = UndecidableReview(f"it would take {size} bytes of memory")
            job.future.set_result(Decoded(None, NOTHING, error))
        return False

    def carry_out(self, job: _Job) -> None:
        """Decodes a job whose memory is reserved."""
        memory, room = self.memory, Room(job.footprint, job.holder)
        if not job.future.set_running_or_notify_cancel():
            memory.give(room)
            return
        began = time.thread_time()
        large: list[Any] = []
        try:
            rest = _pause if len(job.body) > HUGE_BYTES else None
            request = decode_review(job.body, max_bytes=self.body_max, large=large, rest=rest)
        except InvalidReview as error:
            error.__context__ = None  # Its traceback would keep the body, too.
            decoded = Decoded(None, NOTHING, error.with_traceback(None))
            heap.free_in_slices(large, _pause)  # the parsed part of an invalid document
            memory.give(room)
            job.future.set_result(decoded)
        except BaseException as error:  # noqa: BLE001  # reported to the waiting caller
            memory.give(room)
            job.future.set_exception(error)
        else:
            user = job.holder or requester_of(request.username)
            self.times.note_beside(user, time.thread_time() - began)
            is_large = job.footprint > HUGE_BYTES
            job.future.set_result(
                Decoded(request, room._replace(large=large) if is_large else room)
            )

    def stop(self) -> None:
        """Stops both threads."""
        with self.memory.changed:
            self.closed = True
            self.memory.changed.notify_all()

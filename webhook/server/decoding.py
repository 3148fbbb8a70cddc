"""Large requests are decoded beside the thread that answers, within a bound of memory.

A document takes up to thirty times as much memory decoded as it does as text. So what
large requests take is bounded together, from before they are decoded until they are
answered: one that finds no room waits for it. Small ones are decoded and answered in one
go; only those that must wait for something are counted, too.

The smallest that waits is decoded first, and the very large ones have a thread to
themselves: nobody waits behind 40 MB of another.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

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
    requester_of,
    responsible_for,
    telling,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.server.responsibility import Responsible

LARGE_BYTES: Final = 64 * 1024
"""From here on a body is decoded beside the admission thread: orjson takes 1.5 ms for it where it
is dense, and 64 connections may each have sent one. Handing it over and back takes a tenth of a
millisecond."""

HUGE_BYTES: Final = 1024 * 1024
"""From here on a body is decoded by the other thread: one takes 100 ms and more."""

MEMORY_BYTES_MAX: Final = 192 * 1024 * 1024
"""Twice 3 MiB of the JSON that grows most when it is decoded, 32 times: what one update may bring.
With all bodies that may wait (64 MiB) it is 256 MiB."""

RESERVE: Final = 8
"""The part of this that several huge ones leave to others: one alone may have all of it."""

HOLDERS_MAX: Final = 1024
"""The most requesters that are remembered for what was decoded for them while others wait."""

HELD_SECONDS: Final = 0.02
"""Between two looks at whether somebody still has what was answered: the thread that reviewed it
lets go a moment later."""

HELD_SECONDS_MAX: Final = 1.0
"""The longest time, in seconds, that a decoded object counts for its requester; it is theirs to
free."""

REST_SECONDS_MAX: Final = 0.25
"""The longest pause, in seconds, after one that took long to decode: the next waits no longer for
others."""

IDLE_SECONDS: Final = 1.0
"""After so long without a huge one what they took is given back to the system."""


class Room(NamedTuple):
    """Memory that is taken."""

    size: int
    holder: str
    """The user of the request, as far as that is known before it is decoded."""
    large: list[Any] | None = None
    """Of what much of it is for, the document's large arrays and objects, the outermost first."""


NOTHING: Final = Room(0, "")


class NoRoom(Exception):
    """There was no room in time."""

    def __init__(self, responsible: Responsible = "others") -> None:
        self.responsible = responsible
        """The party that is responsible for it."""
        super().__init__()


class Decoded(NamedTuple):
    """A decoded request with the memory that was taken for it, or why there is none.

    Not raised: a traceback would keep the body for as long as the error, and in a circle.
    """

    request: AdmissionRequest | None
    room: Room = NOTHING
    error: InvalidReview | NoRoom | None = None


class Memory:
    """The memory of all decoded requests together. Any thread may ask."""

    def __init__(self, bytes_max: int = MEMORY_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.taken = 0
        self.held: Counter[str] = Counter()
        """Of this by each holder."""
        self.changed = threading.Condition()
        """Held while it is looked at, and told of what is given back."""

    def take(self, size: int, holder: str = "") -> Room:
        """Take room; raises :class:`NoRoom`."""
        with self.changed:
            if not self.has_room(size):
                raise NoRoom(self.responsible(holder))
            return self.note(size, holder)

    def has_room(self, size: int, reserved: int = 0) -> bool:
        """Whether there is room for so much; beside others only with this much left."""
        return self.taken + size <= self.bytes_max - (reserved if self.taken else 0)

    def note(self, size: int, holder: str) -> Room:
        """Take room that there is."""
        self.taken += size
        self.held[holder] += size
        return Room(size, holder)

    def responsible(self, holder: str) -> Responsible:
        """Return who is responsible for the lack of room for this holder."""
        return responsible_for(
            Delay(
                places_taken=self.held[holder],
                places=max(1, self.taken),
                requesters=len([size for size in self.held.values() if size]),
            )
        )

    def give(self, room: Room) -> None:
        """Give room back."""
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
        """The requests that waited when it came, itself included, and its own user's share of
        them."""
        self.footprint = 0
        """Bytes it will take, once that is known."""
        self.future: Future[Decoded] = Future()


class _Spent(NamedTuple):
    """Room for what has been answered, and is to be freed."""

    room: Room
    since: float
    looked_at: float = 0.0


class _Lane:
    """A thread that decodes: for whom it has worked the least, and of those the smallest first."""

    def __init__(self, decoding: Decoding, name: str, reserved: int) -> None:
        self._decoding = decoding
        self._memory = decoding.memory
        self._reserved = reserved
        """The memory that it leaves to others, in bytes."""
        self._jobs: list[_Job] = []
        self._bytes: dict[str, int] = {}
        """Decoded for each who waits, on a scale on which everyone begins where the least stands."""
        self._least = 0
        self._rests: dict[str, float] = {}
        """Until when nothing is decoded for these, whose last ones others made room for."""
        self._spent: deque[_Spent] = deque()
        self._name = name
        self._thread: threading.Thread | None = None
        self._grown = False

    def put(self, job: _Job) -> None:
        """Have it decoded."""
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
        """Free what was decoded when nobody looks at it any more, and give its room back."""
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
            heap.free_in_slices(large)
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
        """Measure or decode; then its user's others wait for reviews of other users."""
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
        """Return the next job, to be freed, measured or decoded in memory that is taken; None at the end."""
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
        """Return what waits, less what rests."""
        if not self._rests:
            return self._jobs
        now = time.monotonic()
        self._rests = {holder: until for holder, until in self._rests.items() if until > now}
        return [job for job in self._jobs if job.holder not in self._rests]

    def _order(self, job: _Job) -> tuple[bool, int, int, int]:
        return job.is_stranger, self._bytes[job.holder], len(job.body), job.number

    def _take(self, job: _Job) -> None:
        """Have it leave the line: to be measured, or else with its memory."""
        self._jobs.remove(job)
        if job.footprint:
            self._memory.note(job.footprint, job.holder)
            self._least = max(self._least, self._bytes[job.holder])
            self._bytes[job.holder] += len(job.body)
            if not self._jobs:  # Nobody who comes now has anything ahead of others.
                self._bytes.clear()
            elif len(self._bytes) > HOLDERS_MAX:
                waiting = {other.holder for other in self._jobs}
                self._bytes = {name: self._bytes[name] for name in waiting}

    def _patience(self) -> float | None:
        """How long nothing need be looked at."""
        if self._spent:
            return HELD_SECONDS
        if self._jobs:
            next_at = min(
                min(job.until, self._rests.get(job.holder, job.until)) for job in self._jobs
            )
            return max(0.001, next_at - time.monotonic())
        return IDLE_SECONDS if self._grown else None

    def _expire(self) -> None:
        """Tell who has waited for too long, or waits no more."""
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
        """Return who is responsible for a body that was not decoded in its time; the memory's lock is held.

        One who has half of what is held, or its share of what waits or has waited, has nobody
        else to blame.
        """
        responsible = responsible_for(telling(self._delay(late), late.before))
        return self._memory.responsible(late.holder) if responsible == "others" else responsible

    def _delay(self, job: _Job) -> Delay:
        """Return what waits with a job, and how much of that is its own user's."""
        waiting = Counter(other.holder for other in self._jobs if other is not job)
        waiting[job.holder] += 1
        return Delay(
            places_taken=waiting[job.holder], places=waiting.total(), requesters=len(waiting)
        )


class Decoding:
    """Two threads that decode large requests: one those that are huge, and one all others."""

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
        """``begin`` is called first by each thread; ``give_back`` when what was large is gone.

        ``times`` records the seconds of all work. ``rests_of`` says how many times as long as its work was a
        user's next waits, for reviews of others.
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
        """The request, by this moment on the monotonic clock; those of strangers come last."""
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
        """Decode a body, and wait no longer than until then: a thread may be at work on a large one."""
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
        """Nobody waits for what was decoded."""
        if not decoding.cancelled() and decoding.exception() is None:
            self.free(decoding.result().room)

    def free(self, room: Room) -> None:
        """Give room back, and free what is large in a way that holds nobody up."""
        if room.large:
            self._huge.free(room)
        else:
            self.memory.give(room)

    def measure(self, job: _Job) -> bool:
        """Find out how much it will take; False where it is answered for that."""
        size = job.footprint = footprint(job.body, bound=self.memory.bytes_max)
        if size <= self.memory.bytes_max:
            return True
        if job.future.set_running_or_notify_cancel():
            error = UndecidableReview(f"it would take {size} bytes of memory")
            job.future.set_result(Decoded(None, NOTHING, error))
        return False

    def carry_out(self, job: _Job) -> None:
        """Decode what has its memory."""
        memory, room = self.memory, Room(job.footprint, job.holder)
        if not job.future.set_running_or_notify_cancel():
            memory.give(room)
            return
        began = time.thread_time()
        large: list[Any] = []
        try:
            request = decode_review(job.body, max_bytes=self.body_max, large=large)
        except InvalidReview as error:
            error.__context__ = None  # Its traceback would keep the body, too.
            decoded = Decoded(None, NOTHING, error.with_traceback(None))
            heap.free_in_slices(large)  # What there is of a document that ends wrongly.
            memory.give(room)
            job.future.set_result(decoded)
        except BaseException as error:  # noqa: BLE001  # told to whoever waits for it
            memory.give(room)
            job.future.set_exception(error)
        else:
            user = job.holder or requester_of(request.username)
            self.times.note(user, time.thread_time() - began)
            is_large = job.footprint > HUGE_BYTES
            job.future.set_result(
                Decoded(request, room._replace(large=large) if is_large else room)
            )

    def stop(self) -> None:
        """Decode nothing more."""
        with self.memory.changed:
            self.closed = True
            self.memory.changed.notify_all()

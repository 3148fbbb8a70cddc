"""Clocks, chance and threads, lent by the world that runs; the process's own where none does.

Installed before the product is imported: it then takes what stands here for the standard
library's, its defaults included. Nothing of the product is replaced.
"""

import datetime as dt
import functools
import gc
import os
import random
import socket
import threading
import time
from typing import Any, Protocol


class Killed(BaseException):
    """A simulated process has ended here: unwinds what was under way in it."""


class Lender(Protocol):
    """The random numbers, clock and sleep that a world lends."""

    random: random.Random
    seconds: float
    """Since the world began."""

    def sleep(self, seconds: float) -> None:
        """Block the thread that runs."""

    def ended(self, code: int) -> None:
        """The process that runs ends itself."""


EPOCH = 1_790_000_000.0
"""When worlds begin, in seconds since 1970."""

BOOTED = 5_000.0
"""The monotonic clock at a world's start: never near 0, where a first failure would look recent."""

_real_monotonic = time.monotonic
_real_time = time.time
_real_datetime = dt.datetime
_real_sleep = time.sleep
_real_urandom = os.urandom
_real_exit = os._exit
_real_socket = socket.socket
collect_garbage = gc.collect
freeze_garbage = gc.freeze

_world: Lender | None = None


def enter(world: Lender | None) -> None:
    """Lend from this world from now on, or from none."""
    global _world  # noqa: PLW0603  # there is one, as there is one clock
    _world = world
    if world is not None:
        random.seed(world.random.getrandbits(64))


def cpu_clock() -> float:
    """The real time, for bounds on how long to go on."""
    return _real_monotonic()


def _monotonic() -> float:
    return _real_monotonic() if _world is None else BOOTED + _world.seconds


def _time() -> float:
    return _real_time() if _world is None else EPOCH + _world.seconds


def _sleep(seconds: float) -> None:
    if _world is None:
        _real_sleep(seconds)
    else:
        _world.sleep(seconds)


def _urandom(count: int) -> bytes:
    return _real_urandom(count) if _world is None else _world.random.randbytes(count)


def _exit(code: int) -> None:
    if _world is None:
        _real_exit(code)
    else:
        _world.ended(code)


class _Random(random.Random):
    """Without a seed it is the world's choice."""

    def __init__(self, seed: Any = None) -> None:
        if seed is None and _world is not None:
            seed = _world.random.getrandbits(64)
        super().__init__(seed)


class _AnyDatetime(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real_datetime)


class _Datetime(_real_datetime, metaclass=_AnyDatetime):
    """Knows the world's time."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> "_Datetime":
        return _moment(_time(), tz)


@functools.lru_cache(maxsize=1)  # asked for several times in each step of a world
def _moment(seconds: float, tz: dt.tzinfo | None) -> _Datetime:
    return _Datetime.fromtimestamp(seconds, tz)


class WorldSocket:
    """The socket of a connection: it has no descriptor, which would cost four system calls."""

    def setblocking(self, flag: bool) -> None:
        """Sends nothing."""

    def close(self) -> None:
        """There is nothing to close."""


class _Socket(_real_socket):
    """A world's socket inside of a world."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        if _world is not None:
            return WorldSocket()
        return super().__new__(cls, *arguments, **options)


def _lend_to_cryptography() -> None:
    """Keys of the world's choice, and signatures that are the same each time.

    What was read once of a text is not read again: certificates and keys never change.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509 import CertificateBuilder

    generate, sign = ec.generate_private_key, CertificateBuilder.sign

    def chosen(curve: Any, backend: Any = None) -> Any:
        if _world is None:
            return generate(curve, backend)
        return ec.derive_private_key(_world.random.getrandbits(255) + 1, curve, backend)

    def signed(self: Any, *arguments: Any, **options: Any) -> Any:
        return sign(self, *arguments, **options, ecdsa_deterministic=_world is not None)

    read_certificates = x509.load_pem_x509_certificates
    known_certificates = functools.lru_cache(lambda pem: tuple(read_certificates(pem)))
    ec.generate_private_key = chosen
    CertificateBuilder.sign = signed
    x509.load_pem_x509_certificates = lambda pem: list(known_certificates(pem))
    serialization.load_pem_private_key = functools.lru_cache(serialization.load_pem_private_key)


def install() -> None:
    """Put the doors in place of the standard library's; before the product is imported."""
    from tests.simulation import threads

    dt.datetime = _Datetime
    _lend_to_cryptography()

    time.monotonic = _monotonic
    time.perf_counter = _monotonic
    time.monotonic_ns = lambda: int(_monotonic() * 1e9)
    time.perf_counter_ns = time.monotonic_ns
    time.time = _time
    time.time_ns = lambda: int(_time() * 1e9)
    time.sleep = _sleep
    os.urandom = _urandom
    os._exit = _exit
    socket.socket = _Socket
    random._urandom = _urandom
    random.Random = _Random
    # Worlds decide when garbage is collected, and none is ever out of its sight.
    gc.freeze = lambda: None
    gc.collect = lambda *_: 0
    gc.set_threshold = lambda *_: None
    threading.Thread = threads.Thread
    threading.Condition = threads.Condition
    threading.Event = threads.Event

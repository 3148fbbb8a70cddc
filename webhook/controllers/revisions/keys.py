"""Keys shared by replicas to recognise each other's revisions and roll-out records.

They are entries ``key-<seconds>`` of one Secret: the time of creation, and 32 random bytes. The
newest key signs, once every replica has had time to read it. Signatures by its predecessor count as
well, and are renewed. A user without rights on this Secret cannot make a PolicyRevision that counts
(docs/adr/0048). The Secret also holds copies of roll-out records, which must never go back
(docs/adr/0049).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import random
import re
import secrets
import time
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from webhook.api.gvk import text
from webhook.api.shapes import Json, object_of
from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import SECRETS
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.revision import PolicyRevision
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger

Forged: TypeAlias = Literal["unsigned", "unknown_key", "wrong_signature"]
"""Why a signature does not count."""

Distrust: TypeAlias = Literal["unsigned", "no_owner", "unknown_key", "wrong_signature"]
"""Why a revision does not count."""

KEY_BYTES: Final = 32
"""The length of HMAC-SHA256's digest; more would add nothing."""

NEWEST_SECONDS: Final = 180 * 86_400.0
"""How long a key is the newest. Its signatures count until there are two newer keys."""

KEYS_KEPT: Final = 2

READ_SECONDS: Final = 240.0
"""The longest pause between two reads of the Secret, which changes twice a year."""

SHARED_SECONDS: Final = 600.0
"""After which a new key signs: each replica has read it twice by then."""

UNKNOWN_KEY_SECONDS: Final = 5.0
"""The shortest time between two reads because of an unknown key: any user may name one in a
revision."""

COPIES: Final = "rollouts"
"""The entry beside the keys, with copies of roll-out records."""

_ENTRY: Final = re.compile(r"key-([1-9][0-9]{0,14})", re.ASCII)


@dataclass(frozen=True, slots=True)
class RevisionKey:
    """A key and its time of creation, in seconds since the epoch."""

    name: str
    created: int
    secret: bytes

    def signature(self, message: bytes) -> str:
        """Sign a message with this key."""
        return f"{self.name}:{hmac.new(self.secret, message, hashlib.sha256).hexdigest()}"


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The known keys, the newest first."""

    keys: tuple[RevisionKey, ...] = ()

    def signer(self, now: float) -> RevisionKey | None:
        """Returns the newest key that every replica has read; the oldest if all are new."""
        shared = (key for key in self.keys if now - key.created >= SHARED_SECONDS)
        return next(shared, self.keys[-1] if self.keys else None)

    def distrust(self, revision: PolicyRevision) -> Distrust | None:
        """Returns why a revision does not count; None if a replica has written it for its owner."""
        if revision.signature and not revision.is_owned:
            return "no_owner"
        return self.forged(revision.signature, revision.signed_bytes)

    def forged(self, signature: str, message: bytes) -> Forged | None:
        """Returns why a signature of a message does not count; None if it is a replica's."""
        if not signature:
            return "unsigned"
        name = signature.partition(":")[0]
        key = next((key for key in self.keys if key.name == name), None)
        if key is None:
            return "unknown_key"
        ours, theirs = key.signature(message).encode(), signature.encode()
        return None if hmac.compare_digest(ours, theirs) else "wrong_signature"


def read_keys(data: Mapping[str, object]) -> KeyRing:
    """Reads the keys from a Secret's data; invalid entries are ignored."""
    keys = [key for name, value in data.items() if (key := _read_key(name, value)) is not None]
    return KeyRing(tuple(sorted(keys, key=lambda key: key.created, reverse=True)))


def _read_key(name: str, value: object) -> RevisionKey | None:
    entry = _ENTRY.fullmatch(name)
    if entry is None or type(value) is not str:
        return None
    try:
        secret = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return RevisionKey(name, int(entry[1]), secret) if len(secret) == KEY_BYTES else None


def renewed(data: Mapping[str, object], now: float) -> Json | None:
    """Returns the Secret's data with a new key, without expired keys.

    None while the newest key is young enough. Entries that are not keys stay.
    """
    keys = read_keys(data).keys
    if keys and now - keys[0].created < NEWEST_SECONDS:
        return None
    gone = {key.name for key in keys[KEYS_KEPT - 1 :]}
    secret = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    return {name: value for name, value in data.items() if name not in gone} | {
        f"key-{int(now)}": secret
    }


class RevisionKeys:
    """The keys known to this replica; :meth:`run` in a task of its own."""

    def __init__(
        self, client: ClusterClient, namespace: str, secret: str, log: Logger, *, writes: bool
    ) -> None:
        """With ``writes`` this replica makes keys; otherwise it waits for the keys of others."""
        self._client = client
        self._namespace = namespace
        self._secret = secret
        self._log = log
        self._writes = writes
        self._requested = asyncio.Event()
        self._fault = ""
        self.ring = KeyRing()
        self.listeners: list[Callable[[], None]] = []
        """Called when the keys have changed, and once they are known."""
        self.copies = ""
        """The entry of copies, as it was read last or written."""
        self.copies_listeners: list[Callable[[], None]] = []
        """Called when the entry of copies has changed."""
        self.is_settled = False
        """Whether the keys are known, or it is certain that this replica cannot read any."""
        self.writes = 0
        self.failures = 0

    @property
    def can_sign(self) -> bool:
        """Whether a revision written now would count: not without a key."""
        return bool(self.ring.keys)

    def sign(self, message: bytes) -> str:
        """Returns the signature of a message; empty without a key."""
        key = self.ring.signer(time.time())
        return "" if key is None else key.signature(message)

    def is_outdated(self, signature: str) -> bool:
        """Whether a valid signature is by another key than the current signing key."""
        key = self.ring.signer(time.time())
        return key is not None and not signature.startswith(f"{key.name}:")

    def distrust(self, revision: PolicyRevision) -> Distrust | None:
        """Why a revision does not count; for a key that is not known the Secret is read again."""
        why = self.ring.distrust(revision)
        if why == "unknown_key":
            self._requested.set()
        return why

    def forged(self, signature: str, message: bytes) -> Forged | None:
        """Returns why a signature does not count; for an unknown key the Secret is read again."""
        why = self.ring.forged(signature, message)
        if why == "unknown_key":
            self._requested.set()
        return why

    async def load(self, failed: Callable[[str], None]) -> None:
        """Returns once the keys are known, or it is certain that this replica cannot read any.

        ``failed`` gets the reason of the delay.
        """
        backoff = Backoff(initial_seconds=0.1, max_seconds=5.0)
        while not await self._read():
            failed(self._fault)
            await asyncio.sleep(backoff.next_seconds())
        self.is_settled = True
        self._changed()

    async def keep_copies(self, change: Callable[[str], str | None]) -> None:
        """Changes the entry of copies by compare-and-swap; raises ApiError, ApiUnreachable.

        ``change`` gets the current entry, and returns None to leave it.
        """
        copies = ""

        def changed(document: Json) -> Json | None:
            nonlocal copies
            data = object_of(document.get("data"))
            after = change(before := text(data, COPIES))
            copies = before if after is None else after
            return None if after is None else {**document, "data": {**data, COPIES: after}}

        await self._client.update(SECRETS, self._secret, self._namespace, changed)
        self._take_copies(copies)

    def _take_copies(self, copies: str) -> None:
        before, self.copies = self.copies, copies
        if copies != before:
            for listener in self.copies_listeners:
                listener()

    async def run(self) -> None:
        """Reads the Secret again, periodically and on request, until cancelled."""
        before = self.ring, self.ring.signer(time.time())
        while True:
            jitter = random.uniform(0.5, 1.0)  # noqa: S311  # no secret
            try:
                async with asyncio.timeout(READ_SECONDS * jitter):
                    await self._requested.wait()
            except TimeoutError:
                pass
            self._requested.clear()
            await self._read()
            # A new key signs only some time after its creation.
            now = self.ring, self.ring.signer(time.time())
            if now != before:
                self._changed()
            before = now
            await asyncio.sleep(UNKNOWN_KEY_SECONDS * (1.0 + jitter))

    def _changed(self) -> None:
        for listener in self.listeners:
            listener()

    async def _read(self) -> bool:
        """Reads the keys, and makes a new one if due; returns whether the result is final."""
        place = f"Secret {self._namespace}/{self._secret}"
        try:
            secret = await self._client.get(SECRETS, self._secret, self._namespace)
            data = object_of(secret.get("data"))
            self.ring = read_keys(data)
            if self._writes and renewed(data, time.time()) is not None:
                self.ring = read_keys(await self._renew())
            self._take_copies(text(data, COPIES))
        except (ApiError, ApiUnreachable) as error:
            is_certain = isinstance(error, ApiError) and (error.is_forbidden or error.is_absent)
            self._log_fault(f"{place}: {error}")
            return is_certain
        self._log_fault("" if self.ring.keys else f"{place} holds no key yet")
        return True

    async def _renew(self) -> Json:
        """Writes a new key into the Secret, unless another replica has; returns its data."""
        data: Json = {}

        def with_key(document: Json) -> Json | None:
            nonlocal data
            data = object_of(document.get("data"))
            fresh = renewed(data, time.time())
            if fresh is None:
                return None
            data = fresh
            return {**document, "data": fresh}

        self.writes += 1
        if await self._client.update(SECRETS, self._secret, self._namespace, with_key) is not None:
            self._log.info("the key that signs revisions was created", secret=self._secret)
        return data

    def _log_fault(self, fault: str) -> None:
        before, self._fault = self._fault, fault
        if fault and fault != before:
            self.failures += 1
            self._log.warning(
                "the key that signs revisions cannot be used",
                error=fault,
                effect="no last good revision and no outcome of a trial counts without one",
            )

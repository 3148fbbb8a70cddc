"""A cache of facts about images: one question at a time for each, bounded, judged anew each time.

=====================  =====================================================================
digest of a tag        kept for half a minute: a tag may be moved
facts, complete        kept for hours: a digest's signatures do not become false
facts, some missing    kept for a minute: an image may be signed after its first request
registry fails         the last known facts, marked ``stale``, for a day; else an error
process restarts       the facts of the file (``facts_file``), if there is one
=====================  =====================================================================
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from webhook.api.encoding import encode
from webhook.images.answer import ImageAnswer, policies_about, resolve
from webhook.images.collection import ImageRegistry, collect
from webhook.images.evidence import ImageEvidence
from webhook.images.facts_file import DIGEST, FACTS, FactsFile, KnownRow
from webhook.images.kept import KeptValues
from webhook.images.policy import CertificateAuthority, VerificationPolicy
from webhook.images.verification import ImageFacts, examine, judge
from webhook.metrics.images import (
    IMAGE_ANSWERS,
    IMAGE_FLIGHTS,
    IMAGE_QUESTION_SECONDS,
    IMAGE_QUESTIONS,
    IMAGES_KEPT,
    IMAGES_KEPT_BYTES,
)
from webhook.registry.errors import RegistryError, RegistryUnavailable, UntrustedContent
from webhook.registry.reference import Reference, parse_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from webhook.log import Logger
    from webhook.metrics.registry import Registry

TAG_SECONDS: Final = 30.0
FACTS_SECONDS: Final = 4 * 3600.0
OWN_CERTIFICATE_SECONDS: Final = 300.0
"""The lifetime of facts that depend on the present time: signatures by the policy's own CAs."""
MISSING_SECONDS: Final = 60.0
OBJECT_FACTOR: Final = 4
"""The approximate ratio of decoded JSON in memory to its text."""
_ENTRY_BYTES: Final = 2_048
"""The approximate size of facts without statements, in bytes."""

FLIGHTS_MAX: Final = 1_000
"""The number of running or waiting questions at most; one external-data request may have as many
keys."""
AT_ONCE_MAX: Final = 16

_OUTCOMES: Final = {RegistryUnavailable: "unavailable", UntrustedContent: "untrusted"}

_Value = TypeVar("_Value")


class UnansweredImage(Exception):
    """An image without an answer; the message gives the reason to the client."""


class KnownFacts:
    """Answers about images, for one event loop; ``tasks`` outlive requests."""

    def __init__(
        self,
        registry: ImageRegistry,
        policies: Sequence[VerificationPolicy],
        tasks: asyncio.TaskGroup,
        deadline_seconds: float,
        log: Logger,
        *,
        metrics: Registry,
        file: FactsFile | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.policies = tuple(policies)
        self._registry = registry
        self._tasks = tasks
        self._deadline_seconds = deadline_seconds
        self._log = log
        self._metrics = metrics
        self._clock = clock
        self._digests: KeptValues[str] = KeptValues(DIGEST, clock, file)
        self._facts: KeptValues[ImageFacts] = KeptValues(FACTS, clock, file)
        self._flights: dict[str, asyncio.Task[RegistryError | None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE_MAX)

    def restore(self, rows: Iterable[KnownRow]) -> None:
        """Adds the facts of an earlier process."""
        for row in rows:
            (self._digests if row.kind == DIGEST else self._facts).restore(row.key, row.kept)

    def refresh(self) -> None:
        """Updates the gauges before a scrape."""
        self._metrics.set(IMAGE_FLIGHTS, len(self._flights))
        self._metrics.set(IMAGES_KEPT, len(self._digests), DIGEST)
        self._metrics.set(IMAGES_KEPT, len(self._facts), FACTS)
        self._metrics.set(IMAGES_KEPT_BYTES, self._digests.size + self._facts.size)

    async def value(self, key: str) -> dict[str, Any]:
        """Returns the provider's answer for a reference; raises :class:`UnansweredImage`."""
        try:
            value = await self._value(key)
        except UnansweredImage:
            self._metrics.count(IMAGE_ANSWERS, "error", "none")
            raise
        answer = "verified" if value["verified"] else "unverified"
        self._metrics.count(IMAGE_ANSWERS, answer, "stale" if "stale" in value else "fresh")
        return value

    async def _value(self, key: str) -> dict[str, Any]:
        try:
            reference = parse_reference(key)
        except RegistryError as error:
            raise UnansweredImage(str(error)) from None
        deadline = asyncio.get_running_loop().time() + self._deadline_seconds
        digest, is_stale = reference.digest, False
        if not digest:
            digest, is_stale = await self._known(
                self._digests, "tag", str(reference), lambda: self._resolve(reference), deadline
            )
        about = policies_about(reference, self.policies)
        fixed = reference.at(digest)
        facts = ImageFacts((), ())
        if about:
            name = f"{reference.name}@{digest} {_trust_of(about)}"
            facts, was_stale = await self._known(
                self._facts, "signatures", name, lambda: self._examine(name, fixed, about), deadline
            )
            is_stale = is_stale or was_stale
        evidence = ImageEvidence(digest, (), facts.notes)
        judgements = [
            judge(policy, reference, evidence, known, self._clock())
            for policy, known in zip(about, facts.of_policies, strict=True)
        ]
        answer = ImageAnswer(reference, digest, tuple(judgements), facts.notes)
        return answer.value() | ({"stale": True} if is_stale else {})

    async def _known(
        self,
        store: KeptValues[_Value],
        question: str,
        key: str,
        ask: Callable[[], Coroutine[Any, Any, RegistryError | None]],
        deadline: float,
    ) -> tuple[_Value, bool]:
        """Returns a value and whether it is stale; requests it unless a fresh one is stored."""
        kept = store.get(key)
        if kept is not None and kept[1]:
            return kept[0], False
        try:
            async with asyncio.timeout_at(deadline):
                fault = await asyncio.shield(self._flight(question, key, ask))
        except TimeoutError:
            fault = RegistryUnavailable(
                f"the registry has not answered within {self._deadline_seconds:g} s; it is still asked"
            )
        if fault is None:
            now_kept = store.get(key)
            if now_kept is not None:
                return now_kept[0], False
            raise UnansweredImage("what the registry has beside the image is too much to be kept")
        if kept is not None and isinstance(fault, RegistryUnavailable):
            return kept[0], True
        raise UnansweredImage(str(fault))

    def _flight(
        self, question: str, key: str, ask: Callable[[], Coroutine[Any, Any, RegistryError | None]]
    ) -> asyncio.Task[RegistryError | None]:
        """Returns the running question about a key; starts one if there is none."""
        flight = self._flights.get(key)
        if flight is None:
            if len(self._flights) >= FLIGHTS_MAX:
                raise UnansweredImage("too many images are asked for at once: ask again")
            flight = self._tasks.create_task(self._in_turn(question, ask))
            self._flights[key] = flight
            flight.add_done_callback(lambda _: self._flights.pop(key, None))
        return flight

    async def _in_turn(
        self, question: str, ask: Callable[[], Coroutine[Any, Any, RegistryError | None]]
    ) -> RegistryError | None:
        async with self._slots:
            begun, fault, outcome = time.monotonic(), None, "answered"
            try:
                fault = await ask()
            except RegistryError as error:
                fault = error
                outcome = _OUTCOMES.get(type(error), "refused")
            except Exception as error:  # noqa: BLE001  # a bug: it costs this image, not the process
                self._log.fault("an image could not be examined", error)
                fault, outcome = (
                    RegistryError("a fault within the provider: its log says which"),
                    "fault",
                )
            self._metrics.count(IMAGE_QUESTIONS, question, outcome)
            self._metrics.histogram(IMAGE_QUESTION_SECONDS, question).observe(
                time.monotonic() - begun
            )
            return fault

    def cancel(self) -> None:
        """Cancels all running questions."""
        for flight in tuple(self._flights.values()):
            flight.cancel()

    async def _resolve(self, reference: Reference) -> None:
        digest, _ = await resolve(self._registry, reference)
        self._digests.put(str(reference), digest, TAG_SECONDS, _ENTRY_BYTES)

    async def _examine(
        self, key: str, reference: Reference, about: list[VerificationPolicy]
    ) -> None:
        _, manifest = await resolve(self._registry, reference)
        evidence = await collect(self._registry, reference, manifest)
        # Up to some hundred milliseconds if an image has a hundred signatures.
        facts = await asyncio.to_thread(_facts_of, evidence, about, self._clock())
        size = _ENTRY_BYTES + OBJECT_FACTOR * sum(
            len(item.payload) for item in evidence.endorsements if item.claim.predicate_type
        )
        self._facts.put(key, facts, _seconds_of(facts, about), size)


def _facts_of(evidence: ImageEvidence, about: list[VerificationPolicy], now: float) -> ImageFacts:
    return ImageFacts(
        tuple(
            tuple(
                examine(evidence, authority, policy.root, policy.predicates, now)
                for authority in policy.authorities
            )
            for policy in about
        ),
        evidence.notes,
    )


def _seconds_of(facts: ImageFacts, about: list[VerificationPolicy]) -> float:
    """Returns the lifetime of facts, in seconds."""
    for policy, known in zip(about, facts.of_policies, strict=True):
        for fact in known:
            stated = {statement.predicate_type for statement in fact.statements}
            if (policy.needs_signature and not fact.has_signed) or policy.predicates - stated:
                return MISSING_SECONDS
    has_authority = any(
        isinstance(authority.trust, CertificateAuthority)
        for policy in about
        for authority in policy.authorities
    )
    return OWN_CERTIFICATE_SECONDS if has_authority else FACTS_SECONDS


def _trust_of(about: list[VerificationPolicy]) -> str:
    """Returns a digest of the inputs of facts besides the image: authorities, roots, predicates."""
    parts = [
        ([authority.digest for authority in policy.authorities], sorted(policy.predicates))
        for policy in about
    ]
    return hashlib.sha256(encode(parts)).hexdigest()

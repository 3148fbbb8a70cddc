"""Has one replica try each new policy generation before any replica enforces it.

A new generation of a template or constraint is held until the outcome of its trial is known. One
replica, chosen by hash (:mod:`webhook.replicas.rendezvous`), tries it in a process with bounds
(:mod:`webhook.trials`). It writes the outcome into the generation's PolicyRevision, and the others
read it there. A generation that exceeded the bounds is not tried again by any replica.

There is no leader. A replica that reads no outcome or claim within half a second tries the
generation itself. If nothing can be written, each replica tries for itself. Changes that need no
trial overtake held ones, in any order. Of each object only the newest generation is held.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, Protocol

from webhook import __version__
from webhook.api import revision, timestamp
from webhook.api.revision_outcome import TrialOutcome
from webhook.api.shapes import is_deleted
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint import constraint
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.template import read_template
from webhook.controllers.object_faults import TEMPLATES
from webhook.controllers.revisions.outcome_records import (
    RECORD_SECONDS,
    WRITE_SECONDS,
    OutcomeRecords,
)
from webhook.controllers.revisions.policy_state import same_policy
from webhook.policy_kinds.known import TEMPLATE
from webhook.replicas import rendezvous
from webhook.trials.trials import PATIENCE_SECONDS, TrialRequest, is_large, is_large_together
from webhook.trials.validation import with_belongings
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from webhook.api.pod_status import Pod
    from webhook.api.revision import PolicyRevision
    from webhook.api.revision_outcome import TrialVerdict
    from webhook.constraint.client import Client
    from webhook.controllers.object_faults import ObjectFaults, PolicyKey
    from webhook.controllers.revisions.keeper import RevisionKeeper
    from webhook.controllers.revisions.policy_state import AppliedFault
    from webhook.trials.trials import Trials, Tried
    from webhook.watch.queue import Event

TURN_SECONDS: Final = 0.5
"""The turn of each replica before the next one may try, in seconds. The trial of a typical policy
takes some 20 ms, a write 5 ms."""

TURNS_MAX: Final = 2
"""The most turns to wait for: of many replicas the third waits as long as all others."""

CLAIM_SECONDS: Final = 0.25
"""A trial that takes longer than this, with those queued before it, is announced, so that other
replicas wait for its end. It is half of the time for which they wait without an announcement. The
trial of a large policy is announced before it begins. That write may take as long as any other: a
busy API server must not make each replica spend seconds of a processor."""

CLAIMED_SECONDS: Final = PATIENCE_SECONDS
"""How long other replicas wait for an announced trial, as long as its replica exists."""

LONGEST_SECONDS: Final = PATIENCE_SECONDS + 15.0
"""The longest time for which a change is held: a trial may take as long on a busy machine. A change
without an outcome is then compiled within the same bounds."""

COMPILED_AT_ONCE: Final = 4
"""Threads that wait for templates to be compiled, which wait for each other."""

TRIED_TOGETHER: Final = 64
"""The most trials that one process gets at once. Trials requested meanwhile form the next batch."""

HELD_MAX: Final = 1_000
"""The most changes held at a time; further ones are tried as they are applied, as at start-up."""


class PoliciesApplied(Protocol):
    """The policies of the cluster, as they are applied."""

    @property
    def is_serving(self) -> bool:
        """Whether policies are enforced yet: until then no change is held."""

    def is_new(self, group: str, name: str, document: Mapping[str, Any], digest: str) -> bool:
        """Whether this replica does not enforce this of an object already."""


@dataclass(frozen=True, slots=True)
class Trier:
    """The trials of this replica. ``seconds`` bounds one evaluation."""

    trials: Trials
    seconds: float


@dataclass(frozen=True, slots=True)
class _ToTry:
    """A generation that waits to be tried, and the keys that wait for it."""

    request: TrialRequest
    answer: asyncio.Future[Tried | None]


@dataclass(slots=True)
class _Held:
    """A change that waits, and its revision's name. ``reported`` is set when that has changed."""

    event: Event
    revision: str
    digest: str
    reported: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def document(self) -> Mapping[str, Any]:
        assert self.event.object is not None
        return self.event.object


class Prevalidation:
    """Holds changes of policies until their trials end; :meth:`run` in a task."""

    def __init__(  # noqa: PLR0913  # the parts it joins, each named
        self,
        client: Client,
        known: PoliciesApplied,
        pod: Pod,
        trier: Trier,
        *,
        revisions: RevisionKeeper,
        records: OutcomeRecords,
        writers: Callable[[], frozenset[str]],
        working: Callable[[], frozenset[str]],
        release: Callable[[Event], None],
        object_faults: ObjectFaults,
    ) -> None:
        """``release`` takes each change that was held, when it may be enforced.

        ``writers`` gives the replicas that write, by the statuses that have arrived, and ``working``
        the Pods that are there; ``object_faults`` receives unexpected exceptions.
        """
        self._client = client
        self._known = known
        self._pod = pod
        self._trier = trier
        self._revisions = revisions
        self._records = records
        self._writers = writers
        self._working = working
        self._release = release
        self._object_faults = object_faults
        self._tasks: asyncio.TaskGroup | None = None
        self._held: dict[PolicyKey, _Held] = {}
        self._of_revision: dict[str, _Held] = {}
        self._compiling = asyncio.Semaphore(COMPILED_AT_ONCE)
        self._to_try: dict[bool, deque[_ToTry]] = {True: deque(), False: deque()}
        self._to_report: deque[AppliedFault] = deque()
        self._is_to_report = asyncio.Event()
        self._is_to_try = {True: asyncio.Event(), False: asyncio.Event()}
        revisions.listener = self._notify

    async def run(self) -> None:
        """Hold changes and try policies, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                for large in (True, False):
                    tasks.create_task(self._try_forever(large=large))
                tasks.create_task(self._report_faults_forever())
                for item in self._revisions.known.all():
                    self._notify(item)  # an earlier process of this Pod may have claimed it
                await asyncio.get_running_loop().create_future()
            finally:
                self._tasks = None  # cancelled tasks start no others

    def holds(self, event: Event) -> bool:
        """Whether the change is held until :meth:`release`; if not, the caller applies it."""
        if event.key is None or event.gvk.group not in (TEMPLATE.group, constraint.GROUP):
            return False
        key = (TEMPLATES if event.gvk == TEMPLATE else event.gvk.kind), event.key.name
        document = event.object if event.kind == "set" else None
        before = self._held.get(key)
        if document is None or is_deleted(document):
            of_template = [held_key for held_key in self._held if held_key[0].lower() == key[1]]
            for held_key in (key, *(of_template if key[0] == TEMPLATES else ())):
                self._drop(held_key)
            return False
        if before is not None and same_policy(before.document, document):
            before.event = event
            return True
        held = self._to_hold(key, event, document)
        self._drop(key)
        if held is None:
            return False
        assert self._tasks is not None
        self._held[key] = self._of_revision[held.revision] = held
        held.task = self._tasks.create_task(self._settle(key, held))
        return True

    def _to_hold(self, key: PolicyKey, event: Event, document: Mapping[str, Any]) -> _Held | None:
        if (
            self._tasks is None
            or len(self._held) >= HELD_MAX
            or not (self._known.is_serving and self._records.are_kept)
        ):
            return None
        try:
            digest = revision.digest_of(document)
            name = revision.name_of(document, digest)
            if not self._known.is_new(*key, document, digest):
                return None
            if (
                event.gvk != TEMPLATE
                and len(with_belongings([document], self._client.snapshot)) == 1
            ):
                return None  # its template is not in force
        except Exception:  # noqa: BLE001  # its template is not in force
            return None
        return None if self._outcome(document, name) is not None else _Held(event, name, digest)

    def _drop(self, key: PolicyKey) -> None:
        """Hold an object no longer; its change is not applied."""
        held = self._held.get(key)
        if held is not None:
            self._forget(key, held)
            assert held.task is not None
            held.task.cancel()

    def _forget(self, key: PolicyKey, held: _Held) -> None:
        del self._held[key]
        del self._of_revision[held.revision]
        if self._tasks is not None and self._claimant(held) == self._pod.uid:
            # Other replicas need not wait for a trial that never ends.
            self._tasks.create_task(self._withdraw(held.revision))

    def _notify(self, item: PolicyRevision) -> None:
        """Handles a revision that came, changed or was deleted."""
        outcome = item.outcome
        if (held := self._of_revision.get(item.name)) is not None:
            held.reported.set()
        elif (
            outcome is not None
            and not outcome.is_final
            and outcome.uid == self._pod.uid
            and self._tasks is not None
        ):
            # This replica does not try it: an earlier process was killed meanwhile, or the write
            # came late.
            self._tasks.create_task(self._withdraw(item.name))

    async def _withdraw(self, name: str) -> None:
        with self._object_faults.object("revision", "outcome", name):
            await self._records.withdraw(name, _nobody(), self._pod.uid)

    def report_faults(self, faults: Iterable[AppliedFault]) -> None:
        """Records faults found when generations were applied, if none is recorded yet."""
        for fault in faults:
            if len(self._to_report) < HELD_MAX:
                self._to_report.append(fault)
                self._is_to_report.set()

    async def _report_faults_forever(self) -> None:
        while True:
            await self._is_to_report.wait()
            self._is_to_report.clear()
            while self._to_report:
                await self._report_fault(self._to_report.popleft())

    async def _report_fault(self, fault: AppliedFault) -> None:
        document = fault.document
        with self._object_faults.object("revision", "outcome", document["kind"], fault.name):
            digest = revision.digest_of(document)
            name = revision.name_of(document, digest)
            known = self._revisions.known.named(document["metadata"].get("uid", ""), name)
            outcome = None if known is None else known.outcome
            if (outcome is not None and outcome.is_final) or not self._records.are_kept:
                return
            reported = replace(_nobody(), verdict=fault.verdict, message=fault.message)
            ours = replace(reported, pod=self._pod.name, uid=self._pod.uid)
            await self._records.record(document, digest, ours)

    def _outcome(self, document: Mapping[str, Any], name: str) -> TrialOutcome | None:
        """Returns the outcome of a generation, if a replica of the same version has written one."""
        revision = self._revisions.known.named(document["metadata"].get("uid", ""), name)
        outcome = None if revision is None else revision.outcome
        return None if outcome is None else _trusted(outcome)

    # --- one change ----------------------------------------------------------------------------

    async def _settle(self, key: PolicyKey, held: _Held) -> None:
        """Waits for the outcome of a change, then releases the change in any case."""
        with self._object_faults.object("revision", *key), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_SECONDS):
                await self._found_out(key, held)
        self._forget(key, held)
        self._release(held.event)

    async def _found_out(self, key: PolicyKey, held: _Held) -> None:
        rank, claims = self._rank(key), is_large(held.document)
        outcome = await self._outcome_of_others(held, rank)
        while outcome is None and (rank or claims):
            # Of the replicas that get here at once one creates the revision; the others read it.
            seconds = WRITE_SECONDS if claims else RECORD_SECONDS
            over = self._claimant(held)
            standing = await self._report(held, "trying", over=over, seconds=seconds)
            outcome = None if standing is None else _trusted(standing)
            if standing is None or standing.uid == self._pod.uid or standing.is_final:
                break
            if (outcome := self._outcome(held.document, held.revision)) is not None:
                break
            if not self._claimant(held):
                break  # it cannot be read, so that its end would not arrive
            outcome = await self._outcome_of_others(held, rank)
        if outcome is None:
            outcome = await self._try_here(held)
        if outcome is None:
            return
        if outcome.verdict == "passed" and held.document["kind"] == TEMPLATE.kind:
            async with self._compiling:
                await asyncio.to_thread(self._compile, held.document)

    def _rank(self, key: PolicyKey) -> int:
        """Returns how many replicas come before this one in the order of trials."""
        writers = self._writers()
        if writers and self._pod.uid not in writers:
            return TURNS_MAX
        of_all = rendezvous.rank(f"revision/{'/'.join(key)}", writers, self._pod.uid)
        return min(of_all, TURNS_MAX)

    async def _outcome_of_others(self, held: _Held, rank: int) -> TrialOutcome | None:
        """Waits for another replica's outcome: until this replica's turn, or while a claim stands."""
        now = time.monotonic()
        turn, last = now + TURN_SECONDS * rank, now + CLAIMED_SECONDS
        while True:
            held.reported.clear()
            if (outcome := self._outcome(held.document, held.revision)) is not None:
                return outcome
            now = time.monotonic()
            seconds_left = last - now if self._is_claimed(held) else turn - now
            if seconds_left <= 0:
                return None
            with contextlib.suppress(TimeoutError):
                # The replica that has claimed it may die meanwhile.
                async with asyncio.timeout(min(seconds_left, TURN_SECONDS)):
                    await held.reported.wait()

    def _claimant(self, held: _Held) -> str:
        """Returns the UID of the replica that has claimed the trial; empty without a claim."""
        uid = held.document["metadata"].get("uid", "")
        revision = self._revisions.known.named(uid, held.revision)
        outcome = None if revision is None else revision.outcome
        return "" if outcome is None or outcome.is_final else outcome.uid

    def _is_claimed(self, held: _Held) -> bool:
        """Whether another live replica has claimed the trial.

        A replica's Pod is known before it serves; its status only once it has applied a policy.
        """
        return self._claimant(held) in self._working() - {self._pod.uid}

    async def _try_here(self, held: _Held) -> TrialOutcome | None:
        """Tries the policy here and writes the outcome, unless the machine could not try it.

        Returns another replica's outcome if that one finished first; None in all other cases.
        """
        documents = with_belongings([held.document], self._client.snapshot)
        large = is_large_together(documents)
        answer: asyncio.Future[Tried | None] = asyncio.get_running_loop().create_future()
        self._to_try[large].append(_ToTry(TrialRequest(held.document, documents), answer))
        self._is_to_try[large].set()
        async with asyncio.TaskGroup() as tasks:
            claim = tasks.create_task(self._claim(held))
            both: tuple[asyncio.Future[Any], ...] = answer, claim
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and (standing := claim.result()) is not None:
                answer.cancel()  # a trial in the queue is not begun; the result of a running one is dropped
                return standing
            tried = await answer
            claim.cancel()
        if tried is not None:
            # Written before enforcement: else a policy that was stopped would be compiled again.
            await self._report(held, tried.verdict, tried, seconds=WRITE_SECONDS)
        return None

    async def _try_forever(self, *, large: bool) -> None:
        """Tries policies in batches: one batch is all requests that came during the batch before."""
        loop, waiting = asyncio.get_running_loop(), self._to_try[large]

        def notify(answer: asyncio.Future[Tried | None], tried: Tried | None) -> None:
            if not answer.done():
                answer.set_result(tried)

        while True:
            await self._is_to_try[large].wait()
            self._is_to_try[large].clear()
            while waiting:
                some = [waiting.popleft() for _ in range(min(len(waiting), TRIED_TOGETHER))]
                some = [trial for trial in some if not trial.answer.done()]

                def notify_from_thread(
                    number: int, tried: Tried | None, some: list[_ToTry] = some
                ) -> None:
                    loop.call_soon_threadsafe(notify, some[number].answer, tried)

                try:
                    requests = [trial.request for trial in some]
                    await asyncio.to_thread(self._try, requests, notify_from_thread)
                except Exception as error:  # noqa: BLE001  # reported for each of them; the others are tried
                    for trial in some:
                        if not trial.answer.done():
                            trial.answer.set_exception(error)

    async def _claim(self, held: _Held) -> TrialOutcome | None:
        """Claims the trial after a delay; returns the outcome of a replica that finished first."""
        await asyncio.sleep(CLAIM_SECONDS)
        standing = await self._report(held, "trying")
        return None if standing is None else _trusted(standing)

    async def _report(
        self,
        held: _Held,
        verdict: TrialVerdict,
        tried: Tried | None = None,
        *,
        over: str = "",
        seconds: float = RECORD_SECONDS,
    ) -> TrialOutcome | None:
        """Writes an outcome or a claim; returns the outcome in the record afterwards.

        ``over`` is the UID of the replica whose claim may be replaced. None if the write has not
        ended after ``seconds``, or at shutdown.
        """
        outcome = TrialOutcome(verdict, self._pod.name, self._pod.uid, __version__, timestamp.now())
        if tried is not None:
            outcome = replace(
                outcome,
                message=tried.message,
                cpu_seconds=tried.cpu_seconds,
                memory_bytes=tried.memory_bytes,
                seconds=tried.seconds,
            )
        if self._tasks is None:
            return None
        writing = self._tasks.create_task(self._record(held, outcome, over))
        done, _ = await asyncio.wait({writing}, timeout=seconds)
        return writing.result() if done else None

    async def _record(self, held: _Held, outcome: TrialOutcome, over: str) -> TrialOutcome | None:
        """Writes the outcome; returns the outcome in the record, or None if it is unknown.

        The caller may have stopped waiting for this task, so its errors are handled here.
        """
        document = held.document
        name = "outcome", document["kind"], document["metadata"]["name"]
        standing = None
        with (
            contextlib.suppress(ApiError, ApiUnreachable),
            self._object_faults.object("revision", *name),
        ):
            standing = await self._records.record(document, held.digest, outcome, over=over)
        return standing

    # --- on other threads ----------------------------------------------------------------------

    def _try(
        self, requests: list[TrialRequest], notify: Callable[[int, Tried | None], None]
    ) -> None:
        self._trier.trials.found_out_all(requests, self._trier.seconds, notify)

    def _compile(self, document: Mapping[str, Any]) -> None:
        """Compiles a template that passed another replica's trial, so that the loop never waits."""
        try:
            for code in read_template(document).code:
                self._trier.trials.source(code)
        except ConstraintFrameworkError:
            return  # reported when it is applied


def _nobody() -> TrialOutcome:
    """Returns a claim without a replica."""
    return TrialOutcome("trying", "", "", __version__, timestamp.now())


def _trusted(outcome: TrialOutcome) -> TrialOutcome | None:
    """Returns a final outcome of the same version, else None; this replica would reach it, too."""
    return outcome if outcome.is_final and outcome.version == __version__ else None

"""Tries policies before they are in force, and remembers the outcomes."""

from __future__ import annotations

import contextlib
import marshal
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of
from webhook.backoff import Backoff
from webhook.constraint import template
from webhook.constraint.errors import (
    CompileError,
    ConstraintFrameworkError,
    InvalidTemplate,
    PassingFault,
    TrialEnded,
)
from webhook.constraint.template import CEL, REGO, Code, Template, read_template
from webhook.metrics.policies import TRIALS
from webhook.policies.problem import FAULT, OVERRUN
from webhook.trials.ahead import Ahead, Compiled, processors
from webhook.trials.job import (
    ATTEMPTS,
    LATE,
    NO_MEMORY,
    NO_PROCESS,
    Job,
    JobOutcome,
    NoWorker,
    digest_of,
    digest_of_all,
    has_cel,
    text_of,
)
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.metrics.registry import Registry
    from webhook.trials.process import Branch, Worker


class Turn:
    """A lock that goes to a waiting thread before the thread that has just released it."""

    def __init__(self) -> None:
        self._next = threading.Lock()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._next:
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Lane:
    """Trials that wait for each other, and their process."""

    def __init__(self, memory_bytes: int, *, keeps: bool) -> None:
        """``keeps`` is whether the process stays for the next trial."""
        self.memory_bytes = memory_bytes
        self.keeps = keeps
        self.lock = Turn()
        self.worker: Worker | Branch | None = None

    def stop(self) -> None:
        """End the process."""
        if self.worker is not None:
            self.worker.stop()


LARGE_CHARACTERS: Final = 10_000
"""The length of a source, as JSON, from which a template is tried also before anything is served.
The largest of the public library has 8,600, so that a start with typical policies tries none. The
slowest known source below that takes half a second (a reference with a thousand variables)."""

CPU_SECONDS: Final = 5
"""The processor time of a whole trial, in seconds. The public library's largest template takes
0.02, 438 KB of literals 0.4; 1.3 MB of rules, which an API server accepts, would take 9."""

MEMORY_BYTES: Final = 256 << 20
"""The most memory of a trial, in bytes: 438 KB of literals take 58 MiB, 1.3 MB of rules would take
434. Sources that are not large get half of it: such a trial may run beside another."""

LARGE_BYTES: Final = 40_000
"""Documents from which on they are large: a template with a dozen constraints has some 10,000."""

PATIENCE_SECONDS: Final = 240.0
"""How long a trial may take on a busy machine, where five seconds of a processor take long: it
yields to all other threads, and beside four that compute on its core it has a fortieth of the core.
"""

OUTCOMES_MAX: Final = 64
"""The outcomes remembered: enforcement needs that of an admission again, and each look at a faulty
template its own."""

CODE_BYTES_MAX: Final = 4 << 20
"""Code remembered with them: a template's has some 20 KB."""


class LogTrial(Protocol):
    """Reports a problem with processes, once for each."""

    def __call__(self, message: str, /, *, error: str) -> object:
        """Log, or print, that something could not be tried, and why."""


TrialEnd: TypeAlias = Literal["passed", "refused", "ended"]


@dataclass(frozen=True, slots=True)
class Tried:
    """The outcome for a policy: it may be enforced, is faulty, or exceeded its limits.

    A policy that met a bug of ours has ended, too: no other replica need meet it. The message of a
    passed policy may say that it does not end on a sample; evaluations end it at their budgets.
    Memory is that of the whole process.
    """

    verdict: TrialEnd
    message: str
    cpu_seconds: float
    memory_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A policy to try, together with the documents that it needs."""

    document: Mapping[str, Any]
    documents: Sequence[Mapping[str, Any]]

    @property
    def template(self) -> Mapping[str, Any] | None:
        """The template of a constraint that is tried with nothing else."""
        if len(self.documents) == 2 and self.documents[1] is self.document:
            first = self.documents[0]
            return first if gvk_of(first).kind == template.KIND else None
        return None


class Trials:
    """Has policies tried, and remembers the outcomes. For any thread.

    Large policies, which may take seconds, are tried one after the other. The others are tried one
    after the other in a permanent process, from which the processes for large ones are forked.
    """

    def __init__(  # noqa: PLR0913  # bounds and switches, each named
        self,
        disabled_builtins: Collection[str] = (),
        *,
        notify: LogTrial,
        registry: Registry | None = None,
        tries_all: Callable[[], bool] = lambda: False,
        cel: bool = True,
        niceness: int = 0,
        cpu_seconds: int = CPU_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
        ahead: bool = False,
    ) -> None:
        """``tries_all`` is whether small sources are tried, too: while requests would wait.

        ``cel`` is whether the engine for CEL is on; ``niceness`` is the processes'. With ``ahead``
        another process compiles announced templates, given two processors.
        """
        self._cpu_seconds = cpu_seconds
        self._bounds: Job = {
            "cpuSeconds": cpu_seconds,
            "patienceSeconds": PATIENCE_SECONDS,
            "disabledBuiltins": sorted(disabled_builtins),
        }
        self._small = Lane(memory_bytes // 2, keeps=True)
        self._large = Lane(memory_bytes, keeps=False)
        self._notify = notify
        self._registry = registry
        self._tries_all = tries_all
        self._tries_cel = cel
        self._niceness = niceness
        self._remembering = threading.Lock()
        self._making = threading.Lock()
        self._kept: Worker | None = None
        self._backoff = Backoff(initial_seconds=5.0, max_seconds=300.0)
        self._no_worker_until = 0.0
        self._is_stopped = False
        self._outcomes: dict[bytes, JobOutcome] = {}
        self._codes: dict[bytes, Compiled] = {}
        self._ahead: Ahead | None = None
        if ahead and processors() > 1:
            self._ahead = Ahead({**self._bounds, "memoryBytes": self._small.memory_bytes})

    def announce(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Announces templates, in the order of their addition, for the second compiler at start."""
        if self._ahead is None or self._tries_all():
            return
        texts: list[str] = []
        for document in documents:
            with contextlib.suppress(ConstraintFrameworkError, RecursionError):
                texts += self._sources(read_template(document))
        self._ahead.announce(texts)

    def _sources(self, read: Template) -> Iterator[str]:
        """Yields the small sources in Rego that a client compiles of a template."""
        for part in (read, *read.others):
            engines = {code.engine: code for code in part.code}
            if REGO in engines and not (self._tries_cel and CEL in engines):
                text = text_of(engines[REGO])
                if text is not None and len(text) < LARGE_CHARACTERS:
                    yield text

    def started(self) -> int:
        """Ends the second compiler, since policies are served; returns the number of its sources."""
        if self._ahead is None:
            return 0
        self._ahead.stop()
        return self._ahead.count

    def source(self, code: Code) -> Compiled | None:
        """Returns the code of a Rego source that compiles within the limits.

        None in two cases:

        1. It was not tried: it is small, nothing is served yet, and the second compiler has not
        compiled it. 2. No driver could read it, or no process could be started.

        Raises InvalidTemplate for a source that does not compile, or not within the limits. Raises
        a PassingFault if the machine could not try it, which is not remembered.
        """
        text = text_of(code)
        if text is None:
            return None
        if len(text) < LARGE_CHARACTERS and not self._tries_all():
            return None if self._ahead is None else self._ahead.take(text)
        at = digest_of(text)
        lane = self._small if len(text) < LARGE_CHARACTERS else self._large
        with lane.lock:
            outcome = self._outcomes.get(at)
            if outcome is None:
                outcome = self._ask({"text": text}, lane)
                if outcome is None:
                    return None
                self._remember(at, outcome)
            _refuse(outcome)
            return self._codes.get(at)

    def documents(self, documents: Sequence[Mapping[str, Any]], seconds: float) -> None:
        """Has policies tried together, on samples too, each evaluation within ``seconds``.

        Raises InvalidTemplate beyond the limits, and a PassingFault as above. The caller finds
        other faults, together with the policies in force.
        """
        outcome = self._of_documents(documents, seconds)
        if outcome is not None:
            _refuse(outcome)

    def found_out_all(
        self,
        requests: Sequence[TrialRequest],
        seconds: float,
        notify: Callable[[int, Tried | None], None],
    ) -> None:
        """Tries policies, each evaluation within ``seconds``, each policy within its own limits.

        ``notify`` takes each policy's number and outcome as soon as it is known, from this thread;
        None if the machine could not try it. One process tries many of them, with each template
        compiled once. Other callers wait for a slow trial, not for all of them.
        """
        large: list[int] = []
        small: list[int] = []
        for number, request in enumerate(requests):
            (large if is_large_together(request.documents) else small).append(number)

        def report_outcome(number: int, outcome: JobOutcome | None) -> None:
            notify(number, _tried(requests[number].document, outcome))

        known: dict[int, dict[bytes, tuple[str, bytes]]] = {}
        for number in large:
            report_outcome(number, self._of_documents(requests[number].documents, seconds))
        while small:
            # The remaining ones, after one was killed or took long.
            with self._small.lock:
                small = self._some(requests, small, seconds, known, report_outcome)

    def _some(
        self,
        requests: Sequence[TrialRequest],
        numbers: Sequence[int],
        seconds: float,
        known: dict[int, dict[bytes, tuple[str, bytes]]],
        notify: Callable[[int, JobOutcome | None], None],
    ) -> list[int]:
        """Has policies tried, at least the first; returns those to request again."""
        remaining: list[tuple[int, bytes]] = []
        jobs: list[Job] = []
        written: dict[int, bytes] = {}
        for number in numbers:
            request = requests[number]
            at = digest_of_all(request.documents)
            if (outcome := self._outcomes.get(at)) is not None:
                notify(number, outcome)
                continue
            job: Job = {"seconds": seconds, "cel": self._tries_cel}
            of = request.template
            if of is None:
                job |= {
                    "documents": encode(list(request.documents)),
                    "known": self._known(request.documents),
                }
            else:
                if id(of) not in known:
                    known[id(of)] = self._known([of])
                if id(of) not in written:
                    written[id(of)] = encode(of)
                job |= {"documents": encode([request.document]), "of": written[id(of)]}
                job["known"] = known[id(of)]
            remaining.append((number, at))
            jobs.append(job)
        done = 0
        for outcome in self._ask_all(jobs, self._small):
            number, at = remaining[done]
            done += 1
            if outcome is not None:
                self._keep(at, outcome)
            notify(number, outcome)
        return [number for number, _ in remaining[done:]]

    def _of_documents(
        self, documents: Sequence[Mapping[str, Any]], seconds: float
    ) -> JobOutcome | None:
        """Returns the outcome; None if no process could be started."""
        text = encode(list(documents))
        job = {"documents": text, "seconds": seconds, "cel": self._tries_cel}
        at = digest_of_all(documents)
        lane = self._small if len(text) < LARGE_BYTES else self._large
        with lane.lock:
            outcome = self._outcomes.get(at)
            if outcome is None:
                outcome = self._ask(job | {"known": self._known(documents)}, lane)
                if outcome is None:
                    return None
                self._keep(at, outcome)
            return outcome

    def _keep(self, at: bytes, outcome: JobOutcome) -> None:
        """Remembers the outcome of documents, and the code of their sources."""
        for source in outcome.get("codes", ()):
            self._remember(source, {"codes": outcome["codes"]})
        # The same documents will be tried again: an admitted policy is about to be enforced.
        self._remember(at, outcome)

    def _known(self, documents: Sequence[Mapping[str, Any]]) -> dict[bytes, tuple[str, bytes]]:
        """Returns the remembered code of templates among these documents."""
        compiled_ = {}
        for document in documents:
            if gvk_of(document).kind != template.KIND:
                continue
            with contextlib.suppress(InvalidTemplate):
                for code in read_template(document).code:
                    text = text_of(code)
                    compiled = None if text is None else self._codes.get(digest_of(text))
                    if text is not None and compiled is not None:
                        compiled_[digest_of(text)] = compiled.key, compiled.body
        return compiled_

    def warm(self) -> None:
        """Begins the process, so that the first trial need not wait for it."""
        with self._small.lock:
            self._started(self._small, [])

    def stop(self) -> None:
        """Kills the processes; from now on nothing is tried."""
        self._is_stopped = True
        self.started()
        self._large.stop()
        if self._kept is not None:
            self._kept.stop()

    def _started(self, lane: Lane, jobs: Sequence[Job]) -> Worker | Branch | None:
        """Returns the worker; None if it cannot be started.

        After failures it is not tried again at once.
        """
        now = time.monotonic()
        if self._is_stopped or now < self._no_worker_until:
            return None
        # Imported here: checking files of usual size needs no process.
        from webhook.trials.process import Branch, Worker  # noqa: PLC0415

        with self._making:
            kept = self._kept = self._kept or Worker(self._niceness)
        worker = kept if lane.keeps else Branch(kept, reads_cel=any(map(has_cel, jobs)))
        lane.worker = worker
        try:
            worker.start()
        except NoWorker as error:
            self._no_worker_until = now + self._backoff.next_seconds()
            self._count("none")
            self._notify("policies are compiled without a trial", error=str(error))
            return None
        self._backoff.reset()
        return worker

    def _ask(self, job: Job, lane: Lane) -> JobOutcome | None:
        """Returns the outcome; None if no process could be started, independent of the policy."""
        return next(iter(list(self._ask_all([job], lane))))

    def _ask_all(self, jobs: Sequence[Job], lane: Lane) -> Iterator[JobOutcome | None]:
        """Yields outcomes as above, at least the first; the others must be requested again."""
        gone, answered = "this process ends", 0
        bounds = {**self._bounds, "memoryBytes": lane.memory_bytes}
        for _ in range(ATTEMPTS if jobs else 0):
            if self._is_stopped:
                break
            worker = self._started(lane, jobs)
            if worker is None:
                yield None
                return
            try:
                began = time.monotonic()
                for ended, written, took in worker.ask_all([{**job, **bounds} for job in jobs]):
                    now = time.monotonic()
                    yield self._job_outcome(
                        jobs[answered], lane, ended, written, (*took, now - began)
                    )
                    answered, began = answered + 1, now
            except NoWorker as error:
                gone = str(error)
            finally:
                if not lane.keeps:
                    worker.stop()
            if answered:
                return
        if jobs:
            self._count("environment")
            self._notify("a policy could not be tried", error=gone)
            yield _environment(gone)

    def _job_outcome(
        self,
        job: Job,
        lane: Lane,
        ended: int | str,
        written: bytes,
        took: tuple[float, int, float],
    ) -> JobOutcome | None:
        """Returns the outcome of a trial that ended so, and has so much written and taken."""
        if ended == NO_PROCESS:
            self._count("none")
            self._notify("policies are compiled without a trial", error="no process can be started")
            return None
        purpose = "to compile and to be tried" if "documents" in job else "to compile"
        outcome = self._outcome(ended, written, f"{lane.memory_bytes >> 20} MiB of memory", purpose)
        self._count(_name_of(outcome))
        return outcome | {"took": took}

    def _outcome(self, ended: int | str, written: bytes, memory: str, purpose: str) -> JobOutcome:
        if ended == 0:
            outcome: JobOutcome = marshal.loads(written)  # noqa: S302  # from our own process
            if outcome != NO_MEMORY:
                return outcome
        if ended == LATE:
            return _environment(f"it had not been tried after {PATIENCE_SECONDS:.0f} s")
        if ended == -signal.SIGKILL:
            # At the bound of processor time the system sends SIGXCPU first.
            return _environment("the process that tried it was killed, as for want of memory")
        if ended == 1:
            return _environment("the process that tried it failed")
        is_late = ended == -signal.SIGXCPU
        bound = f"{self._cpu_seconds} s of processor time" if is_late else memory
        error = f"policy is too large: it takes more than {bound} {purpose}"
        return {"error": error, "stage": "compile", "ended": True}

    def _remember(self, at: bytes, outcome: JobOutcome) -> None:
        if outcome.get("stage") == "environment":
            return
        taken = outcome.get("codes", {}).get(at)
        with self._remembering:
            while len(self._outcomes) >= OUTCOMES_MAX:
                oldest = next(iter(self._outcomes))
                del self._outcomes[oldest]
                self._codes.pop(oldest, None)
            self._outcomes[at] = {name: outcome[name] for name in outcome if name != "codes"}
            if taken is None or len(taken[1]) > CODE_BYTES_MAX:
                return
            self._codes[at] = Compiled(*taken)
            while sum(len(code.body) for code in self._codes.values()) > CODE_BYTES_MAX:
                del self._codes[next(iter(self._codes))]

    def _count(self, outcome: str) -> None:
        if self._registry is not None:
            self._registry.count(TRIALS, outcome)


def is_large(document: Mapping[str, Any]) -> bool:
    """Whether a policy is larger than people write them."""
    return is_large_together([document])


def is_large_together(documents: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the documents of one trial are large together."""
    return len(encode(list(documents))) >= LARGE_BYTES


def _tried(document: Mapping[str, Any], outcome: JobOutcome | None) -> Tried | None:
    """Reads the outcome for one of the tried policies."""
    if outcome is None or outcome.get("stage") == "environment":
        return None
    cpu_seconds, memory_bytes, clock_seconds = outcome.get("took", (0.0, 0, 0.0))
    verdict: TrialEnd = "passed"
    message = outcome.get("error", "")
    if message:
        verdict = "ended"
    else:
        subject = gvk_of(document).kind, name_of(document)
        for kind, name, code, text in outcome.get("problems", ()):
            if (kind, name) == subject:
                ends: dict[str, TrialEnd] = {OVERRUN: "passed", FAULT: "ended"}
                verdict, message = ends.get(code, "refused"), text
    return Tried(verdict, message, cpu_seconds, memory_bytes, clock_seconds)


def _refuse(outcome: JobOutcome) -> None:
    """Raises the error of an outcome, as the driver itself would have raised it."""
    if "error" not in outcome:
        return
    stage = outcome.get("stage")
    if stage == "environment":
        raise PassingFault(outcome["error"])
    if outcome.get("ended"):
        raise TrialEnded(outcome["error"])
    if stage is not None:
        raise CompileError(outcome["error"], "parse" if stage == "parse" else "compile")
    raise InvalidTemplate(outcome["error"], outcome["code"])


def _name_of(outcome: JobOutcome) -> str:
    """Returns an outcome as a metric counts it."""
    if "error" not in outcome:
        return "passed"
    if outcome.get("stage") == "environment":
        return "environment"
    return "ended" if outcome.get("ended") else "refused"


def _environment(why: str) -> JobOutcome:
    """Returns an outcome that leaves the policy open, and may differ the next time."""
    return {"error": f"policy could not be compiled here: {why}", "stage": "environment"}

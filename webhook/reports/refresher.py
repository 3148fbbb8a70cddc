"""Updates the reports of marked resources: reads, reviews, writes.

A mark is only a name. In its turn the resource is read from the API server, reviewed as in an
audit, and its report replaced whole. So an admission and an audit produce the same report. A
resource that was refused after its admission, or deleted, gets none. Lost marks do no harm, since
the next audit finds the differences.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from webhook.backoff import Backoff
from webhook.cluster.discovery import UnknownKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.work_queue import WorkQueue
from webhook.reports.finding import Admitted, Assessment, Policy, ReportSubject
from webhook.reports.writer import DIFFERENT_LOGGED_MAX, RETRIES, Faults, NotServed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.log import Logger

WORKERS: Final = 8
"""Resources refreshed concurrently: two requests each, of the client's 32; a report every 2 ms or
so."""

MARKED_MAX: Final = 50_000
"""The most waiting marks: some 400 bytes each, 20 MB."""

Loss = Literal["queue_full", "forbidden", "refused", "failed", "not_served"]

_REFUSED: Final = frozenset({400, 413, 422})
"""Status codes of requests that fail again when repeated."""


class _Hint(NamedTuple):
    """Details of a mark.

    Whether a report is new, policies with stored results, and results of an admission.
    """

    is_new: bool = False
    policies: frozenset[Policy] = frozenset()
    admitted: Admitted | None = None


_NO_HINT: Final = _Hint()


class Kinds(Protocol):
    """A lookup of resources by kind."""

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """Returns the resource of a kind, at the version that audits read.

        Raises :class:`~webhook.cluster.discovery.UnknownKind`, and the errors of requests.
        """


class Assessor(Protocol):
    """Reviews one resource as an audit does."""

    async def assess(self, resource: Resource, obj: Object) -> Assessment | None:
        """Returns the findings; None if no verdict is possible now.

        Raises the errors of requests: the Namespace may have to be read.
        """

    def policies(self, subject: ReportSubject) -> Mapping[Policy, str]:
        """Returns the policies that may have findings about this kind, with their UIDs."""


class ReportStore(Protocol):
    """The storage of assessments."""

    async def put(self, subject: ReportSubject, assessment: Assessment, *, is_new: bool) -> None:
        """Replaces all stored results of the resource; ``is_new`` if there are probably none.

        Raises :class:`~webhook.reports.writer.NotServed`, and the errors of requests.
        """


class Refresher:
    """Updates reports on one event loop; :meth:`run` needs a task of its own."""

    def __init__(
        self,
        client: ClusterClient,
        kinds: Kinds,
        assessor: Assessor,
        store: ReportStore,
        log: Logger,
        faults: Faults | None = None,
    ) -> None:
        """``faults`` receives unexpected exceptions about one resource."""
        self._faults = faults or Faults(log)
        self._client = client
        self._kinds = kinds
        self._assessor = assessor
        self._store = store
        self._log = log
        self._queue: WorkQueue[ReportSubject] = WorkQueue(MARKED_MAX)
        self._hints: dict[ReportSubject, _Hint] = {}
        self._tries: Counter[ReportSubject] = Counter()
        self._logged: set[str] = set()
        self._backoff = Backoff(initial_seconds=2.0, max_seconds=15.0)
        self.lost: Counter[Loss] = Counter()

    @property
    def waiting(self) -> int:
        """Returns the number of marked resources."""
        return len(self._queue)

    @property
    def is_idle(self) -> bool:
        """Returns whether no marks wait."""
        return self._queue.is_idle

    def is_marked(self, subject: ReportSubject) -> bool:
        """Returns whether an update of the resource's report waits or is in work."""
        return subject in self._queue

    def mark(
        self,
        subject: ReportSubject,
        delay_seconds: float = 0.0,
        *,
        is_new: bool = False,
        policies: Iterable[Policy] = (),
        admitted: Admitted | None = None,
    ) -> bool:
        """Schedules an update of a resource's report after the delay; False without room.

        ``is_new``: it probably has none. ``policies`` are those with stored results, whether or not
        they can still have any; ``admitted`` are results of its admission that no audit finds.
        """
        # A report in work exists by the resource's next turn.
        is_new = is_new and not self._queue.has_worker(subject)
        if not self._queue.add(subject, delay_seconds):
            self.lost["queue_full"] += 1
            return False
        if is_new or policies or admitted is not None:
            known = self._hints.get(subject, _NO_HINT)
            self._hints[subject] = _Hint(
                is_new, known.policies.union(policies), admitted or known.admitted
            )
        return True

    async def room(self) -> None:
        """Waits until another resource can be marked."""
        await self._queue.room()

    async def run(self) -> None:
        """Works until cancelled."""
        await self._queue.run(self._settle, WORKERS)

    async def _settle(self, subject: ReportSubject) -> None:
        hint = self._hints.pop(subject, _NO_HINT)
        try:
            await self._attempt(subject, hint)
        except Exception as error:  # noqa: BLE001  # one report's boundary: counted, logged, tried again
            self._faults.take(
                "bug: a report is not brought up to date; all others are",
                error,
                resource_kind=subject.gvk.kind,
                resource_namespace=subject.namespace,
                resource_name=subject.name,
            )
            self._again(subject, hint, f"internal error: {type(error).__name__}")

    async def _attempt(self, subject: ReportSubject, hint: _Hint) -> None:
        try:
            settled = await self._refresh(subject, hint)
        except NotServed as error:
            self._lose(subject, "not_served")
            self._log_once(
                subject, "reports cannot be written: install their CRDs (manifests/reports)", error
            )
        except ApiError as error:
            if error.is_forbidden:
                self._lose(subject, "forbidden")
                self._log_once(
                    subject,
                    "no report: the right to read the resource or to write reports is missing",
                    error,
                )
            elif error.status in _REFUSED:
                self._lose(subject, "refused")
                self._log_once(subject, "no report: the API server does not accept it", error)
            else:
                self._again(subject, hint, str(error))
        except ApiUnreachable as error:
            self._again(subject, hint, str(error))
        else:
            if settled:
                del self._tries[subject]
            else:
                self._again(subject, hint, "the review came to no verdict in time")

    async def _refresh(self, subject: ReportSubject, hint: _Hint) -> bool:
        """Updates one report at once; returns whether there was a verdict.

        Raises as :class:`ReportStore` does.
        """
        stored = dict.fromkeys(hint.policies, "")
        present = await self._read(subject)
        if present is None:
            # The garbage collector deletes a resource's own report; if none runs, the store does.
            about = {**stored, **self._assessor.policies(subject)}
            await self._store.put(subject, Assessment((), about), is_new=False)
            return True
        resource, obj = present
        assessment = await self._assessor.assess(resource, obj)
        if assessment is None:
            return False
        if stored or hint.admitted is not None:
            policies = {**stored, **assessment.policies}
            assessment = replace(assessment, policies=policies, admitted=hint.admitted)
        metadata = obj["metadata"]
        current = ReportSubject(
            resource.gvk, metadata.get("namespace", ""), metadata["name"], metadata["uid"]
        )
        await self._store.put(current, assessment, is_new=hint.is_new)
        return True

    async def _read(self, subject: ReportSubject) -> tuple[Resource, Object] | None:
        """Returns the resource as it is now; None if it was deleted or replaced."""
        try:
            resource = await self._kinds.resource(subject.gvk)
            obj = await self._client.get(resource, subject.name, subject.namespace)
        except UnknownKind:
            return None
        except ApiError as error:
            if error.is_absent:
                return None
            raise
        if obj["metadata"].get("uid") != subject.uid:
            return None
        gvk = resource.gvk
        return resource, {"apiVersion": gvk.group_version, "kind": gvk.kind, **obj}

    def _again(self, subject: ReportSubject, hint: _Hint, why: str) -> None:
        self._tries[subject] += 1
        if self._tries[subject] > RETRIES:
            self._lose(subject, "failed")
            self._log.warning(
                "a report was not updated; the next audit tries again",
                resource_kind=subject.gvk.kind,
                resource_namespace=subject.namespace,
                resource_name=subject.name,
                error=why,
            )
            return
        if hint.policies or hint.admitted is not None:
            # The results of a later admission take precedence.
            later = self._hints.get(subject, _NO_HINT)
            self._hints[subject] = _Hint(
                hint.is_new, hint.policies | later.policies, later.admitted or hint.admitted
            )
        self._queue.add(subject, self._backoff.next_seconds())

    def _lose(self, subject: ReportSubject, loss: Loss) -> None:
        self.lost[loss] += 1
        del self._tries[subject]

    def _log_once(self, subject: ReportSubject, event: str, error: Exception) -> None:
        """Logs a lasting fault once: it is the same for each resource of a kind."""
        key = f"{event} {subject.gvk}"
        if key not in self._logged and len(self._logged) < DIFFERENT_LOGGED_MAX:
            self._logged.add(key)
            self._log.error(event, resource_kind=str(subject.gvk), error=str(error))

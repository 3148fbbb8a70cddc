"""Outcomes of trials, written into the PolicyRevisions of the tried generations.

A PolicyRevision is named after its generation. So only one of several replicas with an outcome
creates it, and the others read that outcome.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from webhook.api import revision
from webhook.api.revision import InvalidRevision, PolicyRevision, revision_object
from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.controllers.revisions.keeper import REFUSED_SECONDS, REVISIONS, RevisionKeeper

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from webhook.api.revision_outcome import TrialOutcome
    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger

RECORD_SECONDS: Final = 0.5
"""How long a replica waits for its claim to be written before it tries a policy. A slower write
continues beside the trial."""

WRITE_SECONDS: Final = 10.0
"""The time limit of one write, and how long enforcement waits for an outcome to be written."""

TRIES: Final = 3
"""Attempts to write an outcome: other replicas wait for an announced outcome."""

NOT_KEPT: Final = f"the CRD of {revision.KIND} keeps no outcome, or no signature of it"

LOOKS: Final = 2
"""Attempts if another replica writes between our read and our write."""


class OutcomeRecords:
    """Writes outcomes, at most one for each generation; used by tasks of one loop."""

    def __init__(self, client: ClusterClient, revisions: RevisionKeeper, log: Logger) -> None:
        self._client = client
        self._revisions = revisions
        self._log = log
        self._refused_until = 0.0
        self.writes = 0
        self.failures = 0

    @property
    def are_kept(self) -> bool:
        """Whether outcomes can be written, as far as known."""
        return self._revisions.is_loaded and time.monotonic() >= self._refused_until

    async def record(
        self, document: Mapping[str, Any], digest: str, outcome: TrialOutcome, *, over: str = ""
    ) -> TrialOutcome | None:
        """Writes the outcome of a generation; returns the outcome in the record, maybe another's.

        ``over`` is the UID of a replica whose claim no longer counts. None if no outcome could be
        written.
        """
        backoff = Backoff(initial_seconds=0.2, max_seconds=2.0)
        attempt = 0
        while True:
            attempt += 1
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    written = await self._written(document, digest, outcome, over)
            except (ApiError, ApiUnreachable, TimeoutError) as error:
                is_final = isinstance(error, ApiError) and (error.is_forbidden or error.is_absent)
                pause = REFUSED_SECONDS if is_final else 0.0
                self._failed(document, str(error) or "no answer in time", pause)
                if is_final or attempt == TRIES:
                    return None
                await asyncio.sleep(backoff.next_seconds())
            else:
                if (standing := self._standing(written)) is None:
                    self._failed(document, NOT_KEPT, REFUSED_SECONDS)
                return standing

    async def withdraw(self, name: str, nobody: TrialOutcome, uid: str) -> None:
        """Withdraws a replica's claim to try a generation, if it is still recorded.

        ``name`` is the revision's, ``uid`` that of the replica.
        """
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                current = await self._client.get(REVISIONS, name)
                standing = self._standing(current)
                if standing is None or standing.is_final or standing.uid != uid:
                    return
                await self._write_outcome(current, nobody)
        except (ApiError, ApiUnreachable, TimeoutError) as error:
            if not isinstance(error, ApiError) or not (error.is_absent or error.is_conflict):
                self.failures += 1
                self._log.warning(
                    "a claim to try a policy was not withdrawn",
                    revision=name,
                    error=str(error) or "no answer in time",
                )

    def _taken(self, item: Json) -> PolicyRevision | None:
        """Returns a revision that was read or written, if it counts."""
        try:
            return self._revisions.known.take(item)
        except InvalidRevision:
            return None

    def _standing(self, item: Json) -> TrialOutcome | None:
        """Returns the outcome in a revision; None without one."""
        taken = self._taken(item)
        return None if taken is None else taken.outcome

    async def _write_outcome(self, current: Json, outcome: TrialOutcome) -> Json:
        """Writes an outcome into a revision that counts, if it has not changed since it was read."""
        self.writes += 1
        signed = self._revisions.signed({**current, "status": {"outcome": outcome.document()}})
        version = current["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "status": signed["status"]}
        name = current["metadata"]["name"]
        return await self._client.merge(REVISIONS, name, "", patch)

    async def _written(
        self, document: Mapping[str, Any], digest: str, outcome: TrialOutcome, over: str
    ) -> Json:
        """Returns the PolicyRevision with its outcome.

        There are three cases:

        1. No revision of the name is known: it is created. 2. The revision does not count: it is
        deleted and created anew. 3. The revision counts: the outcome is written into it, unless it
        has one that may not be replaced.

        Raises ApiError, ApiUnreachable.
        """
        name = revision.name_of(document, digest)
        if self._revisions.known.named(document["metadata"].get("uid", ""), name) is None:
            try:
                return await self._made(document, digest, outcome)
            except ApiError as error:
                if not error.is_conflict:
                    raise
        attempt = 0
        while True:
            attempt += 1
            try:
                current = await self._client.get(REVISIONS, name)
            except ApiError as error:
                if not error.is_absent:
                    raise
                # It was deleted a moment ago, with its object or with its whole kind.
                return await self._made(document, digest, outcome)
            try:
                if (known := self._taken(current)) is None:
                    uid = current["metadata"].get("uid", "")
                    await self._client.delete(REVISIONS, name, uid=uid)
                    return await self._made(document, digest, outcome)
                if known.outcome is not None and not _may_follow(known.outcome, outcome, over):
                    return current
                return await self._write_outcome(current, outcome)
            except ApiError as error:
                if error.is_absent:
                    return await self._made(document, digest, outcome)
                if not error.is_conflict or attempt == LOOKS:
                    raise

    async def _made(self, document: Mapping[str, Any], digest: str, outcome: TrialOutcome) -> Json:
        return await self._revisions.make(revision_object(document, digest, outcome))

    def _failed(self, document: Mapping[str, Any], error: str, pause_seconds: float) -> None:
        self.failures += 1
        # A passing failure does not end the pause after a refusal that another task has just met.
        self._refused_until = max(self._refused_until, time.monotonic() + pause_seconds)
        self._log.warning(
            "the outcome of a trial was not written",
            kind=document["kind"],
            name=document["metadata"]["name"],
            error=error,
            effect="each replica tries for itself",
        )


def _may_follow(standing: TrialOutcome, outcome: TrialOutcome, over: str) -> bool:
    """Whether an outcome may replace another one."""
    return not standing.is_final and (outcome.is_final or standing.uid == over)

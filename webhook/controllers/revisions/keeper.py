"""The kept revisions: known to every replica, written by one of them, limited in number.

Every replica watches them, and has them before it applies a policy. A version in force is kept once
it has been in force for a moment. One replica writes for each object, chosen without a leader
(:mod:`webhook.replicas.rendezvous`). The next one in turn takes over if the first is dead or has
another generation in force. A steady state costs no writes; a change creates one object and deletes
at most one. If the cluster does not have the kind, nothing is kept, and a warning is logged.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook import __version__
from webhook.api import revision, timestamp
from webhook.api.gvk import GroupVersionKind, text
from webhook.api.resource import Resource
from webhook.api.revision import PolicyRevision, read_revision, revision_object
from webhook.api.revision_outcome import TrialOutcome
from webhook.api.shapes import Json, object_of, objects_of, status_of
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import CRDS
from webhook.cluster.reflector import Reflector, Settings
from webhook.cluster.store import Change, EncodedStore, key_of
from webhook.controllers.keeper import TURN_SECONDS, WRITES_AT_ONCE, Keeper
from webhook.controllers.object_faults import TEMPLATES, ObjectFaults, PolicyKey
from webhook.controllers.revisions.known import KnownRevisions
from webhook.controllers.revisions.revisions import InForce, rollback_of, surplus
from webhook.controllers.revisions.rollout_records import FIELD, OPTIONAL, RolloutRecords
from webhook.policy_kinds import table
from webhook.policy_kinds.known import constraints_of, kind_of
from webhook.replicas import rendezvous

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.pod_status import Pod
    from webhook.cluster.client import ClusterClient
    from webhook.controllers.revisions.keys import RevisionKeys
    from webhook.log import Logger

REVISIONS: Final = Resource(
    GroupVersionKind(revision.GROUP, revision.VERSION, revision.KIND),
    revision.PLURAL,
    namespaced=False,
)
CRD_NAME: Final = f"{revision.PLURAL}.{revision.GROUP}"

SETTLED_SECONDS: Final = 0.5
"""How long a generation is in force before it is kept; one that is replaced at once is not kept."""

REFUSED_SECONDS: Final = 60.0
"""How long nothing is written after a refusal for lack of rights: each write would be refused."""

TRIED_SECONDS: Final = 10.0
"""How often a trial of another replica is checked for its end. Its outcome arrives by the watch,
its death does not. A trial takes at most five seconds of a processor."""

ORPHAN_SECONDS: Final = 60.0
"""How long the revisions of a deleted constraint are left to the API server's garbage collector. It
looks for new kinds every 30 seconds, and cannot look up an owner whose kind came and went in
between: such revisions would stay for ever."""

PROBE_SECONDS: Final = 0.5
"""How often, at start, it is checked whether the kind is served."""

_Subject: TypeAlias = "tuple[PolicyKey, str]"
"""An object and its UID: an object created anew under the same name has its own revisions."""

_METADATA: Final = ("name", "uid", "resourceVersion", "creationTimestamp")


class RevisionKeeper:
    """The kept revisions of a cluster; :meth:`run` in a task of its own."""

    def __init__(  # noqa: PLR0913  # the parts it joins, each named
        self,
        client: ClusterClient,
        pod: Pod,
        keys: RevisionKeys,
        log: Logger,
        *,
        limit: int,
        notify: Callable[[Iterable[PolicyKey]], None],
        rollouts: RolloutRecords | None = None,
        writers: Callable[[], frozenset[str]] | None = None,
        settings: Settings | None = None,
        object_faults: ObjectFaults | None = None,
    ) -> None:
        """``notify`` gets the objects whose revisions changed; ``keys`` decide which revisions count.

        ``rollouts`` are the records of the same objects; each revision keeps a copy of its record.
        ``limit`` is the number of revisions kept of each object. ``writers`` gives the replicas
        that write; without it this replica only reads. ``object_faults`` takes unforeseen errors.
        """
        self._object_faults = object_faults or ObjectFaults(log)
        self._client = client
        self._pod = pod
        self._keys = keys
        keys.listeners.append(self._judge_anew)
        self._log = log
        self._limit = limit
        self._notify = notify
        self.known = KnownRevisions(keys, log)
        self._rollouts = rollouts or RolloutRecords(keys, log)
        self._rollouts.listeners.append(self._rolled)
        self._keeps_rollouts = True
        self._writers = writers
        self._reflector = Reflector(
            client, REVISIONS, self, settings=settings, transform=_slim, store=EncodedStore()
        )
        self._desired: dict[PolicyKey, InForce] = {}
        self.keeper: Keeper[_Subject] = Keeper(
            "revision",
            self._settle,
            self._object_faults,
            workers=WRITES_AT_ONCE,
            retry_seconds=TURN_SECONDS,
            turn_seconds=TURN_SECONDS,
        )
        self._refused_until = 0.0
        self._restores = 0
        self.listener: Callable[[PolicyRevision], None] = _nobody
        """Called with each revision that came, changed or went."""

    # --- kept revisions ------------------------------------------------------------------------

    @property
    def is_loaded(self) -> bool:
        """Whether all kept revisions are known, and there is a key to sign others."""
        return self._reflector.statistics().synced and self._keys.can_sign

    @property
    def count(self) -> int:
        """The number of revisions in the cluster."""
        return len(self._reflector.store)

    def change(self, changes: Iterable[Change]) -> None:
        """Takes revisions that came or went; those without a replica's signature do not count."""
        subjects: list[PolicyKey] = []

        def take(change: Change) -> None:
            revision = self.known.take_change(change)
            subject = _subject_of(change.object)
            if change.kind == "set" and self._keys.can_sign:
                self._rollouts.take(subject[1], status_of(change.object).get(FIELD))
            if revision is not None:
                self.listener(revision)
                subjects.append(subject[0])
            if self._writers is not None and (
                subject[0] in self._desired or len(self.known.faulty(subject[1])) > 1
            ):
                self.keeper.add(subject, SETTLED_SECONDS)
            elif self._writers is not None and change.kind == "set" and self._may_be_left(subject):
                self.keeper.add(subject, ORPHAN_SECONDS)

        self._object_faults.each("revision", "", changes, take)
        self._notify(subjects)

    def _judge_anew(self) -> None:
        """Judges all revisions again after a change of keys, which decide which revisions count."""
        items = list(self._reflector.store)
        self.change([Change("set", key_of(item), item) for item in items])
        if self._writers is not None:
            subjects = {(key, _uid_of(in_force)) for key, in_force in self._desired.items()}
            subjects |= {_subject_of(item) for item in items}
            for subject in subjects:
                self.keeper.add(subject, SETTLED_SECONDS)

    def synced(self) -> None:
        """Drops revisions that no longer exist after a restore of etcd.

        Such revisions are known only from answers to requests. Without a restore there is nothing
        to do: the changes of the list have been taken.
        """
        restores = self._reflector.statistics().restores
        if restores == self._restores:
            return
        self._restores = restores
        gone = [
            revision
            for revision in self.known.all()
            if not self._reflector.store.get("", revision.name)
        ]
        for item in gone:
            self.known.forget(item)
        self._judge_anew()

    # --- at the start --------------------------------------------------------------------------

    async def wait_loaded(self, failed: Callable[[str], None]) -> None:
        """Returns once every revision is known, or it is certain that there are none.

        ``failed`` gets the reason of the delay.
        """
        await self._keys.load(failed)
        while True:
            try:
                async with asyncio.timeout(PROBE_SECONDS):
                    await self._reflector.wait_synced()
            except TimeoutError:
                refusal = await self._refusal()
                if refusal is None:
                    failed(self._reflector.statistics().last_error)
                    continue
                self._log.warning(
                    "no last good revision is kept across restarts",
                    reason=refusal,
                    effect="a policy that is broken when a replica starts is not enforced by it",
                )
            return

    async def _refusal(self) -> str | None:
        """Returns why there can be no revisions; None if they may still arrive."""
        try:
            await self._client.request("GET", REVISIONS.collection(""), query={"limit": "1"})
        except ApiError as error:
            if error.is_forbidden:
                return str(error)
            # An API server that starts may not serve a kind that it has.
            if error.is_absent and await self._has_no_crd():
                return f"the cluster has no CRD {CRD_NAME}"
            return None
        except ApiUnreachable:
            return None
        self._reflector.wake()
        return None

    async def _has_no_crd(self) -> bool:
        try:
            await self._client.get(CRDS, CRD_NAME)
        except ApiError as error:
            return error.is_absent
        except ApiUnreachable:
            return False
        return False

    # --- writing -------------------------------------------------------------------------------

    def keep(self, changes: Mapping[PolicyKey, InForce | None]) -> None:
        """Takes the versions in force of these objects; None for none."""
        if self._writers is None:
            return
        for key, in_force in changes.items():
            if in_force is None:
                before = self._desired.pop(key, None)
                if before is not None:
                    self.keeper.add((key, _uid_of(before)), ORPHAN_SECONDS)
            else:
                self._desired[key] = in_force
                self.keeper.add((key, _uid_of(in_force)), SETTLED_SECONDS)

    async def run(self) -> None:
        """Watches, and writes in this replica's turns, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keys.run())
            tasks.create_task(self._reflector.run())
            if self._writers is not None:
                await self._reflector.wait_synced()
                tasks.create_task(self.keeper.run())

    async def _settle(self, subject: _Subject) -> None:
        assert self._writers is not None
        writers = self._writers()
        if not (self._may_be_left(subject) and await self._drops_what_is_left(subject, writers)):
            await self._keep(subject, writers)

    def _rank(self, subject: _Subject, writers: frozenset[str]) -> int:
        """Returns how many replicas come before this one in the order of writers."""
        return rendezvous.rank(f"revision/{'/'.join(subject[0])}", writers, self._pod.uid)

    async def _keep(self, subject: _Subject, writers: frozenset[str]) -> None:
        """Keeps the version in force of an object and drops surplus revisions, in our turn."""
        key, uid = subject
        in_force = self._desired.get(key)
        if in_force is not None and _uid_of(in_force) != uid:
            in_force = None
        if not self._keys.can_sign:
            return  # a new key has all objects settled again
        lacking = None if in_force is None else self._lacking(in_force)
        misjudged = None if in_force is None else self._misjudged(in_force)
        beyond = [] if lacking is not None else self._beyond(uid, in_force)
        outdated = [] if lacking is not None else self._outdated(uid, misjudged)
        unrecorded = [] if lacking is not None else self._unrecorded(uid)
        if misjudged is not None and self._is_being_tried(misjudged, writers):
            # A write of ours would replace the claim, and the outcome would not be written.
            self.keeper.add(subject, TRIED_SECONDS)
            misjudged = None
            if not beyond and not outdated and not unrecorded:
                return
        if lacking is None and misjudged is None and not (beyond or outdated or unrecorded):
            self.keeper.settled(subject)
            return
        rank = self._rank(subject, writers)
        if self.keeper.waits_for_turn(subject, rank, not_before=self._refused_until):
            return
        try:
            if lacking is not None:
                await self.make(lacking)
            if misjudged is not None:
                await self._sign(replace(misjudged, outcome=self._passed()))
            for item in outdated:
                await self._sign(item)
            for name, record in unrecorded:
                await self._record(name, record)
            await self._drop(beyond)
        except (ApiError, ApiUnreachable) as error:
            self._failed(subject, error)
        else:
            self.keeper.settled(
                subject, SETTLED_SECONDS
            )  # looks for revisions beyond the limit by then

    async def _drop(self, revisions: Iterable[PolicyRevision]) -> None:
        """Deletes revisions. Raises ApiError, ApiUnreachable."""
        for item in revisions:
            self.keeper.writes += 1
            await self._client.delete(REVISIONS, item.name)
            self.known.forget(item)

    def _may_be_left(self, subject: _Subject) -> bool:
        """Whether these may be revisions of a constraint deleted with its template and kind."""
        (kind, _), uid = subject
        is_constraint = kind != TEMPLATES and "." not in kind
        in_force = self._desired.get(subject[0])
        return (
            is_constraint
            and (in_force is None or _uid_of(in_force) != uid)
            and (TEMPLATES, kind.lower()) not in self._desired
            and bool(self.known.of_subject(uid))
        )

    async def _drops_what_is_left(self, subject: _Subject, writers: frozenset[str]) -> bool:
        """Drops the revisions of a constraint that was deleted with its template.

        Returns whether all is done. The API server is asked for both objects, since this replica's
        watch may be behind.
        """
        (kind, name), uid = subject
        rank = self._rank(subject, writers)
        if self.keeper.waits_for_turn(subject, rank, not_before=self._refused_until):
            return True
        try:
            if await self._uid(constraints_of(kind), name) == uid:
                return False
            if await self._uid(table.TEMPLATES.resource, kind.lower()) is not None:
                return False
            await self._drop(self.known.of_subject(uid))
        except (ApiError, ApiUnreachable) as error:
            self._failed(subject, error)
        else:
            self.keeper.settled(subject)
        return True

    async def _uid(self, resource: Resource, name: str) -> str | None:
        """Returns the UID of an object; None if the object or its kind is missing."""
        try:
            return text(await self._client.get(resource, name), "metadata", "uid")
        except ApiError as error:
            if error.is_absent:
                return None
            raise

    def signed(self, item: Json) -> Json:
        """Returns a revision with a signature over its content."""
        status = {
            **object_of(item.get("status")),
            "signature": self._keys.sign(read_revision(item).signed_bytes),
        }
        return {**item, "status": status}

    async def make(self, document: Json) -> Json:
        """Creates a revision, in place of one that does not count; returns it as stored.

        Raises ApiError, ApiUnreachable.
        """
        name = document["metadata"]["name"]
        if (uid := self.known.ignored_uid(name)) is not None:
            self.keeper.writes += 1
            await self._client.delete(REVISIONS, name, uid=uid)
        self.keeper.writes += 1
        kept = await self._client.create(REVISIONS, self.signed(document))
        self.check_kept(kept)
        self.known.take(kept)
        return kept

    def check_kept(self, written: Json) -> None:
        """Warns of a CRD of an earlier release that prunes signatures: no revision would count."""
        if not text(written, "status", "signature"):
            self._refused_until = time.monotonic() + REFUSED_SECONDS
            self._log.warning(
                "a PolicyRevision was not signed",
                error=f"the CRD {CRD_NAME} keeps no signature: apply the manifests of this release",
                effect="no last good revision and no outcome of a trial counts",
            )

    async def _sign(self, item: PolicyRevision) -> None:
        """Writes a revision's outcome with a new signature."""
        self.keeper.writes += 1
        status: Json = {"signature": self._keys.sign(item.signed_bytes)}
        if item.outcome is not None:
            status["outcome"] = item.outcome.document()
        self.known.take(await self._client.merge(REVISIONS, item.name, "", {"status": status}))

    def _rolled(self, document: Mapping[str, Any]) -> None:
        """Queues a changed roll-out record, to keep it beside its generation."""
        if self._writers is not None:
            owner = {name: document.get(name, "") for name in ("apiVersion", "kind")}
            owner |= {name: document["metadata"].get(name, "") for name in ("name", "uid")}
            self.keeper.add(_subject_of({"spec": {"subject": owner}}), SETTLED_SECONDS)

    def _unrecorded(self, uid: str) -> list[tuple[str, Json]]:
        """Returns the revisions without the current record of their generation's roll-out."""
        if not self._keeps_rollouts:
            return []
        lacking: list[tuple[str, Json]] = []
        for item in self.known.of_subject(uid):
            record = self._rollouts.of_generation(uid, item.generation)
            kept = status_of(self._reflector.store.get("", item.name)).get(FIELD)
            if record is not None and record != kept:
                # A merge patch keeps the fields that it does not name.
                lacking.append((item.name, dict.fromkeys((*object_of(kept), *OPTIONAL)) | record))
        return lacking

    async def _record(self, name: str, record: Json) -> None:
        """Writes a roll-out's record beside its generation."""
        self.keeper.writes += 1
        written = await self._client.merge(REVISIONS, name, "", {"status": {FIELD: record}})
        self._keeps_rollouts = FIELD in status_of(written)

    def _lacking(self, in_force: InForce) -> Json | None:
        """Returns the revision to create; None if it is kept already."""
        name = revision.name_of(in_force.document, in_force.digest)
        if self.known.named(_uid_of(in_force), name) is not None:
            return None
        return revision_object(in_force.document, in_force.digest)

    def _misjudged(self, in_force: InForce) -> PolicyRevision | None:
        """Returns the revision of the version in force, if its outcome forbids enforcement."""
        name = revision.name_of(in_force.document, in_force.digest)
        judged = None if in_force.revision else self.known.named(_uid_of(in_force), name)
        return None if judged is None or judged.may_be_enforced else judged

    def _passed(self) -> TrialOutcome:
        """Returns the outcome of a generation that is in force here."""
        pod = self._pod
        return TrialOutcome("passed", pod.name, pod.uid, __version__, timestamp.now())

    def _outdated(self, uid: str, misjudged: PolicyRevision | None) -> list[PolicyRevision]:
        """Returns the revisions to sign anew with a newer key, without those that are being tried."""
        return [
            item
            for item in self.known.of_subject(uid)
            if item is not misjudged
            and self._keys.is_outdated(item.signature)
            and (item.outcome is None or item.outcome.is_final)
        ]

    def _is_being_tried(self, judged: PolicyRevision, writers: frozenset[str]) -> bool:
        """Whether another live replica has claimed the trial of a generation."""
        outcome = judged.outcome
        return (
            outcome is not None
            and not outcome.is_final
            and outcome.uid in writers - {self._pod.uid}
        )

    def _beyond(self, uid: str, in_force: InForce | None) -> list[PolicyRevision]:
        """Returns the revisions to drop.

        1. Revisions beyond the limit. 2. Unusable ones older than the generation in force. 3. Of
        newer unusable ones, all but the newest.
        """
        faulty = self.known.faulty(uid)
        if in_force is None:
            return faulty[:-1]
        beyond = surplus(self.known.of(uid), in_force, rollback_of(in_force.document), self._limit)
        beyond += [revision for revision in faulty if revision.generation < in_force.generation]
        return beyond + [
            revision for revision in faulty[:-1] if revision.generation > in_force.generation
        ]

    def _failed(self, subject: _Subject, error: ApiError | ApiUnreachable) -> None:
        if isinstance(error, ApiError) and error.is_forbidden:
            self._refused_until = time.monotonic() + REFUSED_SECONDS
        if isinstance(error, ApiError) and (
            # Another replica created it, and the watch will deliver it; or the kind itself was
            # deleted.
            error.is_forbidden or error.is_conflict or error.is_absent
        ):
            seconds = REFUSED_SECONDS * random.uniform(1.0, 1.5)  # noqa: S311  # jitter
            self.keeper.add(subject, seconds)
        else:
            seconds = self.keeper.retry(subject)
        if isinstance(error, ApiError) and error.is_conflict:
            return
        self.keeper.failures += 1
        kind, name = subject[0]
        self._log.warning(
            "a PolicyRevision was not written; trying again",
            kind=kind,
            name=name,
            error=str(error),
            seconds=seconds,
        )


def _slim(item: Json) -> Json:
    """Returns the needed part of a revision: there may be some 10,000 of them."""
    metadata = {name: item["metadata"].get(name, "") for name in _METADATA}
    spec = object_of(item.get("spec"))
    subject = {name: text(spec, "subject", name) for name in ("apiVersion", "kind", "name", "uid")}
    owners = objects_of(item["metadata"].get("ownerReferences"))
    metadata["ownerReferences"] = [{"uid": owner.get("uid")} for owner in owners]
    old_status = object_of(item.get("status"))
    status = {
        "outcome": object_of(old_status.get("outcome")),
        "signature": old_status.get("signature", ""),
    }
    if FIELD in old_status:
        status[FIELD] = old_status[FIELD]
    return {"metadata": metadata, "spec": spec | {"subject": subject}, "status": status}


def _uid_of(in_force: InForce) -> str:
    uid: str = in_force.document["metadata"].get("uid", "")
    return uid


def _nobody(_: PolicyRevision) -> None:
    """Does nothing: no listener is set."""


def _subject_of(item: Mapping[str, Any]) -> _Subject:
    """Returns the subject that a revision names."""
    api_version, kind, name, uid = (
        text(item, "spec", "subject", field) for field in ("apiVersion", "kind", "name", "uid")
    )
    group = api_version.rpartition("/")[0]
    row = kind_of(GroupVersionKind(group, "", kind))
    if row is not None and row.role == "extension":
        return (f"{kind}.{group}", name), uid
    return (kind, name), uid

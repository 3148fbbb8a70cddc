"""Chooses the generation of a template or constraint to enforce: requested, or the last good one.

Requested is the object itself, or the revision named by its annotation ``waddle.dev/rollback-to``.
If that cannot be used, the version in force stays. If no version is in force (after a restart), the
kept revisions are tried, the newest first. Revisions belong to one object by UID: those of a
deleted object never count for its successor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from webhook.api.revision import ROLLBACK, InvalidRevision, PolicyRevision, digest_of
from webhook.api.shapes import Json
from webhook.values import dataclass

MISSING_REVISION = "missing_revision"
"""Code of the status error of a rollback to a revision that is not kept."""


class Revisions(Protocol):
    """Where the kept revisions are."""

    def of(self, uid: str) -> Iterable[PolicyRevision]:
        """Returns an object's revisions that may be enforced, in any order."""

    def refusal(self, document: Mapping[str, Any], digest: str) -> str:
        """Returns why a trial forbids a generation; otherwise an empty text."""


class NoRevisions:
    """Stands in if no revisions are kept."""

    def of(self, uid: str) -> Iterable[PolicyRevision]:
        """Finds none."""
        del uid
        return ()

    def refusal(self, document: Mapping[str, Any], digest: str) -> str:
        """Finds none: nothing was tried before."""
        del document, digest
        return ""


@dataclass(frozen=True, slots=True)
class InForce:
    """The enforced document of an object, and its origin.

    ``revision`` names the PolicyRevision that it was taken from; empty if it is the object itself.
    ``rollback`` is the value of the annotation that requested it.
    """

    document: Mapping[str, Any]
    digest: str
    revision: str = ""
    rollback: str = ""

    @property
    def generation(self) -> int:
        """The generation of the object that this is."""
        generation: int = self.document["metadata"].get("generation", 0)
        return generation


def newest_first(revisions: Iterable[PolicyRevision]) -> list[PolicyRevision]:
    """Sorts revisions in the order in which they are tried and kept."""
    return sorted(
        revisions, key=lambda item: (item.generation, item.created, item.name), reverse=True
    )


def rollback_of(document: Mapping[str, Any]) -> str:
    """Returns the revision named by an object's rollback annotation; empty without one."""
    annotations = document["metadata"].get("annotations") or {}
    named = annotations.get(ROLLBACK)
    return named.strip() if isinstance(named, str) else ""


def target_of(target: str, revisions: Iterable[PolicyRevision]) -> PolicyRevision | None:
    """Returns the revision of this name or generation; None if it is not kept."""
    for revision in newest_first(revisions):
        if target in (revision.name, str(revision.generation)):
            return revision
    return None


class UnknownRevision(ValueError):
    """The revision requested by a rollback is not kept."""

    def __init__(self, target: str, revisions: Iterable[PolicyRevision]) -> None:
        kept = ", ".join(str(item.generation) for item in newest_first(revisions)) or "none"
        super().__init__(
            f"annotation {ROLLBACK}: there is no revision {target!r}; kept generations: {kept}"
        )


def attempts(
    document: Mapping[str, Any], in_force: InForce | None, revisions: Revisions
) -> Iterator[InForce | UnknownRevision | InvalidRevision]:
    """Yields the versions to try to enforce, in order, with refusals in their place.

    Ends early if the version in force should stay. A version in force because of a removed
    annotation does not stay: replicas that start now would not know it.
    """
    generation = document["metadata"].get("generation", 0)
    # A revision with a later generation than the object belongs to another history of the cluster.
    kept = [
        item
        for item in revisions.of(document["metadata"].get("uid", ""))
        if item.generation <= generation
    ]
    if rollback := rollback_of(document):
        target = target_of(rollback, kept)
        if target is None:
            yield UnknownRevision(rollback, kept)
        else:
            yield _taken(target, document, rollback=rollback)
    yield InForce(document, digest_of(document))
    if in_force is not None and not in_force.rollback:
        return
    for revision in newest_first(kept):
        yield _taken(revision, document)


def _taken(
    revision: PolicyRevision, document: Mapping[str, Any], *, rollback: str = ""
) -> InForce | InvalidRevision:
    try:
        content = revision.document(document)
    except InvalidRevision as error:
        return error
    return InForce(content, revision.digest, revision.name, rollback)


def surplus(
    revisions: Iterable[PolicyRevision], in_force: InForce, rollback: str, limit: int
) -> list[PolicyRevision]:
    """Returns the surplus revisions: not among the newest ``limit``, in force or rolled back to."""
    ordered = newest_first(revisions)
    target = target_of(rollback, ordered) if rollback else None
    return [
        item
        for item in ordered[limit:]
        if item.name != in_force.revision
        and (item.generation, item.digest) != (in_force.generation, in_force.digest)
        and (target is None or item.name != target.name)
    ]


def origin_fields(in_force: InForce | None) -> Json:
    """Returns the status fields about the origin of the version in force."""
    if in_force is None:
        return {}
    fields = {
        "activeDigest": in_force.digest,
        "activeRevision": in_force.revision,
        "rolledBackTo": in_force.rollback,
    }
    return {name: value for name, value in fields.items() if value}

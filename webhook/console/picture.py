"""The picture of a console at one moment: immutable values of a source."""

from __future__ import annotations

import asyncio
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook.policy_kinds.known import PARTS_OF_FILES
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.revision import PolicyRevision
    from webhook.console.visitor import Right
    from webhook.controllers.status.synced_kinds import SyncFacts

PictureState = Literal["active", "degraded", "error", "not asked", "not for admission", "pending"]

CATEGORIES: Final = ("template", "constraint", *(part.name for part in PARTS_OF_FILES))
"""The categories of policies."""

STATES: Final[tuple[PictureState, ...]] = (
    "error",
    "degraded",
    "not asked",
    "pending",
    "active",
    "not for admission",
)
"""The gravest first. ``degraded``: an earlier revision is in force, not every replica has this one,
or it takes too long; ``not asked``: no webhook configuration sends anything that it is for, or no binding names it; ``pending``: nobody has said anything of it yet."""


@dataclass(frozen=True, slots=True)
class ReplicaStanding:
    """The standing of one policy at one replica."""

    replica: str
    state: str
    generation: int | None
    since: str
    reason: str


@dataclass(frozen=True, slots=True)
class ShownPolicy:
    """A template, constraint, mutator or ExpansionTemplate, and what is known of it.

    ``action`` is what a constraint does where it is violated, as it is in force. ``faults`` are
    texts for whoever wrote it. ``place`` is ``file:line``, empty for what a cluster holds.
    ``revisions`` are generations that are kept, the newest first.
    """

    category: str
    kind: str
    name: str
    document: Mapping[str, Any] = field(repr=False)
    state: PictureState
    action: str = ""
    severity: str = ""
    title: str = ""
    description: str = ""
    owner: str = ""
    """The responsible team. All four fields are the constraint's own, or its template's."""
    generation: int | None = None
    resource_version: str = ""
    audited: int = 0
    """The last audit of all objects by it, in seconds since 1970; 0 for none."""
    faults: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    """Warnings about a policy that can be used, but is probably wrong."""
    place: str = ""
    standings: tuple[ReplicaStanding, ...] = ()
    enforcing: int = 0
    counted: int = 0
    rollout: Mapping[str, Any] | None = None
    revisions: tuple[PolicyRevision, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name: unique for each policy."""
        return self.kind, self.name


@dataclass(frozen=True, slots=True)
class ShownViolation:
    """The violation of one constraint by one object. ``place`` is ``file:line``, or empty."""

    policy: str
    """``Kind/name`` of the constraint."""
    action: str
    """``deny``, ``warn`` or ``dryrun``, several with commas; of a report its result."""
    api_version: str
    kind: str
    namespace: str
    name: str
    message: str
    severity: str = ""
    place: str = ""
    since: int = 0
    """The time of the first finding, in seconds since 1970; 0 if unknown."""
    carrier: Right | None = None
    """By which a policy report is read that tells of it."""

    @property
    def resource(self) -> tuple[str, str, str, str]:
        """Return the violating object: API version, kind, namespace and name."""
        return self.api_version, self.kind, self.namespace, self.name


@dataclass(frozen=True, slots=True)
class ReplicaPod:
    """A replica's Pod on the page of health."""

    name: str
    ready: bool
    terminating: bool
    notes: tuple[str, ...] = ()
    """The faults of its own report, ``/readyz?verbose``."""


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """The serving certificate of one webhook configuration, as whoever asks it sees it.

    Times are RFC 3339, empty where unknown; ``why`` says what is wrong, or why it was not seen.
    """

    configuration: str
    address: str
    ends: str = ""
    authority_ends: str = ""
    is_trusted: bool | None = None
    """Whether the API server would accept it; None where it was not seen."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that pages show.

    ``version`` is what each page names: a digest of files, or resource versions. ``trouble`` says
    why what is shown may be old or not all; ``violations`` is None where nothing was looked for,
    and ``why_no_violations`` then says why.
    """

    over: str
    """The source: ``files`` or ``cluster``."""
    place: str
    version: str
    taken: str
    """When, in RFC 3339."""
    policies: tuple[ShownPolicy, ...] = ()
    violations: tuple[ShownViolation, ...] | None = None
    why_no_violations: str = ""
    reviewed: int | None = None
    pods: tuple[ReplicaPod, ...] = ()
    trouble: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """The faults of files as a whole, and of objects that are no policies."""
    kinds: tuple[Mapping[str, Any], ...] = ()
    """The state of each watched kind."""
    certificates: tuple[ShownCertificate, ...] = ()
    namespace: str = ""
    """Waddle's namespace."""
    context: str = ""
    """The kubeconfig's context of this cluster, if it is named."""
    carriers: tuple[Right, ...] = ()
    """The rights to read all policy reports, if these have the violations."""
    sync: SyncFacts | None = None
    """The facts about synced data; None where they may not be seen, or there is no cluster."""
    sees_pods: bool = True
    hidden: tuple[str, ...] = ()
    """The rights that the visitor lacks for the rest."""
    by_key: Mapping[tuple[str, str], ShownPolicy] = field(default_factory=dict, repr=False)
    answers: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The results derived from the picture so far, by question; two of one picture are equal."""

    def policy(self, kind: str, name: str) -> ShownPolicy | None:
        """A policy by kind and name."""
        return self.by_key.get((kind, name))


_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")

EMPTY: Final = Picture(
    "", "", "", "", trouble=("nothing has been read yet: try again in a moment",)
)


@dataclass(frozen=True, slots=True)
class ShownCluster:
    """A cluster by the name of its context, and the path that its pages stand below."""

    name: str
    root: str


def clusters_of(contexts: Iterable[str]) -> tuple[ShownCluster, ...]:
    """Returns each context's path: its name without characters invalid in a path, made unique."""
    taken: list[str] = []
    listed = []
    for name in contexts:
        fit = _UNFIT.sub("-", name).strip(".-") or "cluster"
        path, number = fit, 1
        while path in taken:
            number += 1
            path = f"{fit}-{number}"
        taken.append(path)
        listed.append(ShownCluster(name, f"/clusters/{path}"))
    return tuple(listed)


class Shown:
    """The picture in force, replaced whole, and its waiters. Used on one loop."""

    def __init__(self) -> None:
        self.picture = EMPTY
        self.number = 0
        self.ended = False
        """Whether no further picture follows: the process ends."""
        self._changed = asyncio.Event()

    def swap(self, picture: Picture) -> None:
        """Replaces the picture, and wakes the waiters."""
        self.picture = picture
        self.number += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def end(self) -> None:
        """Ends the pictures, and releases the waiters."""
        self.ended = True
        self._changed.set()

    async def changed(self, seen: int) -> int:
        """Returns the new number once the picture changes from this number, or pictures end."""
        while self.number == seen and not self.ended:
            await self._changed.wait()
        return self.number


class NotReadable(Exception):
    """An object cannot be read; the text has the reason."""


@dataclass(frozen=True, slots=True)
class NamedObject:
    """An object's kind, namespace and name."""

    gvk: GroupVersionKind
    namespace: str
    name: str

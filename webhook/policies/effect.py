"""Finds the effect of changed policies on objects that exist.

Each object is reviewed by the policies in force and by those to come, as an audit
does it; what one finds and the other does not is the effect.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.api.shapes import object_of
from webhook.api.shapes import objects_of as objects_in
from webhook.constraint import enforcement, template
from webhook.constraint.limits import Limits
from webhook.constraint.review import AugmentedObject
from webhook.exceptions.exception import ANY
from webhook.policy_kinds.known import kind_of_document
from webhook.policy_kinds.table import EXCEPTION_KINDS
from webhook.review.loops import review
from webhook.review.subject import Subject
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from webhook.constraint.client import Client
    from webhook.constraint.result import Result
    from webhook.constraint.snapshot import Snapshot
    from webhook.review.policy_set import PolicySet

EXAMPLES_MAX: Final = 20
"""Violations that are shown of each constraint; all are counted."""

ConstraintKey = tuple[str, str]
"""A constraint's kind and name."""


class Example(NamedTuple):
    """A violation that comes or goes, and the object."""

    object: str
    message: str


@dataclass(slots=True)
class ConstraintEffect:
    """The changes for one constraint."""

    before: int = 0
    """Violations by the policies in force."""
    after: int = 0
    added: int = 0
    removed: int = 0
    matched: bool | None = None
    """Whether it matched any object; None where that was not asked."""
    examples: list[Example] = field(default_factory=list)
    """The first of those added."""

    def document(self, *, examples: bool) -> dict[str, Any]:
        """As JSON."""
        document: dict[str, Any] = {
            "violationsBefore": self.before,
            "violationsAfter": self.after,
            "added": self.added,
            "removed": self.removed,
        }
        if self.matched is not None:
            document["matched"] = self.matched
        if examples:
            document["examples"] = [
                {"object": item.object, "message": item.message} for item in self.examples
            ]
        return document


class Effect:
    """Collects what changes, object by object; memory is bounded by the constraints."""

    def __init__(self, keys: Collection[ConstraintKey]) -> None:
        """``keys`` are the constraints that the new policies hold or concern."""
        self.constraints = {key: ConstraintEffect() for key in sorted(keys)}
        self.objects = 0
        """How many were reviewed."""
        self.excused: Counter[str] = Counter()
        """How many violations exceptions excuse, or weaken, by the exception."""

    def take(
        self,
        shown: str,
        before: Iterable[Result],
        after: Iterable[Result],
        excused: Iterable[Result] = (),
    ) -> None:
        """Compare the results of one object, which ``shown`` names.

        ``excused`` are those that exceptions take out of what is to come.
        """
        self.objects += 1
        after = tuple(after)
        self.excused.update(
            one.excuse.title for one in (*excused, *after) if one.excuse is not None
        )
        old, new = self._messages(before), self._messages(after)
        for key, one in self.constraints.items():
            ours, theirs = new.get(key, set()), old.get(key, set())
            one.before += len(theirs)
            one.after += len(ours)
            one.removed += len(theirs - ours)
            fresh = sorted(ours - theirs)
            one.added += len(fresh)
            room = EXAMPLES_MAX - len(one.examples)
            one.examples += [Example(shown, message) for message in fresh[:room]]

    def _messages(self, results: Iterable[Result]) -> dict[ConstraintKey, set[str]]:
        messages: dict[ConstraintKey, set[str]] = {}
        for result in results:
            key = result.constraint.key
            if key in self.constraints:
                messages.setdefault(key, set()).add(result.msg)
        return messages

    def document(self, *, examples: bool = True) -> dict[str, Any]:
        """As JSON."""
        return {
            "objects": self.objects,
            "constraints": [
                {"kind": kind, "name": name, **one.document(examples=examples)}
                for (kind, name), one in self.constraints.items()
            ],
            **({"excused": dict(sorted(self.excused.items()))} if self.excused else {}),
        }


def effect_on_data(
    before: PolicySet, after: PolicySet, keys: Collection[ConstraintKey], seconds: float
) -> tuple[Effect, bool]:
    """Find the effect on the synced objects, and whether all of them were looked at.

    It ends after so many seconds.
    """
    effect, until = Effect(keys), time.monotonic() + seconds
    for item in objects_of(before.snapshot.inventory):
        if time.monotonic() > until:
            return effect, False
        subject = stored(item, before.snapshot.namespaces.get(namespace_of(item)), until)
        old, new = (review(policies, subject).responses for policies in (before, after))
        shown = f"{gvk_of(item).kind} {name_of(item)}"
        effect.take(shown, old.results, new.results, new.excused)
    return effect, True


def stored(obj: dict[str, Any], namespace: Mapping[str, Any] | None, until: float) -> Subject:
    """An object that is in a cluster, as an audit reviews it: it was mutated when it was stored."""
    return Subject(
        AugmentedObject(obj, namespace),
        point=enforcement.AUDIT,
        limits=Limits(until),
        process="audit",
        mutates=False,
        on_expansion_error="skip",
    )


def objects_of(inventory: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every object of ``data.inventory``: by scope, namespace, group and version, kind and name."""
    places = [inventory.get("cluster") or {}, *(inventory.get("namespace") or {}).values()]
    for place in places:
        for kinds in place.values():
            for objects in kinds.values():
                yield from objects.values()


def concerned(
    documents: Iterable[Mapping[str, Any]], keys: Iterable[ConstraintKey]
) -> frozenset[ConstraintKey]:
    """The constraints among these keys that documents bring or except from, or whose template they bring."""
    own: set[ConstraintKey] = set()
    templates: set[str] = set()
    kinds: set[str] = set()
    for item in documents:
        if kind_of_document(item) in EXCEPTION_KINDS:
            named = objects_in(object_of(item.get("spec")).get("constraints"))
            own |= {(str(one.get("kind")), str(one.get("name"))) for one in named}
            kinds |= {str(one.get("kind")) for one in named if one.get("name") == ANY}
            continue
        own.add((gvk_of(item).kind, name_of(item)))
        if gvk_of(item).group == template.GROUP:
            templates.add(name_of(item))
    return frozenset(
        key for key in keys if key in own or key[0] in kinds or key[0].lower() in templates
    )


def only(client: Client, keys: Collection[ConstraintKey]) -> Snapshot:
    """The client's policies, after its other constraints were removed: nothing is asked of those."""
    for item in client.snapshot.constraints:
        if item.key not in keys:
            client.remove_constraint(*item.key)
    return client.snapshot

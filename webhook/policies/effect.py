"""Finds the effect of changed policies on existing objects.

Each object is reviewed by the policies in force and by the new policies, as in an audit; the effect
is the difference of the violations.
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
"""The most violations shown of each constraint; all are counted."""

ConstraintKey = tuple[str, str]
"""A constraint's kind and name."""


class Example(NamedTuple):
    """An added or removed violation, and its object."""

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
    """Whether the constraint matched any object; None if this was not observed."""
    examples: list[Example] = field(default_factory=list)
    """The first added violations."""

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
    """Collects the differences object by object; its memory is bounded by the constraints."""

    def __init__(self, keys: Collection[ConstraintKey], exceptions: Iterable[str] = ()) -> None:
        """``keys`` are the constraints that the new policies contain or concern.

        ``exceptions`` are the titles of the new exceptions, which are listed even if unused.
        """
        self.constraints = {key: ConstraintEffect() for key in sorted(keys)}
        self.objects = 0
        """The number of reviewed objects."""
        self.excused: Counter[str] = Counter(dict.fromkeys(exceptions, 0))
        """The number of violations that each exception excuses or weakens."""

    def take(
        self,
        shown: str,
        before: Iterable[Result],
        after: Iterable[Result],
        excused: Iterable[Result] = (),
    ) -> None:
        """Compares the results of one object; ``shown`` is its name.

        ``excused`` are the violations that exceptions remove from the new results.
        """
        self.objects += 1
        after = tuple(after)
        self.excused.update(
            excuse.title
            for result in (*excused, *after)
            if result.excuse is not None
            for excuse in result.excuse.needed
        )
        old, new = self._messages(before), self._messages(after)
        for key, constraint in self.constraints.items():
            ours, theirs = new.get(key, set()), old.get(key, set())
            constraint.before += len(theirs)
            constraint.after += len(ours)
            constraint.removed += len(theirs - ours)
            fresh = sorted(ours - theirs)
            constraint.added += len(fresh)
            room = EXAMPLES_MAX - len(constraint.examples)
            constraint.examples += [Example(shown, message) for message in fresh[:room]]

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
                {"kind": kind, "name": name, **constraint.document(examples=examples)}
                for (kind, name), constraint in self.constraints.items()
            ],
            **({"excused": dict(sorted(self.excused.items()))} if self.excused else {}),
        }


def effect_on_data(
    before: PolicySet, after: PolicySet, keys: Collection[ConstraintKey], seconds: float
) -> tuple[Effect, bool]:
    """Finds the effect on the synced objects, and whether all of them were reviewed.

    It stops after so many seconds.
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
    """Returns a stored object as an audit reviews it: mutators have already changed it."""
    return Subject(
        AugmentedObject(obj, namespace),
        point=enforcement.AUDIT,
        limits=Limits(until),
        process="audit",
        mutates=False,
        on_expansion_error="skip",
    )


def objects_of(inventory: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields every object of ``data.inventory``.

    The tree is by scope, namespace, group and version, kind and name.
    """
    places = [inventory.get("cluster") or {}, *(inventory.get("namespace") or {}).values()]
    for place in places:
        for kinds in place.values():
            for objects in kinds.values():
                yield from objects.values()


def concerned(
    documents: Iterable[Mapping[str, Any]], keys: Iterable[ConstraintKey]
) -> frozenset[ConstraintKey]:
    """Returns the constraints among these keys that the documents change.

    A document is the constraint, its template, or an exception from it.
    """
    named_keys: set[ConstraintKey] = set()
    templates: set[str] = set()
    kinds: set[str] = set()
    for item in documents:
        if kind_of_document(item) in EXCEPTION_KINDS:
            named = objects_in(object_of(item.get("spec")).get("constraints"))
            named_keys |= {
                (str(reference.get("kind")), str(reference.get("name"))) for reference in named
            }
            kinds |= {
                str(reference.get("kind")) for reference in named if reference.get("name") == ANY
            }
            continue
        named_keys.add((gvk_of(item).kind, name_of(item)))
        if gvk_of(item).group == template.GROUP:
            templates.add(name_of(item))
    return frozenset(
        key for key in keys if key in named_keys or key[0] in kinds or key[0].lower() in templates
    )


def only(client: Client, keys: Collection[ConstraintKey]) -> Snapshot:
    """Removes other constraints from the client, so that they are not evaluated."""
    for item in client.snapshot.constraints:
        if item.key not in keys:
            client.remove_constraint(*item.key)
    return client.snapshot

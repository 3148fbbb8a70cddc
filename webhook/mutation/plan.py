"""The mutators for one kind and operation, and their joint effect on an object, if it is known.

A plan tests each different match once. It has a tree (:mod:`webhook.mutation.independence`) for
each choice of mutators made by objects so far.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.errors import MatchError
from webhook.constraint.match import MatchSubject, View
from webhook.mutation.independence import tree_of
from webhook.mutation.patch import NO_PATCH, Patch
from webhook.mutation.setting import Context, ExternalData
from webhook.mutation.walk import Fields, Unknown, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.mutation.mutator import MutationSource, Mutator

CHOICES_MAX: Final = 64
"""The most choices of mutators, and choices of assigning mutators, that a plan keeps. A tree takes
about 1 KiB for each mutator, and ten with its pieces of patches. 64 MiB would take 64 choices of a
hundred mutators each, all of which are used with 64 containers.
"""


_NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


class Mutated:
    """An object after mutation.

    ``passes`` name the mutators that assigned a value, for each pass with changes. ``iterations``
    is 0 without changes, else the number of passes including the last, quiet one, as in
    Gatekeeper's metric. ``skipped`` has the reasons of failed mutators. ``patch`` is the JSON Patch
    that leads to the object, if it was written on the way.
    """

    __slots__ = ("_object", "asks_providers", "iterations", "passes", "patch", "skipped")

    def __init__(
        self,
        obj: dict[str, Any] | Callable[[], dict[str, Any]],
        passes: tuple[tuple[MutationSource, ...], ...] = (),
        iterations: int = 0,
        *,
        skipped: Mapping[str, str] = _NOBODY,
        asks_providers: bool = False,
        patch: Patch = NO_PATCH,
    ) -> None:
        """``obj`` is the resulting object, or a function that makes it."""
        self._object = obj
        self.passes = passes
        self.iterations = iterations
        self.skipped = skipped
        self.asks_providers = asks_providers
        self.patch = patch

    @property
    def object(self) -> dict[str, Any]:
        """The resulting object; the given object if there were no changes."""
        value = self._object
        if callable(value):
            value = self._object = value()
        return value


class _Choice:
    """Mutators that match an object."""

    __slots__ = ("_applied", "_mutators", "tree")

    def __init__(self, mutators: tuple[Mutator, ...], labels_read: frozenset[str]) -> None:
        self._mutators = mutators
        self.tree: Fields | None = tree_of(mutators, labels_read)
        self._applied: dict[int, tuple[tuple[Mutator, ...], ...]] = {}

    def passes(self, assigned: int) -> tuple[tuple[Mutator, ...], ...]:
        """Returns one pass with the mutators whose bits are set."""
        passes = self._applied.get(assigned)
        if passes is None:
            if len(self._applied) >= CHOICES_MAX:
                self._applied.clear()
            mutators = tuple(
                item for number, item in enumerate(self._mutators) if assigned >> number & 1
            )
            passes = self._applied[assigned] = (mutators,)
        return passes


class MutationPlan:
    """The mutators for one kind and operation, in the order in which they run.

    Any thread may use it: all threads compute equal cached values, which are only added or
    forgotten.
    """

    __slots__ = ("_choices", "_gvk", "_questions", "asks_providers", "mutators")

    def __init__(self, mutators: tuple[Mutator, ...], gvk: GroupVersionKind) -> None:
        self.mutators = mutators
        self.asks_providers = any(type(item.assignment.setter) is ExternalData for item in mutators)
        """Whether a mutator puts placeholders for answers of a provider."""
        self._gvk = gvk
        self._questions = {item.match_key: item.matches for item in mutators if item.match_key}
        self._choices: dict[int, _Choice] = {}

    def apply_at_once(self, obj: dict[str, Any], context: Context) -> Mutated | None:
        """Applies all matching mutators in one walk; None if they must be applied one by one."""
        choice = self._choice(obj, context)
        if choice is None or choice.tree is None:
            return None
        tree = choice.tree
        walk = Walk(obj, context, makes=False)
        try:
            tree.apply(obj, "", walk)
        except (Unknown, RecursionError):
            return None
        if not walk.pieces:
            return Mutated(obj)
        patch = Patch.of_pieces(walk.pieces)
        build = partial(_made, tree, obj, context)
        return Mutated(build, choice.passes(walk.assigned), 2, patch=patch)

    def _choice(self, obj: dict[str, Any], context: Context) -> _Choice | None:
        """Returns the mutators that match the object; None where that cannot be decided."""
        key = 0
        if self._questions:
            view = View(obj, self._gvk)
            view.namespace = context.namespace_name
            subject = MatchSubject((view,), context.namespace, context.source)
            try:
                for number, matches in enumerate(self._questions.values()):
                    key |= matches(view, subject) << number
            except MatchError:
                return None
        choice = self._choices.get(key)
        if choice is None:
            if len(self._choices) >= CHOICES_MAX:
                self._choices.clear()
            answers = {
                question: key >> number & 1 for number, question in enumerate(self._questions)
            }
            choice = self._choices[key] = _Choice(
                tuple(item for item in self.mutators if answers.get(item.match_key, 1)),
                frozenset().union(*(item.labels_read for item in self.mutators)),
            )
        return choice


def _made(tree: Fields, obj: dict[str, Any], context: Context) -> dict[str, Any]:
    """Makes the object of a walk that has ended well."""
    document: dict[str, Any] = tree.apply(obj, "", Walk(obj, context, makes=True))
    return document

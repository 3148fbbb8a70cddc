"""Mutators of a test suite: the mutated object of a case, compared with the expected one.

An extension of Waddle: a test may name ``mutators``, and a case ``mutated``, the expected object.
Assertions are then about the mutated object.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.mutation.errors import MutationError
from webhook.mutation.external import settled
from webhook.mutation.pace import Pace
from webhook.mutation.patch import make_patch
from webhook.mutation.setting import Context
from webhook.policies.extensions import Extensions
from webhook.review.loops import answered
from webhook.review.mutating import EXTENSION_SECONDS, as_decoded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.external_data.exchange import Ask
    from webhook.mutation.snapshot import MutationSnapshot
    from webhook.policies.manifests import Manifest

SHOWN_CHARACTERS: Final = 2_000
"""Of a difference."""


class SuiteMutationError(Exception):
    """Mutators that cannot be used, or an object that they cannot be applied to."""


def read_suite_mutators(manifests: Sequence[Manifest]) -> MutationSnapshot:
    """Reads the mutators of a file; raises :class:`SuiteMutationError`."""
    extensions = Extensions()
    if faults := extensions.load(manifests):
        raise SuiteMutationError("; ".join(map(str, faults)))
    if not extensions.mutations:
        raise SuiteMutationError("there is no mutator in it")
    return extensions.mutations


def mutated_for_suite(
    mutations: MutationSnapshot,
    document: dict[str, Any],
    namespaces: Mapping[str, Mapping[str, Any]],
    ask: Ask | None,
) -> dict[str, Any]:
    """Returns the object as it would be stored on creation; raises :class:`SuiteMutationError`.

    ``namespaces`` are those of the case's inventory; others have no labels. ``ask`` answers for
    providers.
    """
    if not mutations:
        return document
    given, document = document, as_decoded(document)
    place = namespace_of(document)
    is_namespace = gvk_of(document).group_kind == ("", "Namespace")
    unknown_namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
    known = namespaces.get(place, unknown_namespace) if place else None
    namespace = document if is_namespace else known
    pace = Pace(time.monotonic() + EXTENSION_SECONDS)
    context = Context("CREATE", namespace, place, pace=pace)
    try:
        pending = mutations.mutate(document, context)
        mutated = answered(lambda answers: settled(pending, answers.known, pace), ask)
    except MutationError as error:
        raise SuiteMutationError(f"mutating {name_of(document)}: {error}") from None
    return given if mutated is document else mutated


def expectation_fault(mutated: dict[str, Any], expected: dict[str, Any]) -> str:
    """Returns the difference from the expected object; empty for none."""
    patch = make_patch(mutated, expected)
    if not patch:
        return ""
    shown = encode(patch).decode()
    cut = shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}…"
    return f"the mutated object is not the one expected, which this patch would make of it: {cut}"

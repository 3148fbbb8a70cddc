"""Manifests with the mutators and ExpansionTemplates among them applied."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import decode, encode
from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.cli.formats.document import as_json, as_yaml
from webhook.cli.sources import CannotTest
from webhook.constraint import expansion as expansions
from webhook.constraint.expansion import InvalidExpansion
from webhook.constraint.placement import namespace_for
from webhook.mutation import mutator
from webhook.mutation.errors import MutationError
from webhook.mutation.expanding import expand
from webhook.mutation.external import resolved
from webhook.mutation.setting import Context
from webhook.policies.extensions import SECONDS_MAX, Extensions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.expansion import Expansion, Resultant
    from webhook.mutation.plan import Mutated
    from webhook.mutation.snapshot import MutationSnapshot
    from webhook.policies.manifests import Manifest

OPERATION: Final = "CREATE"
"""What a manifest is taken for: a mutator of updates alone does not see it."""

DEFAULT_NAMESPACE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default"},
}


def read_mutations(manifests: Sequence[Manifest]) -> MutationSnapshot:
    """The mutators among manifests; raises :class:`~webhook.cli.sources.CannotTest`."""
    return _loaded([item for item in manifests if item.gvk.group == mutator.GROUP]).mutations


def read_expansion(manifests: Sequence[Manifest]) -> Expansion:
    """The ExpansionTemplates among manifests; raises :class:`~webhook.cli.sources.CannotTest`."""
    return _loaded([item for item in manifests if item.gvk.group == expansions.GROUP]).expansion


def _loaded(manifests: list[Manifest]) -> Extensions:
    extensions = Extensions()
    if faults := extensions.load(manifests):
        raise CannotTest(*map(str, faults))
    return extensions


def is_object(manifest: Manifest) -> bool:
    """Whether a manifest is something to mutate: no policy of any kind."""
    return not manifest.gvk.group.endswith(".gatekeeper.sh")


def as_manifests(objects: Sequence[dict[str, Any]], output: str) -> str:
    """YAML documents, or with ``json`` one array, without a newline at the end."""
    # Values that several objects share are written out in each.
    copies = decode(encode(list(objects)))
    return as_json(copies) if output == "json" else "\n---\n".join(map(as_yaml, copies))


def namespaces_of(manifests: Sequence[Manifest]) -> dict[str, Mapping[str, Any]]:
    """The Namespaces by name, with one called default."""
    by_name: dict[str, Mapping[str, Any]] = {"default": DEFAULT_NAMESPACE}
    for item in manifests:
        if item.gvk.group_kind == ("", "Namespace"):
            by_name[name_of(item.document)] = item.document
    return by_name


def mutate(
    mutations: MutationSnapshot,
    obj: dict[str, Any],
    namespaces: Mapping[str, Mapping[str, Any]],
    seconds: float = SECONDS_MAX,
) -> tuple[Mutated, dict[str, Any]]:
    """What the mutators do to an object within a time.

    Raises :class:`~webhook.cli.sources.CannotTest`.
    """
    place = namespace_of(obj)
    is_namespace = gvk_of(obj).group_kind == ("", "Namespace")
    namespace = obj if is_namespace else namespace_for(obj, namespaces)
    try:
        until = time.monotonic() + seconds
        mutated = mutations.mutate(obj, Context(OPERATION, namespace, place), until=until)
        return mutated, resolved(mutated, {})
    except MutationError as error:
        raise CannotTest(f"mutating {shown(obj)}: {error}") from None


def implied(
    expansion: Expansion,
    mutations: MutationSnapshot,
    obj: dict[str, Any],
    namespaces: Mapping[str, Mapping[str, Any]],
    seconds: float = SECONDS_MAX,
) -> list[Resultant]:
    """What an object implies, mutated within a time.

    Raises :class:`~webhook.cli.sources.CannotTest`.
    """
    namespace = namespace_for(obj, namespaces)
    try:
        until = time.monotonic() + seconds
        return expand(expansion, mutations, obj, namespace, on_error="reject", until=until)
    except InvalidExpansion as error:
        raise CannotTest(f"expanding {shown(obj)}: {error}") from None


def shown(obj: Mapping[str, Any]) -> str:
    """Kind, namespace and name of an object, for messages."""
    place, name = namespace_of(obj), name_of(obj)
    return f"{gvk_of(obj).kind} {f'{place}/' if place else ''}{name or '?'}"

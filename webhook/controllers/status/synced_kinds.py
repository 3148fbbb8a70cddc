"""Synced kinds: the paths of their objects that replicas keep, and the templates that wait.

Replicas derive the paths from the templates (:mod:`webhook.controllers.apply.projection`). This
module derives the same from the same templates, so no replica needs to write the paths down.
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from webhook.api.config import synced_kinds
from webhook.api.encoding import decode, encode
from webhook.api.gvk import GroupVersionKind, name_of, text
from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.template import read_template
from webhook.reads.read_set import WHOLE, ReadSet
from webhook.reads.storage import NOTHING, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.controllers.status.convergence import Convergence

_WHOLE_FLAGS: Final = (
    ("--sync-projection=false",),
    ("--enable-validate-policy", "--enable-validate-policy=true"),
    ("--kyverno-policies=audit", "--kyverno-policies=enforce"),
)
"""Arguments of a replica with which objects are kept whole, in the order in which they are named."""

_KINDS: Final = re.compile("; | or ")
"""Between the kinds in the text of ``missing_data`` (:func:`webhook.controllers.requirements.missing_text`)."""


class SyncedKind(NamedTuple):
    """One synced kind.

    ``paths`` is ``("*",)`` for whole objects, with the reason in ``why_whole``; without a path only
    the presence of objects is kept. ``objects`` is their number, None if that may not be read.
    ``waiting`` are the templates that wait for this kind's data.
    """

    gvk: GroupVersionKind
    paths: tuple[str, ...]
    why_whole: str
    objects: int | None
    waiting: tuple[str, ...]


class SyncFacts(NamedTuple):
    """The facts about synced data of a cluster, beside its templates.

    ``sources`` are the Config and SyncSets. ``flag`` is the argument with which replicas keep whole
    objects. ``waiting`` are the kinds that each template waits for.
    """

    sources: tuple[Mapping[str, Any], ...]
    flag: str
    waiting: Mapping[str, frozenset[str]]

    @classmethod
    def of(
        cls,
        sources: Iterable[Mapping[str, Any]],
        pods: Iterable[Mapping[str, Any]],
        converged: Iterable[Convergence],
    ) -> Self:
        """Returns the facts by the replicas' Pods, and by what they report."""
        return cls(tuple(sources), _whole_flag(pods), _waiting_for_data(converged))


def rows_of(
    facts: SyncFacts,
    templates: Sequence[Mapping[str, Any]],
    counts: Mapping[GroupVersionKind, int] = MappingProxyType({}),
) -> list[SyncedKind]:
    """Returns a row for each synced kind, in order; ``counts`` are known numbers of objects."""
    kinds = sorted(frozenset().union(*map(synced_kinds, facts.sources)))
    reads = _reads_by_template(templates) if kinds else {}
    return [_row(gvk, reads, facts, counts.get(gvk)) for gvk in kinds]


def _row(
    gvk: GroupVersionKind, reads: Mapping[str, ReadSet], facts: SyncFacts, count: int | None
) -> SyncedKind:
    kept, readers = NOTHING, []
    for name, kind_reads in reads.items():
        of = of_kind(kind_reads, gvk.group_version, gvk.kind)
        kept = kept | of
        readers += [name] * of.whole
    why = facts.flag or (f"read by {', '.join(readers)}" if readers else "")
    if not why and (gvk.group_kind == ("", "Namespace") or gvk.group.endswith("gatekeeper.sh")):
        why = "replicas need them"
    paths = ("*",) if why else tuple(kept.texts)
    names = tuple(sorted(name for name, kinds in facts.waiting.items() if str(gvk) in kinds))
    return SyncedKind(gvk, paths, why, count, names)


def _reads_by_template(templates: Sequence[Mapping[str, Any]]) -> dict[str, ReadSet]:
    """Returns the paths of synced data that each template reads; none if it is unusable."""
    fields = ("apiVersion", "kind", "metadata", "spec")
    return {
        name_of(document): _reads_of(encode({name: document.get(name) for name in fields}))
        for document in templates
    }


@lru_cache(maxsize=512)
def _reads_of(template: bytes) -> ReadSet:
    """Derives the paths that a template reads: some 20 ms if it names synced data."""
    # Here and not above: it brings the compiler.
    from webhook.constraint.drivers.reads import inventory_reads  # noqa: PLC0415

    try:
        read = inventory_reads(read_template(decode(template)))
    except ConstraintFrameworkError:
        return NOTHING
    return WHOLE if read is None else read


def _whole_flag(pods: Iterable[Mapping[str, Any]]) -> str:
    """Returns the flag with which a replica keeps whole objects; empty without it."""
    given = {
        argument
        for pod in pods
        for container in objects_of(object_of(pod.get("spec")).get("containers"))
        for field in ("command", "args")
        for argument in texts_of(container.get(field))
    }
    return next((flag for group in _WHOLE_FLAGS for flag in group if flag in given), "")


def _waiting_for_data(converged: Iterable[Convergence]) -> dict[str, frozenset[str]]:
    """Returns the templates that a replica withholds until their data arrives, each with its kinds."""
    waiting: dict[str, frozenset[str]] = {}
    for item in converged:
        for standing in item.standings:
            for error in standing.errors:
                if error.get("code") == "missing_data":
                    kinds = _KINDS.split(text(error, "message").partition(": ")[2])
                    waiting[item.name] = waiting.get(item.name, frozenset()).union(kinds)
    return waiting

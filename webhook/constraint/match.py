"""``spec.match`` of the admission target, compiled; all its criteria must hold.

The object is matched first, then the old object. The criteria have Gatekeeper's order, because a
criterion that cannot be decided (a namespaceSelector without its Namespace) matters only if those
before it hold.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from webhook.api.config import AUDIT_PROCESS, WEBHOOK_PROCESS
from webhook.api.gvk import GroupVersionKind, labels_of, text
from webhook.constraint import wildcard
from webhook.constraint.errors import MatchError
from webhook.constraint.selector import compile_selector
from webhook.constraint.target import CompiledMatch
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from webhook.constraint.review import Review, ReviewSource
    from webhook.constraint.target import Matcher

    Criterion = Callable[["View", "MatchSubject"], bool]


class View:
    """The fields of one object that matching reads; labels are read at the first use."""

    __slots__ = (
        "_labels",
        "document",
        "generate_name",
        "group",
        "is_namespace",
        "kind",
        "name",
        "namespace",
    )

    def __init__(self, document: dict[str, Any], gvk: GroupVersionKind) -> None:
        self.document = document
        self.group = gvk.group
        self.kind = gvk.kind
        self.is_namespace = gvk.kind == "Namespace" and not gvk.group
        metadata = document.get("metadata")
        read: Callable[[str], Any] = metadata.get if type(metadata) is dict else {}.get
        self.name = value if type(value := read("name")) is str else ""
        self.generate_name = value if type(value := read("generateName")) is str else ""
        self.namespace = value if type(value := read("namespace")) is str else ""
        self._labels: Mapping[str, str] | None = None

    def is_named(self, pattern: str) -> bool:
        """Whether the name matches a wildcard.

        For ``generateName``, whether every generated name does.
        """
        if wildcard.matches(pattern, self.name):
            return True
        prefix = self.generate_name
        return bool(prefix) and wildcard.matches_generate_name(pattern, prefix)

    @property
    def labels(self) -> Mapping[str, str]:
        """The object's labels."""
        if self._labels is None:
            self._labels = labels_of(self.document)
        return self._labels


@dataclass(slots=True)
class MatchSubject:
    """The fields of one review that matching reads.

    ``namespace`` is the Namespace of the review, None if there is none or it is unknown. ``fault``
    is why the objects cannot be matched. ``request_namespace`` is read
    where the object has none, such as that of a subresource like ``pods/exec``.
    """

    views: tuple[View, ...]
    namespace: Mapping[str, Any] | None
    source: ReviewSource
    fault: str = ""
    request_namespace: str = ""
    _namespace_labels: Mapping[str, str] | None = field(default=None, init=False)

    @property
    def namespace_name(self) -> str:
        """The Namespace's own name."""
        return "" if self.namespace is None else text(self.namespace, "metadata", "name")

    @property
    def namespace_labels(self) -> Mapping[str, str]:
        """The Namespace's labels."""
        if self._namespace_labels is None:
            self._namespace_labels = {} if self.namespace is None else labels_of(self.namespace)
        return self._namespace_labels


def for_process(match: Mapping[str, Any], process: str) -> Mapping[str, Any]:
    """Returns a ``spec.match`` for a process.

    ``processes`` limits where excludedNamespaces applies.
    """
    processes = match.get("processes")
    if not processes or "*" in processes or process in processes:
        return match
    return {name: value for name, value in match.items() if name != "excludedNamespaces"}


MATCHES_MAX: Final = 256
"""The most cached matches, at about 2 KB each."""


def compile_match(match: Mapping[str, Any]) -> CompiledMatch:
    """Compiles a valid ``spec.match``; equal matches share one object."""
    return _compiled_of(_MatchKey(match))


class _MatchKey:
    """A match as a cache key: equal if written alike, including types and order."""

    __slots__ = ("match", "text")

    def __init__(self, match: Mapping[str, Any]) -> None:
        self.match, self.text = match, repr(match)

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _MatchKey) and self.text == other.text


@lru_cache(maxsize=MATCHES_MAX)
def _compiled_of(key: _MatchKey) -> CompiledMatch:
    match = key.match
    at_webhook = for_process(match, WEBHOOK_PROCESS)
    compiled, at_audit = _compiled(at_webhook), for_process(match, AUDIT_PROCESS)
    same = at_audit.get("excludedNamespaces") == at_webhook.get("excludedNamespaces")
    return compiled if same else replace(compiled, audited=_compiled(at_audit))


def _compiled(match: Mapping[str, Any]) -> CompiledMatch:
    kinds = compile_kinds(match)
    criteria = _criteria(match)
    return CompiledMatch(
        selects=kinds,
        residual=_matcher(criteria) if criteria else None,
        residual_key=repr(sorted((k, v) for k, v in match.items() if k != "kinds")),
        full=_matcher((_of_kinds(kinds), *criteria)),
        admits_namespace=_namespace_test(match),
        is_decided_by_namespace=not _criteria(
            {k: v for k, v in match.items() if k not in _NAMESPACE_LISTS}
        ),
    )


_NAMESPACE_LISTS: Final = ("namespaces", "excludedNamespaces")


def compile_criteria(match: Mapping[str, Any]) -> Callable[[View, MatchSubject], bool]:
    """Compiles a ``spec.match`` into a test of one object, which raises :class:`MatchError`."""
    kinds = (_of_kinds(compile_kinds(match)),) if match.get("kinds") else ()
    criteria = (*kinds, *_criteria(match))

    def matches(view: View, subject: MatchSubject) -> bool:
        for criterion in criteria:  # noqa: SIM110  # a generator would take longer than the criteria
            if not criterion(view, subject):
                return False
        return True

    return matches


def _namespace_test(match: Mapping[str, Any]) -> Callable[[str], bool] | None:
    """Returns a test of a namespace by ``namespaces`` and ``excludedNamespaces``.

    None without these.
    """
    included, excluded = match.get("namespaces"), match.get("excludedNamespaces")
    is_included = wildcard.any_of(included) if included else None
    is_excluded = wildcard.any_of(excluded) if excluded else None
    if is_excluded is None:
        return is_included
    if is_included is None:
        return lambda name: not is_excluded(name)
    return lambda name: is_included(name) and not is_excluded(name)


def namespace_of_subject(subject: MatchSubject) -> str | None:
    """Returns the namespace that lists of namespaces are compared with.

    None if there is no single one.
    """
    if subject.fault:
        return None
    views = subject.views
    namespace = _namespace_of(views[0], subject)
    if len(views) > 1 and any(_namespace_of(view, subject) != namespace for view in views):
        return None
    return namespace


def _namespace_of(view: View, subject: MatchSubject) -> str | None:
    if view.is_namespace:
        return view.name
    if subject.namespace is not None:
        return subject.namespace_name
    # Nobody gave the Namespace: the object states its name, or the request; else it is
    # cluster-scoped, and no list of namespaces can disqualify it.
    return view.namespace or subject.request_namespace or None


def _matcher(criteria: tuple[Criterion, ...]) -> Matcher:
    def matches(review: Review) -> bool:
        subject: MatchSubject = review.subject
        if subject.fault:
            raise MatchError(subject.fault)
        for view in subject.views:
            try:
                for criterion in criteria:
                    if not criterion(view, subject):
                        break
                else:
                    return True
            except MatchError as error:
                raise MatchError(
                    f"error matching the requested object: {view.name} "
                    f":failed to run Match criteria: {error}"
                ) from None
        return False

    return matches


def _criteria(match: Mapping[str, Any]) -> tuple[Criterion, ...]:
    """Returns the criteria except ``kinds`` in order, without those that always hold."""
    criteria: list[Criterion] = []
    if (scope := match.get("scope")) in _SCOPES:
        criteria.append(_SCOPES[scope])
    if namespaces := match.get("namespaces"):
        criteria.append(_namespaces(namespaces, included=True))
    if excluded := match.get("excludedNamespaces"):
        criteria.append(_namespaces(excluded, included=False))
    if (selector := match.get("labelSelector")) is not None:
        criteria.append(_label_selector(selector))
    if (selector := match.get("namespaceSelector")) is not None:
        criteria.append(_namespace_selector(selector))
    if name := match.get("name"):
        criteria.append(_name(name))
    if (source := match.get("source") or "All") != "All":
        criteria.append(_source(source))
    return tuple(criteria)


def compile_kinds(match: Mapping[str, Any]) -> Callable[[Hashable], bool]:
    """Returns a test of group and kind; an empty list, outer or inner, matches all."""
    listed = match.get("kinds") or ()
    if not listed:
        return lambda _: True
    pairs = [(_listed(item.get("apiGroups")), _listed(item.get("kinds"))) for item in listed]

    def selects(key: Hashable) -> bool:
        assert isinstance(key, tuple), "the admission target's keys are groups with kinds"
        group, kind = key
        return any(
            (kinds is None or kind in kinds) and (groups is None or group in groups)
            for groups, kinds in pairs
        )

    return selects


def _listed(names: Sequence[str] | None) -> frozenset[str] | None:
    """Returns the names, or None for all."""
    return None if not names or wildcard.WILDCARD in names else frozenset(names)


def _of_kinds(kinds: Callable[[Hashable], bool]) -> Criterion:
    return lambda view, _: kinds((view.group, view.kind))


def _cluster_scoped(view: View, subject: MatchSubject) -> bool:
    return not _namespaced(view, subject)


def _namespaced(view: View, subject: MatchSubject) -> bool:
    stated = bool(view.namespace or subject.request_namespace)
    return not view.is_namespace and (stated or subject.namespace is not None)


# Any other scope, a misspelt one too, holds for all.
_SCOPES: Final[dict[Any, Criterion]] = {"Cluster": _cluster_scoped, "Namespaced": _namespaced}


def _namespaces(patterns: Sequence[str], *, included: bool) -> Criterion:
    test = wildcard.any_of(patterns)

    def criterion(view: View, subject: MatchSubject) -> bool:
        name = _namespace_of(view, subject)
        return name is None or test(name) is included

    return criterion


def _label_selector(selector: Mapping[str, Any]) -> Criterion:
    holds = compile_selector(selector)
    return lambda view, _: holds(view.labels)


def _namespace_selector(selector: Mapping[str, Any]) -> Criterion:
    holds = compile_selector(selector)

    def criterion(view: View, subject: MatchSubject) -> bool:
        if view.is_namespace:
            return holds(view.labels)
        if subject.namespace is None:
            if not view.namespace and not subject.request_namespace:
                return True  # cluster-scoped
            raise MatchError("namespace selector for namespace-scoped object but missing Namespace")
        return holds(subject.namespace_labels)

    return criterion


def _name(pattern: str) -> Criterion:
    return lambda view, _: view.is_named(pattern)


def _source(source: str) -> Criterion:
    def criterion(view: View, subject: MatchSubject) -> bool:
        if not subject.source:
            raise MatchError(f"source field not specified for resource {view.name}")
        return subject.source == source

    return criterion

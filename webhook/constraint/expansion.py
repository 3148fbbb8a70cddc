"""Expansion: the resources that a generator would make, reviewed with it.

An ExpansionTemplate says which resources (a Deployment) hold the source of which
others (``spec.template`` of a Pod), so that a policy for Pods speaks when the
Deployment is made. Names, order of checks and messages are Gatekeeper's.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.constraint import kind_schemas
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.names import POLICY_NAME_MAX
from webhook.constraint.result import Responses, answer_order
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.constraint.result import Undecided

GROUP: Final = "expansion.gatekeeper.sh"
KIND: Final = "ExpansionTemplate"
DEPTH_MAX: Final = 30
_NO_KIND: Final = ("", "", "")
CYCLE: Final = "template forms expansion cycle"
"""What the status of each template of a circle says."""


class InvalidExpansion(ConstraintFrameworkError):
    """An ExpansionTemplate that cannot be used, or a resource that it cannot expand."""


@dataclass(frozen=True, slots=True)
class ExpansionTemplate:
    """``applies_to`` the generators, whose ``source`` becomes a resource of kind ``generates``."""

    name: str
    applies_to: frozenset[GroupVersionKind]
    source: tuple[str, ...]
    generates: GroupVersionKind
    enforcement_action: str = ""


class Resultant(NamedTuple):
    """A resource that a generator implies, and the template that says so."""

    object: dict[str, Any]
    template: ExpansionTemplate


class _Step(NamedTuple):
    """A template, with what is alike in all that it makes."""

    template: ExpansionTemplate
    api_version: str
    kind: str
    suffix: str
    """Of their names."""


class _Steps(NamedTuple):
    """What is made of a kind."""

    steps: tuple[_Step, ...]
    are_last: bool
    """Whether what is made implies nothing itself, as it is made."""


def read_expansion_template(document: Mapping[str, Any]) -> ExpansionTemplate:
    """Read an ExpansionTemplate; raises :class:`InvalidExpansion`."""
    name = name_of(document)
    if faults := kind_schemas.spec_faults(document, kind_schemas.EXPANSION_TEMPLATE):
        told = "; ".join(dict.fromkeys(faults))
        raise InvalidExpansion(f"ExpansionTemplate {name} has fields of a wrong type: {told}")
    spec = document.get("spec") or {}
    if not name:
        raise InvalidExpansion("ExpansionTemplate has empty name field")
    if len(name.encode()) > POLICY_NAME_MAX:
        raise InvalidExpansion("ExpansionTemplate name must be less than 64 characters")
    source, generated = spec.get("templateSource") or "", spec.get("generatedGVK") or {}
    generates = GroupVersionKind(*(generated.get(part) or "" for part in GroupVersionKind._fields))
    applies_to = frozenset(
        GroupVersionKind(*names)
        for entry in spec.get("applyTo") or ()
        for names in product(
            *((entry or {}).get(part) or () for part in ("groups", "versions", "kinds"))
        )
        if None not in names
    )
    action, path = spec.get("enforcementAction") or "", tuple(source.split("."))
    if not source:
        raise InvalidExpansion(f"ExpansionTemplate {name} has empty source field")
    if not any(generates):
        raise InvalidExpansion(f"ExpansionTemplate {name} has empty generatedGVK field")
    if not spec.get("applyTo"):
        raise InvalidExpansion(f"ExpansionTemplate {name} must specify ApplyTo")
    if generates in applies_to:
        raise InvalidExpansion(
            f"ExpansionTemplate {name} generates GVK {generates}, but also applies to that same GVK"
        )
    return ExpansionTemplate(name, applies_to, path, generates, action)


class Expansion:
    """Some ExpansionTemplates, ready to expand resources. Immutable."""

    def __init__(self, templates: Iterable[ExpansionTemplate] = ()) -> None:
        """Raises :class:`InvalidExpansion` where templates would expand in a circle."""
        self._by_kind: dict[GroupVersionKind, list[ExpansionTemplate]] = {}
        for template in templates:
            for gvk in template.applies_to:
                self._by_kind.setdefault(gvk, []).append(template)
            if self._reaches(template.generates, template, set()):
                raise InvalidExpansion(f"error upserting template {template.name}: {CYCLE}")
        for of_kind in self._by_kind.values():
            of_kind.sort(key=lambda item: item.name)
        self._steps = {gvk: self._steps_of(of_kind) for gvk, of_kind in self._by_kind.items()}

    def _steps_of(self, templates: Sequence[ExpansionTemplate]) -> _Steps:
        steps, are_last = [], True
        for template in templates:
            api_version, kind = template.generates.group_version, template.generates.kind
            stated = gvk_of({"apiVersion": api_version, "kind": kind})
            are_last = are_last and stated != _NO_KIND and stated not in self._by_kind
            steps.append(_Step(template, api_version, kind, f"-{kind}" if kind else ""))
        return _Steps(tuple(steps), are_last)

    def __bool__(self) -> bool:
        return bool(self._by_kind)

    @property
    def names(self) -> frozenset[str]:
        """The templates that are in use."""
        return frozenset(item.name for templates in self._by_kind.values() for item in templates)

    def _reaches(self, gvk: GroupVersionKind, wanted: ExpansionTemplate, seen: set[str]) -> bool:
        """Whether expanding this kind leads to a template again."""
        for template in self._by_kind.get(gvk, ()):
            if template.name == wanted.name:
                return True
            if template.name not in seen:
                seen.add(template.name)
                if self._reaches(template.generates, wanted, seen):
                    return True
        return False

    def implied(self, gvk: GroupVersionKind) -> frozenset[GroupVersionKind]:
        """The kinds that resources of a kind may imply."""
        kinds: set[GroupVersionKind] = set()
        due = [gvk]
        while due:
            for template in self._by_kind.get(due.pop(), ()):
                if template.generates not in kinds:
                    kinds.add(template.generates)
                    due.append(template.generates)
        return frozenset(kinds)

    def is_of(self, gvk: GroupVersionKind) -> bool:
        """Whether resources of a kind imply others."""
        return gvk in self._by_kind

    def expand(
        self,
        obj: dict[str, Any],
        namespace: Mapping[str, Any] | None = None,
        settled: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> list[Resultant]:
        """Everything that a resource implies, what is implied by those first.

        ``namespace`` is the resource's Namespace, where the caller has it; ``settled`` makes of a
        resultant what mutators would. Raises :class:`InvalidExpansion`.
        """
        return self._expand(obj, namespace, settled, 0) if self._by_kind else []

    def _expand(
        self,
        obj: dict[str, Any],
        namespace: Mapping[str, Any] | None,
        settled: Callable[[dict[str, Any]], dict[str, Any]] | None,
        depth: int,
    ) -> list[Resultant]:
        if depth >= DEPTH_MAX:
            raise InvalidExpansion(f"maximum recursion depth of {DEPTH_MAX} reached")
        gvk = gvk_of(obj)
        if gvk == _NO_KIND:
            raise InvalidExpansion(f"cannot expand resource {name_of(obj)} with empty GVK")
        known = self._steps.get(gvk)
        if known is None:
            return []
        own = _resultants(obj, namespace, known.steps)
        if settled is not None:
            own = [Resultant(settled(document), template) for document, template in own]
        elif known.are_last and depth + 1 < DEPTH_MAX:
            return own
        below = [
            implied
            for resultant in own
            for implied in self._expand(resultant.object, namespace, settled, depth + 1)
        ]
        return below + own


class ExpansionSet:
    """The ExpansionTemplates that are known, of which those in a circle are out until it is broken."""

    def __init__(self) -> None:
        self._templates: dict[str, ExpansionTemplate] = {}
        self._cyclic: frozenset[str] = frozenset()
        self._expansion: Expansion | None = Expansion()

    @property
    def names(self) -> frozenset[str]:
        """Every template that is known."""
        return frozenset(self._templates)

    @property
    def cyclic(self) -> frozenset[str]:
        """The templates that are part of a circle, and not used."""
        self._follow()
        return self._cyclic

    @property
    def expansion(self) -> Expansion:
        """What the templates expand, without those in a circle."""
        return self._follow()

    def add(self, template: ExpansionTemplate) -> None:
        """Add or replace a template."""
        if self._templates.get(template.name) != template:
            self._templates[template.name] = template
            self._expansion = None

    def remove(self, name: str) -> bool:
        """Remove a template; False if it was not there."""
        if self._templates.pop(name, None) is None:
            return False
        self._expansion = None
        return True

    def _follow(self) -> Expansion:
        if self._expansion is None:
            self._cyclic = _cyclic(self._templates.values())
            self._expansion = Expansion(
                template for name, template in self._templates.items() if name not in self._cyclic
            )
        return self._expansion


def _cyclic(templates: Iterable[ExpansionTemplate]) -> frozenset[str]:
    """The templates that lead, over any others, to themselves."""
    known = tuple(templates)
    by_kind: dict[GroupVersionKind, list[ExpansionTemplate]] = {}
    for template in known:
        for gvk in template.applies_to:
            by_kind.setdefault(gvk, []).append(template)
    names = set()
    for start in known:
        seen: set[str] = set()
        due = [start]
        while due:
            for template in by_kind.get(due.pop().generates, ()):
                if template.name not in seen:
                    seen.add(template.name)
                    due.append(template)
        if start.name in seen:
            names.add(start.name)
    return frozenset(names)


def _resultants(
    obj: dict[str, Any], namespace: Mapping[str, Any] | None, steps: Sequence[_Step]
) -> list[Resultant]:
    own = obj.get("metadata")
    own = own if type(own) is dict else {}
    name = text if type(text := own.get("name")) is str else ""
    if namespace is not None:
        place = name_of(namespace)
    else:
        place = text if type(text := own.get("namespace")) is str else ""
    made = []
    for template, api_version, kind, suffix in steps:
        source: Any = obj
        for field in template.source:
            source = source.get(field) if type(source) is dict else None
        if type(source) is not dict:
            path = ".".join(template.source)
            raise InvalidExpansion(f'could not find source field "{path}" in resource {name}')
        stated = source.get("metadata")
        metadata = dict(stated) if type(stated) is dict else {}
        if place:
            metadata["namespace"] = place
        elif namespace is not None:
            metadata.pop("namespace", None)
        metadata["name"] = f"{name}{suffix}".lower()
        _own(metadata, obj, name)
        document = {**source, "apiVersion": api_version, "kind": kind, "metadata": metadata}
        made.append(Resultant(document, template))
    return made


def _own(metadata: dict[str, Any], owner: dict[str, Any], name: str) -> None:
    """Name the generator as an owner, unless it is one or cannot be named."""
    api_version, kind = owner.get("apiVersion"), owner.get("kind")
    if not (api_version and kind and name):
        return
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": ""}
    owners = metadata.get("ownerReferences")
    if type(owners) is not list:
        metadata["ownerReferences"] = [reference]
        return
    identity = {field: reference[field] for field in ("apiVersion", "kind", "name")}
    for other in owners:
        if type(other) is dict and identity.items() <= other.items():
            return
    metadata["ownerReferences"] = [*owners, reference]


def with_implied(parent: Responses, implied: Sequence[tuple[Resultant, Responses]]) -> Responses:
    """A generator's responses with those of what it implies, which say by which template."""
    evaluated, deadline_exceeded = parent.evaluated, parent.deadline_exceeded
    tells = False
    for _, told in implied:
        evaluated += told.evaluated
        deadline_exceeded = deadline_exceeded or told.deadline_exceeded
        tells = tells or bool(told.results or told.faults or told.undecided)
    if not tells:
        # As nearly always: then there is nothing to put in order.
        return Responses(
            parent.results, parent.faults, deadline_exceeded, evaluated, parent.undecided
        )
    results = list(parent.results)
    faults = list(parent.faults)
    undecided = list(parent.undecided)
    for resultant, responses in implied:
        template = resultant.template
        faults += responses.faults
        undecided += [_as_implied(item, template) for item in responses.undecided]
        results += [
            replace(
                result,
                msg=f"[Implied by {template.name}] {result.msg}",
                enforcement_action=template.enforcement_action or result.enforcement_action,
            )
            for result in responses.results
        ]
    return Responses(
        results=tuple(sorted(results, key=answer_order)),
        faults=tuple(faults),
        deadline_exceeded=deadline_exceeded,
        evaluated=evaluated,
        undecided=tuple(undecided),
    )


def _as_implied(item: Undecided, template: ExpansionTemplate) -> Undecided:
    """What is answered for a constraint that was not decided of what a template makes.

    Where the template's action denies nothing, it refuses nothing either.
    """
    action = template.enforcement_action
    if item.answer != "reject" or action not in ("warn", "dryrun"):
        return item
    return replace(item, answer="warn" if action == "warn" else "record")

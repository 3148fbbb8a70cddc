"""Expansion: reviews the resources that a generator resource will create.

An ExpansionTemplate says which resources (a Deployment) hold the template (``spec.template``) of
which others (a Pod), so that a policy for Pods already applies to the Deployment. Names, order of
checks and messages are Gatekeeper's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.constraint import kind_schemas
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.names import POLICY_NAME_MAX
from webhook.values import dataclass

GROUP: Final = "expansion.gatekeeper.sh"
KIND: Final = "ExpansionTemplate"
DEPTH_MAX: Final = 30

RESULTANTS_MAX: Final = 100
"""The most objects that one object may imply over all templates. Two or three are usual (a CronJob
implies a Job, which implies a Pod); two templates for each of 18 chained kinds would make 500,000
of one ConfigMap.
"""

MADE_ENTRIES_MAX: Final = 100_000
"""Fields, labels and owners of all resultants, except those shared with the object: 100 for each
are 10,000. An entry takes about 100 bytes, so that is 10 MB.
"""

MUTATED_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of resultants that mutators changed, each counted with the size of the request: five of the
largest objects that etcd stores. A dense copy takes up to 16 times its bytes, so that is 128 MiB.
"""

EXCESS_MAX: Final = 16
"""The search for templates beyond the bounds stops after this many; each takes about ten checks."""

EXCESS: Final = (
    f"template would have one object imply more than {RESULTANTS_MAX} others, or {DEPTH_MAX} in a row: "
    "it is not used; take templates away that apply to the same kinds"
)
"""The status fault of each template that is left out because the bounds would be exceeded."""

TOO_MUCH: Final = (
    f"it implies more than {RESULTANTS_MAX} others, or others that are too large together: "
    "have it hold less, or take ExpansionTemplates away that apply to it"
)
"""The message about an object whose resultants exceed the bounds."""

_NO_KIND: Final = ("", "", "")
CYCLE: Final = "template forms expansion cycle"
"""The status fault of each template in a cycle."""


class InvalidExpansion(ConstraintFrameworkError):
    """An ExpansionTemplate cannot be used, or a resource cannot be expanded."""


@dataclass(frozen=True, slots=True)
class ExpansionTemplate:
    """``applies_to`` are the generators; their ``source`` becomes a resource of kind ``generates``."""

    name: str
    applies_to: frozenset[GroupVersionKind]
    source: tuple[str, ...]
    generates: GroupVersionKind
    enforcement_action: str = ""


class Resultant(NamedTuple):
    """An implied resource with the template that generates it."""

    object: dict[str, Any]
    template: ExpansionTemplate


class _Step(NamedTuple):
    """A template with the constant parts of its resultants."""

    template: ExpansionTemplate
    api_version: str
    kind: str
    suffix: str
    """The suffix of the resultants' names."""


class _Steps(NamedTuple):
    """The templates that expand a kind."""

    steps: tuple[_Step, ...]
    are_last: bool
    """Whether the resultants themselves imply nothing."""


def read_expansion_template(document: Mapping[str, Any]) -> ExpansionTemplate:
    """Reads an ExpansionTemplate; raises :class:`InvalidExpansion`."""
    name = name_of(document)
    if faults := kind_schemas.spec_faults(document, kind_schemas.EXPANSION_TEMPLATE):
        message = "; ".join(dict.fromkeys(faults))
        raise InvalidExpansion(f"ExpansionTemplate {name} has fields of a wrong type: {message}")
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
    if not generates.kind:
        raise InvalidExpansion(f"ExpansionTemplate {name} has empty generatedGVK.kind field")
    if not spec.get("applyTo"):
        raise InvalidExpansion(f"ExpansionTemplate {name} must specify ApplyTo")
    if generates in applies_to:
        raise InvalidExpansion(
            f"ExpansionTemplate {name} generates GVK {generates}, but also applies to that same GVK"
        )
    return ExpansionTemplate(name, applies_to, path, generates, action)


class Expansion:
    """The ExpansionTemplates in force. Immutable."""

    def __init__(self, templates: Iterable[ExpansionTemplate] = ()) -> None:
        """Raises :class:`InvalidExpansion` if templates form a cycle."""
        known = tuple(templates)
        if _Graph.of(known).cyclic:
            # Finds the template that closes the first circle, in the order of the list.
            count = bisect_left(
                range(len(known)), 1, key=lambda at: len(_Graph.of(known[: at + 1]).cyclic)
            )
            raise InvalidExpansion(f"error upserting template {known[count].name}: {CYCLE}")
        self._by_kind = _by_kind(known)
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
    def templates(self) -> frozenset[ExpansionTemplate]:
        """The ExpansionTemplates in force."""
        return frozenset(item for templates in self._by_kind.values() for item in templates)

    @property
    def names(self) -> frozenset[str]:
        """Returns the names of the templates in use."""
        return frozenset(item.name for templates in self._by_kind.values() for item in templates)

    def implied(self, gvk: GroupVersionKind) -> frozenset[GroupVersionKind]:
        """Returns the kinds that resources of a kind may imply."""
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
        size: int = 0,
    ) -> list[Resultant]:
        """Returns every resource that a resource implies, their own resultants before them.

        ``namespace`` is the resource's Namespace if known; ``settled`` mutates a resultant;
        ``size`` is the resource's size in bytes if known. Raises :class:`InvalidExpansion`, with
        :data:`TOO_MUCH` beyond the bounds.
        """
        return self._expand(obj, namespace, settled, _Room(size)) if self._by_kind else []

    def _expand(
        self,
        obj: dict[str, Any],
        namespace: Mapping[str, Any] | None,
        settled: Callable[[dict[str, Any]], dict[str, Any]] | None,
        room: _Room,
        depth: int = 0,
    ) -> list[Resultant]:
        if depth >= DEPTH_MAX:
            raise InvalidExpansion(f"maximum recursion depth of {DEPTH_MAX} reached")
        gvk = gvk_of(obj)
        if gvk == _NO_KIND:
            raise InvalidExpansion(f"cannot expand resource {name_of(obj)} with empty GVK")
        known = self._steps.get(gvk)
        if known is None:
            return []
        resultants = _resultants(obj, namespace, known.steps, room)
        if settled is not None:
            resultants = [
                Resultant(room.mutated(settled, document), template)
                for document, template in resultants
            ]
        elif known.are_last and depth + 1 < DEPTH_MAX:
            return resultants
        below = [
            implied
            for resultant in resultants
            for implied in self._expand(resultant.object, namespace, settled, room, depth + 1)
        ]
        return below + resultants


class _Room:
    """The remaining bounds for one object's resultants that depend on mutators and size."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._resultants = RESULTANTS_MAX
        self._entries = MADE_ENTRIES_MAX
        self._bytes = MUTATED_BYTES_MAX

    def take(self, entries: int) -> None:
        """Reserves room for one more resultant with this many entries of its own."""
        self._resultants -= 1
        self._entries -= entries
        if self._resultants < 0 or self._entries < 0:
            raise InvalidExpansion(TOO_MUCH)

    def mutated(
        self, settled: Callable[[dict[str, Any]], dict[str, Any]], document: dict[str, Any]
    ) -> dict[str, Any]:
        """Returns a resultant after mutation."""
        changed = settled(document)
        if changed is not document:
            self._bytes -= self._size
            if self._bytes < 0:
                raise InvalidExpansion(TOO_MUCH)
        return changed


class ExpansionSet:
    """All known ExpansionTemplates. Those in a cycle or beyond the bounds are not used."""

    def __init__(self) -> None:
        self._templates: dict[str, ExpansionTemplate] = {}
        self._cyclic: frozenset[str] = frozenset()
        self._excess: frozenset[str] = frozenset()
        self._expansion: Expansion | None = Expansion()

    @property
    def names(self) -> frozenset[str]:
        """Returns the names of all known templates."""
        return frozenset(self._templates)

    @property
    def cyclic(self) -> frozenset[str]:
        """Returns the names of the templates in cycles, which are not used."""
        self._follow()
        return self._cyclic

    @property
    def faults(self) -> dict[str, str]:
        """Returns the unused templates with the reason."""
        self._follow()
        return {**dict.fromkeys(self._cyclic, CYCLE), **dict.fromkeys(self._excess, EXCESS)}

    @property
    def expansion(self) -> Expansion:
        """Returns the expansion by all usable templates."""
        return self._follow()

    def add(self, template: ExpansionTemplate) -> None:
        """Adds or replaces a template."""
        if self._templates.get(template.name) != template:
            self._templates[template.name] = template
            self._expansion = None

    def remove(self, name: str) -> bool:
        """Removes a template; False if it did not exist."""
        if self._templates.pop(name, None) is None:
            return False
        self._expansion = None
        return True

    def _follow(self) -> Expansion:
        if self._expansion is None:
            graph = _Graph.of(self._templates.values())
            self._cyclic = graph.cyclic
            expanding = [
                template for name, template in self._templates.items() if name not in self._cyclic
            ]
            self._excess = _excess(expanding, graph.order)
            self._expansion = Expansion(
                template for template in expanding if template.name not in self._excess
            )
        return self._expansion


class _Graph(NamedTuple):
    """The graph of kinds, with an edge to each implied kind."""

    order: tuple[GroupVersionKind, ...]
    """The kinds that imply others, each after the kinds that it implies."""
    cyclic: frozenset[str]
    """The templates that are part of a cycle."""

    @classmethod
    def of(cls, templates: Iterable[ExpansionTemplate]) -> _Graph:
        """Builds the graph in one walk: Tarjan's strongly connected components, without recursion."""
        known = tuple(templates)
        by_kind = _by_kind(known)
        index: dict[GroupVersionKind, int] = {}
        lowest: dict[GroupVersionKind, int] = {}
        circle_of: dict[GroupVersionKind, GroupVersionKind] = {}
        path: list[GroupVersionKind] = []
        for start in by_kind:
            due = [] if start in index else [(start, iter(by_kind[start]))]
            while due:
                kind, remaining = due[-1]
                if kind not in index:
                    index[kind] = lowest[kind] = len(index)
                    path.append(kind)
                for template in remaining:
                    generated_kind = template.generates
                    if generated_kind in by_kind and generated_kind not in index:
                        due.append((generated_kind, iter(by_kind[generated_kind])))
                        break
                    if generated_kind in index and generated_kind not in circle_of:
                        lowest[kind] = min(lowest[kind], index[generated_kind])
                else:
                    due.pop()
                    if due:
                        above = due[-1][0]
                        lowest[above] = min(lowest[above], lowest[kind])
                    while lowest[kind] == index[kind] and kind not in circle_of:
                        circle_of[path.pop()] = kind
        cyclic = {
            template.name
            for template in known
            if any(
                circle_of[kind] == circle_of.get(template.generates) for kind in template.applies_to
            )
        }
        return cls(tuple(circle_of), frozenset(cyclic))


def _excess(
    templates: Sequence[ExpansionTemplate], order: Sequence[GroupVersionKind]
) -> frozenset[str]:
    """Returns the acyclic templates that are left out because one object would imply too much.

    Templates are taken in the order of their names while the bounds hold. After :data:`EXCESS_MAX`
    that did not fit, no more are taken. Halves are tried first, because nearly all templates
    usually fit.
    """
    if _is_within_bounds(templates, order):
        return frozenset()
    taken: list[ExpansionTemplate] = []
    left_out: set[str] = set()
    due = [sorted(templates, key=lambda template: template.name)]
    while due:
        some = due.pop()
        if len(left_out) >= EXCESS_MAX:
            left_out.update(template.name for template in some)
        elif _is_within_bounds([*taken, *some], order):
            taken += some
        elif len(some) == 1:
            left_out.add(some[0].name)
        else:
            half = len(some) // 2
            due += [some[half:], some[:half]]
    return frozenset(left_out)


def _by_kind(
    templates: Iterable[ExpansionTemplate],
) -> dict[GroupVersionKind, list[ExpansionTemplate]]:
    by_kind: dict[GroupVersionKind, list[ExpansionTemplate]] = {}
    for template in templates:
        for gvk in template.applies_to:
            by_kind.setdefault(gvk, []).append(template)
    return by_kind


def _is_within_bounds(
    templates: Sequence[ExpansionTemplate], order: Sequence[GroupVersionKind]
) -> bool:
    """Whether an object of any kind implies few enough others, in few enough steps."""
    by_kind = _by_kind(templates)
    known: dict[GroupVersionKind, tuple[int, int]] = {}
    for kind in order:
        sizes = [known.get(template.generates, (0, 0)) for template in by_kind.get(kind, ())]
        count = sum(1 + below for below, _ in sizes)
        depth = max((1 + steps for _, steps in sizes), default=0)
        if count > RESULTANTS_MAX or depth >= DEPTH_MAX:
            return False
        known[kind] = count, depth
    return True


def _resultants(
    obj: dict[str, Any],
    namespace: Mapping[str, Any] | None,
    steps: Sequence[_Step],
    room: _Room,
) -> list[Resultant]:
    metadata = obj.get("metadata")
    if type(metadata) is not dict:
        metadata = {}
    name = text if type(text := metadata.get("name")) is str else ""
    if namespace is not None:
        place = name_of(namespace)
    else:
        place = text if type(text := metadata.get("namespace")) is str else ""
    resultants = []
    for template, api_version, kind, suffix in steps:
        source: Any = obj
        for field in template.source:
            source = source.get(field) if type(source) is dict else None
        if type(source) is not dict:
            path = ".".join(template.source)
            raise InvalidExpansion(f'could not find source field "{path}" in resource {name}')
        stated = source.get("metadata")
        stated = stated if type(stated) is dict else {}
        owners = stated.get("ownerReferences")
        room.take(len(source) + len(stated) + (len(owners) if type(owners) is list else 0))
        metadata = dict(stated)
        if place:
            metadata["namespace"] = place
        elif namespace is not None:
            metadata.pop("namespace", None)
        metadata["name"] = f"{name}{suffix}".lower()
        metadata.pop("deletionTimestamp", None)  # the API server takes it from what is created
        _own(metadata, obj, name)
        document = {**source, "apiVersion": api_version, "kind": kind, "metadata": metadata}
        resultants.append(Resultant(document, template))
    return resultants


def _own(metadata: dict[str, Any], owner: dict[str, Any], name: str) -> None:
    """Adds the generator as an owner, unless it is one already or has no name."""
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

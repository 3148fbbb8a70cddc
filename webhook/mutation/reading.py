"""Mutators read from their documents, with Gatekeeper's checks in its order.

The documents have not been validated by a schema: fields of wrong types are reported, and
:func:`with_defaults` adds the defaults of the schemas in a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.config import MUTATION_PROCESS
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.constraint import structural
from webhook.constraint.depth import is_deeper
from webhook.constraint.errors import ConstraintFrameworkError, InvalidConstraint, MatchError
from webhook.constraint.isolation import InvalidOnError, on_undecidable_of
from webhook.constraint.match import compile_criteria, compile_kinds, for_process
from webhook.constraint.names import POLICY_NAME_MAX
from webhook.constraint.rollout import read_rollout
from webhook.constraint.selector_validation import validate_selectors
from webhook.constraint.targets.match_schema import MATCH_SCHEMA
from webhook.mutation import image, setting
from webhook.mutation.assigning import Assignment
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.location import Field, ListItem, parse, quoted
from webhook.mutation.mutator import (
    ENFORCE,
    GROUP,
    MODE,
    OPERATIONS,
    PREVIEW,
    VERSIONS,
    Binding,
    Mutator,
    MutatorId,
)
from webhook.mutation.path_tests import only_where_missing, read_path_tests
from webhook.mutation.values import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.constraint.match import MatchSubject, View
    from webhook.mutation.location import Location
    from webhook.mutation.setting import Setter

MUTATOR_DEPTH_MAX: Final = 100
"""Levels of objects and lists in a mutator. Values are compared by recursion, two calls a level."""

_SOURCES: Final = ("", "All", "Generated", "Original")
_WILDCARD: Final = "*"


def is_mutator(document: Mapping[str, Any]) -> bool:
    """Whether a document is of a kind of mutators, in any version."""
    gvk = gvk_of(document)
    return gvk.group == GROUP and gvk.kind in VERSIONS


def with_defaults(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a mutator with its schema's defaults; only the operation of ModifySet matters.

    An API server adds it only if there are parameters; a ModifySet without it would fail every
    request.
    """
    spec = document.get("spec")
    if gvk_of(document).kind != "ModifySet" or type(spec) is not dict:
        return dict(document)
    parameters = {} if spec.get("parameters") is None else spec["parameters"]
    if type(parameters) is not dict or parameters.get("operation"):
        return dict(document)
    return {**document, "spec": {**spec, "parameters": {**parameters, "operation": "merge"}}}


def read_mutator(document: Mapping[str, Any]) -> Mutator:
    """Reads a mutator; raises :class:`~webhook.mutation.errors.InvalidMutator`."""
    gvk, name = gvk_of(document), name_of(document)
    if gvk.group != GROUP or gvk.kind not in VERSIONS:
        raise InvalidMutator(f"{gvk} is not a kind of mutators")
    if not name:
        raise InvalidMutator(f"{gvk.kind} has no metadata.name")
    if len(name.encode()) > POLICY_NAME_MAX:
        raise InvalidMutator(f"maximum name length is {POLICY_NAME_MAX} characters")
    try:
        on_undecidable_of(document)
    except InvalidOnError as error:
        raise InvalidMutator(f"{gvk.kind} {name}: {error}") from None
    if is_deeper(document.get("spec"), MUTATOR_DEPTH_MAX):
        raise InvalidMutator(f"{gvk.kind} {name} nests deeper than {MUTATOR_DEPTH_MAX} levels")
    return _Reader(gvk.kind, name, document).read()


class _Reader:
    def __init__(self, kind: str, name: str, document: Mapping[str, Any]) -> None:
        self._kind = kind
        self._name = name
        self._document = document
        self._spec = self._object(document, "spec")
        self._parameters = self._object(self._spec, "parameters")
        self._location: Location = ()

    def read(self) -> Mutator:
        text = self._text(self._spec, "location")
        try:
            self._location = parse(text)
        except InvalidMutator as error:
            raise InvalidMutator(self._location_fault(text, str(error))) from None
        setters: dict[str, Callable[[], Setter]] = {
            "Assign": self._assign,
            "AssignImage": self._assign_image,
            "AssignMetadata": self._assign_metadata,
            "ModifySet": self._modify_set,
        }
        setter = setters[self._kind]()
        is_metadata = self._kind == "AssignMetadata"
        allowed = (
            only_where_missing(self._location)
            if is_metadata
            else read_path_tests(
                self._location, self._list(self._parameters, "pathTests"), self._owner
            )
        )
        bindings, whole = (frozenset[Binding](), frozenset[GroupVersionKind]())
        if not is_metadata:
            bindings, whole = self._bindings()
        match = self._match()
        metadata = self._object(self._document, "metadata")
        generation = metadata.get("generation")
        external = type(setter) is setting.ExternalData
        return Mutator(
            id=MutatorId(self._kind, self._name),
            generation=generation if type(generation) is int else 0,
            location=self._location,
            assignment=Assignment(self._location, allowed, setter, null_is_missing=is_metadata),
            bindings=bindings,
            whole=whole,
            terminal={"ModifySet": "Set", "AssignImage": "String"}.get(self._kind, "Unknown"),
            must_terminate=external or self._kind == "AssignImage",
            selects=compile_kinds(match),
            matches=_criteria(match),
            match_key=_match_key(match),
            labels_read=frozenset(_labels_read(match)),
            is_preview=self._mode(metadata) == PREVIEW,
            document=self._document,
        )

    # --- the kinds ---------------------------------------------------------------------------

    def _assign(self) -> Setter:
        self._refuse_metadata(f"assign {self._name} can't change metadata")
        self._check_key_kept()
        setter = self._assigned()
        last = self._location[-1]
        if type(last) is ListItem:
            if type(setter) is setting.Constant:
                _check_item(last, setter.value)
            elif type(setter) is setting.FromMetadata:
                raise InvalidMutator("cannot assign a metadata field to a list")
            else:
                raise InvalidMutator("cannot assign external data response to a list")
        return setter

    def _assign_metadata(self) -> Setter:
        names = [node.name for node in self._location if type(node) is Field]
        is_metadata = len(names) == len(self._location) == 3 and names[0] == "metadata"
        if not is_metadata or names[1] not in ("labels", "annotations"):
            text = self._text(self._spec, "location")
            raise InvalidMutator(f"invalid location for assignmetadata {self._name}: {text}")
        setter = self._assigned()
        if type(setter) is setting.ExternalData and setter.data_source != "Username":
            raise InvalidMutator(
                f"only username data source is supported for assignmetadata {self._name}"
            )
        if type(setter) is setting.Constant and type(setter.value) is not str:
            raise InvalidMutator(
                "spec.parameters.assign.value field must be a string for AssignMetadata "
                f'"{self._name}"'
            )
        return setter

    def _modify_set(self) -> Setter:
        self._refuse_metadata(f"modifyset {self._name} can't change metadata")
        if self._location and type(self._location[-1]) is ListItem:
            raise InvalidMutator("final node in a modifyset location cannot be a keyed list")
        operation = self._text(self._parameters, "operation")
        values = tuple(self._list(self._object(self._parameters, "values"), "fromList"))
        if operation == "merge":
            return setting.Merge(values)
        if operation == "prune":
            return setting.Prune(values)
        return setting.UnknownOperation(operation)

    def _assign_image(self) -> Setter:
        self._refuse_metadata(f"assignImage {self._name} can't change metadata")
        if self._location and type(self._location[-1]) is ListItem:
            raise InvalidMutator(f"assignImage {self._name} cannot mutate list-type fields")
        self._check_key_kept()
        parts = image.ImageParts(
            *(self._text(self._parameters, f"assign{part}") for part in ("Domain", "Path", "Tag"))
        )
        try:
            image.check(parts)
        except InvalidMutator as error:
            raise InvalidMutator(
                f"assignImage {self._name} has invalid parameters: {error}"
            ) from None
        return setting.Image(parts)

    # --- their parts -------------------------------------------------------------------------

    def _assigned(self) -> Setter:
        assign = self._object(self._parameters, "assign")
        given = [
            name
            for name in ("value", "fromMetadata", "externalData")
            if assign.get(name) is not None
        ]
        if len(given) != 1:
            verb = "must only set" if given else "must set"
            raise InvalidMutator(
                f"assign {verb} one of `externalData`, `value` or `fromMetadata`: "
                "invalid assign field"
            )
        if given == ["value"]:
            return setting.Constant(assign["value"])
        if given == ["fromMetadata"]:
            field = self._text(self._object(assign, "fromMetadata"), "field")
            if field not in ("name", "namespace"):
                raise InvalidMutator(f"field {field} is not recognized: invalid fromMetadata field")
            return setting.FromMetadata(field)
        data = self._object(assign, "externalData")
        external = setting.ExternalData(
            provider=self._text(data, "provider"),
            data_source=self._text(data, "dataSource") or "ValueAtLocation",
            failure_policy=self._text(data, "failurePolicy") or "Fail",
            default=self._text(data, "default"),
        )
        if external.failure_policy == "UseDefault" and not external.default:
            raise InvalidMutator(
                "`default` must not be empty when `failurePolicy` is set to `UseDefault`"
            )
        return external

    def _refuse_metadata(self, message: str) -> None:
        if self._location and self._location[0] == Field("metadata"):
            raise InvalidMutator(message)

    def _check_key_kept(self) -> None:
        if not self._location:
            raise InvalidMutator("empty path")
        if len(self._location) < 2:
            return
        item, last = self._location[-2:]
        if type(item) is ListItem and type(last) is Field and last.name == item.key:
            raise InvalidMutator("invalid path format: changing the item key is not allowed")

    def _bindings(self) -> tuple[frozenset[Binding], frozenset[GroupVersionKind]]:
        entries = self._list(self._spec, "applyTo")
        owner = f"{self._kind} mutator {self._name}"
        faults: list[str] = []
        bindings: set[Binding] = set()
        whole: set[GroupVersionKind] = set()
        for number, entry in enumerate(entries):
            if type(entry) is not dict:
                raise InvalidMutator(f"{self._owner} has fields of a wrong type")
            lists = [self._texts(entry, name) for name in ("groups", "versions", "kinds")]
            if not all(lists):
                raise InvalidMutator(
                    f"invalid applyTo for {owner}, all of group, version and kind must be specified"
                )
            operations = self._texts(entry, "operations")
            faults += _operation_faults(operations, f"applyTo[{number}].operations")
            effective = set(OPERATIONS)
            if operations and _WILDCARD not in operations:
                effective &= set(operations)
            kinds = [
                GroupVersionKind(group, version, kind)
                for group in lists[0]
                for version in lists[1]
                for kind in lists[2]
            ]
            bindings |= {Binding(gvk, operation) for gvk in kinds for operation in effective}
            if len(effective) == len(OPERATIONS):
                whole.update(kinds)
        if faults:
            raise InvalidMutator(f"invalid applyTo for {owner}: {'; '.join(faults)}")
        if not entries:
            raise InvalidMutator(f"applyTo required for {owner}")
        return frozenset(bindings), frozenset(whole)

    def _match(self) -> dict[str, Any]:
        match = self._object(self._spec, "match")
        source = self._text(match, "source")
        checked = {name: value for name, value in match.items() if name != "source"}
        if faults := structural.faults(checked, MATCH_SCHEMA):
            raise InvalidMutator(f"invalid match for {self._owner}: {faults[0]}")
        try:
            validate_selectors({"spec": {"match": checked}})
        except ConstraintFrameworkError as error:
            text = str(error).removeprefix("invalid Constraint: ")
            raise InvalidMutator(f"invalid match for {self._owner}: {text}") from None
        return {**for_process(checked, MUTATION_PROCESS), "source": source}

    def _mode(self, metadata: Mapping[str, Any]) -> str:
        annotations = self._object(metadata, "annotations")
        mode = self._text(annotations, MODE) or ENFORCE
        if mode not in (ENFORCE, PREVIEW):
            raise InvalidMutator(
                f"{self._owner}: annotation {MODE} must be {ENFORCE} or {PREVIEW}, "
                f"got {quoted(shown(mode))}"
            )
        try:
            read_rollout(self._document)
        except InvalidConstraint as error:
            raise InvalidMutator(f"{self._owner}: {error}") from None
        return mode

    # --- fields ------------------------------------------------------------------------------

    @property
    def _owner(self) -> str:
        return f"{self._kind} {self._name}"

    def _location_fault(self, text: str, fault: str) -> str:
        shortened = shown(text)
        if self._kind == "AssignMetadata":
            return f"invalid location format for {self._owner}: {shortened}: {fault}"
        kind = "assignImage" if self._kind == "AssignImage" else self._kind
        return f"invalid location format `{shortened}` for {kind} {self._name}: {fault}"

    def _object(self, owner: Mapping[str, Any], name: str) -> dict[str, Any]:
        return self._of_type(owner, name, dict) or {}

    def _list(self, owner: Mapping[str, Any], name: str) -> list[Any]:
        return self._of_type(owner, name, list) or []

    def _text(self, owner: Mapping[str, Any], name: str) -> str:
        return self._of_type(owner, name, str) or ""

    def _texts(self, owner: Mapping[str, Any], name: str) -> list[str]:
        items = self._list(owner, name)
        if any(type(item) is not str for item in items):
            raise InvalidMutator(f"{self._owner}: {name} must be a list of strings")
        return items

    def _of_type(self, owner: Mapping[str, Any], name: str, expected: type[Any]) -> Any:
        value = owner.get(name)
        if value is not None and type(value) is not expected:
            names: dict[type[Any], str] = {dict: "an object", list: "a list", str: "a text"}
            raise InvalidMutator(
                f"{self._owner}: {name} must be {names[expected]}, got {shown(value)}"
            )
        return value


def _check_item(node: ListItem, value: Any) -> None:
    """Refuses a value that is not the item which the location says."""
    if node.value is None:
        raise InvalidMutator("can't append to a globbed list")
    if type(value) is not dict:
        raise InvalidMutator(
            f"invalid value: `{shown(value)}`, only objects can be added to keyed lists"
        )
    key = value.get(node.key)
    if type(key) is not type(node.value) or key != node.value:
        given = "<nil>" if key is None else key
        raise InvalidMutator(
            f"adding object to list with different key {node.key}: "
            f"list key {node.value}, object key {given}"
        )


def _operation_faults(operations: list[str], path: str) -> list[str]:
    faults: list[str] = []
    for place, operation in enumerate(operations):
        if operation in operations[:place]:
            faults.append(f'duplicate operation "{operation}" in {path}')
        if operation not in (*OPERATIONS, _WILDCARD):
            faults.append(
                f'invalid operation "{operation}" in {path}: must be one of CREATE, UPDATE, *'
            )
    if _WILDCARD in operations and len(operations) > 1:
        faults.append(f'wildcard "*" in {path} must not be combined with other operations')
    return faults


def _criteria(match: dict[str, Any]) -> Callable[[View, MatchSubject], bool]:
    source = match["source"]
    if source in _SOURCES:
        return compile_criteria(match)
    others = compile_criteria({**match, "source": ""})

    def matches(view: View, subject: MatchSubject) -> bool:
        if not others(view, subject):
            return False
        # The kind's schema keeps it out of a cluster; Gatekeeper tells it of each request.
        raise MatchError(f'invalid source field "{source}"')

    return matches


def _match_key(match: Mapping[str, Any]) -> str:
    fields = {
        name: value
        for name, value in match.items()
        if value not in (None, "", []) and (name, value) != ("source", "All")
    }
    return repr(sorted(fields.items())) if fields else ""


def _labels_read(match: Mapping[str, Any]) -> Iterator[str]:
    for name in ("labelSelector", "namespaceSelector"):
        selector = match.get(name) or {}
        yield from selector.get("matchLabels") or ()
        for expression in selector.get("matchExpressions") or ():
            yield expression["key"]


def empty_location_fault(mutator: Mutator) -> str:
    """Describes the fault of a ModifySet without a location, which Gatekeeper admits; or empty."""
    if mutator.location:
        return ""
    return f"{mutator.id.kind} {mutator.id.name} has no location: it would assign nowhere"

"""ConstraintGroups: several policies that are decided as one constraint.

A group has the match, actions and roll-out of a constraint. Instead of a template it has members:
templates with parameters of their own, or constraints. Groups are kept like the constraints of a
template. Their members' evaluators are looked up again after every change of a template or
constraint (:func:`resolved`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of
from webhook.api.names import CONSTRAINT_GROUP, OURS, OURS_VERSION
from webhook.cel.syntax.identifiers import is_identifier
from webhook.constraint import structural
from webhook.constraint.constraint import GROUP, STORED_VERSION, Broken, Constraint
from webhook.constraint.entry import Entry
from webhook.constraint.errors import (
    BrokenTemplate,
    ConstraintFrameworkError,
    InvalidConstraint,
    MemberFault,
    MissingTemplate,
    SchemaViolation,
)
from webhook.constraint.existing import is_allowed_to_exist
from webhook.constraint.formula import read_formula
from webhook.constraint.group_evaluation import GROUP_EVALUATOR, Group, GroupCase, GroupMember
from webhook.constraint.group_schema import SCHEMA
from webhook.constraint.names import subdomain_faults
from webhook.constraint.schema import validate_constraint, with_defaults
from webhook.constraint.targets import admission
from webhook.constraint.template import Template

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.constraint.causes import FaultStage
    from webhook.constraint.target import Target

TEMPLATE: Final = Template(CONSTRAINT_GROUP.lower(), CONSTRAINT_GROUP, admission.NAME, ())
"""The template of groups, with the group's kind as its name."""

CRD: Final[Mapping[str, Any]] = {
    "spec": {
        "names": {"kind": CONSTRAINT_GROUP},
        "versions": [{"schema": {"openAPIV3Schema": SCHEMA}}],
    }
}
"""The fields of a CRD that a constraint needs."""


def entry_of(target: Target) -> Entry:
    """Returns an entry that holds groups as a template's entry holds its constraints."""
    return Entry(TEMPLATE, target, GROUP_EVALUATOR, (), CRD)


def unresolved(entry: Entry) -> Entry:
    """Returns the entry before its groups' members were resolved."""
    if entry.template is not TEMPLATE:
        return entry
    return replace(entry, constraints=tuple(map(_unresolved, entry.constraints)))


def _unresolved(constraint: Constraint) -> Constraint:
    group: Group | None = constraint.parameters
    return constraint if group is None or group.read is None else group.read


def is_group(document: Mapping[str, Any]) -> bool:
    """Whether a document is a ConstraintGroup of any version."""
    return gvk_of(document).group_kind == (OURS, CONSTRAINT_GROUP)


def check_group(document: Mapping[str, Any]) -> None:
    """Checks a group against its schema.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
    """
    if faults := subdomain_faults(name_of(document)):
        raise _invalid(f"invalid name: {faults[0]}")
    if (version := gvk_of(document).version) != OURS_VERSION:
        raise _invalid(f'unsupported version "{version}", supported: {OURS_VERSION}')
    if faults := structural.faults(document, SCHEMA):
        raise SchemaViolation(f"schema validation failed: {faults[0]}")
    if unknown := structural.unknown_fields(document, SCHEMA):
        raise _invalid(f"unknown fields: [{' '.join(unknown)}]")


def read_group(document: Mapping[str, Any], target: Target) -> Group:
    """Reads a group that fits its schema.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
    """
    spec = document["spec"]
    members = {name: _member(name, written) for name, written in spec["members"].items()}
    source, listed = spec.get("expression"), spec.get("firstMatch")
    if (source is None) is (listed is None):
        raise _invalid("spec has to have either expression or firstMatch")
    message = spec.get("message") or ""
    if source is None:
        cases = tuple(_cases(listed, members, target))
        return Group(members, None, cases, "", message)
    formula = read_formula(source)
    called = set(formula.members())
    if not called:
        raise _invalid("spec.expression calls no member: it would decide nothing")
    _check_known(called, members, "spec.expression")
    compares = is_allowed_to_exist(document)
    return Group(members, formula, (), " ".join(source.split()), message, compares)


def templates_of(document: Mapping[str, Any]) -> frozenset[str]:
    """Returns the names of the templates of a group's members, as far as they can be read."""
    spec = document.get("spec")
    members = spec.get("members") if type(spec) is dict else None
    kinds = []
    for member in members.values() if type(members) is dict else ():
        if type(member) is dict:
            reference = member.get("constraint")
            kinds.append((reference if type(reference) is dict else member).get("kind"))
    return frozenset(kind.lower() for kind in kinds if type(kind) is str)


def _invalid(message: str) -> InvalidConstraint:
    return InvalidConstraint(f"invalid {CONSTRAINT_GROUP}: {message}")


def _member(name: str, written: Mapping[str, Any]) -> GroupMember:
    path = f"spec.members.{name}"
    if not is_identifier(name):
        raise _invalid(
            f"{path}: a member's name is an identifier of CEL: letters, digits and _, no digit first, and "
            "no word that CEL reserves, such as in and namespace"
        )
    kind, reference = written.get("kind"), written.get("constraint")
    if (kind is None) is (reference is None):
        raise _invalid(f"{path} has to have either kind (of a template) or constraint")
    if reference is not None and "parameters" in written:
        raise _invalid(f"{path}: a constraint brings its own parameters")
    named = kind if reference is None else reference["kind"]
    if not named:
        raise _invalid(f"{path} names no kind")
    if named.lower() == CONSTRAINT_GROUP.lower():
        raise _invalid(f"{path}: a group cannot be a member of a group")
    if reference is None:
        return GroupMember(named, parameters=written.get("parameters"))
    if not reference["name"]:
        raise _invalid(f"{path}.constraint names no constraint")
    return GroupMember(named, reference["name"])


def _cases(
    listed: Iterable[Mapping[str, Any]], members: Mapping[str, GroupMember], target: Target
) -> Iterator[GroupCase]:
    cases = list(listed)
    for number, written in enumerate(cases):
        path, match = f"spec.firstMatch[{number}]", written.get("match")
        member, is_last = written.get("member"), number == len(cases) - 1
        if (member is None) is not written.get("accept", False):
            raise _invalid(f"{path} has to have either member or accept: true")
        if (match is None) is not is_last:
            raise _invalid(
                f"{path}: each case but the last has a match; the last has none and holds for all "
                "other objects"
            )
        if member is not None:
            _check_known((member,), members, path)
        if match is not None:
            target.validate_constraint({"spec": {"match": match}})
        yield GroupCase(None if match is None else target.compile_match(match), member or "")


def _check_known(names: Iterable[str], members: Mapping[str, GroupMember], path: str) -> None:
    if unknown := sorted(set(names) - members.keys()):
        known = ", ".join(sorted(members))
        raise _invalid(f"{path} names {', '.join(unknown)}, members are: {known}")


# --- evaluators of members -------------------------------------------------------------------------


def resolved(constraint: Constraint, entries: Mapping[str, Entry]) -> Constraint:
    """Returns a group's constraint with its members' evaluators; ``entries`` are by template name.

    If a member's newest revision is not in force, the group is broken, like a constraint of such a
    template. Raises :class:`~webhook.constraint.errors.MemberFault` for a member that cannot be
    evaluated at all.
    """
    group: Group = constraint.parameters
    members, broken = {}, constraint.broken
    for name, member in group.members.items():
        try:
            entry = _entry_of(member, entries)
            members[name] = _resolved(member, entry, constraint.name)
        except ConstraintFrameworkError as error:
            of_template = isinstance(error, MissingTemplate)
            raise MemberFault(f"member {name}: {error}", of_template=of_template) from None
        if broken is None and entry.broken is not None:
            broken = Broken(entry.broken.stage, f"member {name}: {entry.broken.message}")
    fresh = replace(group, members=members, read=constraint)
    return replace(constraint, parameters=fresh, broken=broken)


def broken_by_member(constraint: Constraint, error: MemberFault) -> Constraint:
    """Returns a group with a broken member: it still matches, and ``onError`` answers."""
    stage: FaultStage = "template" if error.of_template else "constraint"
    group: Group = constraint.parameters
    broken = constraint.broken or Broken(stage, str(error))
    fresh = replace(group, read=constraint)
    return replace(constraint, parameters=fresh, broken=broken, is_good=False)


def parts_of(constraint: Constraint, entries: Mapping[str, Entry]) -> tuple[Any, ...]:
    """Returns the objects that resolving a group reads: while they are unchanged, so is the result."""
    group: Group = constraint.parameters
    parts: list[Any] = [constraint]
    for member in group.members.values():
        entry = entries.get(member.kind.lower())
        if entry is None:
            parts.append(None)
        else:
            referred = constraint_named(entry, member.name) if member.name else None
            parts += (entry.template, entry.evaluator, entry.crd, entry.broken, referred)
    return tuple(parts)


def _entry_of(member: GroupMember, entries: Mapping[str, Entry]) -> Entry:
    """Returns the entry of a member's template, which has a usable revision for admission."""
    entry = entries.get(member.kind.lower())
    if entry is None or entry.template.kind != member.kind:
        raise MissingTemplate(f"there is no ConstraintTemplate of the kind {member.kind}")
    of_target = entry.for_target(admission.NAME)
    if of_target is None:
        raise InvalidConstraint(
            f"the ConstraintTemplate {entry.template.name} is for other targets"
        )
    if of_target.evaluator is None or of_target.crd is None:
        why = "" if entry.broken is None else f": {entry.broken.message}"
        raise BrokenTemplate(
            f"the ConstraintTemplate {entry.template.name} has no revision that can be used{why}"
        )
    return of_target


def _resolved(member: GroupMember, entry: Entry, group: str) -> GroupMember:
    assert entry.crd is not None
    if member.name:
        constraint = constraint_named(entry, member.name)
        if constraint is None or not constraint.is_good:
            state = "there is no" if constraint is None else "nothing can be used of the"
            raise InvalidConstraint(f"{state} constraint {member.kind} {member.name}")
        document, parameters = constraint.document, constraint.parameters
    else:
        document = _constraint_of(member, group)
        validate_constraint(document, entry.crd)
        document = with_defaults(document, entry.crd)
        parameters = document["spec"].get("parameters")
    evaluator = entry.evaluator
    assert evaluator is not None
    given = document if evaluator.reads_constraint else parameters
    return replace(member, evaluator=evaluator, template=entry.template, given=given)


def _constraint_of(member: GroupMember, group: str) -> dict[str, Any]:
    """Returns an inline member as a constraint."""
    spec = {} if member.parameters is None else {"parameters": member.parameters}
    return {
        "apiVersion": f"{GROUP}/{STORED_VERSION}",
        "kind": member.kind,
        "metadata": {"name": group},
        "spec": spec,
    }


def constraint_named(entry: Entry, name: str) -> Constraint | None:
    """Returns the constraint of a kind by its name; None if there is none."""
    return next((item for item in entry.constraints if item.name == name), None)

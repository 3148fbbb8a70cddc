"""Warns of usable policies that will probably match nothing.

The warnings are: a constraint whose match names an unknown kind, with the nearest known kind; a
constraint on kinds without webhook calls; a template in CEL without validations, or in Rego with
violations without a message; an unknown word in its annotation for exceptions; a
group's members that are never asked; a Provider's timeout beyond the longest; and, after a review
of objects, the constraints that matched none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.advice import NEAR
from webhook.api.builtin_kinds import BUILTIN_GROUPS, BUILTIN_KINDS, NEVER_INTERCEPTED, gone_since
from webhook.api.gvk import gvk_of, name_of, plural_of
from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.constraint import kind_schemas
from webhook.constraint.constraint import is_constraint
from webhook.constraint.driver import lost_violations
from webhook.constraint.targets import admission
from webhook.constraint.template import CEL
from webhook.exceptions.permission import fault_of_annotation
from webhook.external_data import provider
from webhook.kyverno.kinds import why_not_run
from webhook.policies.group_advice import GROUP, advice_on_group
from webhook.policies.problem import Problem
from webhook.policies.request_reads import (
    ABSENT,
    absent_libraries,
    deciding_places,
    is_never_there,
    request_reads,
)
from webhook.policy_kinds.table import POLICY_KINDS
from webhook.printable import nearest_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.entry import Entry
    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.constraint.template import Template
    from webhook.policies.manifests import Manifest

    GroupAndKind = tuple[str, str]

KINDS: Final = "kinds"
NEVER: Final = "never_asked"
REQUEST: Final = "request"
FIELDS: Final = "fields"
VALIDATIONS: Final = "validations"
MESSAGES: Final = "messages"
LIBRARY: Final = "library"
EXCEPTIONS: Final = "exceptions"
TIMEOUT: Final = "timeout"
"""Codes of problems."""

_POLICY_KINDS: Final = frozenset((row.group, row.kind) for row in POLICY_KINDS)

_ANY: Final = {"apiVersions": ["*"]}

PLACES_SHOWN: Final = 5
"""The most rules that one line names; more would hide the remedy."""


class Matched:
    """Collects the constraints with a match: an observer of reviews."""

    def __init__(self) -> None:
        self._keys: set[tuple[str, str]] = set()

    def evaluated(
        self,
        constraints: tuple[Constraint, ...],
        began_ns: int,
        ended_ns: int,
        violations: int,
        error: str,
    ) -> None:
        """These matched."""
        del began_ns, ended_ns, violations, error
        self._keys.update(constraint.key for constraint in constraints)

    def take(self, responses: Responses) -> None:
        """Records constraints whose result needed no evaluation as matched, too."""
        self._keys.update(result.constraint.key for result in responses.results)
        self._keys.update(constraint.constraint.key for constraint in responses.undecided)

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._keys

    def missing(self, snapshot: Snapshot, target: str = "") -> list[Constraint]:
        """Returns the constraints in force without a match; of one target, if it is given."""
        return [
            constraint
            for entry in snapshot.entries
            if not target or any(known.name == target for known in entry.targets)
            for constraint in entry.constraints
            if constraint.broken is None and constraint.key not in self._keys
        ]


def advice_on(snapshot: Snapshot, seen: Collection[GroupAndKind] = ()) -> list[Problem]:
    """Warns of constraints that will probably match nothing.

    ``seen`` are further existing kinds.
    """
    problems: list[Problem] = []
    for entry in snapshot.entries:
        if entry.target.name == admission.NAME:
            for constraint in entry.constraints:
                problems += advice_on_constraint(constraint, seen)
    return problems


def advice_on_constraint(
    constraint: Constraint, seen: Collection[GroupAndKind] = ()
) -> list[Problem]:
    """Warns of a constraint that will probably match nothing."""
    return advice_on_document(constraint.document, seen)


def advice_on_document(
    document: Mapping[str, Any], seen: Collection[GroupAndKind] = ()
) -> list[Problem]:
    """Warn of a constraint as it is written, or of another policy that names kinds."""
    key, problems = (gvk_of(document).kind, name_of(document)), []
    never: list[str] = []
    for field, groups, kinds in _named(document):
        for kind in kinds:
            message = ""
            if not kind:
                message = f"its {field} has an empty kind, which no object has"
            elif suggestion := nearest(groups, kind, seen):
                message = (
                    f"its {field} names the kind {_shown(groups, kind)}: is {suggestion} meant?"
                )
            if message:
                problems.append(Problem(*key, "warning", KINDS, message))
            if field in ("match", "applyTo"):
                never += _never_sent(groups, kind)
    problems += [Problem(*key, "warning", KINDS, text) for text in _unserved(document)]
    if is_constraint(gvk_of(document)) and (fault := fault_of_annotation(document)):
        problems.append(Problem(*key, "warning", EXCEPTIONS, fault))
    problems += [Problem(*key, "warning", GROUP, text) for text in advice_on_group(document)]
    if gvk_of(document).group_kind == (provider.GROUP, provider.KIND):
        texts = provider.warnings_of_provider(document)
        problems += [Problem(*key, "warning", TIMEOUT, text) for text in texts]
    if never:
        listed = ", ".join(dict.fromkeys(never))
        message = f"API servers ask no webhook about {listed}: it enforces nothing for it"
        problems.append(Problem(*key, "warning", NEVER, message))
    return problems


def _unserved(document: Mapping[str, Any]) -> Iterator[str]:
    """Warn of kinds in groups and versions that no API server serves, and of globs in applyTo."""
    spec = object_of(document.get("spec"))
    matches = objects_of(object_of(spec.get("match")).get("kinds"))
    for field, key, item in (
        *(("match", "apiGroups", match) for match in matches),
        *(("applyTo", "groups", target) for target in objects_of(spec.get("applyTo"))),
    ):
        groups, versions = texts_of(item.get(key)), texts_of(item.get("versions")) or ["*"]
        for name in ("groups", "versions", "kinds") if field == "applyTo" else ():
            if globs := [f'"{text}"' for text in texts_of(item.get(name)) if "*" in text]:
                yield f"its applyTo has {', '.join(globs)} in {name}, which matches nothing there: name each"
        rule = {"apiVersions": versions}
        for kind in texts_of(item.get("kinds")):
            resource = kind if kind == "*" else plural_of(kind)
            releases = [gone_since(rule, group, resource) for group in groups]
            if releases and all(releases):
                named = [f"{group}/{version}" for group in groups for version in versions]
                yield (
                    f"its {field} names {'every kind' if kind == '*' else kind} of "
                    f"{', '.join(named)}, which no API server serves since Kubernetes {releases[0]}"
                )


def _never_sent(groups: Collection[str], kind: str) -> list[str]:
    """Returns the kinds in one entry of a match for which no webhook is called.

    A group without kinds means all its kinds; all groups without kinds give none.
    """
    if kind == "*":
        return sorted(other for group, other in NEVER_INTERCEPTED if group in groups)
    everywhere = not groups or "*" in groups
    return [
        other
        for group, other in NEVER_INTERCEPTED
        if other == kind and (everywhere or group in groups)
    ]


def advice_on_template(entry: Entry) -> Iterator[Problem]:
    """Warns of a template that needs a request or a missing library."""
    if entry.target.name != admission.NAME:
        return
    for library in absent_libraries(entry.template):
        message = (
            f"its Rego names {library}, and no library in its libs has this package: rules that "
            "read it never hold"
        )
        yield _of_template(entry, LIBRARY, message)
    unknown = kind_schemas.unknown_fields(entry.template.document, kind_schemas.TEMPLATE)
    if unknown:
        yield _of_template(entry, FIELDS, "; ".join(unknown))
    if _validates_nothing(entry.template):
        yield _of_template(entry, VALIDATIONS, "it denies nothing: its source has no validations")
    read = request_reads(entry.template)
    if nothing := [path for path in read if is_never_there(path)]:
        advice = _never_there(nothing)
    elif read:
        advice = _only_requests(read, deciding_places(entry.template))
    else:
        return
    yield _of_template(entry, REQUEST, advice)


def _of_template(entry: Entry, code: str, message: str) -> Problem:
    return Problem("ConstraintTemplate", entry.template.name, "warning", code, message)


def _validates_nothing(template: Template) -> bool:
    code = next(iter(template.code), None)
    return code is not None and code.engine == CEL and not object_of(code.source).get("validations")


def advice_on_messages(entries: Iterable[Entry]) -> Iterator[Problem]:
    """Warns of templates whose evaluations by now found something without a message."""
    for entry in entries:
        for evaluator in (entry.evaluator, *(other.evaluator for other in entry.others)):
            if lost := lost_violations(evaluator):
                yield _of_template(entry, MESSAGES, lost)


def left_out(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Returns a line for each Kyverno policy that reviews no object, with the alternative."""
    for item in manifests:
        if why := why_not_run(item.document):
            yield f"{item.file}:{item.line}: {item.title}: not evaluated: {why}"


def unsent_kinds(snapshot: Snapshot, matched: Matched) -> list[Problem]:
    """Warns of evaluated templates without their inputs (a request, a library) or messages."""
    return [*advice_on_messages(snapshot.entries)] + [
        problem
        for entry in snapshot.entries
        if any(constraint.key in matched for constraint in entry.constraints)
        for problem in advice_on_template(entry)
    ]


def unmatched(missing: Iterable[Constraint], seen: Collection[GroupAndKind] = ()) -> list[Problem]:
    """Warns of constraints that matched no object, and suggests the probably intended kinds."""
    return [problem for constraint in missing for problem in advice_on_constraint(constraint, seen)]


def nearest(groups: Collection[str], kind: str, seen: Collection[GroupAndKind] = ()) -> str:
    """Returns the probably intended kind; empty if this kind may exist.

    Kinds of custom resources are unknown: groups outside Kubernetes' own API are not checked.
    """
    known = BUILTIN_KINDS | _POLICY_KINDS | frozenset(seen)
    if kind == "*" or not kind:
        return ""
    of_kind = sorted(group for group, name in known if name == kind)
    everywhere = not groups or "*" in groups
    if of_kind:
        if everywhere or not set(groups).isdisjoint(of_kind):
            return ""
        if all(_is_foreign(group) for group in groups):
            return ""
        served = [group for group in of_kind if not gone_since(_ANY, group, plural_of(kind))]
        return " or ".join(f'{kind} of the group "{group}"' for group in served or of_kind)
    if not everywhere and all(_is_foreign(group) for group in groups):
        return ""
    names = sorted(
        {
            name
            for group, name in known
            if everywhere or group in groups or all(other not in BUILTIN_GROUPS for other in groups)
        }
    ) or sorted({name for _, name in known})
    same = [name for name in names if kind.lower() in _spellings(name)]
    same = same or [name for _, name in sorted(known) if kind.lower() in _spellings(name)]
    if same:
        return same[0]
    if everywhere:
        return ""  # A custom resource may have any name.
    return nearest_name(kind, names, NEAR)


def _is_foreign(group: str) -> bool:
    """Returns whether a group is unknown: of a custom resource."""
    return group not in BUILTIN_GROUPS and "." in group


def _spellings(kind: str) -> tuple[str, ...]:
    """Returns a kind in lower case, and the resource names derived from it."""
    lower = kind.lower()
    return lower, f"{lower}s", f"{lower}es", f"{lower.removesuffix('y')}ies"


def _named(document: Mapping[str, Any]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields the field, groups and kinds of each place where a policy names kinds."""
    spec = object_of(document.get("spec"))
    for item in objects_of(object_of(spec.get("match")).get("kinds")):
        yield "match", texts_of(item.get("apiGroups")), texts_of(item.get("kinds"))
    for item in objects_of(spec.get("applyTo")):
        yield "applyTo", texts_of(item.get("groups")), texts_of(item.get("kinds"))
    single = {
        "generatedGVK": [spec.get("generatedGVK")],
        "sync": object_of(spec.get("sync")).get("syncOnly"),
        "gvks": spec.get("gvks"),
    }
    for field, listed in single.items():
        for item in objects_of(listed):
            yield field, texts_of([item.get("group", "")]), texts_of([item.get("kind")])


def _shown(groups: Collection[str], kind: str) -> str:
    named = [group for group in groups if group]
    return f'"{kind}" of {", ".join(named)}' if named and "*" not in named else f'"{kind}"'


def _never_there(read: Collection[str]) -> str:
    fields = ", ".join(sorted(read))
    return (
        f"it decides by {fields}, which is never there: it denies nothing. A template's input has "
        "review and parameters. Is input.review.object or input.review.operation meant?"
    )


def _only_requests(read: Collection[str], places: Sequence[str]) -> str:
    fields = ", ".join(sorted(read))
    shown = ", ".join(places[:PLACES_SHOWN]) + (", …" if len(places) > PLACES_SHOWN else "")
    return (
        f"it decides by {fields}, which only a request has ({ABSENT}): waddle test, the audit and "
        f"reports find nothing by it ({shown}). Add a rule for objects without a request, or give test an "
        "AdmissionReview"
    )

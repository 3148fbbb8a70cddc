"""Makes the document of each page from a picture and a query; a template then draws it."""

from __future__ import annotations

import time
from collections import Counter
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import text
from webhook.api.revision import InvalidRevision
from webhook.api.shapes import annotations_of, object_of, objects_of, status_of
from webhook.api.timestamp import seconds_of
from webhook.console import kubectl, violations
from webhook.console.listing import PAGE_ROWS, page_of
from webhook.console.picture import CATEGORIES, STATES
from webhook.console.source_text import as_yaml, numbered, sources
from webhook.console.violations import Search, counted, groups
from webhook.constraint.errors import InvalidConstraint
from webhook.constraint.rollout import ANNOTATION, read_rollout
from webhook.controllers.status.synced_kinds import rows_of
from webhook.exceptions.exception import ANY
from webhook.policy_kinds.table import EXCEPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.revision import PolicyRevision
    from webhook.console.picture import Picture, ShownCertificate, ShownPolicy, ShownViolation
    from webhook.console.visitor import Visitor

Query = dict[str, str]
ObjectDocument = dict[str, Any]

TOP: Final = 10
POLICIES_PAGE: Final = 100
OWN_VIOLATIONS: Final = 50
"""The most violations on a policy's own page, which links to all of them."""

CRITICAL_DAYS: Final = 7
"""A certificate that ends in fewer days is overdue: replicas renew it with a third of its time
left."""

ANSWERS_MAX: Final = 4
"""The searches kept with a picture: 3 MiB each if 20,000 violations are counted by resource."""

_ORDER: Final = {state: number for number, state in enumerate(STATES)}


class NotThere(Exception):
    """No object has this name; the text is the searched name."""


def shown(picture: Picture, visitor: Visitor | None) -> ObjectDocument:
    """Returns the part of every page: source, time, faults and visitor."""
    return {
        "over": picture.over,
        "place": picture.place,
        "version": picture.version,
        "taken": picture.taken,
        "trouble": list(picture.trouble),
        "visitor": None if visitor is None else visitor.user,
        "hidden": list(picture.hidden),
    }


def overview(picture: Picture, query: Query) -> ObjectDocument:
    """Returns replicas, policies by state, violations, certificates and faults."""
    del query
    states = Counter(item.state for item in picture.policies)
    violations = picture.violations or ()
    return {
        "policies": {
            "total": len(picture.policies),
            "byState": {state: states[state] for state in STATES},
            "byCategory": {
                category: sum(item.category == category for item in picture.policies)
                for category in CATEGORIES
            },
        },
        "worst": [
            summary(item)
            for item in sorted(picture.policies, key=_gravity)[:TOP]
            if item.state not in {"active", "not for admission"}
        ],
        "replicas": _replicas(picture),
        "certificates": [_certificate(certificate) for certificate in picture.certificates],
        "violations": _violation_summary(picture, violations),
        "faults": list(picture.faults),
    }


def _replicas(picture: Picture) -> ObjectDocument | None:
    if picture.over == "files" or not picture.sees_pods:
        return None
    return {
        "total": len(picture.pods),
        "ready": sum(item.ready and not item.terminating for item in picture.pods),
        "terminating": sum(item.terminating for item in picture.pods),
        "differ": sum(
            len({(standing.state, standing.generation) for standing in item.standings}) > 1
            for item in picture.policies
        ),
    }


def _certificate(certificate: ShownCertificate) -> ObjectDocument:
    days = {
        name: None if not text else int((seconds_of(text) - time.time()) // 86_400)
        for name, text in (
            ("endsInDays", certificate.ends),
            ("authorityEndsInDays", certificate.authority_ends),
        )
    }
    known = [number for number in days.values() if number is not None]
    wrong = certificate.is_trusted is False or any(number < CRITICAL_DAYS for number in known)
    return {
        "configuration": certificate.configuration,
        "address": certificate.address,
        "ends": certificate.ends,
        "authorityEnds": certificate.authority_ends,
        **days,
        "trusted": certificate.is_trusted,
        "state": "error" if wrong else "active" if certificate.is_trusted else "pending",
        "why": certificate.why,
    }


def _violation_summary(
    picture: Picture, violations: Sequence[ShownViolation]
) -> ObjectDocument | None:
    if picture.violations is None:
        return None
    return {
        "total": len(violations),
        "reviewed": picture.reviewed,
        "byAction": dict(Counter(item.action for item in violations).most_common()),
        "byNamespace": groups(counted(violations, "namespace")[:TOP], "namespace"),
        "byPolicy": groups(counted(violations, "policy")[:TOP], "policy"),
    }


def _gravity(item: ShownPolicy) -> tuple[int, str, str, str]:
    return _ORDER[item.state], item.category, item.kind, item.name


def summary(item: ShownPolicy) -> ObjectDocument:
    """Returns a policy as a row."""
    return {
        "category": item.category,
        "kind": item.kind,
        "name": item.name,
        "state": item.state,
        "action": item.action,
        "severity": item.severity,
        "title": item.title,
        "owner": item.owner,
        "stage": stage_of(item),
        "generation": item.generation,
        "enforcing": item.enforcing,
        "counted": item.counted,
        "behind": [
            {
                "replica": standing.replica,
                "generation": standing.generation,
                "state": standing.state,
            }
            for standing in item.standings
            if standing.state != "enforced" or standing.generation not in (None, item.generation)
        ],
        "place": item.place,
        "faults": list(item.faults),
        "advice": list(item.advice),
    }


def stage_of(item: ShownPolicy) -> str:
    """Returns the action and state of a roll-out; empty without one."""
    rollout = object_of(item.rollout)
    state, action = rollout.get("state"), rollout.get("action")
    return f"{action}: {state}" if isinstance(state, str) and isinstance(action, str) else ""


def policies(picture: Picture, query: Query) -> ObjectDocument:
    """Returns one page of the policies that match a search."""
    text, category = query.get("q", "").casefold(), query.get("category", "")
    state = query.get("state", "")
    listed = [
        item
        for item in picture.policies
        if (not category or item.category == category)
        and (not state or item.state == state)
        and (not text or text in f"{item.kind}/{item.name}".casefold())
    ]
    listed.sort(key=_gravity)
    rows, position = page_of(listed, page_number(query), POLICIES_PAGE)
    return {
        "policies": [summary(item) for item in rows],
        "position": position,
        "query": {"q": query.get("q", ""), "category": category, "state": state},
    }


def policy(picture: Picture, query: Query) -> ObjectDocument:
    """Returns a policy's source, match, violations, replicas and revisions; raises NotThere."""
    kind, name = query.get("kind", ""), query.get("name", "")
    item = picture.policy(kind, name)
    if item is None:
        raise NotThere(f"{kind or 'policy'} {name}".strip())
    spec = object_of(item.document.get("spec"))
    belonging = [
        summary(other)
        for other in picture.policies
        if item.category == "template"
        and other.category == "constraint"
        and other.kind.lower() == item.name
    ]
    template = _template_of(picture, item) if item.category == "constraint" else None
    return {
        "policy": summary(item),
        "description": item.description,
        "sources": sources(item.document, item.faults) if item.category == "template" else [],
        "manifest": numbered(as_yaml(_shown_manifest(item.document)), {}),
        "match": as_yaml(spec["match"]) if spec.get("match") else "",
        "parameters": as_yaml(spec["parameters"]) if spec.get("parameters") else "",
        "resourceVersion": item.resource_version,
        "standings": [
            {
                "replica": standing.replica,
                "state": standing.state,
                "generation": standing.generation,
                "since": standing.since,
                "reason": standing.reason,
            }
            for standing in item.standings
        ],
        "template": summary(template) if template is not None else None,
        "constraints": belonging,
        "exceptions": _exceptions_from(picture, item),
        "violations": _violations_of(picture, f"{kind}/{name}"),
        "rollout": item.rollout,
        "toCome": to_come(item),
        "revisions": [_revision(item, revision) for revision in item.revisions],
        "reads": _reads(item, template),
        "commands": _commands(picture, kubectl.of_policy(item)),
    }


def _template_of(picture: Picture, constraint: ShownPolicy) -> ShownPolicy | None:
    """Returns the template of a constraint; None if it is not in the picture."""
    for policy in picture.policies:
        if policy.category == "template" and policy.name == constraint.kind.lower():
            return policy
    return None


def _violations_of(picture: Picture, key: str) -> ObjectDocument | None:
    """Returns the first violations of a policy and their total; None where they are not known."""
    if picture.violations is None:
        return None
    of_policy = [violation for violation in picture.violations if violation.policy == key]
    rows = [violations.row(violation, picture.by_key) for violation in of_policy[:OWN_VIOLATIONS]]
    return {"total": len(of_policy), "rows": rows}


def _reads(item: ShownPolicy, of: ShownPolicy | None) -> list[str]:
    """Returns the dependencies of a template, or of a constraint ``of`` one.

    None if it is unusable.
    """
    template = item if item.category == "template" else of
    if template is None or template.faults or item.faults:
        return []
    # Imported here, as only this page needs the compilers of the languages.
    from webhook.constraint.drivers.reads import dependencies_of  # noqa: PLC0415
    from webhook.constraint.errors import InvalidTemplate  # noqa: PLC0415
    from webhook.constraint.template import read_template  # noqa: PLC0415

    try:
        read = read_template(template.document)
    except InvalidTemplate:
        return []
    parameters = None
    if item is not template:
        parameters = object_of(object_of(item.document.get("spec")).get("parameters"))
    dependencies = dependencies_of(read, parameters)
    return [] if dependencies is None else dependencies.lines


def _commands(picture: Picture, offered: Sequence[kubectl.Command]) -> list[kubectl.Command]:
    """Returns the kubectl commands about a cluster; none about files."""
    return kubectl.at(picture.context, offered) if picture.over == "cluster" else []


def _revision(item: ShownPolicy, kept: PolicyRevision) -> ObjectDocument:
    """Returns a kept generation, and its difference from the current one."""
    revision = {"generation": kept.generation, "created": kept.created, "digest": kept.digest}
    try:
        before = kept.document(item.document).get("spec")
    except InvalidRevision as error:
        return {**revision, "difference": "", "error": str(error)}
    lines = unified_diff(
        as_yaml(before).splitlines(),
        as_yaml(item.document.get("spec")).splitlines(),
        f"generation {kept.generation}",
        f"generation {item.generation}",
        lineterm="",
    )
    return {**revision, "difference": "\n".join(lines), "error": ""}


def _shown_manifest(document: Mapping[str, Any]) -> ObjectDocument:
    """Returns the object without ``managedFields`` and status."""
    metadata = {
        name: value
        for name, value in object_of(document.get("metadata")).items()
        if name != "managedFields"
    }
    return {
        name: (metadata if name == "metadata" else value)
        for name, value in document.items()
        if name != "status"
    }


def violation_page(picture: Picture, query: Query) -> ObjectDocument:
    """Returns one page of violations that match a search, or of their groups."""
    search = Search.of(query)
    group = query.get("group", "") if query.get("group") in violations.GROUPS else ""
    sort = query.get("sort", "") if query.get("sort") in violations.SORTS else violations.SORTS[0]
    count, listed, choices = _listed(picture, search, group, sort)
    rows, position = page_of(listed, page_number(query))
    return {
        "known": picture.violations is not None,
        "why": picture.why_no_violations,
        "rows": groups(rows, group)
        if group
        else [violations.row(item, picture.by_key) for item in rows],
        "group": group,
        "sort": sort,
        "choices": choices,
        "position": position,
        "violations": count,
        "query": {name: query.get(name, "") for name in ("q", *violations.FILTERS)},
    }


def _listed(
    picture: Picture, search: Search, group: str, sort: str
) -> tuple[int, Sequence[Any], Mapping[str, Any]]:
    """Returns the number of violations of a search, its rows or groups, and the filters' values.

    The result is kept with the picture: each page of a search needs it again, and counting 20,000
    violations takes noticeably long.
    """
    key = search, group, sort
    known: tuple[int, Sequence[Any], Mapping[str, Any]] | None = picture.answers.get(key)
    if known is None:
        all_known = picture.violations or ()
        rows = search.finds(all_known)
        if len(picture.answers) >= ANSWERS_MAX:
            picture.answers.clear()
        listed = counted(rows, group) if group else violations.in_order(rows, sort)
        known = len(rows), listed, search.choices(all_known)
        picture.answers[key] = known
    return known


def found_violations(picture: Picture, query: Query) -> list[ShownViolation]:
    """Returns all violations of a search, for files of other formats."""
    rows = Search.of(query).finds(picture.violations or ())
    return violations.in_order(rows, query.get("sort", ""))


def resource(picture: Picture, query: Query) -> ObjectDocument:
    """Returns all violations of one object."""
    identity = tuple(query.get(name, "") for name in ("apiVersion", "kind", "namespace", "name"))
    rows = [item for item in picture.violations or () if item.resource == identity]
    api_version, kind, namespace, name = identity
    policies = dict.fromkeys(item.policy.partition("/")[::2] for item in rows)
    violated = [policy for key in policies if (policy := picture.policy(*key)) is not None]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "rows": [violations.row(item, picture.by_key) for item in rows],
        "known": picture.violations is not None,
        "why": picture.why_no_violations,
        "commands": _commands(picture, kubectl.of_resource(identity, violated)),
    }


def rollouts(picture: Picture, query: Query) -> ObjectDocument:
    """Returns constraints with a staged roll-out, each with the record of its steps."""
    del query
    return {
        "over": picture.over,
        "rollouts": [
            {**summary(item), "rollout": dict(item.rollout), "toCome": to_come(item)}
            for item in picture.policies
            if item.rollout is not None
        ],
    }


def exceptions(picture: Picture, query: Query) -> ObjectDocument:
    """Returns one page of all exceptions, the earliest end first."""
    listed = [item for item in picture.policies if item.category == EXCEPTIONS.name]
    listed.sort(key=lambda item: (_spec_of(item).get("expires") or "~", item.key))
    rows, position = page_of(listed, page_number(query), POLICIES_PAGE)
    return {
        "over": picture.over,
        "exceptions": [_exception(item) for item in rows],
        "position": position,
    }


def _spec_of(item: ShownPolicy) -> ObjectDocument:
    return object_of(item.document.get("spec"))


def _exception(item: ShownPolicy) -> ObjectDocument:
    """Returns an exception as a row, whatever its fields contain."""
    spec, status = _spec_of(item), status_of(item.document)
    return {
        **summary(item),
        "constraints": [
            {"kind": text(constraint, "kind"), "name": text(constraint, "name")}
            for constraint in objects_of(spec.get("constraints"))
        ],
        "effect": text(spec, "effect") or "skip",
        "reason": text(spec, "reason"),
        "ticket": text(spec, "ticket"),
        "responsible": text(spec, "owner"),
        "expires": text(spec, "expires"),
        "lastUsed": text(status, "lastUsed"),
        "told": text(status, "state"),
        "message": text(status, "message"),
    }


def _exceptions_from(picture: Picture, item: ShownPolicy) -> list[ObjectDocument]:
    """Returns the exceptions that name a constraint."""
    if item.category != "constraint":
        return []
    named = ({"kind": item.kind, "name": item.name}, {"kind": item.kind, "name": ANY})
    rows = [_exception(policy) for policy in picture.policies if policy.category == EXCEPTIONS.name]
    return [row for row in rows if any(pair in row["constraints"] for pair in named)]


def to_come(item: ShownPolicy) -> list[str]:
    """Returns the current and the later stages as written, and the spec's action last.

    Empty without a roll-out, after its end, or if it cannot be read.
    """
    try:
        rollout = read_rollout(item.document)
    except InvalidConstraint:
        return []
    if rollout is None or item.rollout is None:
        return []
    written = [part.strip() for part in annotations_of(item.document)[ANNOTATION].split(",")]
    action = item.rollout.get("action")
    actions = rollout.actions
    if action not in actions or action == actions[-1]:
        return []
    return [*written, rollout.final][actions.index(action) :]


def health(picture: Picture, query: Query) -> ObjectDocument:
    """Returns the replicas with the policies that they do not enforce, and the kinds followed."""
    del query
    return {
        "over": picture.over,
        "seesReplicas": picture.sees_pods,
        "replicas": [
            {
                "name": pod.name,
                "ready": pod.ready,
                "terminating": pod.terminating,
                "notes": list(pod.notes),
                "behind": [
                    {
                        "kind": item.kind,
                        "name": item.name,
                        "state": standing.state,
                        "reason": standing.reason,
                    }
                    for item in picture.policies
                    for standing in item.standings
                    if standing.replica == pod.name and standing.state != "enforced"
                ][:PAGE_ROWS],
                "commands": _commands(picture, kubectl.of_replica(picture.namespace, pod.name)),
            }
            for pod in picture.pods
        ],
        "kinds": [dict(kind) for kind in picture.kinds],
        "syncedKinds": _synced(picture),
        "faults": list(picture.faults),
    }


def _synced(picture: Picture) -> list[ObjectDocument]:
    """Returns the kept fields of each synced kind, and the templates that wait for more."""
    if picture.sync is None:
        return []
    templates = [item.document for item in picture.policies if item.category == "template"]
    return [
        {
            "kind": f"{row.gvk.group_version}/{row.gvk.kind}",
            "paths": list(row.paths),
            "whyWhole": row.why_whole,
            "waitingTemplates": list(row.waiting),
        }
        for row in rows_of(picture.sync, templates)
    ]


def page_number(query: Query) -> int:
    """Returns the number of the requested page; the first is 1."""
    text = query.get("page", "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1

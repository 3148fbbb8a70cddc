"""Kubewarden's policies as constraints and ConstraintGroups, if they have an equivalent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from webhook.api import names
from webhook.api.builtin_kinds import BUILTIN_KINDS
from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.api.shapes import Json, object_of, objects_of, texts_of
from webhook.cli import exit_codes
from webhook.cli.clients import new_client
from webhook.cli.formats.document import as_stream
from webhook.cli.migrate.kubewarden_equivalents import EQUIVALENTS, NoEquivalent, differences, only
from webhook.cli.migrate.run import NOT_WRITTEN, from_files
from webhook.cli.terminal import complain, write
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.group import check_group, is_group, read_group
from webhook.constraint.names import subdomain_faults
from webhook.constraint.targets import admission
from webhook.constraint.template import CEL
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet


def run(filenames: Sequence[str], kinds: Mapping[str, str]) -> int:
    """Translates every policy and group of the files; returns the exit code."""
    manifests, all_read = from_files(filenames)
    policies = [item for item in manifests if is_translated(item.document)]
    if not policies:
        complain("the files have no policy and no policy group of Kubewarden")
        return exit_codes.UNKNOWN
    written: list[Json] = []
    missing: list[str] = []
    titles: dict[tuple[str, str], str] = {}
    for item in policies:
        try:
            migration = migrated(
                item.document, kinds, {*kinds.values(), *(kind for kind, _ in titles)}
            )
            _try(migration)
            _check_new(migration.policy, titles)
        except NoEquivalent as error:
            missing.append(f"{item.title}: not written: {error}")
            complain(missing[-1])
            continue
        for note in migration.notes:
            complain(f"{item.title}: {note}")
        written += [*migration.templates, migration.policy]
        titles |= {(_kind_of(template), ""): item.title for template in migration.templates}
        titles[migration.policy["kind"], name_of(migration.policy)] = item.title
    if not all_read:
        complain(NOT_WRITTEN)
        return exit_codes.UNKNOWN
    if written:
        write(as_stream(written, missing))
    return exit_codes.NO if missing else exit_codes.OK


def _try(migration: Migrated) -> None:
    """Raises for what would be refused, such as expressions with features of Kubewarden alone."""
    client, policy = new_client(), migration.policy
    for template in migration.templates:
        try:
            client.add_template(template)
        except ConstraintFrameworkError as error:
            raise NoEquivalent(f"its expressions are invalid here: {error}") from None
    if faults := subdomain_faults(name_of(policy)):
        raise NoEquivalent(f"its name would be {name_of(policy)}: {faults[0]}")
    if not is_group(policy):
        return
    try:
        check_group(policy)
        read_group(policy, admission.AdmissionTarget())
    except ConstraintFrameworkError as error:
        raise NoEquivalent(str(error)) from None


def _check_new(policy: Json, titles: Mapping[tuple[str, str], str]) -> None:
    """Raises for a policy that would replace another when it is applied."""
    kind, name = policy["kind"], name_of(policy)
    if title := titles.get((kind, name)):
        raise NoEquivalent(
            f"it would replace {kind}/{name}, which is written for {title}: rename it"
        )


GROUP: Final = "policies.kubewarden.io"
POLICY_KINDS: Final = ("ClusterAdmissionPolicy", "AdmissionPolicy")
GROUP_KINDS: Final = ("ClusterAdmissionPolicyGroup", "AdmissionPolicyGroup")

_CEL: Final = "cel-policy"
"""Kubewarden's own policy whose settings are expressions."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """A constraint or group, and the templates that it needs; ``notes`` are the differences."""

    policy: Json
    templates: tuple[Json, ...]
    notes: tuple[str, ...]


def is_translated(document: Mapping[str, Any]) -> bool:
    """Returns whether a document is a policy or a group of Kubewarden, of any version."""
    gvk = gvk_of(document)
    return gvk.group == GROUP and gvk.kind in {*POLICY_KINDS, *GROUP_KINDS}


def migrated(
    document: Mapping[str, Any], kinds: Mapping[str, str], taken: AbstractSet[str] = frozenset()
) -> Migrated:
    """Returns the converted policy; ``kinds`` are those of the reader's own templates, by module.

    ``taken`` are kinds that no new template may have. The name has the namespace of a policy of
    one, because constraints and groups are the cluster's. Raises :class:`NoEquivalent`.
    """
    spec, place = object_of(document.get("spec")), namespace_of(document)
    name = f"{place}.{name_of(document)}" if place else name_of(document)
    templates = _Templates(taken)
    notes: list[str] = []
    if gvk_of(document).kind in POLICY_KINDS:
        member = _member(name, spec, kinds, templates)
        api_version, kind = f"{names.CONSTRAINTS}/v1beta1", member.pop("kind")
        content = member
        notes += _member_notes("it", spec, kinds)
    else:
        api_version, kind = f"{names.OURS}/{names.OURS_VERSION}", names.CONSTRAINT_GROUP
        content = _group_content(name, spec, kinds, templates, notes)
    if spec.get("matchConditions"):
        notes.append("a match has no equivalent of its matchConditions: write them as a member")
    policy = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"match": _match(spec, place, notes), **_action(spec), **content},
    }
    return Migrated(policy, tuple(templates.written), tuple(notes))


def _group_content(
    name: str,
    spec: Mapping[str, Any],
    kinds: Mapping[str, str],
    templates: _Templates,
    notes: list[str],
) -> Json:
    """Returns the members, the expression and the message of a group; raises NoEquivalent."""
    members = {}
    for member, written in object_of(spec.get("policies")).items():
        try:
            members[member] = _member(f"{name}-{member}", object_of(written), kinds, templates)
        except NoEquivalent as error:
            raise NoEquivalent(f"member {member}: {error}") from None
        notes += _member_notes(f"member {member}", object_of(written), kinds)
    message = {"message": spec["message"]} if type(spec.get("message")) is str else {}
    return {**message, "members": members, "expression": spec.get("expression", "")}


def _member_notes(
    shown: str, written: Mapping[str, Any], kinds: Mapping[str, str]
) -> Iterator[str]:
    module = str(written.get("module"))
    policy = policy_of(module)
    if not kinds.keys() & {module, policy}:
        for difference in differences(policy, object_of(written.get("settings"))):
            yield f"{shown} ({policy}): {difference}"
    if written.get("contextAwareResources"):
        yield f"{shown} reads other objects: add a SyncSet for their kinds"


def _action(spec: Mapping[str, Any]) -> Json:
    action = "dryrun" if spec.get("mode") == "monitor" else "deny"
    if spec.get("backgroundAudit") is not False:
        return {"enforcementAction": action}
    at_admission = {"action": action, "enforcementPoints": [{"name": names.WEBHOOK}]}
    return {"enforcementAction": "scoped", "scopedEnforcementActions": [at_admission]}


# --- matches of a group
# ---------------------------------------------------------------------------


def _match(spec: Mapping[str, Any], namespace: str, notes: list[str]) -> Json:
    kinds = [item for rule in objects_of(spec.get("rules")) for item in _kinds(rule, notes)]
    match: Json = {"kinds": kinds} if kinds else {}
    scopes = {rule.get("scope") or "*" for rule in objects_of(spec.get("rules"))}
    if namespace:
        match["namespaces"] = [namespace]
        scopes = {"Namespaced"}  # A list of namespaces leaves no object of the cluster out.
    if len(scopes) > 1:
        notes.append("its rules have several scopes, and a match has a single one: it has none")
    elif scopes - {"*"}:
        match["scope"] = scopes.pop()
    for theirs, ours in (("objectSelector", "labelSelector"), ("namespaceSelector",) * 2):
        if spec.get(theirs):
            match[ours] = spec[theirs]
    return match


def _kinds(rule: Mapping[str, Any], notes: list[str]) -> Iterator[Json]:
    groups = texts_of(rule.get("apiGroups"))
    kinds = []
    for resource in texts_of(rule.get("resources")):
        plural, _, sub = resource.partition("/")
        if sub:
            notes.append(f"{resource} is reviewed wherever the webhook configuration names it")
        kinds.append("*" if plural == "*" else _kind(plural, groups))
    operations = set(texts_of(rule.get("operations")))
    if operations and operations != {"CREATE", "UPDATE"}:
        notes.append(
            f"its operations are {', '.join(sorted(operations))}, which a match cannot name: the "
            "webhook configuration names them, by default CREATE and UPDATE"
        )
    if kinds:
        yield {"apiGroups": groups or ["*"], "kinds": list(dict.fromkeys(kinds))}


def _kind(plural: str, groups: list[str]) -> str:
    """Returns the kind that a resource is of."""
    for group, kind in sorted(BUILTIN_KINDS):
        lower = kind.lower()
        spelt = (f"{lower}s", f"{lower}es", f"{lower.removesuffix('y')}ies", lower)
        if plural in spelt and ("*" in groups or group in groups):
            return kind
    raise NoEquivalent(
        f"rules name the resource {plural}, whose kind is not known: write its kind into a match"
    )


# --- members --------------------------------------------------------------------------------------


def _member(
    name: str, written: Mapping[str, Any], kinds: Mapping[str, str], templates: _Templates
) -> Json:
    module = written.get("module")
    if type(module) is not str or not module:
        raise NoEquivalent("it names no module")
    if written.get("mutating") is True:
        raise NoEquivalent("it changes objects: write mutators (docs/mutation.md)")
    settings, policy = object_of(written.get("settings")), policy_of(module)
    if kind := kinds.get(module) or kinds.get(policy):
        return {"kind": kind, "parameters": settings} if settings else {"kind": kind}
    if policy == _CEL:
        return {"kind": templates.add(name, settings)}
    if policy not in EQUIVALENTS:
        raise NoEquivalent(
            f"no template replaces {module}: write one, and add --kind {policy}=KIND"
        )
    return EQUIVALENTS[policy](settings)


def policy_of(module: str) -> str:
    """Returns a module's name: the last part of its address, without version, digest and ending."""
    last = module.rsplit("/", 1)[-1]
    return re.split(r"[:@]", last)[0].removesuffix(".wasm")


class _Templates:
    """The templates of one policy, each of a kind of its own."""

    def __init__(self, taken: AbstractSet[str]) -> None:
        self._taken = {kind.lower() for kind in taken}
        self.written: list[Json] = []

    def add(self, name: str, settings: Json) -> str:
        """Adds the template of a policy whose settings are expressions; returns its kind."""
        only(settings, ("variables", "validations"))
        kind = "".join(part.capitalize() for part in re.split(r"[^0-9A-Za-z]+", name))
        if kind.lower() in self._taken:  # a-b of c, and a of b-c
            kind += hashlib.sha256(name.encode()).hexdigest()[:6]
        self._taken.add(kind.lower())
        self.written.append(_template(kind, settings))
        return kind


def _kind_of(template: Json) -> str:
    kind: str = template["spec"]["crd"]["spec"]["names"]["kind"]
    return kind


def _template(kind: str, settings: Json) -> Json:
    """Returns the template of a policy whose settings are CEL expressions."""
    source = {key: settings[key] for key in ("variables", "validations") if settings.get(key)}
    code = [{"engine": CEL, "source": source}]
    return {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": kind.lower()},
        "spec": {
            "crd": {"spec": {"names": {"kind": kind}}},
            "targets": [{"target": admission.NAME, "code": code}],
        },
    }

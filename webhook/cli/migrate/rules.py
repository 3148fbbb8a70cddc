"""Finds which parts of a Gatekeeper installation run here, differ, or are missing.

Pure: manifests in, a verdict for each out. Differences are rows of ``docs/compatibility/``, by the
text of their first column, which a test checks.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.api.shapes import objects_of
from webhook.constraint import constraint, expansion, template
from webhook.external_data import provider
from webhook.mutation.reading import is_mutator
from webhook.policies.extensions import Extensions
from webhook.policies.validation import is_policy, validate
from webhook.settings.flags import InvalidFlag, parse
from webhook.settings.gatekeeper import Foreign
from webhook.settings.serve import ServeSettings
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.constraint.client import Client
    from webhook.policies.manifests import Manifest

BUDGET_SECONDS: Final = 0.5
"""The time of one evaluation on a sample, in seconds: as in `waddle check`."""

Grade = Literal["same", "differs", "missing"]

# Rows of docs/compatibility/*.md, by their first column.
NUMBERS: Final = "numbers in reviews, parameters and data"
SYNC_DATA: Final = "`metadata.gatekeeper.sh/requires-sync-data`"
MANAGED: Final = (
    "`metadata.managedFields` and the annotation `kubectl.kubernetes.io/last-applied-configuration`"
)
EXTERNAL: Final = "Providers and `external_data`"
MUTATING: Final = "the mutating webhook"
MUTATED_INTEGERS: Final = "mutators: integers"
EXPORT: Final = "export of audit and admission violations"
RIGHTS: Final = "rights of the manifests"
LEFT_OUT: Final = "what the manifests' webhook configuration leaves out"
PAGES: Final = {
    NUMBERS: "docs/compatibility/reviews.md",
    MANAGED: "docs/compatibility/reviews.md",
    SYNC_DATA: "docs/compatibility/policies.md",
    EXTERNAL: "docs/compatibility/mutation.md",
    MUTATING: "docs/compatibility/mutation.md",
    MUTATED_INTEGERS: "docs/compatibility/mutation.md",
    EXPORT: "docs/compatibility/audit.md",
    RIGHTS: "docs/compatibility/installation.md",
    LEFT_OUT: "docs/compatibility/installation.md",
}
"""The page of each row."""

_EXPONENT_FROM: Final = 1_000_000
"""Go prints a float64 from here on with an exponent when it is a whole number of this size."""

_VIEWABLE_GROUPS: Final = frozenset({"", "apps", "autoscaling", "batch", "policy", "extensions"})
_NOT_VIEWABLE: Final = frozenset({"Secret", "Role", "RoleBinding"})
_CLUSTER_KINDS: Final = frozenset(
    {"IngressClass", "RuntimeClass", "PriorityClass", "StorageClass", "Ingress", "NetworkPolicy"}
)
"""Further kinds that the ClusterRoles for synced data contain (manifests/base/rbac.yaml)."""

_DEPLOYMENT: Final = "Deployment"
_WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_RELATED: Final = frozenset(
    {
        "config.gatekeeper.sh",
        "connection.gatekeeper.sh",
        provider.GROUP,
        "syncset.gatekeeper.sh",
    }
)


@dataclass(frozen=True, slots=True)
class Note:
    """A difference; ``row`` is the row of :data:`PAGES` about it, if any."""

    grade: Grade
    text: str
    row: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """An object and its verdict; without notes it runs unchanged."""

    kind: str
    name: str
    place: str
    notes: tuple[Note, ...] = ()

    @property
    def grade(self) -> Grade:
        """The worst of its notes."""
        grades = {note.grade for note in self.notes}
        return "missing" if "missing" in grades else "differs" if grades else "same"


@dataclass(slots=True)
class _Notes:
    """Notes by object."""

    by_object: dict[tuple[str, str, str], list[Note]] = field(default_factory=dict)

    def add(self, gvk: GroupVersionKind, name: str, notes: Iterable[Note]) -> None:
        self.by_object.setdefault((gvk.group, gvk.kind, name), []).extend(notes)


def judge(manifests: Sequence[Manifest], client: Client) -> list[Judged]:
    """Returns a verdict for each object of Gatekeeper or its configuration, in the given order."""
    concerned = [item for item in manifests if _concerns(item)]
    notes = _Notes()
    policies = [item.document for item in concerned if is_policy(item.document)]
    by_name = {(gvk_of(item).kind, name_of(item)): gvk_of(item) for item in policies}
    for problem in validate(client, policies, BUDGET_SECONDS):
        gvk = by_name.get((problem.kind, problem.name))
        if gvk is not None and problem.severity == "error":
            notes.add(gvk, problem.name, [Note("missing", problem.message, _row(problem.message))])
    by_title = {item.title: item for item in concerned}
    for fault in Extensions().load(concerned):
        item = by_title[fault.title]
        notes.add(item.gvk, name_of(item.document), [Note("missing", fault.message)])
    for item in concerned:
        notes.add(item.gvk, name_of(item.document), _notes_on(item.document))
    return [
        Judged(
            item.gvk.kind,
            item.identity[3],
            f"{item.file}:{item.line}" if item.file else "",
            tuple(notes.by_object[item.gvk.group, item.gvk.kind, item.identity[3]]),
        )
        for item in concerned
    ]


def _row(message: str) -> str:
    return EXTERNAL if "external_data" in message else ""


def _concerns(manifest: Manifest) -> bool:
    document, gvk = manifest.document, manifest.gvk
    if is_policy(document) or is_mutator(document) or gvk.group in _RELATED:
        return True
    if gvk.group_kind == (expansion.GROUP, expansion.KIND):
        return True
    if gvk.kind in _WEBHOOKS:
        return name_of(document).startswith("gatekeeper-")
    return gvk.kind == _DEPLOYMENT and bool(_gatekeeper_arguments(document))


def _notes_on(document: Mapping[str, Any]) -> Iterator[Note]:
    gvk = gvk_of(document)
    if gvk.group_kind == (template.GROUP, template.KIND):
        yield from _on_template(document)
    elif gvk.group == constraint.GROUP:
        yield from _on_constraint(document)
    elif is_mutator(document):
        yield from _on_mutator(document)
    elif gvk.group == provider.GROUP:
        yield from _on_provider(document)
    elif gvk.group == "connection.gatekeeper.sh":
        text = "violations leave by a sidecar of the decision log instead (docs/decisions.md)"
        yield Note("missing", text, EXPORT)
    elif gvk.group in ("config.gatekeeper.sh", "syncset.gatekeeper.sh"):
        yield from _on_synced(document)
    elif gvk.kind in _WEBHOOKS:
        yield from _on_webhooks(document)
    elif gvk.kind == _DEPLOYMENT:
        yield from _on_flags(_gatekeeper_arguments(document))


def _on_template(document: Mapping[str, Any]) -> Iterator[Note]:
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    if "metadata.gatekeeper.sh/requires-sync-data" in annotations:
        text = "evaluated only while the data that it needs is synced; status lists missingData"
        yield Note("differs", text, SYNC_DATA)
    for source in _sources(document):
        texts = " ".join([str(source.get("rego", "")), *map(str, source.get("libs") or ())])
        if "inventory" in texts and re.search("managedFields|last-applied-config", texts):
            text = "synced objects have neither managedFields nor last-applied-configuration"
            yield Note("differs", text, MANAGED)


def _on_provider(document: Mapping[str, Any]) -> Iterator[Note]:
    if not (document.get("spec") or {}).get("timeout"):
        seconds = f"{provider.TIMEOUT_SECONDS:g} s"
        yield Note("differs", f"without spec.timeout its time limit is {seconds}", EXTERNAL)


def _sources(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the code of a template: of its target, or of one of its engines."""
    for target in objects_of((document.get("spec") or {}).get("targets")):
        yield target
        for code in objects_of(target.get("code")):
            if isinstance(source := code.get("source"), dict):
                yield source


def _on_constraint(document: Mapping[str, Any]) -> Iterator[Note]:
    parameters = (document.get("spec") or {}).get("parameters")
    large = next((item for item in _integers(parameters) if abs(item) >= _EXPONENT_FROM), None)
    if large is not None:
        text = f"a message that shows {large} prints all digits; Go prints an exponent"
        yield Note("differs", text, NUMBERS)


def _on_mutator(document: Mapping[str, Any]) -> Iterator[Note]:
    text = "mutators need the component `mutation` (chart: mutation.enabled=true)"
    yield Note("differs", text, MUTATING)
    assign = ((document.get("spec") or {}).get("parameters") or {}).get("assign") or {}
    if any(_integers(assign)):
        yield Note(
            "differs",
            "integers stay exact, and assigning an equal number changes nothing",
            MUTATED_INTEGERS,
        )


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _integers(item)


def _on_synced(document: Mapping[str, Any]) -> Iterator[Note]:
    spec = document.get("spec") or {}
    kinds = objects_of((spec.get("sync") or {}).get("syncOnly")) or objects_of(spec.get("gvks"))
    beyond = [
        str(item.get("kind"))
        for item in kinds
        if item.get("kind") in _NOT_VIEWABLE
        or (
            item.get("group", "") not in _VIEWABLE_GROUPS and item.get("kind") not in _CLUSTER_KINDS
        )
    ]
    if beyond:
        text = (
            f"grant the right to read {', '.join(beyond)} by a ClusterRole (docs/operating.md, "
            "Rights)"
        )
        yield Note("differs", text, RIGHTS)


def _on_webhooks(document: Mapping[str, Any]) -> Iterator[Note]:
    mutating = gvk_of(document).kind == _WEBHOOKS[1]
    for webhook in objects_of(document.get("webhooks")):
        if str(webhook.get("name")).startswith("check-ignore-label"):
            continue
        prefix = "mutation" if mutating else "webhook"
        defaults = {"failurePolicy": "Ignore", "timeoutSeconds": 1 if mutating else 3}
        for name, default in defaults.items():
            if (value := webhook.get(name)) not in (None, default):
                yield Note("differs", f"set {prefix}.{name}={value} in the chart")
        if not mutating:
            yield Note("differs", "leases, events and access reviews are not sent", LEFT_OUT)
        for rule in objects_of(webhook.get("rules")):
            if set(rule.get("operations") or ()) - {"CREATE", "UPDATE"}:
                text = f"set {prefix}.operations={{{','.join(rule['operations'])}}} in the chart"
                yield Note("differs", text)


def _gatekeeper_arguments(document: Mapping[str, Any]) -> list[str]:
    """Returns the arguments of the Deployment's container that is Gatekeeper's manager."""
    pod = ((document.get("spec") or {}).get("template") or {}).get("spec") or {}
    for container in objects_of(pod.get("containers")):
        if "gatekeeper" in str(container.get("image")):
            return [str(item) for item in container.get("args") or ()]
    return []


def _on_flags(arguments: Iterable[str]) -> Iterator[Note]:
    """Parses each flag separately, so that a refused flag hides no other."""
    for argument in arguments:
        foreign = Foreign()
        try:
            parse(ServeSettings, [argument], foreign=foreign)
        except InvalidFlag as error:
            yield Note("missing", str(error))
        for notice in foreign.notices:
            yield Note("differs", notice)

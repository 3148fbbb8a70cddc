"""What ``waddle test`` does with what it read: fill a client, review everything."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import name_of, namespace_of
from webhook.cli import extension_run
from webhook.cli.progress import watched
from webhook.cli.sources import CannotTest
from webhook.constraint import constraint, enforcement, template
from webhook.constraint import expansion as expansions
from webhook.constraint.errors import ConstraintFrameworkError, ReviewError
from webhook.constraint.expansion import (
    Expansion,
    InvalidExpansion,
    Resultant,
    read_expansion_template,
    with_implied,
)
from webhook.constraint.limits import Limits
from webhook.constraint.placement import namespace_for
from webhook.constraint.review import AugmentedObject
from webhook.mutation.annotations import names_of
from webhook.mutation.expanding import expand
from webhook.mutation.patch import make_patch
from webhook.policies.extensions import SECONDS_MAX
from webhook.policies.validation import is_policy
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.cli.sources import Other, Sources
    from webhook.constraint.client import Client
    from webhook.constraint.result import Responses, Result
    from webhook.constraint.review import Document
    from webhook.constraint.targets.documents import DocumentTarget
    from webhook.mutation.patch import Operation
    from webhook.mutation.snapshot import MutationSnapshot
    from webhook.policies.manifests import Manifest


@dataclass(frozen=True, slots=True)
class CheckedViolation:
    """A violation with what violates: ``subject`` as texts show it, ``value`` as it is."""

    result: Result
    subject: str
    value: Any
    file: str
    line: int

    @property
    def denies(self) -> bool:
        """Whether it denies."""
        return "deny" in self.result.actions


@dataclass(frozen=True, slots=True)
class ShownMutation:
    """What mutators changed in an object before it was reviewed."""

    subject: str
    file: str
    line: int
    mutators: str
    patch: Sequence[Operation]


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What a check found, in how much. ``constraints`` are all, as ``Kind/name``."""

    violations: Sequence[CheckedViolation]
    constraints: Sequence[str]
    reviewed: int
    documents: bool = False
    """Whether they are documents, and no objects of Kubernetes."""
    deny_only: bool = False
    faults: Sequence[str] = ()
    """What of the files could not be reviewed, and why."""
    mutated: Sequence[ShownMutation] = ()

    @property
    def shown(self) -> Sequence[CheckedViolation]:
        """The violations to report one by one."""
        return (
            [item for item in self.violations if item.denies] if self.deny_only else self.violations
        )

    @property
    def denied(self) -> bool:
        """Whether anything is denied."""
        return any(item.denies for item in self.violations)

    @property
    def nothing(self) -> str:
        """Why nothing was checked, or an empty text: that would pass whatever is wrong."""
        if not self.constraints:
            return "nothing was checked: there is no constraint"
        if self.reviewed or self.faults:
            return ""
        what = "document" if self.documents else "object besides templates and constraints"
        return f"nothing was checked: there is no {what}"


_UNREAD: Final = (
    "reading: the objects are reviewed without what could not be read: mutators or policies in it "
    "would change what is found"
)


def review_objects(client: Client, sources: Sources, printed: list[str]) -> CheckOutcome:
    """Review every object, policies among them, with all of them as data.

    What could not be reviewed is among the outcome's faults, and the rest is reviewed. Raises
    :class:`CannotTest` for policies that cannot be used.
    """
    _add_policies(client, sources.manifests)
    _add_each(
        sources.manifests,
        client.add_data,
        lambda manifest: f'adding data of GVK "{manifest.gvk}" ({manifest.file}:{manifest.line})',
    )
    namespaces = {"default": extension_run.DEFAULT_NAMESPACE, **client.snapshot.namespaces}
    expansion = _expansion(sources.manifests)
    mutations = extension_run.read_mutations(sources.manifests)
    faults = [*sources.faults, *([_UNREAD] if sources.faults else [])]
    findings = []
    shown_mutations: list[ShownMutation] = []
    for manifest in watched(sources.manifests, "objects"):
        obj = manifest.document
        if mutations and extension_run.is_object(manifest):
            # As at admission: what is reviewed, and expanded, is what would be stored.
            done, obj = extension_run.mutate(mutations, obj, namespaces)
            if patch := make_patch(manifest.document, obj):
                by = names_of(done.passes)
                shown_mutations.append(
                    ShownMutation(_subject(obj), manifest.file, manifest.line, by, patch)
                )
        namespace = namespace_for(obj, namespaces)
        shown = f"{manifest.gvk} {namespace_of(obj)}/{name_of(obj)}"
        try:
            responses = _review_implied(
                client, (expansion, mutations), (obj, namespace), shown, printed, sources.warnings
            )
        except CannotTest as error:
            faults += error.lines
            continue
        findings += [
            CheckedViolation(result, _subject(obj), obj, manifest.file, manifest.line)
            for result in responses.results
        ]
    # Policies are objects, too, for policies about policies; nobody else means to review them.
    violating = {id(item.value) for item in findings}
    reviewed = sum(
        id(item.document) in violating or not is_policy(item.document) for item in sources.manifests
    )
    return CheckOutcome(
        _ordered(findings), _constraints(client), reviewed, faults=faults, mutated=shown_mutations
    )


def _review_implied(
    client: Client,
    extensions: tuple[Expansion, MutationSnapshot],
    reviewed: tuple[dict[str, Any], Mapping[str, Any] | None],
    shown: str,
    printed: list[str],
    warnings: list[str],
) -> Responses:
    """What a review of an object, and of what it implies, found; raises :class:`CannotTest`."""
    obj, namespace = reviewed
    responses = _review(client, AugmentedObject(obj, namespace), shown, printed, warnings)
    implied = [
        (
            item,
            _review(
                client,
                AugmentedObject(item.object, namespace, "", "Generated"),
                shown,
                printed,
                warnings,
            ),
        )
        for item in _expand(*extensions, obj, namespace)
    ]
    return with_implied(responses, implied) if implied else responses


def _constraints(client: Client) -> list[str]:
    return ["/".join(constraint.key) for constraint in client.snapshot.constraints]


def _expansion(manifests: Sequence[Manifest]) -> Expansion:
    """The ExpansionTemplates among the manifests."""
    templates = [item for item in manifests if item.gvk.group == expansions.GROUP]
    unknown = [item for item in templates if item.gvk.kind != expansions.KIND]
    if unknown:
        raise CannotTest(
            *(f"auditing objects: {item.gvk} is no kind of expansion" for item in unknown)
        )
    try:
        return Expansion([read_expansion_template(item.document) for item in templates])
    except InvalidExpansion as error:
        raise CannotTest(f"auditing objects: error creating expander: {error}") from None


def _expand(
    expansion: Expansion,
    mutations: MutationSnapshot,
    obj: dict[str, Any],
    namespace: Mapping[str, Any] | None,
) -> list[Resultant]:
    try:
        until = time.monotonic() + SECONDS_MAX
        return expand(expansion, mutations, obj, namespace, on_error="reject", until=until)
    except InvalidExpansion as error:
        name = name_of(obj)
        raise CannotTest(
            f"auditing objects: expanding resource {name}: error expanding resource {name}: {error}"
        ) from None


def _subject(obj: dict[str, Any]) -> str:
    """The object as gator shows it: ``<apiVersion>/<Kind> [ns/]name``."""
    namespace = namespace_of(obj)
    name = f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)
    return f"{obj.get('apiVersion', '')}/{obj.get('kind', '')} {name}"


def review_documents(
    client: Client, sources: Sources, printed: list[str], target: DocumentTarget
) -> CheckOutcome:
    """Review every document that a target finds in the files, by the templates for it.

    A file in which it finds none for being of another shape is among the outcome's faults, and
    the others are reviewed. Raises :class:`CannotTest`.
    """
    _add_policies(client, sources.manifests)
    findings = []
    faults = list(sources.faults)
    reviewed: list[tuple[Document, Other]] = []
    for item in sources.documents:
        try:
            split = list(target.documents(item.document.value, item.document.name))
        except ReviewError as error:
            faults.append(f"reading: {error}")
            continue
        reviewed += [(document, item) for document in split]
    for document, item in watched(reviewed, "documents"):
        try:
            responses = _review(client, document, document.name, printed, sources.warnings)
        except CannotTest as error:
            faults += error.lines
            continue
        findings += [
            CheckedViolation(result, document.name, document.value, item.file, item.line)
            for result in responses.results
        ]
    return CheckOutcome(
        _ordered(findings), _constraints(client), len(reviewed), documents=True, faults=faults
    )


def _add_policies(client: Client, manifests: Sequence[Manifest]) -> None:
    _add_each(
        [item for item in manifests if item.gvk.group_kind == (template.GROUP, template.KIND)],
        client.add_template,
        lambda manifest: f'adding template "{name_of(manifest.document)}"',
    )
    _add_each(
        [item for item in manifests if item.gvk.group == constraint.GROUP],
        client.add_constraint,
        lambda manifest: f'adding constraint "{name_of(manifest.document)}"',
    )


def _add_each(
    manifests: Sequence[Manifest],
    add: Callable[[dict[str, Any]], bool],
    title: Callable[[Manifest], str],
) -> None:
    """Add manifests; every refusal is told, where gator stops at the first."""
    lines = []
    for manifest in manifests:
        try:
            add(manifest.document)
        except ConstraintFrameworkError as error:
            lines.append(f"auditing objects: {title(manifest)}: {error}")
    if lines:
        raise CannotTest(*lines)


def _review(
    client: Client, subject: Any, shown: str, printed: list[str], warnings: list[str]
) -> Responses:
    """What a review found; raises :class:`CannotTest` where something that may deny is undecided."""
    responses = client.snapshot.review(
        subject,
        enforcement_point=enforcement.COMMAND_LINE,
        limits=Limits(print_=lambda _, line: printed.append(line)),
    )
    if responses.faults:
        raise CannotTest(
            *(f"auditing objects: reviewing {shown}: {fault}" for fault in responses.faults)
        )
    refused = [item for item in responses.undecided if item.answer == "reject"]
    if refused:
        raise CannotTest(
            *(f"auditing objects: reviewing {shown}: not decided: {item}" for item in refused)
        )
    for item in responses.undecided:
        told = f"WARNING - {shown}: not decided: {item}"
        if item.answer == "warn" and told not in warnings:
            warnings.append(told)
    return responses


def _ordered(findings: list[CheckedViolation]) -> list[CheckedViolation]:
    """By enforcement action and message, as gator orders them over all objects."""
    return sorted(findings, key=lambda item: (item.result.enforcement_action, item.result.msg))

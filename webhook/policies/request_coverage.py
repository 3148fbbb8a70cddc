"""Finds policies that no webhook configuration sends requests for, in files or in a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.config import (
    CONFIG,
    CONFIG_NAME,
    MUTATION_PROCESS,
    WEBHOOK_PROCESS,
    excluded_namespaces,
)
from webhook.api.gvk import gvk_of, labels_of, name_of
from webhook.policies.problem import Problem
from webhook.policy_kinds.known import TEMPLATE, kind_of_document
from webhook.policy_kinds.table import (
    CONSTRAINT_GROUPS,
    CONSTRAINTS,
    EXPANSION_TEMPLATES,
    KYVERNO_KINDS,
    MUTATORS,
)
from webhook.values import dataclass
from webhook.webhook_rules.coverage import (
    REASON,
    CoverageState,
    WebhookContext,
    coverage_of,
    generators_of,
    operations_of,
)
from webhook.webhook_rules.entries import MUTATING_PATH, VALIDATING_PATH, entries_of
from webhook.webhook_rules.needs import need_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.policies.manifests import Manifest

_PATHS: Final = {
    "ValidatingWebhookConfiguration": (WEBHOOK_PROCESS, VALIDATING_PATH),
    "MutatingWebhookConfiguration": (MUTATION_PROCESS, MUTATING_PATH),
}

_JUDGED: Final = (CONSTRAINTS, CONSTRAINT_GROUPS, *MUTATORS, *KYVERNO_KINDS)

NOT_ASKED: Final = "not_asked"
"""The code of problems."""


@dataclass(frozen=True, slots=True)
class RequestCoverage:
    """Returns for each policy how far webhook configurations send its requests.

    Returns nothing for a process that has not read the configurations.
    """

    surroundings: WebhookContext
    operations: Mapping[str, frozenset[str]]

    def __call__(self, document: Mapping[str, Any]) -> CoverageState | None:
        """Returns the coverage of a policy; None if it is unknown."""
        need = need_of(document, lambda name: self.operations.get(name, frozenset()))
        if need is None or need.process not in self.surroundings.entries:
            return None
        return coverage_of(need, self.surroundings)


def read_coverage(
    documents: Iterable[Mapping[str, Any]], namespace: str, read: Iterable[str] = ()
) -> RequestCoverage:
    """Reads the relevant ones of objects of any kind.

    ``namespace`` is Waddle's own: if a configuration calls a Service in it, others do not count.
    ``read`` names the kinds of configurations that were listed completely.
    """
    by_kind: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for document in documents:
        by_kind.setdefault(gvk_of(document).group_kind, []).append(document)
    entries = {}
    for kind, (process, path) in _PATHS.items():
        configurations = by_kind.get(("admissionregistration.k8s.io", kind), ())
        calling = entries_of(configurations, path, namespace) or entries_of(
            configurations, path, ""
        )
        if calling or kind in read:
            entries[process] = calling
    configs = [item for item in by_kind.get(CONFIG.group_kind, ()) if name_of(item) == CONFIG_NAME]
    labels = {name_of(item): labels_of(item) for item in by_kind.get(("", "Namespace"), ())}
    return RequestCoverage(
        WebhookContext(
            entries,
            generators_of(by_kind.get(EXPANSION_TEMPLATES.gvk.group_kind, ())),
            {
                process: tuple(
                    pattern
                    for config in configs
                    for pattern in excluded_namespaces(config, process)
                )
                for process in (WEBHOOK_PROCESS, MUTATION_PROCESS)
            },
            labels.get,
        ),
        {name_of(item): operations_of(item) for item in by_kind.get(TEMPLATE.group_kind, ())},
    )


def is_judged(document: Mapping[str, Any]) -> bool:
    """Returns whether admissions evaluate it: a constraint, group, mutator or Kyverno policy."""
    return kind_of_document(document) in _JUDGED


def coverage_problems(
    manifests: Iterable[Manifest],
    cluster: tuple[list[dict[str, Any]], frozenset[str]] | None,
    namespace: str,
) -> list[Problem]:
    """Lists policies among manifests for which no request, or only some, is sent.

    On a ``cluster`` a manifest replaces the object of its name.
    """
    documents = [item.document for item in manifests]
    standing, read = cluster or ([], frozenset())
    named = {(gvk_of(item).group_kind, name_of(item)) for item in documents}
    kept = [item for item in standing if (gvk_of(item).group_kind, name_of(item)) not in named]
    coverage, problems = read_coverage([*kept, *documents], namespace, read), []
    for document in documents:
        state = coverage(document) if is_judged(document) else None
        if state is None:
            continue
        is_none = state.extent == "not at all"
        texts = (f"{REASON}: nobody is asked about it: {state.text}",) if is_none else state.notes
        problems += [
            Problem(gvk_of(document).kind, name_of(document), "warning", NOT_ASKED, text)
            for text in texts
        ]
    return problems

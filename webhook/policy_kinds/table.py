"""The table of kinds. A new kind of policy object needs a row here, a reader, and a CRD."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from webhook.admission_policies import kinds as admission_policy_kinds
from webhook.api import config, names, pod_status
from webhook.constraint import constraint, expansion, kind_schemas, rollout, template
from webhook.exceptions import exception
from webhook.external_data import provider
from webhook.kyverno import kinds as kyverno_kinds
from webhook.mutation import mutator
from webhook.policy_kinds.kind import Part, PolicyKind


def _late(name: str, module: str = "webhook.policy_kinds.parts") -> Callable[..., Any]:
    """Returns a function of a module that is imported at the first call.

    Such modules load patterns and languages. A command's help needs only the names of kinds, and
    does not wait for them.
    """

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    return call


def collected(name: str, read: Callable[[Any], Any], fold: Callable[[Any], Any]) -> Part:
    """Makes the part for objects that do not affect each other.

    Each is read, and all are folded.
    """
    return Part(name, lambda: _late("CollectedPart")(read, fold))


MUTATIONS: Final = Part("mutator", _late("MutatorPart"), "mutations")
EXPANSIONS: Final = Part("expansion", _late("ExpansionPart"), "expansion")
PROVIDERS: Final = Part("provider", _late("ProviderPart"), "providers")
EXCEPTIONS: Final = Part("exception", _late("ExceptionPart"))
ADMISSION_POLICIES: Final = Part("admission policy", _late("admission_policy_part"))
KYVERNO_POLICIES: Final = Part("Kyverno policy", _late("KyvernoPart"))

TEMPLATES: Final = PolicyKind(
    "template",
    template.GROUP,
    template.KIND,
    ("v1", "v1beta1", "v1alpha1"),
    "constrainttemplates",
    pod_status.TEMPLATE,
)
CONSTRAINTS: Final = PolicyKind(
    "constraint",
    constraint.GROUP,
    "",
    (constraint.STORED_VERSION,),
    "",
    pod_status.CONSTRAINT,
    staged=rollout.staged,
)
CONSTRAINT_GROUPS: Final = PolicyKind(
    "constraint",
    names.OURS,
    names.CONSTRAINT_GROUP,
    (names.OURS_VERSION,),
    "constraintgroups",
    pod_status.CONSTRAINT,
    staged=rollout.staged,
)
CONFIGS: Final = PolicyKind(
    "configuration",
    config.CONFIG.group,
    config.CONFIG.kind,
    (config.CONFIG.version,),
    "configs",
    pod_status.CONFIG,
    schema=kind_schemas.CONFIG,
    faults=config.effectless,
    namespaced=True,
)
SYNC_SETS: Final = PolicyKind(
    "configuration",
    config.SYNC_SET.group,
    config.SYNC_SET.kind,
    (config.SYNC_SET.version,),
    "syncsets",
    schema=kind_schemas.SYNC_SET,
)
MUTATORS: Final = tuple(
    PolicyKind(
        "extension",
        mutator.GROUP,
        kind,
        versions,
        kind.lower(),
        pod_status.MUTATOR,
        MUTATIONS,
        _late("read_new_mutator"),
        kind_schemas.MUTATOR,
        warnings=_late("warnings_of_mutator"),
        staged=mutator.staged,
    )
    for kind, versions in mutator.VERSIONS.items()
)
EXPANSION_TEMPLATES: Final = PolicyKind(
    "extension",
    expansion.GROUP,
    expansion.KIND,
    ("v1alpha1", "v1beta1"),
    expansion.KIND.lower(),
    pod_status.EXPANSION,
    EXPANSIONS,
    expansion.read_expansion_template,
    kind_schemas.EXPANSION_TEMPLATE,
)
PROVIDER_KIND: Final = PolicyKind(
    "extension",
    provider.GROUP,
    provider.KIND,
    ("v1beta1", "v1alpha1"),
    "providers",
    pod_status.PROVIDER,
    PROVIDERS,
    provider.read_provider,
    kind_schemas.PROVIDER,
    warnings=provider.warnings_of_provider,
)
_READING: Final = "webhook.exceptions.reading"

EXCEPTION_KINDS: Final = tuple(
    PolicyKind(
        "extension",
        exception.GROUP,
        kind,
        (exception.API_VERSION,),
        f"{kind.lower()}s",
        part=EXCEPTIONS,
        read=_late("read_exception", _READING),
        warnings=_late("warnings_of_exception", _READING),
        namespaced=kind == exception.KIND,
    )
    for kind in exception.KINDS
)

ANSWERS: Final = PolicyKind(
    "extension",
    admission_policy_kinds.ANSWER_GROUP,
    admission_policy_kinds.ANSWER,
    ("v1", "v1beta1"),
    "subjectaccessreviews",
    part=ADMISSION_POLICIES,
    read=_late("read_admission_policy"),
)

ADMISSION_POLICY_KINDS: Final = (
    *(
        PolicyKind(
            "extension",
            admission_policy_kinds.GROUP,
            kind,
            admission_policy_kinds.VERSIONS,
            plural,
            part=ADMISSION_POLICIES,
            read=_late("read_admission_policy"),
        )
        for kind, plural in admission_policy_kinds.PLURALS.items()
    ),
    ANSWERS,
)
"""API server policies, and answers to their questions to the authorizer. Commands over files review
by them; no replica enforces them."""

KYVERNO_KINDS: Final = tuple(
    PolicyKind(
        "extension",
        kyverno_kinds.GROUP,
        kind,
        kyverno_kinds.VERSIONS,
        plural,
        part=KYVERNO_POLICIES,
        read=_late("read_kyverno_policy"),
        namespaced=kind not in kyverno_kinds.CLUSTER_KINDS,
        known_as=kyverno_kinds.KNOWN_AS.get(kind, ""),
    )
    for kind, plural in kyverno_kinds.PLURALS.items()
)
"""Kyverno's policies. Commands over files review by them, and so do replicas if a flag says so."""

POLICY_KINDS: tuple[PolicyKind, ...] = (
    TEMPLATES,
    CONSTRAINTS,
    CONSTRAINT_GROUPS,
    CONFIGS,
    SYNC_SETS,
    *MUTATORS,
    EXPANSION_TEMPLATES,
    PROVIDER_KIND,
    *EXCEPTION_KINDS,
)
"""All kinds with a CRD of Gatekeeper or Waddle. Code that treats all kinds alike uses these rows.
"""

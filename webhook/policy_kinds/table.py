"""The table of kinds: a new kind of policy object is a row here, its reader and its CRD."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from webhook.api import config, pod_status
from webhook.constraint import constraint, expansion, kind_schemas, rollout, template
from webhook.mutation import mutator
from webhook.policy_kinds.kind import Part, PolicyKind

if TYPE_CHECKING:
    from collections.abc import Callable


def _late(name: str) -> Callable[..., Any]:
    """Something of :mod:`~webhook.policy_kinds.parts`, which reads patterns and languages.

    Who needs the names of kinds alone, as help of a command does, does not wait for it.
    """

    def call(*arguments: Any) -> Any:
        return getattr(import_module("webhook.policy_kinds.parts"), name)(*arguments)

    return call


MUTATIONS: Final = Part("mutator", _late("MutatorPart"), "mutations")
EXPANSIONS: Final = Part("expansion", _late("ExpansionPart"), "expansion")

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
)

POLICY_KINDS: tuple[PolicyKind, ...] = (
    TEMPLATES,
    CONSTRAINTS,
    CONFIGS,
    SYNC_SETS,
    *MUTATORS,
    EXPANSION_TEMPLATES,
)
"""Every kind; those that know none by name have it from here."""

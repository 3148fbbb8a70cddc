"""The kinds of mutators and ExpansionTemplates, at the versions at which they are followed."""

from __future__ import annotations

from typing import Final

from webhook.api.gvk import GroupVersionKind
from webhook.constraint import expansion as expansions
from webhook.mutation import mutator as mutators

MUTATORS: Final = tuple(
    GroupVersionKind(mutators.GROUP, versions[0], kind)
    for kind, versions in mutators.VERSIONS.items()
)
"""The kinds of mutators, at the version that is stored."""

EXPANSION: Final = GroupVersionKind(expansions.GROUP, "v1alpha1", expansions.KIND)

KINDS: Final = (*MUTATORS, EXPANSION)

"""Plans the installation of a package's policies in a cluster, without asking it."""

from __future__ import annotations

import hashlib
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import constraint, template
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.policies.manifests import Manifest

PACKAGE_LABEL: Final = "waddle.dev/package"
"""The label of installed policies: their package, from :func:`package_id`."""

SOURCE_ANNOTATION: Final = "waddle.dev/package-source"
"""The annotation with the package's version and its digest."""

ENFORCEMENT_ACTION_ANNOTATION: Final = "waddle.dev/package-enforcement-action"
"""The annotation with the enforcement action that a constraint's author gave it."""

_DRYRUN: Final = "dryrun"
_ACTIONS: Final = ("enforcementAction", "scopedEnforcementActions")


class CannotInstall(Exception):
    """The reasons why nothing was changed, one a line."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class PackagedPolicies:
    """The templates and constraints of a package, and its other objects."""

    templates: tuple[dict[str, Any], ...] = ()
    constraints: tuple[dict[str, Any], ...] = ()
    left_out: tuple[str, ...] = field(default=())

    @property
    def keys(self) -> set[tuple[str, str]]:
        """Kind and name of each policy."""
        return {
            (gvk_of(template).kind, name_of(template))
            for template in (*self.templates, *self.constraints)
        }


def packaged(manifests: Iterable[Manifest]) -> PackagedPolicies:
    """Returns the policies among manifests; raises :class:`CannotInstall` without any."""
    templates, constraints, others = [], [], []
    for manifest in manifests:
        if manifest.gvk.group_kind == (template.GROUP, template.KIND):
            templates.append(manifest.document)
        elif constraint.is_constraint(manifest.gvk):
            constraints.append(manifest.document)
        else:
            others.append(manifest.title)
    if not templates and not constraints:
        raise CannotInstall("nothing to install: it has no ConstraintTemplate and no constraint")
    return PackagedPolicies(tuple(templates), tuple(constraints), tuple(others))


def package_id(name: str) -> str:
    """Returns a label value for a registry and repository, which may be longer than a label."""
    return hashlib.sha256(name.encode()).hexdigest()[:40]


def labelled(document: Mapping[str, Any], name: str, source: str) -> dict[str, Any]:
    """Returns a policy with the labels of its package, without status and server fields."""
    metadata = document.get("metadata") or {}
    kept = {key: metadata[key] for key in ("name", "labels", "annotations") if key in metadata}
    kept["labels"] = {**(kept.get("labels") or {}), PACKAGE_LABEL: package_id(name)}
    kept["annotations"] = {**(kept.get("annotations") or {}), SOURCE_ANNOTATION: source}
    whole = {key: value for key, value in document.items() if key not in {"metadata", "status"}}
    return {**whole, "metadata": kept}


def staged(
    document: Mapping[str, Any],
    name: str,
    source: str,
    current: Mapping[str, Any] | None,
    *,
    upgrades: bool,
) -> dict[str, Any]:
    """Returns a policy to apply; ``current`` is the cluster's object.

    A new constraint starts at ``dryrun``; an upgrade keeps its action. Raises
    :class:`CannotInstall` for an object of another package, or one that is already enforced.
    """
    applied = labelled(document, name, source)
    shown = f"{gvk_of(document).kind}/{name_of(document)}"
    if current is not None and not is_of_package(current, name):
        raise CannotInstall(
            f"{shown} is in the cluster, and not by this package: it stays as it is. Delete it first, "
            "or rename it in the package"
        )
    if not constraint.is_constraint(gvk_of(document)):
        return applied
    spec = dict(document.get("spec") or {})
    applied["metadata"]["annotations"][ENFORCEMENT_ACTION_ANNOTATION] = str(
        spec.get("enforcementAction") or "deny"
    )
    before = None if current is None else current.get("spec") or {}
    if before is not None and not upgrades and before.get("enforcementAction") != _DRYRUN:
        raise CannotInstall(f"{shown} is installed and beyond dryrun: upgrade leaves it there")
    kept = {"enforcementAction": _DRYRUN} if before is None else before
    for key in _ACTIONS:
        spec.pop(key, None)
        if key in kept:
            spec[key] = kept[key]
    applied["spec"] = spec
    return applied


def is_of_package(document: Mapping[str, Any], name: str) -> bool:
    """Whether an object of the cluster was installed of a package."""
    labels = (document.get("metadata") or {}).get("labels") or {}
    return bool(labels.get(PACKAGE_LABEL) == package_id(name))

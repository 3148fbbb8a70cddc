"""Google Cloud assets, as Cloud Asset Inventory exports them: each asset is a review.

The target has config-validator's name (pkg/gcptarget, pkg/asset), so that its policy library runs
unmodified. ``spec.match`` has ``ancestries`` and ``excludedAncestries`` (formerly ``target`` and
``exclude``), globs over the path of organisation, folders and project. An asset that is an object
of a GKE cluster is reviewed as that object, by templates for admission (pkg/gcv/validator.go,
pkg/asset/asset.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from webhook.constraint.errors import InvalidConstraint, ReviewError
from webhook.constraint.review import Document
from webhook.constraint.targets import admission
from webhook.constraint.targets.documents import DocumentTarget
from webhook.constraint.targets.path_globs import LIST_SCHEMA, compile_globs, patterns
from webhook.printable import type_of

NAME: Final = "validation.gcp.forsetisecurity.org"

ANCESTRY_ANNOTATION: Final = "validator.forsetisecurity.org/ancestorPath"
"""The annotation with the ancestry that objects of GKE clusters get."""

_IN_A_CLUSTER: Final = re.compile(
    r"//container\.googleapis\.com/projects/[^/]*/(?:locations|zones)/[^/]*/clusters/[^/]*/k8s"
)

_CONTENTS: Final = (
    ("resource", dict),
    ("iam_policy", dict),
    ("org_policy", object),
    ("v2_org_policies", object),
    ("access_policy", dict),
    ("access_level", dict),
    ("service_perimeter", dict),
)
"""The contents with their types: an asset has exactly one. Some are only checked for presence."""

_NUMBER: Final = re.compile(r"[0-9]+\*{0,2}", re.ASCII)
_PROJECT: Final = re.compile(r"[a-z][a-z0-9-]{5,27}[a-z0-9]", re.ASCII)
_PLURALS: Final = (
    ("organization/", "organizations/"),
    ("folder/", "folders/"),
    ("project/", "projects/"),
)


class GcpTarget(DocumentTarget):
    """Reviews assets: one document, or a list of many."""

    name = NAME

    def match_schema(self) -> dict[str, Any]:
        """Returns the schema of ``spec.match``."""
        names = ("target", "exclude", "ancestries", "excludedAncestries")
        return {"type": "object", "properties": dict.fromkeys(names, LIST_SCHEMA)}

    def matcher(self, match: Mapping[str, Any]) -> Callable[[Document], bool]:
        """Returns a test of an asset's ancestry."""
        globs = compile_globs(
            _ancestries(match, "ancestries", "target"),
            _ancestries(match, "excludedAncestries", "exclude"),
            "/",
        )
        return lambda asset: globs(asset.value["ancestry_path"])

    def documents(self, value: Any, name: str) -> Iterator[Document]:
        """Yields the assets by name."""
        for number, asset in enumerate(value if type(value) is list else [value]):
            place = f"{name}: asset {number}" if type(value) is list else name
            document, target = _checked_asset(asset, place), NAME
            if _IN_A_CLUSTER.match(document["name"]):
                document, target = _kubernetes_object(document, place), admission.NAME
            yield Document(document, asset["name"], target, name)


def normal_ancestry(path: str) -> str:
    """Returns the path with the plurals that later versions of the inventory write."""
    for old, new in _PLURALS:
        path = path.replace(old, new)
    return path


def _checked_asset(asset: Any, place: str) -> dict[str, Any]:
    """Returns the asset with its ``ancestry_path``; raises ReviewError for a malformed one.

    The ancestry is that of ``ancestors``, or else of ``ancestry_path``.
    """
    if type(asset) is not dict:
        raise ReviewError(f"{place}: no asset: expected an object, got {type_of(asset)}")
    for field in ("name", "asset_type"):
        if type(asset.get(field)) is not str:
            raise ReviewError(f"{place}: no asset: no {field}")
    ancestors = asset.get("ancestors")
    if type(ancestors) is list and all(type(item) is str for item in ancestors):
        path = "/".join(reversed(ancestors))  # They begin at the asset's own project.
    elif type(asset.get("ancestry_path")) is str:
        path = normal_ancestry(asset["ancestry_path"])
    else:
        raise ReviewError(f"{place}: asset missing ancestry information")
    contents = [
        field
        for field, kind in _CONTENTS
        if asset.get(field) is not None and isinstance(asset[field], kind)
    ]
    if not contents:
        raise ReviewError(f"{place}: asset without any of: {', '.join(dict(_CONTENTS))}")
    if len(contents) > 1:
        raise ReviewError(f"{place}: malformed asset has more than one of: {', '.join(contents)}")
    return {**asset, "ancestry_path": path}


def _kubernetes_object(asset: dict[str, Any], place: str) -> dict[str, Any]:
    """Returns the Kubernetes object of an asset; raises ReviewError if a field is missing."""
    group, _, kind = asset["asset_type"].partition("/")
    if not kind or "/" in kind:
        raise ReviewError(
            f'{place}: expected asset_type to be of form "<group>/<kind>", got {asset["asset_type"]}'
        )
    resource = asset.get("resource") or {}
    version, data = resource.get("version"), resource.get("data")
    for field, value, type_ in (("version", version, str), ("data", data, dict)):
        if type(value) is not type_:
            raise ReviewError(f"{place}: resource.{field} field not found")
    assert isinstance(data, dict)
    metadata = data.get("metadata") or {}
    if type(metadata) is not dict:
        raise ReviewError(f"{place}: resource.data.metadata must be an object")
    annotations = {
        **(metadata.get("annotations") or {}),
        ANCESTRY_ANNOTATION: asset["ancestry_path"],
    }
    return {
        **data,
        # The inventory calls the core's group k8s.io.
        "apiVersion": version if group == "k8s.io" else f"{group}/{version}",
        "kind": kind,
        "metadata": {**metadata, "annotations": annotations},
    }


def _ancestries(match: Mapping[str, Any], field: str, old_field: str) -> list[str] | None:
    """Returns the globs of a field of ``spec.match``, which may have its older name."""
    if field in match and old_field in match:
        raise InvalidConstraint(
            f"only one of spec.match.{field} and spec.match.{old_field} can be specified"
        )
    name = field if field in match else old_field
    globs = patterns(match, name)
    for pattern in globs or ():
        _check_ancestry(pattern, name)
    return globs


def _check_ancestry(pattern: str, field: str) -> None:
    """Refuses patterns that match no ancestry: organisation, folders, project in this order."""
    has_ancestor, in_project = False, False
    for number, part in enumerate(pattern.split("/")):
        is_expected = True
        if part in ("organizations", "folders"):
            is_expected = not in_project and not (has_ancestor and part == "organizations")
            has_ancestor = True
        elif part == "projects":
            in_project = True
        elif part not in ("*", "**", "unknown") and not _NUMBER.fullmatch(part):
            is_expected = in_project and _PROJECT.fullmatch(part) is not None
        if not is_expected:
            raise InvalidConstraint(
                f"invalid glob in spec.match.{field}: unexpected item {part} element {number} "
                f"in {pattern}"
            )

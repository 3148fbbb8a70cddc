"""The CRDs of constraints, one for each template. The first replica to find one missing creates it.

The API server fills in fields that a template leaves out, and other tools may add labels. So a CRD
is right if it has all desired fields; further fields are ignored.

A CRD from a newer generation of the template than this replica's is left alone. A replica that is
behind, or cannot use the newest generation, must not undo the work of other replicas.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from webhook.api.encoding import is_same_json
from webhook.api.shapes import Json
from webhook.cluster.reflector import ObjectSelection
from webhook.cluster.store import shared, slim
from webhook.constraint.targets.match_schema import OWN_FIELDS

CONSTRAINT_LABEL: Final = "gatekeeper.sh/constraint"

GENERATION: Final = "waddle.dev/template-generation"
"""The annotation of a CRD with the generation of its template that last changed it."""

COLUMNS: Final = "waddle.dev/columns"
"""The annotation of a CRD with the columns of `kubectl get` that were written into it."""

MATCH_FIELDS: Final = "waddle.dev/match-fields"
"""The annotation of a CRD with the fields of its match, beyond Gatekeeper's, that were written into
it."""

SELECTION: Final = ObjectSelection(labels=f"{CONSTRAINT_LABEL}=yes")
"""The CRDs of constraints, as Gatekeeper labels them."""


def owned(crd: Mapping[str, Any], template: Mapping[str, Any]) -> Json:
    """Returns the CRD with its template as owner, so that it is deleted with the template.

    Its annotations have the template's generation, and the columns and match fields written.
    """
    owner = {
        "apiVersion": template["apiVersion"],
        "kind": template["kind"],
        "name": template["metadata"]["name"],
        "uid": template["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    annotations = {
        **crd["metadata"].get("annotations", {}),
        GENERATION: str(template["metadata"].get("generation", 0)),
        COLUMNS: _column_names(crd),
        MATCH_FIELDS: ",".join(OWN_FIELDS),
    }
    metadata = {**crd["metadata"], "annotations": annotations, "ownerReferences": [owner]}
    return {**crd, "metadata": metadata}


def overlay_crd(desired: Json, current: Json) -> Json | None:
    """Returns the desired CRD merged over the current one; None if no write is needed.

    No write is needed in two cases: the current CRD has all desired fields; or it was made from a
    newer generation of the same template.
    """
    if _is_newer(current, desired):
        return None
    desired = _keeping_columns(desired, current)
    desired = _keeping_match_fields(desired, current)
    desired = _keeping_owner(desired, current)
    changed = {
        **current,
        "metadata": _merged(desired["metadata"], current["metadata"]),
        "spec": _merged(desired["spec"], current["spec"]),
    }
    return None if _differs_in_generation_only(changed, current) else changed


def _column_names(crd: Mapping[str, Any]) -> str:
    columns = crd["spec"]["versions"][0].get("additionalPrinterColumns") or ()
    return ",".join(column["name"] for column in columns)


def _keeping_columns(desired: Json, current: Json) -> Json:
    """Returns the desired CRD without its printer columns, if they have been written before.

    A Gatekeeper that also writes CRDs replaces the whole spec, without our columns. If both
    restored their own version, they would write for ever.
    """
    if not _was_written(COLUMNS, desired, current):
        return desired
    versions = [
        {name: value for name, value in version.items() if name != "additionalPrinterColumns"}
        for version in desired["spec"]["versions"]
    ]
    return {**desired, "spec": {**desired["spec"], "versions": versions}}


def _keeping_match_fields(desired: Json, current: Json) -> Json:
    """Returns the desired CRD without fields of a match that were written before and taken away."""
    if not _was_written(MATCH_FIELDS, desired, current):
        return desired
    versions = []
    for ours, theirs in zip(desired["spec"]["versions"], current["spec"]["versions"], strict=True):
        desired_fields, current_fields = _match_fields(ours), _match_fields(theirs)
        removed = [
            name for name in OWN_FIELDS if name in desired_fields and name not in current_fields
        ]
        version = copy.deepcopy(ours) if removed else ours
        for name in removed:
            del _match_fields(version)[name]
        versions.append(version)
    return {**desired, "spec": {**desired["spec"], "versions": versions}}


def _match_fields(version: Json) -> Json:
    """Returns the schemas of a match's fields; empty if the schema has no match."""
    fields: Json = _spec_fields(version).get("match", {}).get("properties", {})
    return fields


def _spec_fields(version: Json) -> Json:
    """Returns the schemas of a spec's fields; empty if the schema has no spec."""
    schema: Any = version.get("schema", {}).get("openAPIV3Schema", {})
    fields: Json = schema.get("properties", {}).get("spec", {}).get("properties", {})
    return fields


class SchemaSharing:
    """Makes CRDs share equal schemas, so that they take a quarter of the memory.

    The versions of a CRD have the same schema, and the schema of a match is the same in all CRDs.
    """

    def __init__(self) -> None:
        self._match: Json = {}

    def __call__(self, crd: Json) -> Json:
        """Returns a CRD as it is kept; changes ``crd``."""
        first: Json = {}
        for version in shared(slim(crd))["spec"].get("versions", ()):
            if first and is_same_json(version.get("schema"), first["schema"]):
                version["schema"] = first["schema"]
                continue
            first, fields = version if "schema" in version else {}, _spec_fields(version)
            if is_same_json(fields.get("match"), self._match):
                fields["match"] = self._match
            else:
                self._match = fields.get("match", {})
        return crd


def _was_written(annotation: str, desired: Json, current: Json) -> bool:
    """Whether the CRD has the content that an annotation names already."""
    ours = (desired["metadata"].get("annotations") or {}).get(annotation)
    theirs = (current["metadata"].get("annotations") or {}).get(annotation)
    same_versions = len(desired["spec"]["versions"]) == len(current["spec"]["versions"])
    return theirs is not None and theirs == ours and same_versions


def _is_newer(current: Json, desired: Json) -> bool:
    ours, theirs = desired["metadata"], current["metadata"]
    return _owner(ours) == _owner(theirs) and _generation(theirs) > _generation(ours)


def _owner(metadata: Mapping[str, Any]) -> str:
    """Returns the UID of the template that owns a CRD; empty without an owner."""
    owners = metadata.get("ownerReferences") or ()
    return next((owner.get("uid", "") for owner in owners if owner.get("controller")), "")


def _keeping_owner(desired: Json, current: Json) -> Json:
    """Returns the desired CRD with the current owners, if the template is among them already.

    Gatekeeper names the template by another version of its kind, and would write that again.
    """
    ours, theirs = desired["metadata"], current["metadata"]
    if not _owner(ours) or _owner(ours) != _owner(theirs):
        return desired
    return {**desired, "metadata": {**ours, "ownerReferences": theirs["ownerReferences"]}}


def _generation(metadata: Mapping[str, Any]) -> int:
    text = (metadata.get("annotations") or {}).get(GENERATION, "")
    return int(text) if text.isdecimal() else 0


def _differs_in_generation_only(first: Json, other: Json) -> bool:
    """Whether CRDs differ in nothing but the generation: most generations change no schema."""
    return is_same_json(_without_generation(first), _without_generation(other))


def _without_generation(crd: Json) -> Json:
    metadata = crd["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(GENERATION, None)
    return {**crd, "metadata": {**metadata, "annotations": annotations}}


def _differs_in_descriptions_only(first: Any, other: Any) -> bool:
    """Whether schemas differ in their descriptions alone: Gatekeeper's are other words."""
    return is_same_json(_without_descriptions(first), _without_descriptions(other))


def _without_descriptions(schema: Any) -> Any:
    """A schema without its descriptions; a property of that name is no text."""
    if isinstance(schema, dict):
        return {
            name: _without_descriptions(value)
            for name, value in schema.items()
            if name != "description" or not isinstance(value, str)
        }
    return [_without_descriptions(item) for item in schema] if isinstance(schema, list) else schema


def _merged(desired: Any, current: Any) -> Any:
    """Merges the desired fields over the current ones; a schema is replaced as a whole.

    A property that the template has dropped must disappear from the schema. Elsewhere a field that
    is not desired is the API server's default, and stays.
    """
    if isinstance(desired, dict) and isinstance(current, dict):
        merged = dict(current)
        for name, value in desired.items():
            present = current.get(name)
            if name != "schema":
                merged[name] = _merged(value, present)
            elif _differs_in_descriptions_only(value, present):
                merged[name] = present
            else:
                merged[name] = value
        return merged
    if isinstance(desired, list) and isinstance(current, list) and len(desired) == len(current):
        return [_merged(ours, theirs) for ours, theirs in zip(desired, current, strict=True)]
    return desired

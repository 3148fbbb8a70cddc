"""Warns of policies with probable mistakes in their rules or expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.api.builtin_kinds import BUILTIN_GROUPS, BUILTIN_KINDS, gone_since
from webhook.api.gvk import plural_of
from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.printable import nearest_name

NEAR: Final = 0.75
"""The similarity from which a name is suggested for another: difflib's ratio, at most 1."""


def type_warnings(document: Mapping[str, Any]) -> list[str]:
    """Returns the warnings of the API server's type check, from a policy's status."""
    checked = object_of(object_of(document.get("status")).get("typeChecking"))
    return [
        f"{warning.get('fieldRef')}: {' '.join(str(warning.get('warning')).split())}"
        for warning in objects_of(checked.get("expressionWarnings"))
    ]


def unserved_resources(document: Mapping[str, Any]) -> Iterator[str]:
    """Warns of resources that no API server serves, in rules of its own or Kyverno's policies.

    There are no warnings in these cases:

    - groups of custom resources, whose resources are unknown here;
    - names without a similar known one;
    - versions other than the removed ones, as an API server may be newer than this list.
    """
    constraints = object_of(object_of(document.get("spec")).get("matchConstraints"))
    for number, rule in enumerate(objects_of(constraints.get("resourceRules"))):
        groups = texts_of(rule.get("apiGroups"))
        if not groups or not BUILTIN_GROUPS.issuperset(groups):
            continue
        served = sorted({plural_of(kind) for group, kind in BUILTIN_KINDS if group in groups})
        of_groups = ", ".join(group for group in groups if group)
        shown = f" of {of_groups}" if of_groups else ""
        field = f"matchConstraints.resourceRules[{number}]"
        for resource in texts_of(rule.get("resources")):
            name = resource.partition("/")[0]
            near = "" if name == "*" or name in served else nearest_name(name.lower(), served, NEAR)
            if near:
                yield f'its {field}.resources names "{name}"{shown}: is {near} meant?'
            elif elsewhere := [] if name in served else _groups_with(name):
                of_group = shown or ' of the group ""'
                known = " or ".join(f'"{group}"' for group in elsewhere)
                yield f'its {field}.resources names "{name}"{of_group}: is the group {known} meant?'
        yield from _given_up(field, rule)


def _groups_with(resource: str) -> list[str]:
    """Returns Kubernetes' own groups that still serve a resource of this name."""
    known = sorted({group for group, kind in BUILTIN_KINDS if plural_of(kind) == resource})
    return [group for group in known if not gone_since({"apiVersions": ["*"]}, group, resource)]


def _given_up(field: str, rule: Mapping[str, Any]) -> Iterator[str]:
    """Warns of resources that a rule names only in versions that are no longer served."""
    groups, versions = texts_of(rule.get("apiGroups")), texts_of(rule.get("apiVersions"))
    for resource in texts_of(rule.get("resources")):
        releases = [gone_since(rule, group, resource) for group in groups]
        if releases and all(releases):
            named = ", ".join(f"{group}/{version}" for group in groups for version in versions)
            absent = "nothing" if resource == "*" else f"no {resource}"
            yield (
                f"its {field}.apiVersions: an API server serves {absent} of {named} since Kubernetes "
                f"{releases[0]}: name a version that it serves, or *"
            )

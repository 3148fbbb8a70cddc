"""The values of a Kyverno test: what a request has, for one object under a policy or for all."""

from __future__ import annotations

import csv
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import name_of
from webhook.api.shapes import object_of, objects_of
from webhook.kyverno.conversion import OPERATION
from webhook.policies.suite import InvalidSuite

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.api.shapes import Json

OPERATIONS: Final = frozenset({"", "CREATE", "UPDATE", "DELETE", "CONNECT"})
"""The operations of a request; empty for none stated."""

_LISTS: Final = ("namespaces", "namespaceSelector", "subresources", "policies")
_OBJECTS: Final = ("request.object.", "request.oldObject.")


class RequestValues:
    """The values of all files of a test."""

    def __init__(self) -> None:
        self._for_all: Json = {}
        self._by_policy: list[Json] = []
        self._places: list[tuple[str, str, str]] = []
        """Each name in the objects of requests, with its place and policy ("" for all)."""

    def take(self, spec: Json, where: str) -> None:
        """Adds the values of a file; raises :class:`~webhook.policies.suite.InvalidSuite`."""
        _check(spec, where)
        by_policy = objects_of(spec.get("policies"))
        given = object_of(spec.get("globalValues"))
        self._for_all |= {
            name: value for name, value in given.items() if value or name != OPERATION
        }
        self._by_policy += by_policy
        self._places += [(where, name, "") for name in given if name.startswith(_OBJECTS)]
        self._places += [
            (where, name, f"{policy.get('name')}" if part == "resources" else "?")
            for policy in by_policy
            for part in ("rules", "resources")
            for item in objects_of(policy.get(part))
            for name in object_of(item.get("values"))
            if name.startswith(_OBJECTS)
        ]

    def of(self, policy: str, item: Json) -> Json:
        """Returns the values for an object under a policy."""
        values = {OPERATION: "CREATE", **self._for_all}
        for of in self._by_policy:
            for resource in objects_of(of.get("resources")) if of.get("name") == policy else ():
                if resource.get("name") == name_of(item):
                    values |= object_of(resource.get("values"))
        return values

    def without_effect(self, converted: Collection[str], others: Collection[str]) -> Iterator[str]:
        """Warns of values in objects that no policy sees.

        Kyverno sets them for rules of ClusterPolicies (``converted``), by object or for all.
        """
        for where, name, policy in dict.fromkeys(self._places):
            if policy in converted or (not policy and not others):
                continue
            yield f"{where}: {name} is not set: write it into the object among the resources"


def with_values(request: Json, values: Mapping[str, Any]) -> Json:
    """Returns a request with the values in its objects, as Kyverno sets them for ClusterPolicies.

    A name is a path of fields, in which a quoted field may have dots.
    """
    for name, value in values.items():
        if not name.startswith(_OBJECTS):
            continue
        [[_, part, *path]] = csv.reader([name], delimiter=".")
        if request.get(part) is not None:
            within = reduce(lambda inner, field: {field: inner}, reversed(path), value)
            request = {**request, part: _merged(request[part], within)}
    return request


def _merged(old: Any, new: Any) -> Any:
    if type(old) is not dict or type(new) is not dict:
        return new
    return old | {name: _merged(old.get(name), value) for name, value in new.items()}


def _check(spec: Json, where: str) -> None:
    """Refuses values of another shape, which would be without effect."""
    lists = {name: spec.get(name) for name in _LISTS}
    given = [("globalValues", spec.get("globalValues"))]
    for at, policy in enumerate(objects_of(spec.get("policies"))):
        for part in ("rules", "resources"):
            lists[f"policies[{at}].{part}"] = policy.get(part)
            given += [
                (f"policies[{at}].{part}[{number}].values", item.get("values"))
                for number, item in enumerate(objects_of(policy.get(part)))
            ]
    for name, items in lists.items():
        if items is not None and (type(items) is not list or objects_of(items) != items):
            raise InvalidSuite(f"{where}: {name}: write a list of objects")
    for name, values in given:
        if values is not None and type(values) is not dict:
            raise InvalidSuite(f"{where}: {name}: write values by their names")
        operation = object_of(values).get(OPERATION, "")
        if type(operation) is not str or operation not in OPERATIONS:
            choices = ", ".join(sorted(OPERATIONS - {""}))
            text = f"{name}: request.operation: {operation!r} is none of {choices}"
            raise InvalidSuite(f"{where}: {text}")

"""Decides whether a policy or a binding matches a request: rules and selectors.

k8s.io/apiserver, admission/plugin/policy/matching and admission/plugin/webhook/predicates. A
request without a resource has the plural that Kubernetes guesses from the kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.admission_policies.kinds import GROUP, OPERATIONS, SCOPES, InvalidAdmissionPolicy
from webhook.api.builtin_kinds import BUILTIN_GROUPS
from webhook.api.gvk import labels_of, plural_of
from webhook.constraint.errors import InvalidConstraint, shown
from webhook.constraint.selector import compile_selector
from webhook.constraint.selector_validation import validate_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.shapes import Json

_SPARED: Final = frozenset(
    {
        *(
            (GROUP, f"{kind}admissionpolic{end}")
            for kind in ("validating", "mutating")
            for end in ("ies", "ybindings")
        ),
        *(("authentication.k8s.io", name) for name in ("selfsubjectreviews", "tokenreviews")),
        *(
            ("authorization.k8s.io", f"{name}reviews")
            for name in (
                "localsubjectaccess",
                "selfsubjectaccess",
                "selfsubjectrules",
                "subjectaccess",
            )
        ),
    }
)
"""No policy reviews requests about policies, or about identities and rights, so that no policy locks
users out (pkg/kubeapiserver/admission/exclusion/resources.go)."""

_EVENTS: Final = (("", "v1"), ("events.k8s.io", "v1"))

_SERVED: Final = {
    ("", "events"): _EVENTS,
    ("events.k8s.io", "events"): _EVENTS,
    ("autoscaling", "horizontalpodautoscalers"): (("autoscaling", "v1"), ("autoscaling", "v2")),
}
"""The resources that an API server with such policies (1.30 and later) serves in several groups or
versions and stores in one; only those enabled by default. All its other resources have one version.
"""


# Made for each request: a frozen dataclass takes twice as long.
class RequestedResource(NamedTuple):
    """The fields of a request that rules check."""

    group: str
    version: str
    resource: str
    sub: str
    operation: str
    is_clustered: bool
    name: str


class Matching:
    """Matches requests, in a Namespace or in none, by rules and selectors."""

    __slots__ = (
        "_excluded",
        "_is_fuzzy",
        "_rules",
        "_selects_namespace",
        "_selects_object",
        "reads_names",
    )

    def __init__(self, resources: Mapping[str, Any], field: str) -> None:
        """Reads ``matchConstraints`` or ``matchResources``; ``field`` is their path in errors.

        Raises :class:`~webhook.admission_policies.kinds.InvalidAdmissionPolicy`.
        """
        self._rules = _rules(resources, "resourceRules", field)
        self._excluded = _rules(resources, "excludeResourceRules", field)
        policy = resources.get("matchPolicy") or "Equivalent"
        if policy not in {"Exact", "Equivalent"}:
            raise InvalidAdmissionPolicy(
                f"{field}.matchPolicy: {policy!r} is not Exact or Equivalent"
            )
        self._is_fuzzy = policy == "Equivalent"
        self._selects_namespace = _selector(resources, "namespaceSelector", field)
        self._selects_object = _selector(resources, "objectSelector", field)
        self.reads_names = any(
            rule.get("resourceNames") for rule in (*self._rules, *self._excluded)
        )
        """Whether a rule has ``resourceNames``."""

    @property
    def has_selectors(self) -> bool:
        """Whether there is a selector of namespaces or objects."""
        return self._selects_namespace is not None or self._selects_object is not None

    def __call__(self, request: Json, namespace: Json | None) -> bool:
        """Whether rules and selectors match a request."""
        return self.includes(requested_resource(request), request, namespace)

    def includes(self, requested: RequestedResource, request: Json, namespace: Json | None) -> bool:
        """Whether rules and selectors match a request, whose resource is known."""
        return self.names(requested) and self.selects(requested, request, namespace)

    def names(self, requested: RequestedResource) -> bool:
        """Whether the rules match a requested resource."""
        if (requested.group, requested.resource) in _SPARED:
            return False
        if _names(self._excluded, requested, is_fuzzy=self._is_fuzzy):
            return False
        return not self._rules or _names(self._rules, requested, is_fuzzy=self._is_fuzzy)

    def selects(self, requested: RequestedResource, request: Json, namespace: Json | None) -> bool:
        """Whether the selectors match a request."""
        if self._selects_namespace is not None and not _in_namespace(
            self._selects_namespace, request, requested, namespace
        ):
            return False
        selects = self._selects_object
        if selects is None:
            return True
        objects = (request.get("object"), request.get("oldObject"))
        return any(selects(labels_of(obj)) for obj in objects if type(obj) is dict)


def requested_resource(request: Json) -> RequestedResource:
    """Returns the fields of a request that rules check.

    An object of a subresource may be of another group: a Scale of Deployments is of autoscaling.
    """
    named = request.get("resource") or {}
    resource = named.get("resource")
    if not resource:
        named = request.get("kind") or {}
        resource = plural_of(named.get("kind") or "")
    group = named.get("group") or ""
    fields = (
        group,
        named.get("version") or "",
        resource,
        request.get("subResource") or "",
        request.get("operation") or "",
        not request.get("namespace") or (resource == "namespaces" and not group),
        request.get("name") or "",
    )
    return tuple.__new__(RequestedResource, fields)  # As calling it would, at half of its cost.


def _in_namespace(
    selects: Callable[[Mapping[str, str]], bool],
    request: Json,
    requested: RequestedResource,
    namespace: Json | None,
) -> bool:
    """Whether a namespace selector matches; always true for cluster-scoped resources."""
    if (requested.group, requested.resource) == ("", "namespaces"):
        document = request.get("object") or request.get("oldObject")
        return selects(labels_of(document) if type(document) is dict else {})
    if requested.is_clustered:
        return True
    return selects({} if namespace is None else labels_of(namespace))


def _selector(
    resources: Mapping[str, Any], name: str, field: str
) -> Callable[[Mapping[str, str]], bool] | None:
    """Returns the selector of a field; None for an empty one, which matches everything."""
    selector = resources.get(name) or {}
    check_selector(selector, f"{field}.{name}")
    return compile_selector(selector) if selector else None


def check_selector(selector: Any, field: str) -> None:
    """Checks a label selector.

    Raises :class:`~webhook.admission_policies.kinds.InvalidAdmissionPolicy`.
    """
    try:
        is_one = type(selector) is dict and validate_selector(selector)
    except InvalidConstraint as error:
        text = str(error).removeprefix("invalid Constraint: ")
        raise InvalidAdmissionPolicy(text.replace("spec.labelSelector", field)) from None
    if not is_one or not _is_well_formed(selector):
        raise InvalidAdmissionPolicy(
            f"{field}: is not a label selector: matchLabels has a text for each name, "
            "matchExpressions is a list of objects with key, operator and values"
        )


def _is_well_formed(selector: Json) -> bool:
    labels, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
    return (
        type(labels) is dict
        and all(type(value) is str for value in labels.values())
        and type(expressions) is list
        and all(
            type(value) is str
            for expression in expressions
            for value in expression.get("values") or ()
        )
    )


# --- rules ----------------------------------------------------------------------------------------


def _rules(resources: Mapping[str, Any], name: str, field: str) -> tuple[Json, ...]:
    given = resources.get(name)
    if given is None:
        return ()
    if type(given) is not list:
        raise InvalidAdmissionPolicy(f"{field}.{name}: is not a list of rules")
    for number, rule in enumerate(given):
        at = f"{field}.{name}[{number}]"
        if type(rule) is not dict:
            raise InvalidAdmissionPolicy(f"{at}: is not a rule")
        for part in ("apiGroups", "apiVersions", "operations", "resources"):
            values = rule.get(part)
            if (
                type(values) is not list
                or not values
                or any(type(value) is not str for value in values)
            ):
                raise InvalidAdmissionPolicy(f"{at}.{part}: is not a list of names, at least one")
        unknown = [operation for operation in rule["operations"] if operation not in OPERATIONS]
        if unknown:
            raise InvalidAdmissionPolicy(
                f"{at}.operations: {shown(unknown[0])} is not one of {', '.join(OPERATIONS)}"
            )
        if (rule.get("scope") or "*") not in SCOPES:
            raise InvalidAdmissionPolicy(
                f"{at}.scope: {shown(rule['scope'])} is not one of {', '.join(SCOPES)}"
            )
    return tuple(given)


def _names(rules: Sequence[Json], requested: RequestedResource, *, is_fuzzy: bool) -> bool:
    return any(_covers(rule, requested, is_fuzzy=is_fuzzy) for rule in rules)


def concerns_kind(rule: Json, gvk: GroupVersionKind, operation: str = "CREATE") -> bool:
    """Whether a rule covers an operation on a kind, by the plural that Kubernetes guesses."""
    groups = {gvk.group, *(group for group, _ in _SERVED.get((gvk.group, plural_of(gvk.kind)), ()))}
    names = {resource.partition("/")[0] for resource in rule["resources"]}
    return (
        bool({"*", operation} & set(rule["operations"]))
        and any(_among(rule["apiGroups"], group) for group in groups)
        and bool(names & {"*", plural_of(gvk.kind)})
    )


def _covers(rule: Json, requested: RequestedResource, *, is_fuzzy: bool) -> bool:
    scope = rule.get("scope") or "*"
    names = rule.get("resourceNames")
    if names and requested.name not in names:
        return False
    if not _among(rule["operations"], requested.operation):
        return False
    if scope != "*" and (scope == "Cluster") is not requested.is_clustered:
        return False
    return _of_resource(rule, requested) and (
        _of_version(rule, requested.group, requested.version)
        or (is_fuzzy and _of_equivalent(rule, requested))
    )


def _of_version(rule: Json, group: str, version: str) -> bool:
    return _among(rule["apiGroups"], group) and _among(rule["apiVersions"], version)


def _of_equivalent(rule: Json, requested: RequestedResource) -> bool:
    """Whether a rule covers the same resource in another version or group.

    The served versions of a custom resource are unknown here, so every version counts.
    """
    served = _SERVED.get((requested.group, requested.resource))
    if served is not None:
        return any(_of_version(rule, group, version) for group, version in served)
    return requested.group not in BUILTIN_GROUPS and _among(rule["apiGroups"], requested.group)


def _of_resource(rule: Json, requested: RequestedResource) -> bool:
    for resource in rule["resources"]:
        name, _, sub = resource.partition("/")
        if name in {"*", requested.resource} and sub in (
            {"*", requested.sub} if requested.sub else {"*", ""}
        ):
            return True
    return False


def _among(listed: Sequence[str], name: str) -> bool:
    return "*" in listed or name in listed

"""The webhooks of configurations that call Waddle or Gatekeeper, and the requests each gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from webhook.api.builtin_kinds import gone_since
from webhook.api.gvk import name_of
from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.failure_policy import FAILURE_POLICIES, FailurePolicy
from webhook.constraint.selector import compile_selector
from webhook.constraint.wildcard import WILDCARD
from webhook.values import dataclass
from webhook.webhook_rules.kinds import RuleTarget, builtin_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.webhook_rules.conditions import Facts

VALIDATING_PATH: Final = "/v1/admit"
MUTATING_PATH: Final = "/v1/mutate"
"""The paths of Waddle and of Gatekeeper; they are the same."""

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label with its name that the API server gives each Namespace."""

_NAMESPACE: Final = ("", "Namespace")


@dataclass(frozen=True, slots=True)
class SentRequest:
    """The facts of requests that a policy matches.

    ``place`` is their namespace, empty if unknown. ``labels`` are the labels of the Namespace, None
    if unknown. The selectors are the policy's own, on objects and on Namespaces.
    """

    target: RuleTarget
    operation: str
    place: str = ""
    labels: Mapping[str, str] | None = None
    object_selector: Mapping[str, Any] | None = None
    namespace_selector: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Withheld:
    """The reason why a webhook gets no such request; a greater ``rank`` means a smaller gap."""

    rank: int
    reason: str


NO_RULE: Final = Withheld(0, "")
"""No rule matches; the caller describes the missing rule."""


@dataclass(frozen=True, slots=True)
class WebhookEntry:
    """A webhook of a configuration.

    ``failure_policy`` is the failure policy of its constraints; None means all constraints, as in
    Gatekeeper.
    """

    configuration: str
    document: Mapping[str, Any]
    failure_policy: FailurePolicy | None = None

    def __str__(self) -> str:
        """Returns the name of the webhook in messages."""
        return f"the webhook {self.document.get('name')} of {self.configuration}"

    @property
    def fails_closed(self) -> bool:
        """Whether API servers refuse requests while no replica answers; that is their default."""
        return bool(self.document.get("failurePolicy", "Fail") == "Fail")

    def lock_outs(self) -> Iterator[str]:
        """Yields a message for each cluster repair that this entry blocks without replicas."""
        service = object_of(self.document.get("clientConfig")).get("service")
        service_namespace = object_of(service).get("namespace")
        for request in _of_repairs(
            *(
                namespace
                for namespace in (service_namespace, "kube-system")
                if type(namespace) is str
            )
        ):
            if self.fails_closed and self.withholds(request) is None:
                where = f" of namespace {request.place}" if request.place else ""
                yield (
                    f"{self} fails closed for {request.target}{where}, too: nobody could repair the "
                    "cluster while no replica answers; leave them out of its rules or by its "
                    "namespaceSelector"
                )

    def withholds(self, request: SentRequest) -> Withheld | None:
        """Returns the reason why no such request is sent; None if some are, or may be."""
        rules = objects_of(self.document.get("rules"))
        if not any(_covers(rule, request) for rule in rules):
            return NO_RULE
        if self._selects_no_namespace(request):
            where = f"namespace {request.place}" if request.place else "the policy's namespaces"
            return Withheld(1, f"the namespaceSelector of {self.configuration} leaves out {where}")
        if self._selects_no_object(request):
            return Withheld(
                1, f"the objectSelector of {self.configuration} leaves out the policy's objects"
            )
        return self._condition_against(request)

    def _condition_against(self, request: SentRequest) -> Withheld | None:
        conditions = objects_of(self.document.get("matchConditions"))
        if not conditions:
            return None
        # Imported here, so that configurations without conditions need no CEL.
        from webhook.webhook_rules.conditions import holds  # noqa: PLC0415

        facts = _facts(request, is_exact=self.document.get("matchPolicy") == "Exact")
        for condition in conditions:
            expression = condition.get("expression")
            if type(expression) is str and holds(expression, facts) is False:
                name = condition.get("name")
                subject = f"{request.target}"
                if request.place:
                    subject += f" in namespace {request.place}"
                return Withheld(
                    2, f"the matchCondition {name} of {self.configuration} leaves out {subject}"
                )
        return None

    def _selects_no_namespace(self, request: SentRequest) -> bool:
        selector = object_of(self.document.get("namespaceSelector"))
        if request.target.kind == _NAMESPACE:
            # The selector checks the Namespace's own labels, which may differ from the policy's on
            # UPDATE.
            return request.operation == "CREATE" and are_contrary(
                selector, request.object_selector or {}, request.namespace_selector or {}
            )
        if request.target.namespaced is not True:
            return False
        if request.labels is not None:
            return not _selects(selector, request.labels)
        # API servers give each Namespace a label with its name.
        named: Mapping[str, Any] = {
            "matchExpressions": [{"key": NAMESPACE_NAME, "operator": "Exists"}]
        }
        if request.place:
            named = {"matchLabels": {NAMESPACE_NAME: request.place}}
        return are_contrary(selector, named, request.namespace_selector or {})

    def _selects_no_object(self, request: SentRequest) -> bool:
        """Whether no object of the policy is selected.

        An update may be sent for its old object, while the policy matches the new one.
        """
        selector = object_of(self.document.get("objectSelector"))
        is_decided = request.operation != "UPDATE"
        return are_contrary(selector, (is_decided and request.object_selector) or {})


def _of_repairs(*namespaces: str) -> Iterator[SentRequest]:
    """Yields the requests that the repair of a cluster needs."""
    for group, kind, operation, place in (
        *(("", "Pod", "CREATE", namespace) for namespace in dict.fromkeys(namespaces)),
        ("coordination.k8s.io", "Lease", "UPDATE", "kube-node-lease"),
        ("", "Node", "UPDATE", ""),
    ):
        for target in builtin_targets(group, kind):
            labels = {NAMESPACE_NAME: place} if place else None
            yield SentRequest(target, operation, place, labels)


def entries_of(
    configurations: Iterable[Mapping[str, Any]], path: str, namespace: str
) -> tuple[WebhookEntry, ...]:
    """Returns the webhooks that call a path of a Service in a namespace, or of a URL.

    An empty namespace means any. Below the path, each of :data:`FAILURE_POLICIES` is an entry for
    those constraints alone.
    """
    parts: dict[str, FailurePolicy] = {f"{path}/{policy}": policy for policy in FAILURE_POLICIES}
    return tuple(
        WebhookEntry(name_of(configuration), webhook, parts.get(called))
        for configuration in configurations
        for webhook in objects_of(configuration.get("webhooks"))
        if (called := _called(object_of(webhook.get("clientConfig")), namespace)) == path
        or called in parts
    )


def _called(client: Mapping[str, Any], namespace: str) -> str:
    """Returns the path that a webhook calls; empty for a Service in another namespace."""
    if type(url := client.get("url")) is str:
        try:
            return urlsplit(url).path.rstrip("/")
        except ValueError:
            return ""
    service = object_of(client.get("service"))
    is_ours = not namespace or service.get("namespace") == namespace
    return str(service.get("path", "")).rstrip("/") if is_ours else ""


def _covers(rule: Mapping[str, Any], request: SentRequest) -> bool:
    """Whether a rule may send a request."""
    target = request.target
    operations, groups = texts_of(rule.get("operations")), texts_of(rule.get("apiGroups"))
    if not {request.operation, WILDCARD}.intersection(operations):
        return False
    if target.group != WILDCARD and not {target.group, WILDCARD}.intersection(groups):
        return False
    is_of_all = WILDCARD in texts_of(rule.get("apiVersions"))
    if not is_of_all and gone_since(rule, target.group, target.name):
        return False  # matchPolicy does not make it send requests of other versions
    scope = {True: "Namespaced", False: "Cluster"}.get(target.namespaced, WILDCARD)  # type: ignore[arg-type]
    if WILDCARD not in (scope, rule.get("scope") or WILDCARD) and scope != rule["scope"]:
        return False
    return any(_names(pattern, target) for pattern in texts_of(rule.get("resources")))


def _names(pattern: str, target: RuleTarget) -> bool:
    """Whether a rule's resource includes a target; ``*`` means all without their subresources."""
    if target.resource == WILDCARD:
        return True
    resource, _, subresource = pattern.partition("/")
    if WILDCARD in (target.name, target.subresource):  # the rule names some of these subresources
        return bool(subresource) and (
            WILDCARD in (resource, target.name) or resource == target.name
        )
    return resource in (WILDCARD, target.name) and subresource in (
        (WILDCARD, target.subresource) if "/" in pattern else (target.subresource,)
    )


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    try:
        return compile_selector(selector)(labels)
    except (ConstraintFrameworkError, KeyError, TypeError):
        return True  # an API server stores no invalid selector


def _facts(request: SentRequest, *, is_exact: bool) -> Facts:
    target = request.target
    facts: dict[tuple[str, ...], str] = {("operation",): request.operation}
    for field, (group, name) in (
        ("resource", (target.group, target.name)),
        ("kind", target.kind),
    ):
        fields = {"group": group, field: name}
        for prefix in ("", "request") if is_exact else ("",):
            at = f"{prefix}{field[0].upper()}{field[1:]}" if prefix else field
            facts |= {(at, named): value for named, value in fields.items() if value != WILDCARD}
    if target.is_guessed:
        facts.pop(("resource", "resource"))
        facts.pop(("requestResource", "resource"), None)
    if target.resource != WILDCARD:
        facts["subResource",] = target.subresource
    if request.place:
        facts["namespace",] = request.place
    elif target.namespaced is False and target.kind != _NAMESPACE:
        facts["namespace",] = ""
    return facts


def are_contrary(*selectors: Mapping[str, Any]) -> bool:
    """Whether no labels satisfy all selectors; each key is checked by itself."""
    by_key: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for selector in selectors:
        for key, operator, values in _requirements(selector):
            by_key.setdefault(key, []).append((operator, values))
    return any(map(_is_impossible, by_key.values()))


def _requirements(selector: Mapping[str, Any]) -> Iterator[tuple[str, str, frozenset[str]]]:
    for key, value in object_of(selector.get("matchLabels")).items():
        yield key, "In", frozenset({str(value)})
    for expression in objects_of(selector.get("matchExpressions")):
        yield (
            str(expression.get("key")),
            str(expression.get("operator")),
            frozenset(texts_of(expression.get("values"))),
        )


def _is_impossible(requirements: list[tuple[str, frozenset[str]]]) -> bool:
    operators = {operator for operator, _ in requirements}
    if "DoesNotExist" in operators and operators & {"In", "Exists"}:
        return True
    allowed = [values for operator, values in requirements if operator == "In"]
    if not allowed:
        return False  # some value is outside the refused ones
    refused = (values for operator, values in requirements if operator == "NotIn")
    return not frozenset.intersection(*allowed).difference(*refused)

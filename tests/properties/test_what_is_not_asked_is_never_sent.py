"""NotAsked is true: no request that a constraint matches is sent; and by rules and selectors alone, only then.

The oracle looks at each request of a small world by itself, as an API server and a match do.
"""

from itertools import product
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.webhook_rules.coverage import WebhookContext, coverage_of
from webhook.webhook_rules.entries import VALIDATING_PATH, entries_of
from webhook.webhook_rules.needs import need_of

NAMES = "kubernetes.io/metadata.name"
NAMESPACES = ("kube-system", "shop")
OTHER = "other"
"""A namespace that no selector and no policy names: a cluster has more than those that are named."""
LABELS: tuple[dict[str, str], ...] = ({}, {"a": "1"}, {"a": "2"}, {"a": "3"})
"""The last one is a value that no selector names."""


class Sent(NamedTuple):
    """A request: its resource and kind, what it does, where, and the labels before and after."""

    group: str
    resource: str
    kind: str
    operation: str
    namespace: str
    old: Any
    new: Any


RESOURCES = (
    ("", "pods", ("", "Pod"), True, ("CREATE", "UPDATE", "DELETE")),
    ("coordination.k8s.io", "leases", ("coordination.k8s.io", "Lease"), True, ("CREATE", "UPDATE", "DELETE")),
    ("rbac.authorization.k8s.io", "clusterroles", ("rbac.authorization.k8s.io", "ClusterRole"), False, ("CREATE", "UPDATE", "DELETE")),
    ("", "pods/exec", ("", "PodExecOptions"), True, ("CONNECT",)),
    ("apps", "deployments/scale", ("autoscaling", "Scale"), True, ("UPDATE",)),
    ("", "replicationcontrollers/scale", ("autoscaling", "Scale"), True, ("UPDATE",)),
)  # fmt: skip

WORLD = [
    (Sent(group, resource, kind[1], operation, namespace, old, new), kind)
    for group, resource, kind, namespaced, operations in RESOURCES
    for operation in operations
    for namespace in ((*NAMESPACES, OTHER) if namespaced else ("",))
    for old, new in product(LABELS, LABELS)
    if operation == "UPDATE" or old == new
]

CONDITIONS = {
    "request.operation != 'CREATE'": lambda one: one.operation != "CREATE",
    "!(request.resource.resource == 'leases' && request.resource.group != '')": lambda one: (
        one.resource != "leases"
    ),
    "!has(request.namespace) || request.namespace != 'kube-system'": lambda one: (
        one.namespace != "kube-system"
    ),
    "request.userInfo.username == 'x' || request.kind.kind in ['Pod', 'Lease']": lambda _: True,
    "request.userInfo.username != 'x' && request.kind.kind == 'Pod'": lambda one: one.kind == "Pod",
    "has(request.subResource) && request.subResource == 'exec'": lambda one: (
        one.resource == "pods/exec"
    ),
}


def requirements(key: str, values: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """A selector of one requirement on a key, or none."""
    listed = st.lists(st.sampled_from(values), min_size=1, unique=True)
    expressions = st.one_of(
        st.builds(lambda some: {"key": key, "operator": "In", "values": some}, listed),
        st.builds(lambda some: {"key": key, "operator": "NotIn", "values": some}, listed),
        st.just({"key": key, "operator": "Exists"}),
        st.just({"key": key, "operator": "DoesNotExist"}),
    )
    return st.lists(expressions, max_size=2).map(lambda some: {"matchExpressions": some})


def some(*values: str) -> st.SearchStrategy[list[str]]:
    """A few of these."""
    return st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)


RULES = st.fixed_dictionaries(
    {
        "apiGroups": some("", "*", "coordination.k8s.io", "rbac.authorization.k8s.io", "apps"),
        "apiVersions": st.just(["*"]),
        "operations": some("*", "CREATE", "UPDATE", "DELETE", "CONNECT"),
        "resources": some("*", "pods", "*/*", "pods/*", "*/scale", "leases", "clusterroles"),
        "scope": st.sampled_from(["*", "Cluster", "Namespaced"]),
    }
)
WEBHOOKS = st.fixed_dictionaries(
    {
        "rules": st.lists(RULES, min_size=1, max_size=2),
        "namespaceSelector": requirements(NAMES, NAMESPACES),
        "objectSelector": requirements("a", ("1", "2")),
        "matchConditions": st.lists(
            st.sampled_from(sorted(CONDITIONS)).map(lambda one: {"name": "c", "expression": one}),
            max_size=2,
        ),
    }
)
KINDS = st.lists(
    st.sampled_from([one[2] for one in RESOURCES] + [("*", "Pod"), ("*", "*")]),
    max_size=2,
).map(lambda pairs: [{"apiGroups": [group], "kinds": [kind]} for group, kind in pairs])
MATCHES = st.fixed_dictionaries(
    {},
    optional={
        "kinds": KINDS,
        "namespaces": some(*NAMESPACES),
        "scope": st.sampled_from(["*", "Cluster", "Namespaced"]),
        "labelSelector": requirements("a", ("1", "2")),
    },
)
OPERATIONS = st.sets(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]), max_size=2)


def selected(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Returns whether a selector matches labels."""
    for one in selector["matchExpressions"]:
        has, value = one["key"] in labels, labels.get(one["key"])
        if not {
            "In": has and value in one.get("values", ()),
            "NotIn": not has or value not in one.get("values", ()),
            "Exists": has,
            "DoesNotExist": not has,
        }[one["operator"]]:
            return False
    return True


def is_sent(webhook: dict[str, Any], one: Sent) -> bool:
    """Returns whether an API server would send the request (plugin/webhook/predicates)."""
    name, _, subresource = one.resource.partition("/")
    scope = "Namespaced" if one.namespace else "Cluster"

    def covered(rule: dict[str, Any]) -> bool:
        names = [tuple((pattern + "/").split("/")[:2]) for pattern in rule["resources"]]
        return (
            bool({"*", one.group} & set(rule["apiGroups"]))
            and bool({"*", one.operation} & set(rule["operations"]))
            and rule["scope"] in ("*", scope)
            and any(of in ("*", name) and sub in ("*", subresource) for of, sub in names)
        )

    return (
        any(covered(rule) for rule in webhook["rules"])
        and (not one.namespace or selected(webhook["namespaceSelector"], {NAMES: one.namespace}))
        and any(selected(webhook["objectSelector"], labels) for labels in (one.old, one.new))
        and all(CONDITIONS[each["expression"]](one) for each in webhook["matchConditions"])
    )


def is_matched(
    match: dict[str, Any], operations: set[str], one: Sent, kind: tuple[str, str]
) -> bool:
    """Returns whether a constraint matches."""
    scope = "Namespaced" if one.namespace else "Cluster"
    listed = match.get("kinds")
    return (
        (not operations or one.operation in operations)
        and (
            not listed
            or any(
                each["apiGroups"][0] in ("*", kind[0]) and each["kinds"][0] in ("*", kind[1])
                for each in listed
            )
        )
        and match.get("scope", "*") in ("*", scope)
        and (not one.namespace or one.namespace in match.get("namespaces", (*NAMESPACES, OTHER)))
        and any(
            selected(match.get("labelSelector", {"matchExpressions": []}), labels)
            for labels in (one.new, one.old)
        )
    )


@settings(deadline=None, max_examples=300)
@given(st.lists(WEBHOOKS, min_size=1, max_size=2), MATCHES, OPERATIONS)
def test_what_is_not_asked_is_never_sent(
    webhooks: list[dict[str, Any]], match: dict[str, Any], operations: set[str]
) -> None:
    calls = {"name": "w", "clientConfig": {"url": "https://w/v1/admit"}}
    configuration = {"metadata": {"name": "c"}, "webhooks": [{**calls, **one} for one in webhooks]}
    document = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "A",
        "metadata": {"name": "a"},
        "spec": {"match": match},
    }
    need = need_of(document, lambda _: frozenset(operations))
    assert need is not None
    entries = entries_of([configuration], VALIDATING_PATH, "")
    extent = coverage_of(need, WebhookContext({"webhook": entries})).extent
    about = [one for one, kind in WORLD if is_matched(match, operations, one, kind)]
    sent = [one for one in about if any(is_sent(webhook, one) for webhook in webhooks)]
    if extent == "not at all":
        assert not sent
    is_plain = not any(webhook["matchConditions"] for webhook in webhooks)
    names_all = match.get("kinds") and all("*" not in one["kinds"] for one in match["kinds"])
    if is_plain and names_all and about and not sent:
        assert extent == "not at all"

"""Policies of Kyverno decide as Kyverno's own engine does."""

from __future__ import annotations

import gzip
from base64 import b64encode
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.differential.oracle import Oracle
from tests.webhook.kyverno.making import CERTIFICATE, CERTIFICATE_REQUEST
from webhook.kyverno.conversion import converted
from webhook.kyverno.exception_conversion import converted_exceptions
from webhook.kyverno.kinds import InvalidPolicy
from webhook.kyverno.patterns import Unwritable
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.policy_exception import KyvernoException
from webhook.kyverno.validating_policy import ValidatingPolicy
from webhook.kyverno.world import World, objects_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.programs import Programs

pytestmark = pytest.mark.programs

Json = dict[str, Any]

PODS: Final = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}

_ZIPPED: Final = gzip.compress(b"hi", mtime=0)

EXPRESSIONS: Final = (
    "object.metadata.name == 'web'",
    "has(object.metadata.labels) && object.metadata.labels.team == 'a'",
    "object.metadata.labels.team == 'a'",
    "object.metadata.?labels.?team.orValue('b') == 'a'",
    "object.spec.containers.all(c, c.image.startsWith('registry.example/'))",
    "object.spec.containers.exists(c, has(c.securityContext) && c.securityContext.privileged)",
    "images.containers.map(i, parseImageReference(i).registry()).all(r, r == 'registry.example')",
    "images.containers.all(i, image(i).tag() != 'latest')",
    "image(object.spec.containers[0].image).containsDigest()",
    "request.operation == 'CREATE' && request.userInfo.username == 'jane'",
    "request.object.metadata.name == object.metadata.name",
    "request.namespace == 'shop'",
    "variables.first.name == 'c'",
    "variables.first.name.size() > 3",
    "quantity(variables.first.?resources.?limits.?memory.orValue('2Gi')) <= quantity('1Gi')",
    "object.spec.containers.map(c, c.name).distinct().size() == object.spec.containers.size()",
    "math.greatest(object.spec.containers.map(c, c.name.size())) < 4",
    "math.greatest(1, 2, 3, 4, 5, 6, 7, object.spec.containers.size()) == 7",
    "math.least(1, 2, 3) == 1 && math.abs(-2) == 2 && math.sign(-2.5) == -1.0",
    "math.ceil(1.2) == 2.0 && math.floor(-1.2) == -2.0 && math.trunc(-1.7) == -1.0",
    "math.round(2.5) == 3.0 && math.round(-0.5) == -1.0 && math.round(2.345, 2) == 2.35",
    "math.round(0.49999999999999994) == 0.0 && math.sqrt(81) == 9.0",
    "math.bitShiftRight(-1024, 3) == 2305843009213693824 && math.bitNot(1) == -2",
    "math.bitShiftLeft(1, 63) < 0 && math.bitAnd(6, 3) == 2 && math.bitXor(6u, 3u) == 5u",
    "math.bitShiftLeft(1, -1) == 0",
    "math.greatest([]) == 0",
    "base64.decode('aGk=') == b'hi' && base64.decode('aGk') == b'hi'",
    "base64.encode(b'hi') == 'aGk='",
    "base64.decode('!') == b''",
    "json.marshal(object.metadata).contains('web')",
    "yaml.parse('a: [1]').a[0] == 1.0",
    "sha256(object.metadata.name).size() == 64",
    "regex.replace(object.metadata.name, 'w(e)b', r'\\1') == 'e'",
    "regex.extract(object.metadata.name, 'w(.*)').orValue('') == 'eb'",
    "parseServiceAccount('system:serviceaccount:shop:me').Namespace == 'shop'",
    "semver('1.2.3').isLessThan(semver('1.10.0'))",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
    "url('https://a.example/b').getHost() == 'a.example'",
    "random('[a-z]') != ''",
    "cel.bind(name, object.metadata.name, name == 'web')",
    "cel.bind(known, ['c', 'd'], object.spec.containers.exists(c, c.name in known))",
    "cel.bind(team, object.metadata.labels.team, team == 'a' || true)",
    "cel.bind(team, object.metadata.labels.team, has(object.metadata.labels) && team == 'a')",
    "cel.bind(team, object.metadata.labels.team, team == 'a' || team == 'b')",
    "cel.bind(labels, object.metadata.?labels, labels.team.orValue('b') == 'a')",
    "object.spec.containers.all(c, cel.bind(name, c.name, name != 'nginx' && name == c.name))",
    "cel.bind(x, [1, 2], x.exists(y, cel.bind(z, y * 2, z == 4)))",
    "cel.bind(x, x, x == 1)",
    "cel.bind(x.y, 1, true)",
    "cel.bind('x', 1, true)",
    "cel.bind(x, 1, x == 'a')",
    "cel.bind(x, 1)",
    "other.bind(x, 1, x == 1)",
    "object.spec.hostNetwork",
    "dyn(true)",
    "optional.of(true).orValue(true)",
    "[1].orValue([]) == [1] && 1.orValue(2) == 1 && null.orValue(1) == null",
    "optional.of('a').orValue(1) == 'a' && optional.none().orValue(1) == 1",
    "optional.of(1).orValue(object.other) == 1",
    "optional.none().orValue(object.metadata.name) == 'web'",
    "optional.of(optional.of(1)).orValue(2).orValue(object.spec.containers.size()) == 1",
    "object.other.orValue(1) == 1",
    "[optional.of(1).orValue(2), 'a'] == []",
    "object.metadata.labels.orValue({}).team == 'a'",
    "exceptions.other == 1",
    "exceptions.allowedImages.size() == 0 && exceptions.allowedValues == []",
    "object.spec.containers.all(c, c.image in exceptions.allowedImages)",
    "parseServiceAccount('jane').Other == ''",
    *(
        f"gzip.decompress(base64.decode('{b64encode(data).decode()}')) == 'hi'"
        for data in (
            _ZIPPED,
            *(_ZIPPED + bytes(count) for count in (1, 10, 20)),
            _ZIPPED + bytes(3) + _ZIPPED,
            _ZIPPED + b"hi",
            _ZIPPED[:-1],
            bytes(1) + _ZIPPED,
        )
    ),
    "'Name' in parseServiceAccount('jane')",
    "has(parseServiceAccount('jane').Name)",
    "has(parseServiceAccount('system:serviceaccount:shop:me').Name)",
    "parseServiceAccount('jane').?Name.orValue('none') == 'none'",
    "parseServiceAccount('system:serviceaccount:shop:me').?Name.orValue('none') == 'me'",
    "dyn(parseServiceAccount('jane')).?Other.hasValue()",
    "type(parseServiceAccount('jane')) == map",
    "dyn(parseServiceAccount('jane')).Name == ''",
    "has(dyn(parseServiceAccount('jane')).Other)",
    "parseServiceAccount('jane') == parseServiceAccount('john')",
    "dyn(parseServiceAccount('jane')) == {'Name': '', 'Namespace': ''}",
    "{'Name': '', 'Namespace': ''} == dyn(parseServiceAccount('jane'))",
    "dyn(parseServiceAccount('jane')) != 'jane'",
    "dyn(parseServiceAccount('jane')) == exceptions",
    "dyn(parseServiceAccount('jane')) == null",
    "dyn(parseServiceAccount('jane')) in [{'Name': ''}]",
    "dyn(image('nginx')) == 'nginx'",
    "type(exceptions) == type({})",
    "type(exceptions) == map",
    "dyn(exceptions) == {}",
    "exceptions == exceptions",
    "has(exceptions.allowedImages)",
    "'allowedImages' in dyn(exceptions)",
    "size(dyn(exceptions)) == 2",
    "dyn(exceptions).allowedImages == []",
    "type(resource) == type(json)",
    "has(object.spec.hostNetwork) ? object.spec.hostNetwork : false",
    "object.?spec.?hostNetwork.orValue(false)",
    "!object.spec.hostNetwork",
    "object.spec.hostNetwork || object.metadata.name == 'web'",
    "object.spec.containers.all(c, c.privileged)",
    "[image('a:b:c').tag()] == []",
    "oldObject == null",
    "oldObject == {} && !has(oldObject.metadata) && request.oldObject == null",
    "oldObject.metadata.name == 'web'",
    "oldObject.?metadata.?name.orValue('web') == 'web'",
    "globalContext.Get('none') == null && globalContext.get('none', 'part') == null",
    "resource.Get('v1', 'configmaps', 'shop', 'none').data.a == 'b'",
    "resource.Get('v1', 'configmaps', 'shop', 'none') == null",
    "resource.Get('v1', 'configmaps', 'shop', 'none').data == null",
    "resource.List('v1', 'configmaps', 'shop') == null",
    "resource.Get('v1', 'configmaps', 'shop', 'none') == {}",
    "resource.Get('v1', 'configmaps', 'shop', 'none').exists(k, k == 'data')",
    "cel.bind(c, resource.Get('v1', 'configmaps', 'shop', 'none'), c == null)",
    "type(resource.Get('v1', 'configmaps', 'shop', 'none')) == map",
    "resource.Get('v1', 'configmaps', 'shop', 'none').?data.hasValue()",
    "globalContext.Get('none').x == 1",
    "[isImage(''), isImage('a b'), isImage('Ab/cd'), isImage('ab//cd'), isImage('a')] == []",
)

_NO_IMAGES: Final = "Kyverno has no images in a ValidatingPolicy; here they are the object's"
KNOWN: Final = {
    EXPRESSIONS[6]: _NO_IMAGES,
    EXPRESSIONS[7]: _NO_IMAGES,
    "math.greatest([]) == 0": "refused by Kyverno where it is written, an error here",
    "random('[a-z]') != ''": "refused: a decision is the same each time",
    "dyn(exceptions).allowedImages == []": "Kyverno knows it as AllowedImages, its name in Go",
}
"""Expressions that Waddle answers in another way, each with the reason."""


def _pod(**of: Any) -> Json:
    """A Pod in the namespace shop, with what is given in its metadata and its first container."""
    container = {"name": "c", "image": "registry.example/web:1", **of.get("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", **of.get("metadata", {})},
        "spec": {"containers": [container, *of.get("more", ())]},
    }


OBJECTS: Final = (
    _pod(),
    _pod(metadata={"name": "other", "labels": {"team": "a"}}),
    _pod(metadata={"labels": {"app": "b"}}, container={"image": "nginx", "name": "nginx"}),
    _pod(
        container={
            "securityContext": {"privileged": True},
            "resources": {"limits": {"memory": "1Gi"}},
        },
        more=[{"name": "c", "image": f"nginx@sha256:{'a' * 64}"}],
    ),
)


def _request(obj: Json) -> Json:
    pods = {"group": "", "version": "v1"}
    return {
        "uid": "1",
        "kind": {**pods, "kind": "Pod"},
        "resource": {**pods, "resource": "pods"},
        "name": obj["metadata"]["name"],
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "jane"},
        "object": obj,
    }


def _policy(expression: str) -> Json:
    return {
        "apiVersion": "policies.kyverno.io/v1beta1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [PODS]},
            "variables": [{"name": "first", "expression": "object.spec.containers[0]"}],
            "validations": [{"expression": expression, "message": "no"}],
        },
    }


_DIGEST: Final = f"sha256:{'a' * 64}"
MESSAGES: Final = (
    "cel.bind(a, 'hello', cel.bind(b, object.metadata.name, a + b + b + a))",
    "cel.bind(l, object.metadata.labels.team, string(l))",
    "cel.bind(names, object.spec.containers.map(c, c.name), names.join('-') + string(names.size()))",
    "cel.bind(n, object.metadata.name, object.spec.containers.map(n, n.name).join(',') + n)",
    "cel.bind(m, object.metadata, 'x' + m.name) + cel.bind(n, object.kind, string(n))",
    "json.marshal(object)",
    "json.marshal([1.0, 2.5, 1e21, 1e20, 1e-6, 1e-7, -0.0])",
    "json.marshal({'b': dyn(b'hi'), 'a': dyn(duration('90s'))})",
    "json.marshal([timestamp('2024-01-01T00:00:00+02:00')])",
    "json.marshal('<a>&\\u2028\\u0001é')",
    "json.marshal(object.metadata.?labels)",
    "json.marshal([quantity('1')])",
    'json.marshal(json.unmarshal(\'{"a": 1, "b": [2.5, 3]}\'))',
    "json.encode(object)",
    "json.encode({object.metadata.name: [9007199254740991, 9007199254740993]})",
    "json.encode([object.metadata.name, object.metadata.namespace])",
    "json.encode(object.metadata.?labels)",
    *(
        f"image('{reference}').{part}()"
        for part in ("registry", "repository", "tag", "digest", "identifier")
        for reference in (
            "nginx",
            "nginx:1.25",
            f"nginx:1@{_DIGEST}",
            f"registry.example:5000/team/web@{_DIGEST}",
            "localhost/web",
            "docker.io/web",
            "Registry.Example/web",
            "[::1]:5000/web",
            "a.b:c",
            "web/app/",
        )
    ),
    "image('nginx:1').identifierWithSeparator()",
    f"image('nginx:1@{_DIGEST}').identifierWithSeparator()",
    "parseServiceAccount('jane').Name",
    "json.encode(parseServiceAccount('jane'))",
    "json.encode([parseServiceAccount('system:serviceaccount:shop:me')])",
    "user.parseServiceAccount('system:serviceaccount:shop:me').Namespace",
    "exceptions.allowedImages.join(',') + 'none'",
    *(f"json.encode(x509.decode('''{pem}'''))" for pem in (CERTIFICATE, CERTIFICATE_REQUEST)),
    *(
        f"gzip.decompress(base64.decode('{b64encode(gzip.compress(b'hi', mtime=0) * times).decode()}'))"
        for times in (1, 2)
    ),
)
"""Expressions of texts."""


def _message_policy(expression: str) -> Json:
    policy = _policy("object == null")
    policy["spec"]["validations"][0]["messageExpression"] = expression
    return policy


@pytest.fixture(scope="module")
def kyverno(program: Programs) -> Iterator[Oracle]:
    with Oracle(program("tests/oracles/kyverno")) as oracle:
        yield oracle


def _theirs(kyverno: Oracle, policy: Json, part: str = "status") -> list[str] | str:
    requests = [_request(one) for one in OBJECTS]
    answer = kyverno.ask(policies=[policy], requests=requests)
    if answer.get("error"):
        return "refused"
    return [one[part] for one in answer["verdicts"]]


def _ours(document: Json, part: str = "result") -> list[str] | str:
    try:
        policy = ValidatingPolicy(document)
    except InvalidPolicy:
        return "refused"
    namespace = {"metadata": {"name": "shop", "labels": {}}}
    world = World(objects_known(()), is_whole=True)
    questions = [PolicyQuestion(_request(one), namespace, world) for one in OBJECTS]
    return [getattr(policy.say(one), part) for one in questions]


def test_expressions_decide_as_with_kyverno(kyverno: Oracle) -> None:
    different = {}
    for expression in EXPRESSIONS:
        policy = _policy(expression)
        ours, theirs = _ours(policy), _theirs(kyverno, policy)
        if ours != theirs:
            different[expression] = f"{ours}, with Kyverno {theirs}"
    assert {at: why for at, why in different.items() if at not in KNOWN} == {}
    assert set(different) == set(KNOWN), "a difference is gone: remove it from the list"


@pytest.mark.parametrize(
    "spec",
    [
        {"matchConditions": [{"name": "a", "expression": "object.spec.hostNetwork"}]},
        {"validations": [{"expression": "false", "messageExpression": "object.kind"}]},
        {"auditAnnotations": [{"key": "a", "valueExpression": "object.kind"}]},
        {"auditAnnotations": [{"key": "a", "valueExpression": "1"}]},
    ],
)
def test_expressions_of_other_types_are_refused_as_with_kyverno(
    kyverno: Oracle, spec: Json
) -> None:
    policy = _policy("true")
    policy["spec"] |= spec
    assert _theirs(kyverno, policy) == _ours(policy) == "refused"


def test_texts_are_those_of_kyverno(kyverno: Oracle) -> None:
    different = {}
    for expression in MESSAGES:
        policy = _message_policy(expression)
        ours, theirs = _ours(policy, "message"), _theirs(kyverno, policy, "message")
        if ours != theirs or "refused" in theirs:
            different[expression] = f"{ours}, with Kyverno {theirs}"
    assert different == {}


_ABOUT: Final = {"any": [{"resources": {"kinds": ["Pod"]}}]}
_LABELLED: Final = {"kinds": ["Pod"], "selector": {"matchLabels": {"team": "a"}}}
_PATTERN: Final = {"validate": {"pattern": {"spec": {"=(hostNetwork)": False}}}}
_BASELINE: Final = {"validate": {"podSecurity": {"level": "baseline", "version": "latest"}}}
_BY_OPERATION: Final = {"key": "{{ request.operation || 'BACKGROUND' }}", "operator": "NotEquals"}
_SPEC: Final = {"key": "{{ request.object.spec.hostNetwork || `false` }}", "operator": "Equals"}
_DENIED: Final = {"validate": {"deny": {"conditions": {"all": [{**_SPEC, "value": True}]}}}}
_OLD: Final = {"key": "{{ request.oldObject.metadata.labels.team || 'x' }}", "operator": "Equals"}
_SCOPED: Final = {"list": "request.object.spec.containers[].name", "elementScope": True}
_ALWAYS: Final = {"all": [{"key": "a", "operator": "Equals", "value": "a"}]}

RULES: Final[tuple[Json, ...]] = (
    _PATTERN,
    {**_PATTERN, "exclude": {"any": [{"resources": _LABELLED}]}},
    {**_PATTERN, "exclude": {"any": [{"resources": {"namespaces": ["other"]}}]}},
    {**_PATTERN, "exclude": {"resources": {"kinds": ["Deployment"]}}},
    {**_PATTERN, "match": {"any": [{"resources": _LABELLED}]}},
    _BASELINE,
    {**_BASELINE, "match": {"any": [{"resources": {"kinds": ["Pod", "Deployment"]}}]}},
    _DENIED,
    {**_DENIED, "preconditions": {"all": [{**_BY_OPERATION, "value": "DELETE"}]}},
    {**_DENIED, "preconditions": {"all": [{**_BY_OPERATION, "value": ["DELETE"]}]}},
    {"validate": {"deny": {"conditions": {"all": [{**_OLD, "value": "x"}]}}}},
    {**_DENIED, "preconditions": {"all": [{**_OLD, "value": "x"}]}},
    {"validate": {"foreach": [{**_SCOPED, "deny": {"conditions": _ALWAYS}}]}},
)
"""Rules of a ClusterPolicy."""


def _whole(kind: str, operation: str, **of: Any) -> Json:
    """The request of a Pod, or of a Deployment of such Pods."""
    pod = _pod(**of)
    pod["spec"]["hostNetwork"] = bool(of.get("host"))
    group = "" if kind == "Pod" else "apps"
    version = {"group": group, "version": "v1"}
    template = {"metadata": {"labels": {"app": "b"}}, "spec": pod["spec"]}
    obj = {
        **pod,
        "apiVersion": "v1" if kind == "Pod" else "apps/v1",
        "kind": kind,
        "spec": pod["spec"] if kind == "Pod" else {"template": template},
    }
    return {
        **_request(obj),
        "kind": {**version, "kind": kind},
        "resource": {**version, "resource": f"{kind.lower()}s"},
        "operation": operation,
        "object": None if operation == "DELETE" else obj,
        "oldObject": obj if operation == "DELETE" else None,
    }


def _cluster_policy(*rules: Json) -> Json:
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"admission": True, "rules": list(rules)},
    }


REQUESTS: Final = [
    _whole(kind, operation, host=host, metadata={"labels": labels})
    for kind in ("Pod", "Deployment")
    for operation in ("CREATE", "DELETE")
    for host in (False, True)
    for labels in ({"team": "a"}, {"team": "b"})
]


def _of_rule(kyverno: Oracle, policy: Json, **more: Any) -> list[str]:
    answer = kyverno.ask(policies=[policy], requests=REQUESTS, **more)
    theirs = ["skip"] * len(REQUESTS)
    for verdict in answer["verdicts"] or ():
        theirs[int(verdict["request"])] = verdict["status"]
    return theirs


def _of_converted(policy: Json, exceptions: Sequence[Json] = ()) -> list[str]:
    [(_, becomes)] = converted(policy)
    assert isinstance(becomes, dict), becomes
    evaluated = ValidatingPolicy(becomes)
    namespace = {"metadata": {"name": "shop", "labels": {}}}
    world = World(objects_known(()))
    excusing = [KyvernoException(one) for one in exceptions]
    return [
        evaluated.say(PolicyQuestion(one, namespace, world, excusing)).result for one in REQUESTS
    ]


@pytest.mark.parametrize("rule", RULES)
def test_what_a_rule_becomes_decides_as_the_rule_with_kyverno(kyverno: Oracle, rule: Json) -> None:
    policy = _cluster_policy({"name": "r", "match": _ABOUT, **rule})
    assert _of_converted(policy) == _of_rule(kyverno, policy)


@pytest.mark.parametrize("operations", [[], ["DELETE"], ["CREATE", "UPDATE"]])
@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.hostNetwork == false",
        "!has(object.spec) || object.spec.hostNetwork == false",
        "object == null || object.metadata.name == 'web'",
        "oldObject == null || oldObject.metadata.name == 'x'",
        "request.operation != 'DELETE'",
        "namespaceObject.metadata.name == 'shop'",
    ],
)
def test_a_rule_in_cel_is_about_deletions_as_with_kyverno(
    kyverno: Oracle, expression: str, operations: list[str]
) -> None:
    about = {"kinds": ["Pod"], **({"operations": operations} if operations else {})}
    cel = {"expressions": [{"expression": expression}]}
    rule = {"match": {"any": [{"resources": about}]}, "validate": {"cel": cel}}
    policy = _cluster_policy({"name": "r", **rule})
    # An error is a failure in a rule, and an error in a policy: both deny.
    ours = [{"error": "fail"}.get(result, result) for result in _of_converted(policy)]
    assert ours == _of_rule(kyverno, policy)


KEYS: Final = (
    *(
        f"{{{{ {path} }}}}"
        for path in (
            "request.object.metadata.labels.team",
            "request.object.metadata.labels.none.to_upper(@)",
            "request.object.spec.none.length(@)",
            "request.object.spec.none[].name",
            "request.object.spec.none | length(@)",
            "request.object.spec.containers[0].none",
            "request.object.spec.containers[5].name",
            "length(request.object.spec.containers)",
            "request.oldObject.metadata.labels.none",
            'request.object.metadata.labels.none || ""',  # names, as all that is in double quotes
            'request.object.metadata.labels.team || "a"',
            '"a b"',
        )
    ),
    "x{{ request.object.metadata.labels.none }}",
    ["{{ request.object.metadata.labels.none }}"],
    {"a": 1},
)
VALUES: Final = (None, "a", 1.5, [], ["a"], {}, "{{ request.object.spec.none }}")
OPERATORS: Final = ("Equals", "NotEquals", "AnyIn", "AllNotIn", "GreaterThan")


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_missing_key_is_an_error_whatever_it_is_compared_with(
    kyverno: Oracle, operator: str
) -> None:
    different = {}
    for key, value in product(KEYS, VALUES):
        condition = {"key": key, "operator": operator, "value": value}
        deny = {"validate": {"deny": {"conditions": {"all": [condition]}}}}
        policy = _cluster_policy({"name": "r", "match": _ABOUT, **deny})
        [(_, becomes)] = converted(policy)
        if isinstance(becomes, Unwritable):
            continue
        ours, theirs = _of_converted(policy), _of_rule(kyverno, policy)
        if ours != theirs:
            different[f"{key} {operator} {value}"] = f"{ours}, with Kyverno {theirs}"
    assert different == {}


_KINDS: Final = {"kinds": ["Pod", "Deployment"]}
_TEAM: Final = "{{ request.object.metadata.labels.team }}"
EXCEPTIONS: Final[tuple[Json, ...]] = (
    {"match": {"any": [{"resources": _KINDS}]}},
    {"match": {"any": [{"resources": _LABELLED}]}},
    {"match": {"all": [{"resources": _KINDS}, {"resources": _LABELLED}]}},
    {"match": {"any": [{"resources": {"namespaces": ["sh*"], "names": ["w*", "none"]}}]}},
    {"match": {"any": [{"resources": {"kinds": ["Pod"], "operations": ["CREATE"]}}]}},
    {"match": {"any": [{"resources": _KINDS, "subjects": [{"kind": "User", "name": "jane"}]}]}},
    {"match": {"any": [{"resources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}]}},
    {
        "match": {"any": [{"resources": _KINDS}]},
        "conditions": {"any": [{"key": _TEAM, "operator": "Equals", "value": "a"}]},
    },
)
"""Matches and conditions of older exceptions."""


@pytest.mark.parametrize("named", [["*"], ["r"], ["autogen-r"], ["autogen-*"], ["r", "autogen-r"]])
@pytest.mark.parametrize("spec", EXCEPTIONS)
@pytest.mark.parametrize("rule", [_PATTERN, _DENIED])
def test_what_an_older_exception_becomes_excuses_as_with_kyverno(
    kyverno: Oracle, rule: Json, spec: Json, named: list[str]
) -> None:
    policy = _cluster_policy({"name": "r", "match": _ABOUT, **rule})
    exception = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "shop"},
        "spec": {**spec, "exceptions": [{"policyName": "p", "ruleNames": named}]},
    }
    becomes = converted_exceptions(exception, [policy])
    assert _of_converted(policy, becomes) == _of_rule(kyverno, policy, exceptions=[exception])


_WEB: Final = {"matchConditions": [{"name": "a", "expression": "object.metadata.name == 'web'"}]}
_IN_ERROR: Final = {
    "matchConditions": [{"name": "a", "expression": "object.metadata.labels.team == 'a'"}]
}
EXCUSING: Final[tuple[tuple[Json, ...], ...]] = (
    ({},),
    (_WEB,),
    (_IN_ERROR,),
    (_IN_ERROR, {}),
    ({}, _IN_ERROR),
    ({**_WEB, "reportResult": "pass"},),
    ({"reportResult": "pass"}, {"reportResult": "skip"}),
    ({"images": ["nginx"]},),
    ({**_WEB, "images": ["nginx"]}, {"allowedValues": ["web"]}),
    ({"images": ["nginx"]}, _WEB),
    ({"policyRefs": [{"name": "p", "kind": "NamespacedValidatingPolicy"}]},),
)
"""Exceptions of policies in CEL."""


@pytest.mark.parametrize("specs", EXCUSING)
def test_exceptions_of_policies_in_cel_excuse_as_with_kyverno(
    kyverno: Oracle, specs: tuple[Json, ...]
) -> None:
    policy = _policy(
        "object.spec.containers.all(c, c.image in exceptions.allowedImages)"
        " || object.metadata.name in exceptions.allowedValues"
    )
    named = {"policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}]}
    exceptions = [
        {
            "apiVersion": "policies.kyverno.io/v1beta1",
            "kind": "PolicyException",
            "metadata": {"name": f"e{number}", "namespace": "shop"},
            "spec": named | spec,
        }
        for number, spec in enumerate(specs)
    ]
    requests = [_request(one) for one in OBJECTS]
    answer = kyverno.ask(policies=[policy], requests=requests, excusing=exceptions)
    excusing = [KyvernoException(one) for one in exceptions]
    namespace = {"metadata": {"name": "shop", "labels": {}}}
    evaluated, world = ValidatingPolicy(policy), World(objects_known(()))
    assert [
        evaluated.say(PolicyQuestion(one, namespace, world, excusing)).result for one in requests
    ] == [one["status"] for one in answer["verdicts"]]

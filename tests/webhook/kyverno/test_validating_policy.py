"""Verdicts of a ValidatingPolicy of Kyverno, and policies that cannot be used."""

import gzip
from base64 import b64encode

import pytest

from tests.webhook.kyverno.making import CERTIFICATE, CERTIFICATE_REQUEST
from webhook.kyverno.kinds import InvalidPolicy
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.policy_exception import KyvernoException
from webhook.kyverno.validating_policy import KyvernoVerdict, ValidatingPolicy
from webhook.kyverno.world import World, objects_known

NOW_NS = 1_800_000_000 * 10**9
NOTHING = World(objects_known(()), NOW_NS)
PASSED = KyvernoVerdict("pass")
IN_ERROR = "validations[0].expression resulted in error"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}


def policy(expression: str, **more: object) -> ValidatingPolicy:
    spec = {
        "matchConstraints": {"resourceRules": [PODS]},
        "validations": [{"expression": expression, "message": "no"}],
        **more,
    }
    return ValidatingPolicy({"kind": "ValidatingPolicy", "metadata": {"name": "p"}, "spec": spec})


def request(image: str = "nginx", kind: str = "Pod", **spec: object) -> dict:
    item = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": image}], **spec},
    }
    return {
        "kind": {"group": "", "version": "v1", "kind": kind},
        "resource": {"group": "", "version": "v1", "resource": f"{kind.lower()}s"},
        "operation": "CREATE",
        "namespace": "shop",
        "name": "x",
        "object": item,
    }


def verdict_of(
    expression: str, image: str = "nginx", world: World = NOTHING, **more: object
) -> KyvernoVerdict:
    return policy(expression, **more).say(PolicyQuestion(request(image), None, world))


def test_the_first_validation_that_does_not_hold_is_reported() -> None:
    assert verdict_of("object.spec.containers.size() == 1") == KyvernoVerdict("pass")
    assert verdict_of("false") == KyvernoVerdict("fail", "no")
    two = [{"expression": "true"}, {"expression": "1 > 2"}, {"expression": "false"}]
    failed = verdict_of("true", validations=two)
    assert failed == KyvernoVerdict("fail", "CEL expression validation failed at index 1")


def test_a_message_is_computed_and_an_error_in_it_is_the_message() -> None:
    def one(message: str) -> list[dict]:
        return [{"expression": "false", "messageExpression": message, "message": "plain"}]

    assert verdict_of("true", validations=one("'x' + object.metadata.name")).message == "xx"
    computed = verdict_of("true", validations=one("string(object.nothing)")).message
    assert computed == "failed to evaluate message expression: no such key: nothing"


def test_what_it_is_not_about_is_skipped() -> None:
    about = policy("false")
    assert about.say(PolicyQuestion(request(kind="Service"), None, NOTHING)) == KyvernoVerdict(
        "skip"
    )
    never = [{"name": "never", "expression": "object.metadata.name == 'other'"}]
    assert verdict_of("false", matchConditions=never) == KyvernoVerdict("skip")


def test_without_constraints_it_is_about_nothing() -> None:
    assert verdict_of("false", matchConstraints={}) == KyvernoVerdict("skip")


def test_rules_that_no_api_server_takes_are_named() -> None:
    rule = PODS | {"scope": "Everywhere"}
    with pytest.raises(InvalidPolicy, match=r"spec\.matchConstraints\.resourceRules\[0\]\.scope"):
        policy("true", matchConstraints={"resourceRules": [rule]})


def test_an_error_is_an_error_and_in_a_condition_by_the_failure_policy() -> None:
    text = f"{IN_ERROR}: no such key: nothing"
    assert verdict_of("object.spec.nothing == 1") == KyvernoVerdict("error", text)
    broken = [{"name": "broken", "expression": "object.nothing == 1"}]
    assert verdict_of("true", matchConditions=broken).result == "error"
    assert verdict_of("true", matchConditions=broken, failurePolicy="Ignore") == KyvernoVerdict(
        "skip"
    )


@pytest.mark.parametrize(
    ("expression", "image"),
    [
        ("image(object.spec.containers[0].image).registry() == 'ghcr.io'", "ghcr.io/a/b:1"),
        ("image(object.spec.containers[0].image).registry() == 'index.docker.io'", "nginx"),
        ("image(object.spec.containers[0].image).repository() == 'library/nginx'", "nginx:1"),
        ("image(object.spec.containers[0].image).tag() == 'latest'", "docker.io/nginx"),
        ("image(object.spec.containers[0].image).identifier() == '5000'", "nginx:5000"),
        (
            "image(object.spec.containers[0].image).containsDigest()",
            "localhost:5000/web@sha256:" + "a" * 64,
        ),
        ("isImage(object.spec.containers[0].image)", "a/b"),
        ("!isImage(object.spec.containers[0].image)", "a b"),
        ("images.containers.all(i, i.startsWith('nginx')) && images.initContainers == []", "nginx"),
        ("sha256('') == 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'", "x"),
        ("sha1('').size() == 40 && md5('').size() == 32", "x"),
    ],
)
def test_images_and_digests_are_read(expression: str, image: str) -> None:
    assert verdict_of(expression, image) == KyvernoVerdict("pass")


def config_map(name: str, labels: dict | None = None, **data: str) -> dict:
    metadata = {"name": name, "namespace": "shop", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_objects_and_images_are_those_that_are_given() -> None:
    world = World(
        objects_known([config_map("one", a="b")]),
        NOW_NS,
        images={"docker.io/redis:6": {"config": {"created": "2020-05-01T00:00:00Z"}}},
    )
    got = "resource.Get('v1', 'configmaps', 'shop', 'one').data.a == 'b'"
    assert verdict_of(got, world=world) == KyvernoVerdict("pass")
    listed = "resource.List('v1', 'configmaps', 'shop').items.size() == 1"
    assert verdict_of(listed, world=world) == KyvernoVerdict("pass")
    old = (
        "timestamp(image.GetMetadata(object.spec.containers[0].image).config.created)"
        " < time.now() - duration('24h')"
    )
    assert verdict_of(old, "redis:6", world) == KyvernoVerdict("pass")
    assert (
        verdict_of(
            "dyn(resource.get('v1', 'configmaps', 'shop', 'two')) == null", world=world
        ).result
        == "pass"
    )
    reviewed = verdict_of(old, "redis:7", world)
    assert reviewed.missing == ('no registry is asked about the image "redis:7"',)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"validations": []}, "spec.validations is empty"),
        ({"validations": [{"message": "x"}]}, "spec.validations[0].expression is missing"),
        ({"validations": [{"expression": "'x'"}]}, "must evaluate to bool but gives string"),
        ({"validations": [{"expression": "nothing"}]}, "undeclared reference to 'nothing'"),
        ({"variables": [{"name": "a", "expression": "("}]}, "spec.variables[0].expression"),
        ({"matchConditions": [{"name": "a"}]}, "spec.matchConditions[0].expression is missing"),
        ({"validations": "x"}, "spec.validations is not a list of objects"),
        ({"matchConditions": [1]}, "spec.matchConditions is not a list of objects"),
        ({"variables": [{"expression": "1"}]}, "spec.variables[0].name is missing"),
        ({"matchConstraints": [1]}, "matchConstraints is not an object"),
        ({"matchConstraints": {"resourceRules": {"a": 1}}}, "spec.resourceRules is not a list"),
        ({"autogen": {"podControllers": 1}}, "podControllers is not an object"),
        ({"evaluation": {"mode": "Envoy"}}, "spec.evaluation.mode Envoy: it is for requests of"),
        ({"evaluation": {"mode": "Other"}}, "mode Other: it is neither Kubernetes nor JSON"),
        ({"validationActions": ["Refuse"]}, "spec.validationActions: none but Deny, Warn, Audit"),
        ({"validations": [{"expression": "random() == 'a'"}]}, "a decision must be the same"),
        ({"validations": [{"expression": "cel.bind(a, 1, b == 1)"}]}, "reference to 'b'"),
        ({"validations": [{"expression": "cel.bind('a', 1, true)"}]}, "must be simple identifiers"),
        ({"validations": [{"expression": "gzip.compress('a') == b''"}]}, "those of Go's"),
        (
            {"validations": [{"expression": "random.random() == 'a'"}]},
            "a decision must be the same",
        ),
        (
            {"validations": [{"expression": "resource.Post('v1', 'pods', {}) == null"}]},
            "a review writes nothing",
        ),
        *(
            (
                {"validations": [{"expression": of_dyn}]},
                "must evaluate to bool but gives dyn: compare",
            )
            for of_dyn in (
                "object.spec.hostNetwork",
                "dyn(true)",
                "has(object.a) ? object.a : false",
            )
        ),
        (
            {"matchConditions": [{"name": "a", "expression": "object.spec.hostNetwork"}]},
            "spec.matchConditions[0].expression: must evaluate to bool but gives dyn",
        ),
        (
            {"validations": [{"expression": "false", "messageExpression": "object.kind"}]},
            "spec.validations[0].messageExpression: must evaluate to string but gives dyn: write",
        ),
        *(
            (
                {"auditAnnotations": [{"key": "a", "valueExpression": expression}]},
                f"valueExpression: must evaluate to string or null but gives {result}",
            )
            for expression, result in (("object.kind", "dyn"), ("1", "int"))
        ),
    ],
)
def test_what_cannot_be_used_is_named(spec: dict, message: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        policy("true", **spec)
    assert message in str(refused.value)


def test_a_policy_of_a_namespace_is_about_that_namespace() -> None:
    document = {
        "kind": "NamespacedValidatingPolicy",
        "metadata": {"name": "p", "namespace": "other"},
        "spec": {
            "matchConstraints": {"resourceRules": [PODS]},
            "validations": [{"expression": "false"}],
        },
    }
    assert ValidatingPolicy(document).say(
        PolicyQuestion(request(), None, NOTHING)
    ) == KyvernoVerdict("skip")
    document["metadata"]["namespace"] = "shop"
    assert ValidatingPolicy(document).say(PolicyQuestion(request(), None, NOTHING)).result == "fail"


def exception(**spec: object) -> KyvernoException:
    given = {"policyRefs": [{"kind": "ValidatingPolicy", "name": "p"}], **spec}
    return KyvernoException({"metadata": {"name": "e"}, "spec": given})


def excused(expression: str, *exceptions: KyvernoException, **more: object) -> KyvernoVerdict:
    return policy(expression, **more).say(PolicyQuestion(request(), None, NOTHING, exceptions))


def test_an_exception_excuses_what_its_conditions_are_about() -> None:
    def when(expression: str) -> dict:
        return {"matchConditions": [{"name": "c", "expression": expression}]}

    said_of_it = excused("false", exception())
    assert (said_of_it.result, said_of_it.message) == ("skip", "excused by e")
    assert excused("false", exception(reportResult="pass")).result == "pass"
    assert excused("false", exception(**when("object.metadata.name == 'x'"))).result == "skip"
    assert excused("false", exception(**when("object.metadata.name == 'y'"))).result == "fail"
    broken = exception(**when("object.nothing == 1"))
    assert excused("false", broken).result == "error"
    assert excused("false", broken, failurePolicy="Ignore").result == "fail"


def test_an_exception_of_other_policies_or_of_the_past_excuses_nothing() -> None:
    other = [{"kind": "ValidatingPolicy", "name": "other"}]
    assert excused("false", exception(policyRefs=other)).result == "fail"
    namesake = [{"kind": "ImageValidatingPolicy", "name": "p"}]
    assert excused("false", exception(policyRefs=namesake)).result == "fail"
    assert excused("false", exception(expiresAt="2020-01-01T00:00:00Z")).result == "fail"
    assert excused("false", exception(expiresAt="2999-01-01T00:00:00Z")).result == "skip"


def test_what_exceptions_allow_is_read_by_the_policy() -> None:
    allowed = "object.spec.containers.all(c, c.image in exceptions.allowedImages)"
    assert excused(allowed).result == "fail"
    assert excused(allowed, exception(images=["nginx"])).result == "pass"
    assert excused(allowed, exception(images=["redis"])).result == "fail"
    # One that allows nothing excuses all, whatever others allow, and whatever is wrong with them.
    broken = exception(matchConditions=[{"name": "c", "expression": "object.nothing == 1"}])
    for others in ([exception(images=["redis"])], [broken]):
        assert excused(allowed, exception(), *others).result == "skip"
    values = "'a' in exceptions.allowedValues"
    assert excused(values, exception(allowedValues=["a"])).result == "pass"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"policyRefs": []}, "spec.policyRefs is empty"),
        ({"images": "nginx"}, "spec.images is not a list of strings"),
        ({"allowedValues": [1]}, "spec.allowedValues is not a list of strings"),
        ({"reportResult": "fail"}, "spec.reportResult: 'fail' is neither skip nor pass"),
        ({"expiresAt": "tomorrow"}, "spec.expiresAt: 'tomorrow' is not a time"),
        ({"matchConditions": [{"expression": "1"}]}, "must evaluate to bool but gives int"),
    ],
)
def test_an_exception_that_cannot_be_used_says_why(spec: dict, message: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        exception(**spec)
    assert message in str(refused.value)


def test_an_object_that_a_request_has_not_is_an_empty_map() -> None:
    without_old = "!has(oldObject.metadata) && oldObject == {} && request.oldObject == null"
    assert verdict_of(without_old).result == "pass"
    deletion = {**request(), "operation": "DELETE", "object": None, "oldObject": {"kind": "Pod"}}
    deleted = policy("!has(object.kind) && oldObject.kind == 'Pod'")
    assert deleted.say(PolicyQuestion(deletion, None, NOTHING)).result == "pass"


@pytest.mark.parametrize("expression", ["oldObject == null", "null != object || true"])
def test_a_comparison_of_an_object_with_null_is_warned_of(expression: str) -> None:
    [note] = policy(expression).notes
    assert "a missing object is an empty map in Kyverno" in note
    for other in ("request.oldObject == null", "object.spec == null", "null == object.spec"):
        assert policy(other).notes == ()


def test_json_is_read() -> None:
    assert verdict_of("json.unmarshal('{\"a\": [1]}').a[0] == 1").result == "pass"
    for text in ("{", "NaN"):
        wrong = verdict_of(f"json.unmarshal('{text}') == 1")
        assert wrong.result == "error"
        assert "resulted in error: json.unmarshal: " in wrong.message


@pytest.mark.parametrize(
    "expression",
    [
        "resource.List('v1', 'configmaps', 'shop', {'a': 'b'}).items.size() == 1",
        "resource.list('v1', 'configmaps', '').items.size() == 2",
        "resource.get(resource.toGVR('v1', 'ConfigMap'), 'shop', 'one').data.a == 'b'",
        "resource.List(resource.ToGVR('v1', 'ConfigMap'), 'shop').items.size() == 2",
        "dyn(resource.Get('v1', 'configmaps', 'other', 'one')) == null",
    ],
)
def test_objects_are_asked_for_by_both_spellings(expression: str) -> None:
    given = [config_map("one", a="b"), config_map("two", {"a": "b"})]
    assert verdict_of(expression, world=World(objects_known(given))).result == "pass"


def test_what_is_not_given_is_reported_and_an_error_unless_another_operand_decides() -> None:
    expression = "resource.Get('v1', 'secrets', 'shop', 'one').data.a == 'b'"
    verdict = verdict_of(expression)
    assert verdict.result == "error"
    assert verdict.missing == ('secrets "one" (v1) is not among what is given or synced',)
    assert verdict_of(f"true || {expression}") == KyvernoVerdict("pass")
    whole = World(objects_known(()), is_whole=True)
    assert (
        verdict_of("dyn(resource.Get('v1', 'secrets', 'shop', 'one')) == null", world=whole).result
        == "pass"
    )
    for call in ("globalContext.Get('x')", "globalContext.get('x', 'y')"):
        assert verdict_of(f"{call} == null", world=whole).result == "pass"
    for one in ("globalContext.Get('x') == 1", "http.Get('https://a').statusCode == 200"):
        assert verdict_of(one).missing


def test_a_policy_in_a_namespace_asks_for_that_namespace_alone() -> None:
    def one(expression: str) -> ValidatingPolicy:
        return ValidatingPolicy(
            {
                "kind": "NamespacedValidatingPolicy",
                "metadata": {"name": "p", "namespace": "shop"},
                "spec": {
                    "matchConstraints": {"resourceRules": [PODS]},
                    "validations": [{"expression": expression}],
                },
            }
        )

    world = World(objects_known([config_map("one")]))
    for expression in (
        "dyn(resource.Get('v1', 'configmaps', 'one')) != null",
        "resource.List('v1', 'configmaps').items.size() == 1",
    ):
        assert one(expression).say(PolicyQuestion(request(), None, world)).result == "pass"
    with pytest.raises(InvalidPolicy, match="no matching overload"):
        one("dyn(resource.Get('v1', 'configmaps', 'other', 'one')) != null")
    entries = World(objects_known(()), entries={"x": 1})
    verdict = one("globalContext.Get('x') == 1").say(PolicyQuestion(request(), None, entries))
    assert verdict.result == "error"
    assert "a policy of a namespace may not read the global context" in verdict.message


def decompress(data: bytes) -> str:
    """The expression of the decompressed data."""
    return f"gzip.decompress(base64.decode('{b64encode(data).decode()}'))"


def decode(pem: str) -> str:
    """The expression of the decoded certificate."""
    return f"x509.decode('''{pem}''')"


ZIPPED = gzip.compress("é: hi".encode(), mtime=0)


def headed(flags: int, header: bytes) -> bytes:
    """The compressed data with more in its header."""
    return ZIPPED[:3] + bytes([flags]) + ZIPPED[4:10] + header + ZIPPED[10:]


NAMED = headed(0x1C, b"\x02\x00ab" + 2 * (511 * b"n" + b"\0"))
"""With an extra field, and a name and a comment that are as long as Go reads them."""

BROKEN = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    "expression",
    [
        "parseServiceAccount('system:serviceaccount:shop:me').Namespace == 'shop'",
        "user.parseServiceAccount('ada').Name == ''",
        "!has(parseServiceAccount('ada').Name) && has(parseServiceAccount('system:serviceaccount:a:b').Name)",
        "parseServiceAccount('ada').?Name.orValue('none') == 'none'",
        "parseServiceAccount('system:serviceaccount:a:b').?Name.orValue('none') == 'b'",
        "type(parseServiceAccount('ada')) != map",
        "parseServiceAccount('ada') == parseServiceAccount('eve')",
        'json.encode(parseServiceAccount(\'system:serviceaccount:a:b\')) == \'{"Name":"b","Namespace":"a"}\'',
        "json.marshal({'b': '', 'a': '<'}) == '{\"a\":\"\\\\u003c\",\"b\":\"\"}'",
        "yaml.parse('a: [1]').a[0] == 1.0",
        "hash.md5('') == md5('')",
        "math.round(2.345, 2) == 2.35 && math.round(-0.5, 0) == -1.0",
        "math.ceil(1.2) == 2.0 && math.floor(-1.2) == -2.0 && math.trunc(-1.7) == -1.0",
        "math.round(2.5) == 3.0 && math.round(-0.5) == -1.0 && math.round(0.49999999999999994) == 0.0",
        "math.abs(-2) == 2 && math.abs(-2.5) == 2.5 && math.abs(2u) == 2u",
        "math.sign(-9) == -1 && math.sign(2.5) == 1.0 && math.sign(0u) == 0u",
        "math.sqrt(81) == 9.0 && math.isNaN(math.sqrt(-1.0)) && math.isInf(1.0 / 0.0)",
        "math.isFinite(1.0) && !math.isFinite(-1.0 / 0.0)",
        "math.bitAnd(6, 3) == 2 && math.bitOr(6u, 3u) == 7u && math.bitXor(6, 3) == 5",
        "math.bitNot(1) == -2 && math.bitNot(0u) == 18446744073709551615u",
        "math.bitShiftLeft(1, 3) == 8 && math.bitShiftRight(-1024, 3) == 2305843009213693824",
        "math.bitShiftLeft(1u, 64) == 0u && math.bitShiftLeft(1, 63) < 0",
        "math.greatest(1, 3, 2) == 3 && math.least([2, 1]) == 1 && math.greatest(-1) == -1",
        "math.least(1, 0.5) == 0.5 && math.greatest(1u, 2, 3, 4, 5, 6, 7.5, 8) == 8",
        f"math.least({', '.join(map(str, range(9, 41)))}) == 9",
        "base64.decode('aGk=') == b'hi' && base64.decode('aGk') == b'hi'",
        "string(base64.decode(base64.encode(bytes('é')))) == 'é'",
        "request.object.metadata.name == object.metadata.name && request.oldObject == null",
        "listObjToMap([{'n': 'a'}], [{'v': 1}], 'n', 'v') == {'a': 1}",
        "transform.listObjToMap([{'n': 'a'}], [{'v': 1}], 'n', 'v') == {'a': 1}",
        f"{decompress(ZIPPED)} == 'é: hi' && {decompress(ZIPPED + ZIPPED)} == 'é: hié: hi'",
        f"{decompress(gzip.compress(b'', mtime=0))} == '' && {decompress(NAMED)} == 'é: hi'",
        f"{decode(CERTIFICATE)}.Issuer.CommonName == 'ca' && !has({decode(CERTIFICATE)}.Subject)",
        f"{decode(CERTIFICATE)}.DNSNames == ['a.example'] && {decode(CERTIFICATE)}.IsCA",
        f"{decode(CERTIFICATE)}.NotAfter == '2027-01-01T00:00:00Z'",
        f"{decode(CERTIFICATE)}.SerialNumber == 7.0 && {decode(CERTIFICATE)}.PublicKey.E == 65537.0",
        f"{decode(CERTIFICATE_REQUEST)}.Subject.CommonName == 'web'",
        "parseImageReference('nginx').tag() == 'latest'",
        r"regex.replace('foo bar', '(fo)o (ba)r', r'\2 \1 \\') == 'ba fo \\'",
        "regex.replace('banana', 'a', 'x', 2) == 'bxnxna' && regex.replace('a', 'a', 'b', 0) == 'a'",
        r"regex.extract('é item-A', r'item-(\w+)') == optional.of('A')",
        "regex.extract('hello', 'good').hasValue() == false",
        "regex.extractAll('id:1, id:2', 'id:[0-9]') == ['id:1', 'id:2']",
        "time.toCron(timestamp('2026-11-29T08:05:00Z')) == '5 8 29 11 0'",
        (
            "time.truncate(timestamp('2026-11-29T08:05:00Z'), duration('1h'))"
            " == timestamp('2026-11-29T08:00:00Z')"
        ),
    ],
)
def test_pure_functions_of_kyverno_are_there(expression: str) -> None:
    assert verdict_of(expression) == KyvernoVerdict("pass")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("math.abs(-9223372036854775807 - 1) == 0", "integer overflow"),
        ("math.bitShiftLeft(1, -1) == 0", "math.bitShiftLeft() negative offset: -1"),
        ("math.greatest([]) == 0", "math.greatest(list) argument must not be empty"),
        ("math.least(dyn('a'), 1) == 0", "no such overload"),
        ("base64.decode('!') == b''", "illegal base64 data"),
        (f"{decompress(b'hi')} == ''", "gzip.decompress: "),
        (f"{decompress(b'')} == ''", "gzip.decompress: empty"),
        (f"{decompress(ZIPPED[:-1])} == ''", "gzip.decompress: "),
        (f"{decompress(ZIPPED + ZIPPED[:-1])} == ''", "gzip.decompress: "),
        (f"{decompress(ZIPPED + b'hi')} == ''", "gzip.decompress: "),
        (f"{decompress(ZIPPED + bytes(1))} == ''", "gzip.decompress: "),
        (f"{decompress(ZIPPED + bytes(20))} == ''", "gzip.decompress: "),
        (f"{decompress(ZIPPED + bytes(3) + ZIPPED)} == ''", "gzip.decompress: "),
        (f"{decompress(headed(0x08, bytes([110]) * 512 + bytes(1)))} == ''", "invalid header"),
        (f"{decompress(ZIPPED + headed(0x10, bytes([110]) * 512 + bytes(1)))} == ''", "invalid "),
        (f"{decompress(gzip.compress(bytes(4_000_000), mtime=0))} == ''", "or more than "),
        (f"{decode('hi')} == null", "failed to decode PEM block"),
        (f"{decode(BROKEN)} == null", "x509: "),
        (
            f"{decode(CERTIFICATE.replace('CERTIFICATE', 'KEY'))} == null",
            "PEM block neither contains",
        ),
        (r"regex.replace('a', '(.)', r'\2') == ''", "replacement string references group 2 of 1"),
        (r"regex.replace('a', '(.)', r'\v') == ''", "invalid replacement string: "),
        ("regex.extract('a@b', '(.*)@(.*)').hasValue()", "more than one capturing group"),
        ("regex.replace('a', '(', 'b') == ''", "given regex is invalid: "),
    ],
)
def test_what_a_function_cannot_take_is_an_error(expression: str, message: str) -> None:
    verdict = verdict_of(expression)
    assert verdict.result == "error"
    assert message in verdict.message


def test_annotations_are_reported_and_one_in_error_makes_an_error() -> None:
    of_name = [{"key": "who", "valueExpression": "string(object.metadata.name)"}]
    assert verdict_of("true", auditAnnotations=of_name).annotations == (("who", "x"),)
    assert verdict_of("false", auditAnnotations=of_name).annotations == (("who", "x"),)
    for expression in ("string(object.nothing)", "null"):
        wrong = [{"key": "who", "valueExpression": expression}]
        assert verdict_of("true", auditAnnotations=wrong).result == "error"


def test_mode_json_reads_documents() -> None:
    of_json = policy("object.a == 1", evaluation={"mode": "JSON"}, matchConstraints={})
    question = PolicyQuestion({}, None, NOTHING)
    assert of_json.verdict_of_json({"a": 1}, question).result == "pass"
    assert of_json.verdict_of_json({"a": 2}, question) == KyvernoVerdict("fail", "no")


def test_values_of_a_secret_are_left_out_of_errors() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "x", "namespace": "shop"},
        "data": {"password": "aHVudGVyMg=="},
    }
    reviewed = {**request(kind="Secret"), "object": secret}
    rule = {"resourceRules": [PODS | {"resources": ["secrets"]}]}
    about = policy("object.data[object.data.password] == 'a'", matchConstraints=rule)
    verdict = about.say(PolicyQuestion(reviewed, None, NOTHING))
    assert verdict.result == "error"
    assert "aHVudGVyMg==" not in verdict.message


OTHERS_FAIL = "CEL expression validation failed at index 0"


def when(*conditions: str) -> dict:
    listed = [{"name": f"c{at}", "expression": text} for at, text in enumerate(conditions)]
    return {"matchConditions": listed, "validations": [{"expression": "false"}]}


@pytest.mark.parametrize(
    ("spec", "verdict"),
    [
        # The first that does not hold is the verdict, whatever is wrong with those after it.
        (
            {"validations": [{"expression": "false"}, {"expression": "object.none == 1"}]},
            KyvernoVerdict("fail", OTHERS_FAIL),
        ),
        (
            {"validations": [{"expression": "object.none == 1"}, {"expression": "false"}]},
            KyvernoVerdict("error", f"{IN_ERROR}: no such key: none"),
        ),
        (
            {"validations": [{"expression": "false", "messageExpression": "''"}]},
            KyvernoVerdict("fail", OTHERS_FAIL),
        ),
        (
            {
                "validations": [
                    {"expression": "false", "messageExpression": "string(variables.name)"}
                ]
            },
            KyvernoVerdict("fail", "x"),
        ),
        ({"validations": [{"expression": "variables.allowed.size() == 2"}]}, PASSED),
        ({"validations": [{"expression": "variables.params.metadata.name == 'x'"}]}, PASSED),
        ({"validations": [{"expression": "request.operation == 'CREATE'"}]}, PASSED),
        ({"validations": [{"expression": "request.namespace == 'shop'"}]}, PASSED),
        ({"validations": [{"expression": "images.containers == ['nginx']"}]}, PASSED),
        (
            {"validations": [{"expression": "variables.bad == 1 || variables.allowed == []"}]},
            KyvernoVerdict(
                "error",
                f'{IN_ERROR}: composited variable "bad" fails to evaluate: division by zero',
            ),
        ),
        ({"validations": [{"expression": "variables.bad == 1 || true"}]}, PASSED),
        ({"validations": [{"expression": "true || variables.bad == 1"}]}, PASSED),
        (when("object.metadata.name == 'x'"), KyvernoVerdict("fail", OTHERS_FAIL)),
        (when("object.metadata.name == 'y'"), KyvernoVerdict("skip")),
        (when("request.namespace == 'other'"), KyvernoVerdict("skip")),
        (when("object.none == 1"), KyvernoVerdict("error", "expression 'object.none == 1'")),
        # One that is false decides, whatever is wrong with the others.
        (when("object.none == 1", "request.operation == 'DELETE'"), KyvernoVerdict("skip")),
        (when("object.none == 1") | {"failurePolicy": "Ignore"}, KyvernoVerdict("skip")),
    ],
)
@pytest.mark.parametrize("is_annotated", [False, True])
def test_validations_say_the_same_together_and_one_by_one(
    spec: dict, verdict: KyvernoVerdict, is_annotated: bool
) -> None:
    """Validations of a policy with annotations are never evaluated by one function."""
    variables = [
        {"name": "name", "expression": "object.metadata.name"},
        {"name": "params", "expression": "object"},
        {"name": "allowed", "expression": "['a', 'b']"},
        {"name": "bad", "expression": "1 / (variables.allowed.size() - 2)"},
    ]
    if "params" not in str(spec):
        del variables[1]
    more = {"variables": variables, **spec}
    if is_annotated:
        more["auditAnnotations"] = [{"key": "k", "valueExpression": "''"}]
    found = verdict_of("true", **more)
    assert found.result == verdict.result
    assert found.message.startswith(verdict.message)


@pytest.mark.parametrize(
    ("spec", "result"),
    [
        ({}, "pass"),
        ({"validations": [{"expression": "object.kind == 'Secret'"}]}, "fail"),
        (when("object.metadata.name == 'x'"), "fail"),
        (when("object.metadata.name == 'y'"), "skip"),
        # What is in error, or read from elsewhere, needs all that a question has.
        (when("object.none == 1"), None),
        (when("request.namespace == 'shop'"), None),
        ({"validations": [{"expression": "object.none == 1"}]}, None),
        ({"validations": [{"expression": "images.containers == []"}]}, None),
        ({"auditAnnotations": [{"key": "k", "valueExpression": "''"}]}, None),
    ],
)
def test_objects_alone_decide_where_nothing_else_is_read(spec: dict, result: str | None) -> None:
    question = PolicyQuestion(request(), None, NOTHING)
    (rule,) = policy("true", **spec).rules_for(question.resource)
    found = rule.by_objects("CREATE", question.objects, question.meter)
    assert (found and found.result) == result
    judged = rule.judge(question.given_with_images(""), question, ())
    assert found in {None, judged}


def test_what_a_later_validation_asks_for_is_not_missing() -> None:
    world = World(objects_known(()), NOW_NS)
    asks = "dyn(resource.Get('v1', 'configmaps', 'shop', 'a')) != null"
    both = [{"expression": "false"}, {"expression": asks}]
    assert verdict_of("true", world=world, validations=both) == KyvernoVerdict("fail", OTHERS_FAIL)
    assert world.missing == []
    assert verdict_of("true", world=world, validations=both[1:]).missing
    assert len(world.missing) == 1


def test_a_document_has_no_operation() -> None:
    question = PolicyQuestion({}, None, NOTHING)
    of_json = policy("request.operation == ''", evaluation={"mode": "JSON"})
    assert of_json.verdict_of_json({}, question).result == "error"


def test_what_was_read_of_a_request_is_not_changed_by_exceptions() -> None:
    """A policy with an exception is question the same question before one without."""
    question = PolicyQuestion(request(), None, NOTHING, [exception(allowedValues=["y"])])
    allowing = policy("'y' in exceptions.allowedValues")
    assert allowing.say(question).result == "pass"
    other = policy("'y' in exceptions.allowedValues")
    other.name = "other"
    assert other.say(question).result == "fail"

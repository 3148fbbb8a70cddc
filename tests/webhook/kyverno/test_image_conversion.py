"""Kyverno's rules about signed images: what they become says the same of signed images."""

import asyncio
import copy
import json

import pytest

from tests.policy_library import POLICIES
from tests.webhook.images.signing import (
    ISSUER,
    NOW,
    SUBJECT,
    Authority,
    bundle,
    envelope,
    new_key,
    pem,
    public_pem,
    simply_signed,
    statement,
)
from tests.webhook.images.verifying import IMAGE, PROVENANCE, World
from webhook import Policies
from webhook.exceptions.globs import globs_overlap
from webhook.images.answer import answer_about
from webhook.images.layout import ImageLayout
from webhook.images.policy import read_policy
from webhook.kyverno.image_conversion import converted_policy, converted_rules
from webhook.kyverno.patterns import Unwritable
from webhook.registry.reference import parse_reference

TEMPLATE = POLICIES / "supply-chain" / "signed-images" / "template.yaml"
NO_LOG = {"rekor": {"ignoreTlog": True}}
GLOBS = ["registry.example/*"]
PODS = {"any": [{"resources": {"kinds": ["Pod"]}}]}
CONTAINERS = "images.containers.map(image, verifyImageSignatures(image, [{}])).all(e, e {})"


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "images")


def keyed(*keys):
    return {"keys": {"publicKeys": "".join(public_pem(one).decode() for one in keys), **NO_LOG}}


def rule(**entry):
    """A rule about every image of the registry."""
    return {
        "name": "signed",
        "match": PODS,
        "verifyImages": [{"imageReferences": GLOBS, **entry}],
    }


def cluster_policy(*rules, kind="ClusterPolicy", namespace="", **spec):
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "old"} | ({"namespace": namespace} if namespace else {}),
        "spec": {"rules": list(rules), **spec},
    }


def sets(*given):
    return cluster_policy(rule(attestors=[{"entries": list(one)} for one in given]))


def image_policy(expression, *attestors, attestations=(), kind="ImageValidatingPolicy", **spec):
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "new"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["pods"],
                    }
                ]
            },
            "matchImageReferences": [{"glob": "registry.example/*"}],
            "attestors": list(attestors),
            "attestations": list(attestations),
            "validations": [{"expression": expression}],
            **spec,
        },
    }


def attestor(name, key):
    key_ = {"data": public_pem(key).decode()}
    return {"name": name, "cosign": {"key": key_, "ctlog": {"insecureIgnoreTlog": True}}}


def images_of(document):
    """Returns the converted form of a document's only rule; raises Unwritable."""
    if document["kind"].endswith("ImageValidatingPolicy"):
        return converted_policy(document)
    [(_, made)] = converted_rules(document)
    if isinstance(made, Unwritable):
        raise made
    return made


def is_verified(world, document):
    """Whether the policies that it becomes, read as the provider reads them, verify the image."""
    root = json.dumps(world.sigstore.root()).encode()
    policies = [read_policy(one, lambda _: root) for one in images_of(document).documents[:-1]]
    answer = answer_about(
        ImageLayout(world.directory), parse_reference(IMAGE), policies, NOW.timestamp()
    )
    return asyncio.run(answer).is_verified


def sign(world, *keys):
    world.layout.sign_simply(world.image, [simply_signed(key, world.image) for key in keys])


def attest(world, key, predicate_type=PROVENANCE):
    sealed, _, _ = envelope(key, statement(world.image, predicate_type, {"built": "here"}))
    world.layout.attach(world.image, bundle(sealed))


def test_an_image_has_to_be_signed_by_the_key_of_the_rule(world):
    key = new_key()
    sign(world, key)
    assert is_verified(world, sets([keyed(key)]))
    assert not is_verified(world, sets([keyed(new_key())]))


@pytest.mark.parametrize("in_one_entry", [True, False])
def test_as_many_entries_as_count_says_have_to_have_signed(world, in_one_entry):
    keys = [new_key() for _ in range(3)]
    sign(world, *keys[:2])

    def of(count):
        entries = [keyed(*keys)] if in_one_entry else [keyed(one) for one in keys]
        return cluster_policy(rule(attestors=[{"entries": entries} | count]))

    # Kyverno splits an entry with several keys before it counts.
    assert is_verified(world, of({"count": 1}))
    assert is_verified(world, of({"count": 2}))
    assert not is_verified(world, of({"count": 3}))
    assert not is_verified(world, of({}))


def test_each_set_of_attestors_has_to_hold_and_a_nested_one_too(world):
    one, two, other = new_key(), new_key(), new_key()
    sign(world, one, two)
    assert is_verified(world, sets([keyed(one)], [keyed(two)]))
    assert not is_verified(world, sets([keyed(one)], [keyed(other)]))
    nested = {"attestor": {"count": 1, "entries": [keyed(other), keyed(two)]}}
    assert is_verified(world, sets([keyed(one), nested]))
    nested = {"attestor": {"entries": [keyed(other), keyed(two)]}}
    assert not is_verified(world, sets([keyed(one), nested]))


@pytest.mark.parametrize("name", ["type", "predicateType"])
def test_an_attestation_has_to_be_there_of_that_type_and_key(world, name):
    key, other = new_key(), new_key()
    sign(world, key)

    def of(signer, of_type=PROVENANCE):
        requirement = {name: of_type, "attestors": [{"entries": [keyed(signer)]}]}
        return cluster_policy(rule(attestations=[requirement]))

    assert not is_verified(world, of(key))
    attest(world, key)
    assert is_verified(world, of(key))
    assert not is_verified(world, of(other))
    assert not is_verified(world, of(key, "https://spdx.dev/Document"))


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        ({"subject": SUBJECT, "issuer": ISSUER}, True),
        ({"subject": "https://ci.example/ours/*", "issuer": "https://issuer.exampl?"}, True),
        ({"subject": "https://ci.example/*", "issuer": "https://issuer.example.evil"}, False),
        ({"subject": "https://ci.example", "issuer": ISSUER}, False),
        ({"subject": SUBJECT}, True),
        ({"subjectRegExp": "/ours/", "issuerRegExp": "^https://issuer"}, True),
        ({"subjectRegExp": "^/ours/", "issuer": ISSUER}, False),
        ({"subjectRegExp": r"^https://ci\.example/ours/[a-z.]+$", "issuer": ISSUER}, True),
        ({"subjectRegExp": "^https://ci|nowhere$", "issuer": ISSUER}, True),
        ({"subjectRegExp": r"^https://ci\.example$", "issuer": ISSUER}, False),
    ],
)
def test_an_identity_is_taken_as_kyverno_takes_it(world, identity, expected):
    world.sign_keyless()
    rekor = {"rekor": {"url": "https://rekor.sigstore.dev"}}
    assert is_verified(world, sets([{"keyless": identity | rekor}])) is expected
    if "subject" in identity or len(identity) < 2:
        return  # ImageValidatingPolicies have no wildcards
    one = {"name": "ci", "cosign": {"keyless": {"identities": [identity]}}}
    image_rule = image_policy(CONTAINERS.format("attestors.ci", "> 0"), one)
    assert is_verified(world, image_rule) is expected


def test_an_identity_of_an_image_validating_policy_has_no_wildcards(world):
    world.sign_keyless()
    for subject, expected in ((SUBJECT, True), ("https://ci.example/*", False)):
        identity = {"issuer": ISSUER, "subject": subject}
        one = {"name": "ci", "cosign": {"keyless": {"identities": [identity]}}}
        image_rule = image_policy(CONTAINERS.format("attestors.ci", "> 0"), one)
        assert is_verified(world, image_rule) is expected


@pytest.mark.parametrize(
    ("subject", "expected"), [(SUBJECT, True), ("https://ci.example/*", False)]
)
def test_an_identity_of_a_bundle_has_no_wildcards_and_needs_no_certificate_log(
    world, subject, expected
):
    signer = new_key()
    world.sign_keyless(key=signer, certificate=world.sigstore.authority.issue(signer))
    entries = [{"keyless": {"issuer": ISSUER, "subject": subject}}]
    image_rule = rule(type="SigstoreBundle", attestors=[{"entries": entries}])
    assert is_verified(world, cluster_policy(image_rule)) is expected
    assert not is_verified(world, cluster_policy(rule(attestors=[{"entries": entries}])))


def test_a_trusted_root_stands_in_the_policy_itself(world):
    world.sign_keyless()
    root = json.dumps(world.sigstore.root())
    keyless = {"identities": [{"issuer": ISSUER, "subject": SUBJECT}]}
    one = {"name": "ci", "cosign": {"keyless": keyless, "trustedRoot": {"value": root}}}
    made = images_of(image_policy(CONTAINERS.format("attestors.ci", "> 0"), one))
    assert made.documents[0]["spec"]["trustedRoot"] == {"data": root}
    assert not any("trusted_root.json" in text for text in made.notes)


def test_a_certificate_counts_by_its_key_and_a_chain_by_whom_it_certifies(world):
    authority, signer = Authority("ours"), new_key()
    certificate = authority.issue(signer)
    sealed, _, _ = envelope(signer, statement(world.image))
    world.layout.attach(world.image, bundle(sealed, certificate=certificate))
    no_logs = NO_LOG | {"ctlog": {"ignoreSCT": True}}

    def of(**given):
        return sets([{"certificates": {**given, **no_logs}}])

    assert is_verified(world, of(certChain=pem(authority.certificate).decode()))
    other = pem(Authority("ours").certificate).decode()
    assert not is_verified(world, of(certChain=other))
    sign(world, signer)
    assert is_verified(world, of(cert=pem(certificate).decode()))
    another = pem(authority.issue(new_key())).decode()
    assert not is_verified(world, of(cert=another))


def test_an_image_validating_policy_counts_its_attestors(world):
    one, two, other = new_key(), new_key(), new_key()
    sign(world, one, two)
    attestors = [attestor("one", one), attestor("two", two), attestor("oth-er", other)]

    def of(names, test):
        return image_policy(CONTAINERS.format(names, test), *attestors)

    assert is_verified(world, of("attestors.one", "> 0"))
    assert not is_verified(world, of("attestors['oth-er']", "> 0"))
    assert is_verified(world, of("attestors.one, attestors['oth-er']", "> 0"))
    assert not is_verified(world, of("attestors.one, attestors['oth-er']", "== 2"))
    assert is_verified(world, of("attestors.one, attestors.two, attestors['oth-er']", ">= 2"))
    both = "images.containers.all(i, verifyImageSignatures(i, [attestors.{}]) > 0)"
    assert is_verified(world, image_policy(f"{both.format('one')} && {both.format('two')}", *attestors))  # fmt: skip
    wrong = both.replace("[attestors.{}]", "[attestors['oth-er']]")
    assert not is_verified(world, image_policy(f"{both.format('one')} && ({wrong})", *attestors))


@pytest.mark.parametrize("written", [PROVENANCE, "slsaprovenance1"])
def test_an_image_validating_policy_asks_for_attestations(world, written):
    key = new_key()
    call = "verifyAttestationSignatures(image, attestations.built, [attestors.one])"
    image_rule = image_policy(
        f"images.containers.map(image, {call}).all(e, e > 0)",
        attestor("one", key),
        attestations=[{"name": "built", "intoto": {"type": written}}],
    )
    sign(world, key)
    assert not is_verified(world, image_rule)
    attest(world, key)
    assert is_verified(world, image_rule)


ONE = {"attestors": [{"entries": [keyed(new_key())]}]}
KEY = ONE["attestors"][0]["entries"][0]


def entry_with(**changes):
    return sets([{"keys": KEY["keys"] | changes}])


def keyless_with(**changes):
    return sets([{"keyless": {"subject": "a", "issuer": "b", **changes}}])


NO_CONVERSION = {
    "conditions of an attestation": (
        cluster_policy(rule(attestations=[{"type": "t", "conditions": [1], **ONE}])),
        "verifyImages[0].attestations[0].conditions: write conditions in CEL or Rego",
    ),
    "an attestation of anybody": (
        cluster_policy(rule(attestations=[{"type": "t"}])),
        "verifyImages[0].attestations[0] has no attestors: anybody could have attested it",
    ),
    "nobody": (cluster_policy(rule()), "neither attestors nor attestations"),
    "Notary": (cluster_policy(rule(type="Notary", **ONE)), "verifyImages[0].type: Notary"),
    "a key elsewhere": (
        sets([{"keys": {"kms": "gcpkms://a"}}]),
        "attestors[0].entries[0].keys.kms: export the public key",
    ),
    "no key": (entry_with(publicKeys="awskms://a"), "keys.publicKeys is not a public key in PEM"),
    "a variable": (entry_with(publicKeys="{{ keys.a }}"), "keys.publicKeys: a variable"),
    "a broken key": (
        entry_with(publicKeys="-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"),
        "keys.publicKeys is not a public key that can be read",
    ),
    "another hash": (entry_with(signatureAlgorithm="sha512"), "keys.signatureAlgorithm: sha512"),
    "a log of one's own": (
        entry_with(rekor={"pubkey": "x"}),
        "keys.rekor.pubkey: write a trusted root that has it",
    ),
    "a clock of one's own": (entry_with(ctlog={"tsaCertChain": "x"}), "keys.ctlog.tsaCertChain"),
    "roots": (keyless_with(roots="x"), "keyless.roots: write a trusted root"),
    "extensions": (keyless_with(additionalExtensions={"a": "b"}), "additionalExtensions"),
    "any identity": (sets([{"keyless": {"rekor": {}, "x": 1}}]), "anybody could have signed"),
    "no pattern": (keyless_with(subject="", subjectRegExp="("), "subjectRegExp: ( is not an RE2"),
    "annotations": (sets([KEY | {"annotations": {"a": "b"}}]), "entries[0].annotations"),
    "another repository": (sets([KEY | {"repository": "a.b/c"}]), "entries[0].repository"),
    "a repository for all": (cluster_policy(rule(repository="a.b/c", **ONE)), "[0].repository"),
    "conditions across": (cluster_policy(rule(validate={"deny": {}}, **ONE)), "[0].validate"),
    "a nested count": (
        cluster_policy(
            rule(attestors=[{"count": 1, "entries": [KEY, {"attestor": ONE["attestors"][0]}]}])
        ),
        "a nested attestor with count",
    ),
    "too many": (
        cluster_policy(rule(attestors=[{"count": 2, "entries": [KEY]}])),
        "count is 2: there are 1 entries",
    ),
    "an unknown skip": (
        cluster_policy(rule(skipImageReferences=["*debug*"], **ONE)),
        "skipImageReferences: *debug*: write images without it",
    ),
    "what one entry skips and another names": (
        cluster_policy(
            rule(**ONE)
            | {
                "verifyImages": [
                    {
                        "imageReferences": GLOBS,
                        "skipImageReferences": ["registry.example/x*"],
                        **ONE,
                    },
                    {"imageReferences": ["registry.example/x*"], **ONE},
                ]
            }
        ),
        "skipImageReferences: write a rule for each entry",
    ),
    "two actions": (
        cluster_policy(
            rule(**ONE)
            | {
                "verifyImages": [
                    {"imageReferences": GLOBS, "failureAction": action, **ONE}
                    for action in ("Audit", "Enforce")
                ]
            }
        ),
        "verifyImages[].failureAction: they differ: write a rule for each",
    ),
    "a key of a bundle without a time": (
        cluster_policy(rule(type="SigstoreBundle", **ONE)),
        "rekor.ignoreTlog: a key's signature needs no time here",
    ),
    "an image without a registry": (
        cluster_policy(rule(**ONE, imageReferences=["nginx*"])),
        "nginx* has no registry: write docker.io/library/nginx*",
    ),
    "a mark": (cluster_policy(rule(**ONE, imageReferences=["a.b/?"])), "only * stands for"),
    "context": (cluster_policy(rule(**ONE) | {"context": [1]}), "context: write its values"),
    "preconditions": (cluster_policy(rule(**ONE) | {"preconditions": [1]}), "preconditions: a"),
    "extractors": (
        cluster_policy(rule(**ONE) | {"imageExtractors": {"Task": [1]}}),
        "imageExtractors: only a Pod's containers",
    ),
    "other kinds": (
        cluster_policy(rule(**ONE) | {"match": {"resources": {"kinds": ["ConfigMap"]}}}),
        "match.resources.kinds: ConfigMap: only Pods and what makes them",
    ),
    "who asks": (
        cluster_policy(rule(**ONE) | {"match": {"any": [{"subjects": [1]}]}}),
        "match.subjects",
    ),
    "left out by name": (
        cluster_policy(rule(**ONE) | {"exclude": {"resources": {"names": ["a"]}}}),
        "exclude: only namespaces can be left out",
    ),
    "Notary, too": (
        image_policy(CONTAINERS.format("attestors.a", "> 0"), {"name": "a", "notary": {"x": 1}}),
        "spec.attestors.a.notary: signatures of Notary are not read",
    ),
    "an expression of CEL": (
        image_policy("variables.a == 1", attestor("a", new_key())),
        "spec.validations[0].expression: variables.a == 1: write conditions",
    ),
    "images by CEL": (
        image_policy("true", matchImageReferences=[{"expression": "true"}]),
        "spec.matchImageReferences.expression",
    ),
    "conditions of a match": (
        image_policy("true", matchConditions=[{"name": "a"}]),
        "spec.matchConditions: a constraint matches by",
    ),
    "an attestor that is not there": (
        image_policy(CONTAINERS.format("attestors.a", "> 0")),
        "a is not there",
    ),
    "a key by CEL": (
        image_policy(
            CONTAINERS.format("attestors.a", "> 0"),
            {"name": "a", "cosign": {"key": {"expression": "x"}}},
        ),
        "cosign.key.expression: write its value",
    ),
}


@pytest.mark.parametrize("case", NO_CONVERSION)
def test_what_cannot_be_expressed_is_named(case):
    document, message = NO_CONVERSION[case]
    with pytest.raises(Unwritable) as refused:
        images_of(document)
    assert message in str(refused.value)


def test_secrets_logs_and_digests_are_reported():
    entries = [{"keys": {"secret": {"name": "a", "namespace": "keys"}}}, KEY]
    made = images_of(cluster_policy(rule(attestors=[{"entries": entries}])))
    [policy, _] = made.documents
    assert policy["spec"]["authorities"][0]["key"] == {"secret": {"name": "a", "key": "cosign.pub"}}
    assert policy["spec"]["trustedRoot"] == {"file": "trusted_root.json"}
    notes = "\n".join(made.notes)
    assert "copy Secret keys/a to the provider's namespace" in notes
    assert "put trusted_root.json beside the policy" in notes
    assert "mutateDigest: add policies/supply-chain/digests" in notes
    plain = images_of(cluster_policy(rule(mutateDigest=False, verifyDigest=False, **ONE)))
    assert plain.notes == []


@pytest.mark.parametrize(
    ("document", "action"),
    [
        (cluster_policy(rule(**ONE)), "dryrun"),
        (cluster_policy(rule(**ONE), validationFailureAction="Enforce"), "deny"),
        (cluster_policy(rule(failureAction="Enforce", **ONE)), "deny"),
        (cluster_policy(rule(failureAction="Audit", **ONE), validationFailureAction="Enforce"), "dryrun"),
        *(
            (
                image_policy(
                    CONTAINERS.format("attestors.a", "> 0"),
                    attestor("a", new_key()),
                    **({"validationActions": [action]} if action else {}),
                ),
                expected,
            )
            for action, expected in (("", "deny"), ("Deny", "deny"), ("Warn", "warn"), ("Audit", "dryrun"))
        ),
    ],
)  # fmt: skip
def test_the_action_of_a_rule_is_that_of_the_constraint(document, action):
    assert images_of(document).constraint["spec"]["enforcementAction"] == action


def test_the_match_of_a_rule_is_that_of_the_constraint():
    match = {
        "resources": {
            "kinds": ["Pod"],
            "namespaces": ["team-*"],
            "selector": {"matchLabels": {"a": "b"}},
            "namespaceSelector": {"matchExpressions": [{"key": "c", "operator": "Exists"}]},
            "operations": ["CREATE", "UPDATE"],
        }
    }
    exclude = {"any": [{"resources": {"kinds": ["Pod"], "namespaces": ["kube-system"]}}]}
    made = images_of(cluster_policy(rule(**ONE) | {"match": match, "exclude": exclude}))
    assert made.constraint["spec"]["match"] == {
        "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}],
        "namespaces": ["team-*"],
        "labelSelector": {"matchLabels": {"a": "b"}},
        "namespaceSelector": {"matchExpressions": [{"key": "c", "operator": "Exists"}]},
        "excludedNamespaces": ["kube-system"],
    }
    of_team = images_of(cluster_policy(rule(**ONE), kind="Policy", namespace="team"))
    assert of_team.constraint["spec"]["match"]["namespaces"] == ["team"]
    assert of_team.constraint["metadata"]["name"] == "team-old"


@pytest.mark.parametrize(
    ("named", "kinds"),
    [
        (None, {"CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "ReplicationController", "StatefulSet"}),
        ("none", {"Pod"}),
        ("Deployment,Job", {"Deployment", "Job", "Pod"}),
    ],
)  # fmt: skip
def test_a_rule_about_pods_is_about_what_makes_them_as_in_kyverno(named, kinds):
    document = cluster_policy(rule(**ONE))
    if named:
        key = "pod-policies.kyverno.io/autogen-controllers"
        document["metadata"]["annotations"] = {key: named}
    match = images_of(document).constraint["spec"]["match"]
    assert {kind for one in match["kinds"] for kind in one["kinds"]} == kinds


def test_the_constraint_asks_only_about_the_images_of_the_rule():
    """The template takes it, and an image that no pattern names is not asked about."""
    skipping = rule(**ONE, skipImageReferences=["registry.example/skip/*"])
    made = images_of(cluster_policy(skipping, validationFailureAction="Enforce"))
    sent_keys = []

    def nobody_has_signed(keys):
        sent_keys.extend(keys)
        return {
            "items": {key: {"value": {"verified": False, "why": ["no"], "by": []}} for key in keys}
        }

    policies = Policies.load(
        TEMPLATE,
        values=made.documents,
        providers={"images": nobody_has_signed},
    )
    images = ["registry.example/app:1", "elsewhere.example/app:1", "registry.example/skip/app:1"]
    found = policies.review(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"containers": [{"name": "c", "image": one} for one in images]},
        }
    )
    assert [one.message for one in found] == [
        'container "c": spec.containers[0].image must be signed: registry.example/app:1: no'
    ]
    assert sent_keys == images[:1]


def test_the_template_and_a_verification_policy_name_the_same_images_by_a_glob():
    digest = f"@sha256:{'ab' * 32}"
    names = [
        "nginx",
        "docker.io/nginx",
        "index.docker.io/ours/app",
        "ours/app",
        "a.b/c",
        "a.b:5000/c/d",
    ]
    images = [
        f"{one}{end}"
        for one in [*names, "localhost/c"]
        for end in ("", ":1", digest, f":1{digest}")
    ]
    globs = [
        *("*", "docker.io/library/*", "docker.io/library/nginx", "docker.io/*:latest", "a.b/c:*"),
        *("a.b/*", "*/c", "*:1", "*@sha256:*", "a.b:5000/*", "localhost/c*", "*c*d:1*", "a.[b]/*"),
    ]
    for one in globs:
        made = images_of(cluster_policy(rule(**ONE)))
        policy, constraint = made.documents
        policy["spec"]["images"] = constraint["spec"]["parameters"]["images"] = [one]
        keys = requested_keys(constraint, images)
        about = read_policy(policy, no_file)
        assert keys == {image for image in images if about.matches(parse_reference(image))}, one


def no_file(name):
    raise FileNotFoundError(name)


def requested_keys(constraint, images):
    """Returns the keys that the library's template requests for a Pod of these images."""
    found_keys = set()

    def nothing_is_known(keys):
        found_keys.update(keys)
        return {"items": {}}

    policies = Policies.load(TEMPLATE, values=[constraint], providers={"images": nothing_is_known})
    containers = [{"name": "c", "image": image} for image in images]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
    policies.review(pod | {"spec": {"containers": containers}})
    return found_keys


def broken(value):
    """The value with each part, one at a time, of a shape that nobody expects."""
    yield from (None, 7, "x", [], {}, [[]], {"a": {}}, [{"a": 1}])
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in parts:
        for other in broken(part):
            changed = copy.copy(value)
            changed[key] = other
            yield changed


@pytest.mark.parametrize("of", ["a rule", "an image validating policy"])
def test_whatever_shape_a_policy_has_it_is_converted_or_refused(of):
    if of == "a rule":
        entries = [{**KEY, "count": 1}, {"keyless": {"subject": "a*", "issuer": "b"}}]
        attestations = [{"type": "t", "attestors": [{"entries": [KEY]}]}]
        match = {"any": [{"resources": {"kinds": ["Pod"], "namespaces": ["a"], "names": ["b"]}}]}
        document = cluster_policy(
            rule(
                attestors=[{"entries": entries}],
                attestations=attestations,
                skipImageReferences=["a.b/*"],
            )
            | {"match": match, "exclude": {"any": [{"resources": {"namespaces": ["c"]}}]}}
        )
    else:
        document = image_policy(
            CONTAINERS.format("attestors.a", "> 0"),
            attestor("a", new_key()),
            attestations=[{"name": "built", "intoto": {"type": "t"}}],
            validationActions=["Warn"],
            validationConfigurations={"required": False},
            autogen={"podControllers": {"controllers": ["jobs"]}},
        )
    images_of(document)
    refused = 0
    for spec in broken(document["spec"]):
        changed = {**document, "spec": spec}
        if of == "a rule":
            refused += sum(isinstance(made, Unwritable) for _, made in converted_rules(changed))
            continue
        try:
            converted_policy(changed)
        except Unwritable:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a.b/*", "a.b/c:*", True),
        ("*", "a.b/c", True),
        ("a.b/c", "a.b/c", True),
        ("a.b/*:1", "*/c:*", True),
        ("a.b/*", "a.c/*", False),
        ("a.b/*:1", "a.b/*:2", False),
        ("*" * 50 + "a", "*" * 50 + "b", False),
        ("", "*", True),
        ("", "a", False),
    ],
)
def test_two_globs_overlap_where_one_text_matches_both(one, other, expected):
    assert globs_overlap(one, other) is expected
    assert globs_overlap(other, one) is expected

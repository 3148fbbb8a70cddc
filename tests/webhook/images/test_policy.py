"""VerificationPolicies that cannot be used: each is refused with its name, the field and the reason."""

import asyncio
import contextlib
import copy
import json

import pytest
from aiohttp import web

from tests.oci_registry import serving
from tests.webhook.images.signing import MANIFEST, Layout, Sigstore, new_key, public_pem
from tests.webhook.images.verifying import IDENTITY, by_key
from webhook.images.answer import answer_about
from webhook.images.policy import InvalidVerificationPolicy, read_policy, unusable_policy
from webhook.images.policy_files import load_policies
from webhook.registry.client import RegistryClient
from webhook.registry.errors import RegistryError
from webhook.registry.reference import parse_reference
from webhook.registry.transport import RegistryOptions

ROOT = Sigstore().root()
KEY = by_key(new_key())
DATA = KEY["key"]["data"]
PREDICATE = "https://slsa.dev/provenance/v1"


def document(**spec):
    return {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "VerificationPolicy",
        "metadata": {"name": "ours"},
        "spec": {"images": ["registry.example/*"], "authorities": [copy.deepcopy(KEY)], **spec},
    }


def of_authority(**fields):
    return {"authorities": [{"name": "a", "transparencyLog": "Ignored", **fields}]}


def rooted(**changes):
    return {"trustedRoot": {"data": json.dumps({**ROOT, **changes})}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"images": []}, "spec.images is empty"),
        ({"images": "a"}, "spec.images is not a list"),
        ({"images": [1]}, "spec.images is not a list of strings"),
        ({"images": ["nginx"]}, "'nginx' has no registry: write docker.io/library/nginx"),
        ({"images": ["ours/app"]}, "'ours/app' has no registry: write docker.io/ours/app"),
        ({"authorities": []}, "spec.authorities is empty: nobody could have signed"),
        ({"authorities": [KEY, KEY]}, "spec.authorities has two of one name"),
        ({"authorities": [KEY] * 21}, "spec.authorities has more than 20 entries"),
        ({"authorities": [1]}, "spec.authorities[0] is missing, or no object"),
        ({"count": 2}, "spec.count is 2: there are 1 authorities"),
        ({"count": 0}, "spec.count is 0"),
        ({"count": True}, "spec.count is not a whole number"),
        ({"signatures": "Maybe"}, "spec.signatures is Required or Ignored, not 'Maybe'"),
        ({"signatures": "Ignored"}, "spec.attestations is empty: nothing is asked"),
        ({"authoritys": []}, "unknown field spec.authoritys"),
        (of_authority(), "has one of key, keyless and certificate, not 0"),
        (of_authority(key={}, keyless={}), "has one of key, keyless and certificate, not 2"),
        ({"authorities": [{"key": {"data": DATA}}]}, "spec.authorities[0].name is missing"),
        ({"authorities": [{**KEY, "transparencyLog": "Required"}]}, "there is none: give it one"),
        (of_authority(key={}), "key has one of data, file and secret"),
        (of_authority(key={"data": "x", "file": "y"}), "key has one of data, file and secret"),
        (of_authority(key={"data": "no key"}), "spec.authorities[0].key: "),
        (of_authority(key={"file": "gone.pub"}), "key.file: gone.pub"),
        (of_authority(key={"secret": {"name": "a", "key": "b"}}), "key.secret: a/b"),
        (of_authority(key={"secret": {"name": "../a", "key": "b"}}), "no name of a Secret"),
        (of_authority(key={"data": DATA, "more": 1}), "unknown field spec.authorities[0].key.more"),
        (
            of_authority(keyless={"identities": [IDENTITY]}),
            "needs spec.trustedRoot.certificateAuth",
        ),
        ({**of_authority(keyless={"identities": []}), **rooted()}, "identities is empty: anybody"),
        (
            {**of_authority(keyless={"identities": [IDENTITY]}), **rooted(ctlogs=[])},
            "needs a log of spec.trustedRoot.ctlogs",
        ),
        (
            {**of_authority(keyless={"identities": [{"issuer": "a"}]}), **rooted()},
            "subject is missing: give it, or subjectPattern",
        ),
        (
            {
                **of_authority(keyless={"identities": [{**IDENTITY, "issuerPattern": "x"}]}),
                **rooted(),
            },
            "has both issuer and issuerPattern",
        ),
        (
            {
                **of_authority(keyless={"identities": [{"issuer": "a", "subjectPattern": "("}]}),
                **rooted(),
            },
            "subjectPattern is not an RE2 pattern",
        ),
        (of_authority(certificate={"authorities": {"data": "x"}}), "certificate.authorities"),
        ({"trustedRoot": {"data": "{"}}, "spec.trustedRoot: "),
        ({"trustedRoot": {"data": "[]"}}, "spec.trustedRoot: "),
        ({"attestations": [{}]}, "spec.attestations[0].predicateType is missing"),
        (
            {"attestations": [{"predicateType": PREDICATE, "conditions": [{}]}]},
            "has one of cel and rego",
        ),
        (
            {"attestations": [{"predicateType": PREDICATE, "conditions": [{"cel": "1 +"}]}]},
            "the attestation https://slsa.dev/provenance/v1: ",
        ),
        (
            {"attestations": [{"predicateType": PREDICATE, "conditions": [{"rego": "package x"}]}]},
            "the attestation https://slsa.dev/provenance/v1: ",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path, spec, message):
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(document(**spec)))
    with pytest.raises(InvalidVerificationPolicy) as refused:
        load_policies([tmp_path])
    assert message in str(refused.value)
    assert str(file) in str(refused.value)


def test_names_and_versions_and_files_without_any(tmp_path):
    with pytest.raises(InvalidVerificationPolicy, match="there is no VerificationPolicy in"):
        load_policies([tmp_path])
    with pytest.raises(InvalidVerificationPolicy, match="No such file"):
        load_policies([tmp_path / "gone"])
    for changes, message in (
        ({"metadata": {}}, "has no metadata.name"),
        ({"apiVersion": "waddle.dev/v1"}, "its version is 'v1': there is v1alpha1"),
    ):
        with pytest.raises(InvalidVerificationPolicy, match=message):
            read_policy({**document(), **changes}, read=lambda name: b"")
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps(document()))
    with pytest.raises(InvalidVerificationPolicy, match="ours is there twice: rename one"):
        load_policies([tmp_path])
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(InvalidVerificationPolicy, match=r"b\.json"):
        load_policies([tmp_path])


@pytest.mark.parametrize("spec", [{}, {"images": []}, {"images": [1]}, {"images": "a"}, None])
def test_what_stands_for_a_policy_that_cannot_be_read_is_about_every_image(spec):
    policy = unusable_policy({**document(), "spec": spec}, "it is broken")
    assert policy.matches(parse_reference("registry.example/app:1"))


def test_what_stands_for_one_with_images_is_about_those_and_never_met(tmp_path):
    broken = unusable_policy(document(images=["registry.example/*"]), "it is broken")
    assert not broken.matches(parse_reference("other.example/app:1"))
    layout = Layout(tmp_path / "images")
    layout.image()
    from webhook.images.layout import ImageLayout

    reference = parse_reference("registry.example/app:1.0")
    answer = asyncio.run(answer_about(ImageLayout(layout.directory), reference, [broken], 0))
    assert (answer.is_verified, answer.why) == (False, ("it is broken",))


def _manifest_of_another(request):
    raise web.HTTPOk(body=b'{"schemaVersion": 2}', content_type=MANIFEST)


def _page(request):
    raise web.HTTPOk(body=b"<html>sign in</html>", content_type="text/html")


def _broken(request):
    raise web.HTTPInternalServerError


def _forbidden(request):
    raise web.HTTPForbidden


def _moved(request):
    raise web.HTTPFound("https://elsewhere.example/v2/")


def _nothing(request):
    raise web.HTTPOk(body=b"", content_type=MANIFEST)


PARTS = ("manifests/1.0", "/manifests/sha256:", ".sig", ".att", "/referrers/")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "lie", [_manifest_of_another, _page, _broken, _forbidden, _moved, _nothing]
)
def test_nothing_that_a_registry_answers_verifies_an_image_that_nobody_has_signed(
    tmp_path, part, lie
):
    layout = Layout(tmp_path / "images")
    digest = layout.image()
    with serving() as registry:
        for blob in (layout.directory / "blobs" / "sha256").iterdir():
            registry.blobs[f"sha256:{blob.name}"] = blob.read_bytes()
        registry.put("app", "1.0", registry.blobs[digest], MANIFEST)

        async def instead(request):
            return lie(request) if part in request.path else None

        registry.instead = instead
        policy = read_policy(
            document(images=[f"{registry.host}/*"]), read=lambda name: public_pem(new_key())
        )

        async def ask():
            options = RegistryOptions(insecure=frozenset([registry.host]), deadline_seconds=2)
            async with RegistryClient(options) as client:
                reference = parse_reference(f"{registry.host}/app:1.0")
                return await answer_about(client, reference, [policy], 0)

        with contextlib.suppress(RegistryError):
            assert not asyncio.run(ask()).is_verified

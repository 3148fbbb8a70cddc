"""The real cosign says of each image what is said here: signed ones, and each kind of forgery.

Images are signed by cosign itself and by `signing`, in cosign's first format and as bundles, then
spoilt in one place. Both are asked about a registry of the tests; nothing beside it is reached.
"""

import asyncio
import base64
import concurrent.futures
import datetime as dt
import json
import os
import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.oci_registry import OCI_MANIFEST, OciRegistry, digest_of, serving
from tests.patience import PATIENCE_SECONDS
from tests.webhook.images.signing import (
    BUNDLE,
    ISSUER,
    MANIFEST,
    NOW,
    SIGN,
    SUBJECT,
    Authority,
    Log,
    Sigstore,
    b64,
    bundle,
    compact,
    dsse_spec,
    envelope,
    new_key,
    pem,
    public_pem,
    sign,
    simple_payload,
    statement,
)
from tests.webhook.images.verifying import by_key, keyless
from webhook.images.answer import answer_about
from webhook.images.policy import read_policy
from webhook.registry.client import RegistryClient
from webhook.registry.reference import parse_reference
from webhook.registry.transport import RegistryOptions

CASES = 300
SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
SIGNATURE = "dev.cosignproject.cosign/signature"
KEYS = {
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}


@dataclass
class Case:
    """An image, how it is signed, and by which key it is asked about."""

    registry: OciRegistry
    number: int
    key: Any
    other: Any
    drawn: random.Random
    image: str = field(init=False)
    elsewhere: str = field(init=False)

    def __post_init__(self):
        self.image, self.elsewhere = (
            self.registry.put_artifact("app", "", [(f"{self.number} {name}".encode(), LAYER, {})])
            for name in ("image", "elsewhere")
        )

    @property
    def reference(self):
        return f"{self.registry.host}/app@{self.image}"

    def simply(self, *layers, kind=SIMPLE):
        """Signatures of the first format: pairs of a payload and annotations."""
        tag = f"{self.image.replace(':', '-')}.sig"
        self.registry.put_artifact("app", tag, [(data, kind, texts) for data, texts in layers])

    def attach(self, document, *, of=None, kind=BUNDLE):
        """A bundle as a referrer."""
        content = document if isinstance(document, bytes) else compact(document)
        self.registry.blobs[digest_of(content)] = content
        subject = {"mediaType": OCI_MANIFEST, "digest": of or self.image, "size": 1}
        config = {
            "mediaType": "application/vnd.oci.empty.v1+json",
            "digest": digest_of(b"{}"),
            "size": 2,
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": kind,
            "config": config,
            "layers": [{"mediaType": kind, "digest": digest_of(content), "size": len(content)}],
            "subject": subject,
        }
        self.registry.put("app", "", compact(manifest), MANIFEST)

    def simple(self, key=None, of=None, payload=None, signature=None):
        """A layer of the first format."""
        data = simple_payload(of or self.image) if payload is None else payload
        prepare = b64(sign(key or self.key, data)) if signature is None else signature
        return data, {SIGNATURE: prepare}

    def sealed(self, key=None, content=None):
        """An envelope of DSSE."""
        return envelope(key or self.key, content or statement(self.image))[0]

    def flipped(self, data):
        """The same with one bit changed."""
        place = self.drawn.randrange(len(data))
        changed = bytearray(data)
        changed[place] ^= 1 << self.drawn.randrange(8)
        return bytes(changed)


def simple_of(**changes):
    return lambda case: case.simply(case.simple(**{k: v(case) for k, v in changes.items()}))


def changed_payload(case):
    data, texts = case.simple()
    case.simply((data.replace(b"registry.example", b"registry.evil.ex"), texts))


def another_digest_in_the_payload(case):
    data, texts = case.simple(of=case.elsewhere)
    case.simply((data.replace(case.elsewhere.encode(), case.image.encode()), texts))


def flipped_payload(case):
    data, texts = case.simple()
    case.simply((case.flipped(data), texts))


def flipped_signature(case):
    data, texts = case.simple()
    case.simply((data, {SIGNATURE: b64(case.flipped(base64.b64decode(texts[SIGNATURE])))}))


def blob_of_another(case):
    """The registry gives other bytes than the manifest names."""
    data, texts = case.simple()
    case.simply((data, texts))
    case.registry.blobs[digest_of(data)] = data.replace(b"cosign", b"kosign")


def index_of_signatures(case):
    case.simply(case.simple())
    tag = f"{case.image.replace(':', '-')}.sig"
    content = compact({"schemaVersion": 2, "mediaType": INDEX, "manifests": []})
    case.registry.put("app", tag, content, INDEX)


INDEX = "application/vnd.oci.image.index.v1+json"

SIMPLE_CASES = {
    "nobody": lambda case: None,
    "signed": simple_of(),
    "signed twice": lambda case: case.simply(case.simple(), case.simple(key=case.other)),
    "signed by another first": lambda case: case.simply(case.simple(key=case.other), case.simple()),
    "another key": simple_of(key=lambda case: case.other),
    "another image": simple_of(of=lambda case: case.elsewhere),
    "payload changed": changed_payload,
    "digest changed": another_digest_in_the_payload,
    "bit of the payload": flipped_payload,
    "bit of the signature": flipped_signature,
    "signature empty": simple_of(signature=lambda _: ""),
    "signature no base64": simple_of(signature=lambda _: "!!!"),
    "signature of nothing": simple_of(signature=lambda case: b64(sign(case.key, b""))),
    "no annotation": lambda case: case.simply((simple_payload(case.image), {})),
    "no layers": lambda case: case.simply(),
    "payload no JSON": simple_of(payload=lambda _: b"{"),
    "payload empty": simple_of(payload=lambda _: b"{}"),
    "payload null": simple_of(payload=lambda _: b"null"),
    "other type": simple_of(payload=lambda case: simple_payload(case.image, "another signature")),
    "digest without its kind": simple_of(
        payload=lambda case: simple_payload(case.image.removeprefix("sha256:"))
    ),
    "digest cut short": simple_of(payload=lambda case: simple_payload(case.image[:-1])),
    "digest in capitals": simple_of(payload=lambda case: simple_payload(case.image.upper())),
    "blob of another": blob_of_another,
    "an index": index_of_signatures,
    "good beside broken": lambda case: case.simply((b"{", {SIGNATURE: "x"}), case.simple()),
    "good beside unannotated": lambda case: case.simply((b"{}", {}), case.simple()),
}


def bundle_of(**changes):
    return lambda case: case.attach(bundle(case.sealed(**{k: v(case) for k, v in changes.items()})))


def with_envelope(change):
    """A bundle whose envelope is changed after it was signed."""

    def prepare(case):
        sealed = case.sealed()
        change(case, sealed)
        case.attach(bundle(sealed))

    return prepare


def with_bundle(change):
    def prepare(case):
        document = bundle(case.sealed())
        change(case, document)
        case.attach(document)

    return prepare


def other_payload(case, sealed):
    sealed["payload"] = b64(compact(statement(case.image, predicate={"x": 1})))


def flipped_bundle_payload(case, sealed):
    sealed["payload"] = b64(case.flipped(base64.b64decode(sealed["payload"])))


def flipped_bundle_signature(case, sealed):
    (one,) = sealed["signatures"]
    one["sig"] = b64(case.flipped(base64.b64decode(one["sig"])))


BUNDLE_CASES = {
    "nobody": lambda case: None,
    "signed": bundle_of(),
    "another key": bundle_of(key=lambda case: case.other),
    "another image": bundle_of(content=lambda case: statement(case.elsewhere)),
    "payload changed": with_envelope(other_payload),
    "bit of the payload": with_envelope(flipped_bundle_payload),
    "bit of the signature": with_envelope(flipped_bundle_signature),
    "other payload type": with_envelope(lambda _, sealed: sealed.update(payloadType="text/plain")),
    "no signatures": with_envelope(lambda _, sealed: sealed.update(signatures=[])),
    "signature empty": with_envelope(lambda _, sealed: sealed.update(signatures=[{"sig": ""}])),
    "no subject": bundle_of(content=lambda case: {**statement(case.image), "subject": []}),
    "payload no JSON": bundle_of(content=lambda _: b"{"),
    "payload null": bundle_of(content=lambda _: b"null"),
    "other media type": with_bundle(lambda _, one: one.update(mediaType="application/json")),
    "no envelope": with_bundle(lambda _, one: one.pop("dsseEnvelope")),
    "no material": with_bundle(lambda _, one: one.pop("verificationMaterial")),
    "no bundle": lambda case: case.attach(b"{"),
    "subject of another": lambda case: case.attach(bundle(case.sealed()), of=case.elsewhere),
    "signed by another first": lambda case: (
        case.attach(bundle(case.sealed(key=case.other))),
        case.attach(bundle(case.sealed())),
    ),
    "good beside broken": lambda case: (case.attach(b"{"), case.attach(bundle(case.sealed()))),
}


LATE, EARLY = NOW + dt.timedelta(minutes=30), NOW - dt.timedelta(minutes=30)


def keyless_of(world, *, entry=None, of=None, **issued):
    """A bundle with a certificate, its log's promise and an entry; ``entry`` changes the last."""

    def prepare(case):
        signer = issued.get("key") or new_key()
        authority = issued.get("authority") or world.authority
        ct_key = issued.get("ct_key", world.ct_key)
        names = {name: issued[name] for name in ("subject", "issuer", "begin") if name in issued}
        certificate = authority.issue(signer, ct_key=ct_key, **names)
        content = statement(case.elsewhere if of else case.image)
        sealed, payload, signature = envelope(issued.get("signing") or signer, content)
        spec = dsse_spec(payload, signature, pem(certificate))
        entries = [(issued.get("log") or world.log).entry("dsse", "0.0.1", spec)]
        entries = entries if entry is None else entry(entries[0], spec)
        case.attach(bundle(sealed, certificate=certificate, entries=entries))

    return prepare


def _other_body(world):
    other = dsse_spec(b"other", b"other", pem(world.authority.issue(new_key())))
    return lambda prepare, spec: [world.log.entry("dsse", "0.0.1", other)]


def _changed(*path):
    """An entry with another value at a path."""

    def change(prepare, spec):
        holder = prepare
        for name in path[:-2]:
            holder = holder[name]
        holder[path[-2]] = path[-1]
        return [prepare]

    return change


def keyless_cases(world):
    return {
        "signed": keyless_of(world),
        "another image": keyless_of(world, of="elsewhere"),
        "another issuer": keyless_of(world, issuer="https://other.example"),
        "another subject": keyless_of(world, subject="https://ci.example/theirs/build.yaml"),
        "subject begins alike": keyless_of(world, subject=f"{SUBJECT}.evil"),
        "subject ends alike": keyless_of(world, subject=f"https://evil.example/?{SUBJECT}"),
        "another authority": keyless_of(world, authority=Authority("root")),
        "certificate ended": keyless_of(world, begin=EARLY),
        "certificate of the future": keyless_of(world, begin=LATE),
        "another key signs": keyless_of(world, signing=new_key()),
        "no promise of a certificate log": keyless_of(world, ct_key=None),
        "another certificate log": keyless_of(world, ct_key=new_key()),
        "another log": keyless_of(world, log=Log()),
        "no entry": keyless_of(world, entry=lambda prepare, spec: []),
        "entry for another body": keyless_of(world, entry=_other_body(world)),
        "promise changed": keyless_of(
            world, entry=_changed("inclusionPromise", "signedEntryTimestamp", b64(b"x" * 70))
        ),
        "time changed": keyless_of(
            world, entry=_changed("integratedTime", str(int(NOW.timestamp()) + 1))
        ),
        "root of the tree changed": keyless_of(
            world, entry=_changed("inclusionProof", "rootHash", b64(b"x" * 32))
        ),
        "proof without a hash": keyless_of(world, entry=_changed("inclusionProof", "hashes", [])),
        "another place in the tree": keyless_of(
            world, entry=_changed("inclusionProof", "logIndex", "1")
        ),
    }


@dataclass
class Cosign:
    """The program, with nothing of the machine's and no way out of it."""

    program: Path
    folder: Path

    def run(self, *arguments):
        # Go asks no proxy for this machine's own addresses.
        nowhere = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY"), "http://127.0.0.1:9")
        return subprocess.run(
            [self.program, *arguments],
            cwd=self.folder,
            env={**os.environ, **nowhere, "COSIGN_PASSWORD": "", "HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def verify(self, key, reference, *more):
        """Returns the reason why an image is not verified by a key; "" if it is."""
        return self.refused("--key", key, "--insecure-ignore-tlog", *more, reference)

    def refused(self, *options):
        """The same by any authority."""
        near = ("--allow-http-registry", "--offline", "--trusted-root", "root.json")
        ended = self.run("verify", *near, *options)
        return (ended.stderr or "no reason") if ended.returncode else ""


@pytest.fixture
def cosign(program, tmp_path):
    (tmp_path / "root.json").write_text(json.dumps(Sigstore().root()))
    return Cosign(program("cosign"), tmp_path)


def ours(registry, references, root=None):
    """Whether each reference is verified by its authority, and else why not."""

    async def run():
        options = RegistryOptions(insecure=frozenset([registry.host]))
        answers = []
        async with RegistryClient(options) as client:
            for reference, authority in references:
                document = {
                    "apiVersion": "waddle.dev/v1alpha1",
                    "kind": "VerificationPolicy",
                    "metadata": {"name": "ours"},
                    "spec": {
                        "images": [f"{registry.host}/*"],
                        "authorities": [authority],
                        **({"trustedRoot": {"data": json.dumps(root)}} if root else {}),
                    },
                }
                policy = read_policy(document, read=lambda name: b"")
                answer = await answer_about(client, parse_reference(reference), [policy], 0)
                whys = [judge.why for one in answer.judgements for judge in one.authorities]
                answers.append((answer.is_verified, whys))
        return answers

    return asyncio.run(run())


@pytest.mark.slow(60)
def test_cosign_says_the_same_of_signed_and_forged_images(cosign):
    drawn = random.Random(20270501)
    keys = {name: (make(), make()) for name, make in KEYS.items()}
    for name, (key, _) in keys.items():
        (cosign.folder / f"{name}.pub").write_bytes(public_pem(key))
    kinds = [
        (name, form, forge)
        for form, cases in (("simple", SIMPLE_CASES), ("bundle", BUNDLE_CASES))
        for forge in cases
        for name in KEYS
    ]
    # Each once, then by chance those that change a bit.
    by_chance = [one for one in kinds if one[2].startswith("bit ")]
    chosen = kinds + [drawn.choice(by_chance) for _ in range(CASES - len(kinds))]
    with serving() as registry:
        references, outcomes = [], []
        for number, (name, form, forge) in enumerate(chosen):
            case = Case(registry, number, *keys[name], drawn)
            cases: dict[str, Any] = SIMPLE_CASES if form == "simple" else BUNDLE_CASES
            cases[forge](case)
            references.append((case.reference, by_key(keys[name][0])))
            more = ["--new-bundle-format"] if form == "bundle" else []
            outcomes.append((f"{name}.pub", case.reference, *more))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            theirs = list(pool.map(lambda one: cosign.verify(*one), outcomes))
        found = ours(registry, references)
    differing = [
        (kind, is_verified, why, outcome[-300:])
        for kind, (is_verified, why), outcome in zip(chosen, found, theirs, strict=True)
        if is_verified == bool(outcome)
    ]
    assert differing == []
    assert len(found) >= CASES
    assert sum(is_verified for is_verified, _ in found) >= 3 * len(KEYS)


@pytest.mark.slow(8)
def test_cosign_says_the_same_of_identities_that_are_proven_and_forged(cosign):
    world = Sigstore()
    root = world.root()
    (cosign.folder / "root.json").write_text(json.dumps(root))
    whom = ("--certificate-identity", SUBJECT, "--certificate-oidc-issuer", ISSUER)
    drawn = random.Random(1)
    with serving() as registry:
        references, theirs = [], []
        for number, (name, forge) in enumerate(keyless_cases(world).items()):
            case = Case(registry, number, None, None, drawn)
            forge(case)
            references.append((case.reference, keyless()))
            theirs.append((name, cosign.refused("--new-bundle-format", *whom, case.reference)))
        found = ours(registry, references, root)
    differing = [
        (name, is_verified, why, outcome[-300:])
        for (name, outcome), (is_verified, why) in zip(theirs, found, strict=True)
        if is_verified == bool(outcome)
    ]
    assert differing == []
    assert found[0][0]


def test_what_cosign_itself_has_signed_is_verified(cosign):
    assert cosign.run("generate-key-pair").returncode == 0
    authority = {
        "name": "release",
        "key": {"data": (cosign.folder / "cosign.pub").read_text()},
        "transparencyLog": "Ignored",
    }
    with serving() as registry:
        references = []
        for number, more in enumerate(([], ["--new-bundle-format"])):
            image = registry.put_artifact("app", "", [(f"layer {number}".encode(), LAYER, {})])
            reference = f"{registry.host}/app@{image}"
            signed = cosign.run(
                *("sign", "--key", "cosign.key", "--tlog-upload=false", "-y"),
                *("--allow-http-registry", *more, reference),
            )
            assert signed.returncode == 0, signed.stderr
            assert cosign.verify("cosign.pub", reference, *more) == ""
            references.append((reference, authority))
        assert [is_verified for is_verified, _ in ours(registry, references)] == [True, True]


def test_statements_are_those_that_cosign_signs():
    """A bundle signed here has the predicate that cosign writes."""
    assert statement("sha256:0")["predicateType"] == SIGN

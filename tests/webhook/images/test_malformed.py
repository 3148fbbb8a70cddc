"""Malformed signatures end in a reason: a value of another type at every place of every form."""

import copy
import json
import random

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.webhook.images.signing import (
    NOW,
    Sigstore,
    b64,
    bundle,
    compact,
    digest,
    dsse_spec,
    envelope,
    hashed_spec,
    new_key,
    pem,
    sign,
    simple_payload,
    statement,
)
from tests.webhook.images.verifying import PROVENANCE, keyless, policy
from webhook.images import evidence as read
from webhook.images.evidence import ImageEvidence, UnreadableEvidence
from webhook.images.verification import examine

STRANGE = [None, True, 0, -1, 1 << 70, 1.5, "", "x", "\ud7ff", [], {}, [[]], [None], {"a": 1}]
MANIFEST = b"{}"
IMAGE = digest(MANIFEST)
LOG = "dev.sigstore.cosign/bundle"


def places(value, path=()):
    if path:
        yield path
    items = (
        value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    )
    for key, child in items:
        yield from places(child, (*path, key))


def changed(document, path, value):
    copied = copy.deepcopy(document)
    holder = copied
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return copied


class Made:
    """A good bundle and a good signature of cosign's first format; and who tries what is not."""

    def __init__(self):
        self.sigstore = Sigstore()
        signer = new_key()
        self.certificate = self.sigstore.authority.issue(signer, ct_key=self.sigstore.ct_key)
        self.policy = policy([keyless(transparencyLog="Ignored")], self.sigstore.root())
        self.unreadable = self.refused = 0
        self.sealed, payload, signature = envelope(signer, statement(IMAGE, PROVENANCE))
        self.spec = dsse_spec(payload, signature, pem(self.certificate))
        self.entry = self.sigstore.log.entry("dsse", "0.0.1", self.spec)
        self.whole = bundle(
            self.sealed,
            certificate=self.certificate,
            entries=[self.entry],
            timestamps=[self.sigstore.clock.stamp(signature)],
        )
        self.simple = simple_payload(IMAGE)
        signature = sign(signer, self.simple)
        spec = hashed_spec(self.simple, signature, pem(self.certificate))
        self.log = self.sigstore.log.annotated("hashedrekord", "0.0.1", spec)
        self.texts = {
            "dev.cosignproject.cosign/signature": b64(signature),
            "dev.sigstore.cosign/certificate": pem(self.certificate).decode(),
            LOG: self.log,
        }

    def bundle(self, document):
        self._tried(lambda: read.read_bundle("here", json.dumps(document).encode(), MANIFEST))

    def signature(self, payload, texts):
        self._tried(lambda: read.read_simple("here", payload, texts))

    def _tried(self, make):
        """Asserts that the evidence raises nothing but UnreadableEvidence."""
        try:
            evidence = ImageEvidence(IMAGE, (make(),))
        except UnreadableEvidence:
            self.unreadable += 1
            return
        predicate_types, now = frozenset([PROVENANCE]), NOW.timestamp()
        facts = examine(
            evidence, self.policy.authorities[0], self.policy.root, predicate_types, now
        )
        self.refused += not (facts.has_signed or facts.statements)


@pytest.fixture(scope="module")
def signed():
    return Made()


def test_every_value_of_a_bundle(signed):
    for path in places(signed.whole):
        for value in STRANGE:
            signed.bundle(changed(signed.whole, path, value))
    assert signed.unreadable > 100


def test_every_value_of_a_log_entry_s_body(signed):
    body = {"apiVersion": "0.0.1", "kind": "dsse", "spec": signed.spec}
    for path in places(body):
        for value in STRANGE[:8] + STRANGE[9:]:  # half a character is in no JSON of UTF-8
            text = b64(compact(changed(body, path, value)))
            entry = {**signed.entry, "canonicalizedBody": text}
            signed.bundle(bundle(signed.sealed, certificate=signed.certificate, entries=[entry]))
    assert signed.refused > 50


def test_every_annotation_and_every_value_within(signed):
    for name, good in signed.texts.items():
        for text in ("", "x", "null", "[]", "{}", "-----BEGIN CERTIFICATE-----", good[:-9]):
            signed.signature(signed.simple, {**signed.texts, name: text})
    logged, payload = json.loads(signed.log), json.loads(signed.simple)
    for value in STRANGE:
        for path in places(logged):
            text = json.dumps(changed(logged, path, value))
            signed.signature(signed.simple, {**signed.texts, LOG: text})
        for path in places(payload):
            signed.signature(json.dumps(changed(payload, path, value)).encode(), signed.texts)
    assert signed.unreadable > 50


def test_certificates_with_other_bytes(signed):
    chance = random.Random(3)
    good = signed.certificate.public_bytes(Encoding.DER)
    before = signed.unreadable + signed.refused
    for number in range(300):
        der = bytearray(good)
        for place in chance.sample(range(len(der)), 1 + number % 3):
            der[place] ^= 1 << chance.randrange(8)
        broken = copy.deepcopy(signed.whole)
        broken["verificationMaterial"]["certificate"]["rawBytes"] = b64(bytes(der))
        signed.bundle(broken)
    assert signed.unreadable + signed.refused == before + 300

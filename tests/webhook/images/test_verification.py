"""Valid signatures of each form are taken, and each kind of forgery is refused with its reason."""

import datetime as dt

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.webhook.images.signing import (
    ISSUER,
    NOW,
    SUBJECT,
    Authority,
    Clock,
    Log,
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
    public_pem,
    sign,
    simple_payload,
    simply_signed,
    statement,
)
from tests.webhook.images.verifying import IDENTITY, PROVENANCE, World, by_key, keyless, policy

OTHER = "sha256:" + "ab" * 32
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "images")


def certified(authority, name="own", **fields):
    held = {"authorities": {"data": pem(authority.certificate).decode()}, **fields}
    return {"name": name, "certificate": held, "transparencyLog": "Ignored"}


KEYS = {
    "P-256": new_key,
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_s_signature_is_taken_in_both_formats(world, kind):
    key = KEYS[kind]()
    verification = policy([by_key(key)])
    assert "there is no signature beside the image" in world.reasons(verification)
    sealed, _, _ = envelope(key, statement(world.image))
    world.layout.attach(world.image, bundle(sealed))
    assert world.answer(verification).is_verified

    world.layout.entries = world.layout.entries[:1]
    world.layout.sign_simply(world.image, [simply_signed(key, world.image)])
    answer = world.answer(verification)
    assert answer.value() == {
        "image": f"registry.example/app@{world.image}",
        "digest": world.image,
        "verified": True,
        "by": ["release"],
        "attestations": [],
        "mutable": True,
        "signedAt": "",
        "why": [],
    }
    assert not world.answer(verification, image=f"registry.example/app@{world.image}").value()[
        "mutable"
    ]


def test_a_bundle_may_sign_the_manifest_itself(world):
    key = new_key()
    manifest = (world.directory / "blobs" / "sha256" / world.image[7:]).read_bytes()
    document = bundle({})
    del document["dsseEnvelope"]
    document["messageSignature"] = {
        "messageDigest": {"algorithm": "SHA2_256", "digest": b64(bytes.fromhex(world.image[7:]))},
        "signature": b64(sign(key, manifest)),
    }
    world.layout.attach(world.image, document)
    assert world.answer(policy([by_key(key)])).is_verified


def test_cosign_s_first_format_with_certificate_and_log(world):
    signer = new_key()
    certificate = world.sigstore.authority.issue(signer, ct_key=world.sigstore.ct_key)
    payload = simple_payload(world.image)
    signature = sign(signer, payload)
    spec = hashed_spec(payload, signature, pem(certificate))
    world.layout.sign_simply(world.image, [(payload, {
        "dev.cosignproject.cosign/signature": b64(signature),
        "dev.sigstore.cosign/certificate": pem(certificate).decode(),
        "dev.sigstore.cosign/chain": pem(world.sigstore.authority.certificate).decode(),
        "dev.sigstore.cosign/bundle": world.sigstore.log.annotated("hashedrekord", "0.0.1", spec),
    })])  # fmt: skip
    assert world.answer(policy([keyless()], world.sigstore.root())).is_verified


def test_a_key_s_signature_in_a_log(world):
    key, log = new_key(), world.sigstore.log
    verification = policy([by_key(key, log="Required")], world.sigstore.root())
    world.layout.sign_simply(world.image, [simply_signed(key, world.image)])
    assert "it comes without an entry of a transparency log" in world.reasons(verification)
    sealed, payload, signature = envelope(key, statement(world.image))
    spec = dsse_spec(payload, signature, public_pem(key))
    world.layout.attach(world.image, bundle(sealed, entries=[log.entry("dsse", "0.0.1", spec)]))
    assert world.answer(verification).is_verified


def test_keyless_with_each_source_of_time(world, tmp_path):
    root, clock = world.sigstore.root(), world.sigstore.clock
    world.sign_keyless()
    assert world.answer(policy([keyless()], root)).is_verified

    no_log = World(tmp_path / "no log", world.sigstore)
    no_log.sign_keyless(logged=False, stamps=[clock.stamp])
    assert "without an entry of a transparency log" in no_log.reasons(policy([keyless()], root))
    assert no_log.answer(policy([keyless(transparencyLog="Ignored")], root)).is_verified

    newer = World(tmp_path / "a log that tells no time", world.sigstore)

    def timeless(made, spec):
        return newer.sigstore.log.entry("dsse", "0.0.1", spec, promises=False)

    newer.sign_keyless(entry=timeless, stamps=[clock.stamp])
    assert newer.answer(policy([keyless()], root)).is_verified


def test_an_own_authority_at_its_time_and_now(world):
    authority, signer = Authority("ours"), new_key()
    certificate = authority.issue(signer)
    sealed, _, _ = envelope(signer, statement(world.image))
    world.layout.attach(world.image, bundle(sealed, certificate=certificate))
    verification = policy([certified(authority, subject=SUBJECT)])
    assert world.answer(verification).is_verified
    assert "it ended at 2027-05-01T12:09:00Z" in world.reasons(verification, now=NOW + HOUR)
    assert "it begins at 2027-05-01T11:59:00Z" in world.reasons(verification, now=NOW - HOUR)
    assert "its certificate is for" in world.reasons(policy([certified(authority, subject="x")]))
    assert "no way leads from it" in world.reasons(policy([certified(Authority("ours"))]))


# --- forgeries -------------------------------------------------------------------------------------


def test_a_signature_of_another_image_or_key(world):
    key = new_key()
    verification = policy([by_key(key)])
    world.layout.sign_simply(world.image, [simply_signed(key, OTHER)])
    world.layout.attach(world.image, bundle(envelope(key, statement(OTHER))[0]))
    assert "it is for another digest than the image's (2 times)" in world.reasons(verification)
    assert "it is not by this key" not in world.reasons(verification)
    world.layout.attach(world.image, bundle(envelope(new_key(), statement(world.image))[0]))
    assert "it is not by this key" in world.reasons(verification)


def test_a_signature_is_not_taken_from_another_payload(world):
    key = new_key()
    _, annotations = simply_signed(key, OTHER)
    world.layout.sign_simply(world.image, [(simple_payload(world.image), annotations)])
    assert "it is not by this key" in world.reasons(policy([by_key(key)]))


FORGED_CERTIFICATES = {
    "expired": (lambda at: {"begin": NOW - HOUR}, "it ended at 2027-05-01T11:10:00Z"),
    "future": (lambda at: {"begin": NOW + HOUR}, "it begins at 2027-05-01T13:00:00Z"),
    "no promise of a log": (lambda at: {"ct_key": None}, "no log of certificates has promised"),
    "another log's promise": (lambda at: {"ct_key": new_key()}, "no SCT in it is by a log"),
    "a subject that begins alike": (
        lambda at: {"subject": f"{SUBJECT}.evil"},
        f"its certificate is for {SUBJECT}.evil by {ISSUER}, not {SUBJECT} by {ISSUER}",
    ),
    "an issuer that begins alike": (
        lambda at: {"issuer": f"{ISSUER}.evil"},
        f"{ISSUER}.evil, not",
    ),
}


@pytest.mark.parametrize("forged", FORGED_CERTIFICATES)
def test_a_certificate_that_is_not_theirs(world, forged):
    change, reason = FORGED_CERTIFICATES[forged]
    signer, sigstore = new_key(), world.sigstore
    fields = {"ct_key": sigstore.ct_key, **change(world)}
    world.sign_keyless(key=signer, certificate=sigstore.authority.issue(signer, **fields))
    assert reason in world.reasons(policy([keyless()], sigstore.root()))


def test_a_certificate_of_another_authority_of_the_same_name(world):
    signer = new_key()
    certificate = Authority().issue(signer, ct_key=world.sigstore.ct_key)
    world.sign_keyless(key=signer, certificate=certificate)
    assert "no way leads from it" in world.reasons(policy([keyless()], world.sigstore.root()))


def test_an_authority_s_certificate_signs_no_image(world):
    authority = world.sigstore.authority
    world.sign_keyless(key=authority.key, certificate=authority.certificate)
    verification = policy(
        [keyless({"issuerPattern": ".*", "subjectPattern": ".*"})], world.sigstore.root()
    )
    assert not world.answer(verification).is_verified


def test_a_signature_by_another_key_than_the_certificate_s(world):
    certificate = world.sigstore.authority.issue(new_key(), ct_key=world.sigstore.ct_key)
    world.sign_keyless(certificate=certificate, key=new_key())
    verification = policy([keyless()], world.sigstore.root())
    assert "it is not by the key of its certificate" in world.reasons(verification)


@pytest.mark.parametrize(
    ("pattern", "verified"),
    [
        (r"https://ci\.example/ours/.*", True),
        (r"https://ci\.example/ours/build", False),
        (r"ci\.example/ours/build\.yaml", False),
    ],
)
def test_a_pattern_matches_the_whole_subject(world, pattern, verified):
    world.sign_keyless()
    identity = {"issuer": ISSUER, "subjectPattern": pattern}
    assert world.answer(policy([keyless(identity)], world.sigstore.root())).is_verified is verified


def changed(**fields):
    return lambda made, spec: {**made, **fields}


def of_spec(change):
    """The same log's entry about something else."""

    def entry(world):
        return lambda made, spec: world.sigstore.log.entry("dsse", "0.0.1", change(dict(spec)))

    return entry


def _proof(made, **fields):
    return {**made, "inclusionProof": {**made["inclusionProof"], **fields}}


FORGED_ENTRIES = {
    "another payload": (
        of_spec(lambda spec: {**spec, "payloadHash": {"algorithm": "sha256", "value": "00" * 32}}),
        "it is about another payload",
    ),
    "another signature": (
        of_spec(lambda spec: {
            **spec, "signatures": [{**spec["signatures"][0], "signature": b64(b"another")}],
        }),
        "it is about another signature",
    ),
    "another certificate": (
        of_spec(lambda spec: {**spec, "signatures": [{
            **spec["signatures"][0], "verifier": b64(public_pem(new_key())),
        }]}),
        "it is about another key or certificate",
    ),
    "another hash": (
        of_spec(lambda spec: {**spec, "payloadHash": {"algorithm": "sha1", "value": "00" * 20}}),
        "a hash of 'sha1', not of sha256",
    ),
    "another log": (
        lambda world: lambda made, spec: Log().entry("dsse", "0.0.1", spec),
        "is not in the trusted root",
    ),
    "another log by its name": (
        lambda world: lambda made, spec: {
            **Log().entry("dsse", "0.0.1", spec), "logId": made["logId"],
        },
        "the log has not signed the checkpoint",
    ),
    "another time": (
        lambda world: changed(integratedTime=str(int(NOW.timestamp()) + 1)),
        "its signed entry timestamp is not by the log",
    ),
    "another place": (lambda world: changed(logIndex="3"), "is not by the log"),
    "another kind beside it": (
        lambda world: changed(kindVersion={"kind": "intoto", "version": "0.0.2"}),
        "its body is of another kind",
    ),
    "neither promise nor proof": (
        lambda world: changed(inclusionPromise=None, inclusionProof=None),
        "it has neither a signed entry timestamp nor an inclusion proof",
    ),
    "no checkpoint": (
        lambda world: lambda made, spec: _proof(made, checkpoint=None),
        "without a checkpoint of the log",
    ),
    "another root": (
        lambda world: lambda made, spec: _proof(made, rootHash=b64(bytes(32))),
        "does not lead to the root hash",
    ),
    "another leaf": (
        lambda world: lambda made, spec: _proof(made, logIndex="1"),
        "does not lead to the root hash",
    ),
    "a leaf outside": (
        lambda world: lambda made, spec: _proof(made, logIndex="99"),
        "a leaf outside of the tree",
    ),
    "a tree of another size": (
        lambda world: lambda made, spec: _proof(made, treeSize="7"),
        "its inclusion proof",
    ),
    "a short proof": (
        lambda world: lambda made, spec: _proof(made, hashes=made["inclusionProof"]["hashes"][:1]),
        "shorter than the tree is high",
    ),
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGED_ENTRIES)
def test_a_log_entry_that_proves_nothing(world, forged):
    change, reason = FORGED_ENTRIES[forged]
    world.sign_keyless(entry=change(world))
    assert reason in world.reasons(policy([keyless()], world.sigstore.root()))


def test_a_checkpoint_of_another_tree_by_the_same_log(world):
    def swapped(made, spec):
        other = world.sigstore.log.entry("dsse", "0.0.1", spec, before=1, after=7)
        return _proof(made, checkpoint=other["inclusionProof"]["checkpoint"])

    world.sign_keyless(entry=swapped)
    assert "of another tree" in world.reasons(policy([keyless()], world.sigstore.root()))


def test_nothing_proves_a_time(world):
    world.sign_keyless(logged=False)
    verification = policy([keyless(transparencyLog="Ignored")], world.sigstore.root())
    assert "nothing proves when it was made" in world.reasons(verification)


FORGED_STAMPS = {
    "another signature's": (lambda world: lambda _: world.sigstore.clock.stamp(b"x"), "for another signature"),
    "another clock's": (lambda world: Clock().stamp, "signature is not its authority's"),
    "no timestamp": (lambda world: lambda _: b"\x30\x03\x02\x01\0", "cannot be read"),
    "bytes": (lambda world: lambda _: b"\xff" * 200, "cannot be read"),
    "too large": (lambda world: lambda _: bytes(100_000), "is larger than 65536 bytes"),
    "before the certificate": (
        lambda world: lambda data: world.sigstore.clock.stamp(data, NOW - HOUR), "it begins at",
    ),
    "after the certificate": (
        lambda world: lambda data: world.sigstore.clock.stamp(data, NOW + HOUR), "it ended at",
    ),
    "beyond the clock's certificate": (
        lambda world: lambda data: world.sigstore.clock.stamp(data, NOW + 31 * 24 * HOUR),
        "it ended at",
    ),
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGED_STAMPS)
def test_a_timestamp_that_proves_no_time(world, forged):
    change, reason = FORGED_STAMPS[forged]
    world.sign_keyless(logged=False, stamps=[change(world)])
    verification = policy([keyless(transparencyLog="Ignored")], world.sigstore.root())
    assert reason in world.reasons(verification)


def test_any_bit_of_a_timestamp_that_changes_is_refused_or_harmless(world):
    """The token's own certificate is not believed by being there, and most bytes are signed."""
    stamp = world.sigstore.clock.stamp(b"signed")
    authorities = policy([keyless()], world.sigstore.root()).root.timestamp_authorities
    from webhook.images.timestamps import UntrustedTimestamp, check_timestamp

    assert check_timestamp(stamp, b"signed", authorities) == NOW.timestamp()
    for at in range(0, len(stamp), 3):
        changed_ = bytearray(stamp)
        changed_[at] ^= 1 << at % 8
        try:
            moment = check_timestamp(bytes(changed_), b"signed", authorities)
        except UntrustedTimestamp:
            continue
        assert moment == NOW.timestamp()


def test_a_root_that_is_over_and_one_that_does_not_know_the_authority(world):
    world.sign_keyless()
    root = world.sigstore.root()
    root["certificateAuthorities"][0]["validFor"]["end"] = "2027-01-01T00:00:00Z"
    assert "was believed at its time" in world.reasons(policy([keyless()], root))
    assert "not in the trusted root" in world.reasons(policy([keyless()], Sigstore().root()))
    root = world.sigstore.root()
    root["tlogs"][0]["publicKey"]["validFor"]["end"] = "2027-01-01T00:00:00Z"
    assert "not within that of the log's key" in world.reasons(policy([keyless()], root))


# --- counts, attestations, bounds ------------------------------------------------------------------


def test_so_many_authorities_as_the_policy_counts(world):
    one, two, three = new_key(), new_key(), new_key()
    layers = [simply_signed(one, world.image), simply_signed(two, world.image)]
    world.layout.sign_simply(world.image, layers)
    held = [by_key(one, "one"), by_key(two, "two"), by_key(three, "three")]
    assert world.answer(policy(held, count=2)).is_verified
    answer = world.answer(policy(held))
    assert answer.why == ("it is not signed by 3 of the authorities of ours: missing is three",)
    assert answer.value()["by"] == ["one", "two"]
    both = world.answer(policy(held, count=2), policy([by_key(three)], name="strict"))
    assert not both.is_verified  # every policy about an image has to be satisfied


def test_an_image_that_no_policy_is_about_is_not_verified(world):
    key = new_key()
    verification = policy([by_key(key)], images=["registry.example/others/*"])
    world.layout.sign_simply(world.image, [simply_signed(key, world.image)])
    answer = world.answer(verification)
    assert not answer.is_verified
    assert answer.value()["why"] == ["no VerificationPolicy matches it"]
    assert not world.answer().is_verified


REGO = """package verification
deny contains msg if {
  input.predicate.builder != "ours"
  msg := sprintf("built by %v", [input.predicate.builder])
}"""


def test_attestations_and_their_conditions(world):
    attested = statement(world.image, PROVENANCE, {"builder": "ours", "on": "2027-05-01T11:00:00Z"})
    world.sign_keyless(content=attested)
    root = world.sigstore.root()

    def asking(*conditions, **more):
        attestations = [
            {"name": "built", "predicateType": PROVENANCE, "conditions": list(conditions)}
        ]
        return policy([keyless()], root, signatures="Ignored", attestations=attestations, **more)

    fresh = {
        "cel": "timestamp(now) - timestamp(predicate.on) < duration('2h')",
        "message": "the build is old",
    }
    assert world.answer(asking()).is_verified
    assert world.answer(asking({"cel": "predicate.builder == 'ours'"}, {"rego": REGO})).is_verified
    assert world.answer(asking(fresh)).is_verified
    for condition, reason in [
        ({"cel": "predicate.builder == 'theirs'"}, "it does not satisfy predicate.builder"),
        ({"cel": "predicate.missing == 1"}, "its condition has no value"),
        ({"rego": REGO.replace("ours", "theirs")}, "built by ours"),
        ({"rego": REGO, "cel": None} | {"rego": REGO.replace("builder !=", "builder.x !=")}, None),
    ]:
        answer = world.answer(asking(condition))
        if reason is not None:
            assert not answer.is_verified
            assert reason in str(answer.document())
    late = world.answer(asking(fresh), now=NOW + 2 * HOUR)
    assert "ci: the build is old" in str(late.document())
    signed_too = policy(
        [keyless()], root, attestations=[{"name": "built", "predicateType": PROVENANCE}]
    )
    assert "it is not signed by the authority" in str(world.answer(signed_too).why)


def test_an_attestation_that_others_signed_or_that_is_about_another_image(world):
    attestations = [{"predicateType": PROVENANCE}]
    verification = policy(
        [keyless()], world.sigstore.root(), signatures="Ignored", attestations=attestations
    )
    stranger = new_key()
    world.layout.attach(
        world.image, bundle(envelope(stranger, statement(world.image, PROVENANCE))[0])
    )
    world.sign_keyless(content=statement(OTHER, PROVENANCE))
    world.sign_keyless(content=statement(world.image, "https://other.example/type"))
    answer = world.answer(verification)
    assert not answer.is_verified
    (judged,) = answer.judgements[0].attestations
    assert "it comes without a certificate" in str(judged.why)
    assert "it is for another digest" in str(judged.why)


def test_an_attestation_in_cosign_s_first_format(world):
    key = new_key()
    sealed, _, _ = envelope(key, statement(world.image, PROVENANCE))
    world.layout.sign_simply(world.image, [(compact(sealed), {})], suffix="att")
    verification = policy(
        [by_key(key)], signatures="Ignored", attestations=[{"predicateType": PROVENANCE}]
    )
    assert world.answer(verification).is_verified


def test_cosign_s_first_format_as_referrers(world):
    key, layout = new_key(), world.layout
    payload, annotations = simply_signed(key, world.image)
    simple = "application/vnd.dev.cosign.simplesigning.v1+json"
    layout.manifest(
        [layout.blob(payload, simple, annotations=annotations)],
        subject=world.image,
        artifact_type="application/vnd.dev.cosign.artifact.sig.v1+json",
    )
    assert world.answer(policy([by_key(key)])).is_verified
    sealed, _, _ = envelope(key, statement(world.image, PROVENANCE))
    layout.manifest(
        [layout.blob(compact(sealed), "application/vnd.dsse.envelope.v1+json")],
        subject=world.image,
        artifact_type="application/vnd.in-toto+json",
    )
    assert world.answer(
        policy([by_key(key)], attestations=[{"predicateType": PROVENANCE}])
    ).is_verified


def test_ten_thousand_signatures_cost_no_more_than_a_hundred(world):
    """4 MiB hold as many layers as a manifest may have; which of them count is bounded before."""
    stranger = new_key()
    layer = simply_signed(stranger, world.image)
    world.layout.sign_simply(world.image, [layer] * 4_000)
    verification = policy([by_key(new_key(), str(number)) for number in range(20)])
    reasons = world.reasons(verification)
    assert "it is not by this key (100 times)" in reasons
    assert "only the first 100 of 4000 were read" in reasons

    world.layout.entries = world.layout.entries[:1]
    world.layout.sign_simply(world.image, [layer] * 10_000)
    assert "10000 layers in one manifest" in world.reasons(verification)


def test_what_cannot_be_read_is_no_signature(world):
    key = new_key()
    for data in (b"", b"[]", b"{", b'{"mediaType": 1}', b'{"mediaType": "x"}', b"\xff" * 100):
        world.layout.attach(world.image, data)
    sealed, _, _ = envelope(key, statement(world.image))
    good = bundle(sealed)
    for field in ("mediaType", "verificationMaterial", "dsseEnvelope"):
        world.layout.attach(world.image, {k: v for k, v in good.items() if k != field})
    world.layout.attach(world.image, good | {"dsseEnvelope": sealed | {"signatures": []}})
    world.layout.attach(
        world.image, good | {"dsseEnvelope": sealed | {"payloadType": "text/plain"}}
    )
    answer = world.answer(policy([by_key(key)]))
    assert not answer.is_verified
    assert len(answer.notes) == 9
    assert answer.notes[-1] == "and 3 more notes"
    assert digest(b"")[:19] in str(answer.notes[0]) or "referrer" in answer.notes[0]


def test_identities_are_compared_whole(world):
    world.sign_keyless()
    root = world.sigstore.root()
    assert world.answer(
        policy([keyless({"issuer": "x", "subject": "y"}, IDENTITY)], root)
    ).is_verified
    crossed = keyless({"issuer": ISSUER, "subject": "y"}, {"issuer": "x", "subject": SUBJECT})
    assert not world.answer(policy([crossed], root)).is_verified


def test_the_time_that_is_reported_is_the_newest_that_a_log_or_a_clock_has_proven(world):
    verification = policy(
        [keyless()], world.sigstore.root(), attestations=[{"predicateType": PROVENANCE}]
    )
    world.sign_keyless()
    world.sign_keyless(content=statement(world.image, PROVENANCE))
    later = NOW + dt.timedelta(minutes=5)
    world.sign_keyless(stamps=[lambda signature: world.sigstore.clock.stamp(signature, later)])

    value = world.answer(verification).value()

    assert value["signedAt"] == "2027-05-01T12:05:00Z"
    assert [one["signedAt"] for one in value["attestations"]] == ["2027-05-01T12:00:00Z"]

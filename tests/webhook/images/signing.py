"""Signers, a certificate authority, logs and a clock made up here, and images in a folder."""

import base64
import datetime as dt
import hashlib
import json
import struct
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

NOW = dt.datetime(2027, 5, 1, 12, tzinfo=dt.UTC)
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
STATEMENT = "application/vnd.in-toto+json"
SIGN = "https://sigstore.dev/cosign/sign/v1"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
ISSUER = "https://issuer.example"
SUBJECT = "https://ci.example/ours/build.yaml"


def b64(data):
    return base64.b64encode(data).decode()


def compact(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def new_key():
    return ec.generate_private_key(ec.SECP256R1())


def public(key):
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def sign(key, message):
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(message)
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(message, padding.PKCS1v15(), hashes.SHA256())
    return key.sign(message, ec.ECDSA(hashes.SHA256()))


def key_usage(**used):
    names = (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
        *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    )
    return x509.KeyUsage(**{**dict.fromkeys(names, False), **used})


def named(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


@dataclass
class Authority:
    """A root that makes certificates for signers."""

    name: str = "root"
    key: Any = field(default_factory=new_key)

    @cached_property
    def certificate(self):
        return (
            self._built(named(self.name), self.key.public_key(), 1, days=365)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(key_usage(key_cert_sign=True, crl_sign=True), critical=True)
            .add_extension(self.identifier, critical=False)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def identifier(self):
        return x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())

    def _built(self, subject, key, serial, *, days, begin=None, end=None):
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(named(self.name))
            .public_key(key)
            .serial_number(serial)
            .not_valid_before(begin or NOW - dt.timedelta(days=days))
            .not_valid_after(end or NOW + dt.timedelta(days=days))
        )

    def issue(  # noqa: PLR0917
        self,
        key,
        subject=SUBJECT,
        issuer=ISSUER,
        begin=None,
        end=None,
        ct_key=None,
        usage=ExtendedKeyUsageOID.CODE_SIGNING,
        serial=7,
    ):
        """A certificate that ends after ten minutes; with a log's promise where it has a key."""
        begin = begin or NOW - dt.timedelta(minutes=1)
        builder = (
            self._built(
                x509.Name([]),
                key.public_key(),
                serial,
                days=0,
                begin=begin,
                end=end or begin + dt.timedelta(minutes=10),
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self.identifier),
                critical=False,
            )
            .add_extension(key_usage(digital_signature=True), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([usage]),
                critical=usage == ExtendedKeyUsageOID.TIME_STAMPING,  # as RFC 3161 asks
            )
            .add_extension(
                x509.SubjectAlternativeName([x509.UniformResourceIdentifier(subject)]),
                critical=True,
            )
            .add_extension(
                x509.UnrecognizedExtension(
                    ObjectIdentifier("1.3.6.1.4.1.57264.1.1"), issuer.encode()
                ),
                critical=False,
            )
            .add_extension(
                x509.UnrecognizedExtension(
                    ObjectIdentifier("1.3.6.1.4.1.57264.1.8"), b"\x0c" + octets(issuer.encode())[1:]
                ),
                critical=False,
            )
        )
        if ct_key is None:
            return builder.sign(self.key, hashes.SHA256())
        before = builder.sign(self.key, hashes.SHA256()).tbs_certificate_bytes
        milliseconds = int(begin.timestamp() * 1000)
        entry = hashlib.sha256(public(self.key)).digest() + len(before).to_bytes(3, "big") + before
        sealed = sign(ct_key, struct.pack("!BBQH", 0, 0, milliseconds, 1) + entry + b"\0\0")
        promise = (
            b"\0"
            + hashlib.sha256(public(ct_key)).digest()
            + struct.pack("!Q", milliseconds)
            + b"\0\0\x04\x03"
            + struct.pack("!H", len(sealed))
            + sealed
        )
        listed = struct.pack("!H", len(promise) + 2) + struct.pack("!H", len(promise)) + promise
        oid = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
        return builder.add_extension(
            x509.UnrecognizedExtension(oid, octets(listed)), critical=False
        ).sign(self.key, hashes.SHA256())


def der(tag, content):
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def octets(content):
    return der(0x04, content)


def sequence(*parts):
    return der(0x30, b"".join(parts))


SHA256 = sequence(bytes.fromhex("0609608648016503040201"), b"\x05\0")
TST_INFO = bytes.fromhex("060b2a864886f70d0109100104")


@dataclass
class Clock:
    """A time stamping authority."""

    authority: Authority = field(default_factory=lambda: Authority("clock"))
    key: Any = field(default_factory=new_key)

    @cached_property
    def certificate(self):
        return self.authority.issue(
            self.key,
            usage=ExtendedKeyUsageOID.TIME_STAMPING,
            serial=11,
            begin=NOW - dt.timedelta(days=30),
            end=NOW + dt.timedelta(days=30),
        )

    def stamp(self, data, moment=NOW):
        """A response of RFC 3161."""
        info = sequence(
            b"\x02\x01\x01",
            bytes.fromhex("06032a0304"),
            sequence(SHA256, octets(hashlib.sha256(data).digest())),
            b"\x02\x01\x05",
            der(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode()),
        )
        attributes = sequence(
            bytes.fromhex("06092a864886f70d010903"), der(0x31, TST_INFO)
        ) + sequence(
            bytes.fromhex("06092a864886f70d010904"),
            der(0x31, octets(hashlib.sha256(info).digest())),
        )
        signer = sequence(
            b"\x02\x01\x01",
            sequence(self.certificate.issuer.public_bytes(), b"\x02\x01\x0b"),
            SHA256,
            der(0xA0, attributes),
            sequence(bytes.fromhex("06082a8648ce3d040302")),
            octets(sign(self.key, der(0x31, attributes))),
        )
        der_certificate = self.certificate.public_bytes(serialization.Encoding.DER)
        data_ = sequence(
            b"\x02\x01\x03",
            der(0x31, SHA256),
            sequence(TST_INFO, der(0xA0, octets(info))),
            der(0xA0, der_certificate),
            der(0x31, signer),
        )
        token = sequence(bytes.fromhex("06092a864886f70d010702"), der(0xA0, data_))
        return sequence(sequence(b"\x02\x01\0"), token)


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def tree(leaves):
    """The root of a Merkle tree (RFC 9162, section 2.1.1)."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return node(tree(leaves[:split]), tree(leaves[split:]))


def path(index, leaves):
    """The proof that a leaf is in it (RFC 9162, section 2.1.3.1)."""
    if len(leaves) == 1:
        return []
    split = 1 << (len(leaves) - 1).bit_length() - 1
    if index < split:
        return [*path(index, leaves[:split]), tree(leaves[split:])]
    return [*path(index - split, leaves[split:]), tree(leaves[:split])]


@dataclass
class Log:
    """A transparency log with other entries around each."""

    key: Any = field(default_factory=new_key)

    @property
    def id(self):
        return hashlib.sha256(public(self.key)).digest()

    def entry(self, kind, version, spec, moment=NOW, *, before=2, after=3, promises=True):
        """An entry as it stands in a bundle."""
        body = compact({"apiVersion": version, "kind": kind, "spec": spec})
        leaves = [b"other%d" % i for i in range(before)] + [body]
        leaves += [b"later%d" % i for i in range(after)]
        root, index = tree(leaves), before
        note = f"log.example - 1\n{len(leaves)}\n{b64(root)}\n"
        seal = b64(self.id[:4] + sign(self.key, note.encode()))
        entry = {
            "logIndex": str(index),
            "logId": {"keyId": b64(self.id)},
            "kindVersion": {"kind": kind, "version": version},
            "canonicalizedBody": b64(body),
            "inclusionProof": {
                "logIndex": str(index),
                "rootHash": b64(root),
                "treeSize": str(len(leaves)),
                "hashes": [b64(one) for one in path(index, leaves)],
                "checkpoint": {"envelope": f"{note}\n\N{EM DASH} log.example {seal}\n"},
            },
        }
        if promises:
            time = int(moment.timestamp())
            entry["integratedTime"] = str(time)
            entry["inclusionPromise"] = {
                "signedEntryTimestamp": b64(self.promise(body, time, index))
            }
        return entry

    def promise(self, body, time, index):
        return sign(
            self.key,
            compact(
                {
                    "body": b64(body),
                    "integratedTime": time,
                    "logID": self.id.hex(),
                    "logIndex": index,
                }
            ),
        )

    def annotated(self, kind, version, spec, moment=NOW):
        """An entry as it stands in an annotation of cosign's first format."""
        body, time = (
            compact({"apiVersion": version, "kind": kind, "spec": spec}),
            int(moment.timestamp()),
        )
        return json.dumps(
            {
                "SignedEntryTimestamp": b64(self.promise(body, time, 4)),
                "Payload": {
                    "body": b64(body),
                    "integratedTime": time,
                    "logIndex": 4,
                    "logID": self.id.hex(),
                },
            }
        )


@dataclass
class Sigstore:
    """An instance of one's own: authority, logs and clock, and the root that says so."""

    authority: Authority = field(default_factory=Authority)
    log: Log = field(default_factory=Log)
    ct_key: Any = field(default_factory=new_key)
    clock: Clock = field(default_factory=Clock)

    def root(self, *, clocks=True, **changes):
        """The trusted root as a document."""
        valid = {"start": "2026-01-01T00:00:00Z"}

        def log(key):
            return {
                "baseUrl": "https://log.example",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": b64(public(key)),
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": dict(valid),
                },
                "logId": {"keyId": b64(hashlib.sha256(public(key)).digest())},
            }

        def chain(*certificates):
            encoding = serialization.Encoding.DER
            raw = [{"rawBytes": b64(one.public_bytes(encoding))} for one in certificates]
            return {
                "subject": {"organization": "test", "commonName": "test"},
                "uri": "https://authority.example",
                "certChain": {"certificates": raw},
                "validFor": dict(valid),
            }

        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(self.log.key)],
            "ctlogs": [log(self.ct_key)],
            "certificateAuthorities": [chain(self.authority.certificate)],
            "timestampAuthorities": (
                [chain(self.clock.certificate, self.clock.authority.certificate)] if clocks else []
            ),
            **changes,
        }


def statement(of, predicate_type=SIGN, predicate=None):
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "image", "digest": {"sha256": of.removeprefix("sha256:")}}],
        "predicateType": predicate_type,
        "predicate": predicate or {},
    }


def envelope(key, content):
    """A DSSE envelope, its payload and its signature."""
    payload = content if isinstance(content, bytes) else compact(content)
    pae = b"DSSEv1 %d %s %d %s" % (len(STATEMENT), STATEMENT.encode(), len(payload), payload)
    signature = sign(key, pae)
    return (
        {
            "payload": b64(payload),
            "payloadType": STATEMENT,
            "signatures": [{"sig": b64(signature)}],
        },
        payload,
        signature,
    )


def dsse_spec(payload, signature, verifier_pem):
    return {
        "envelopeHash": {"algorithm": "sha256", "value": "00" * 32},
        "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
        "signatures": [{"signature": b64(signature), "verifier": b64(verifier_pem)}],
    }


def hashed_spec(payload, signature, verifier_pem):
    return {
        "data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()}},
        "signature": {"content": b64(signature), "publicKey": {"content": b64(verifier_pem)}},
    }


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


def bundle(envelope_, *, certificate=None, entries=(), timestamps=()):
    material: dict[str, Any] = {"tlogEntries": list(entries)}
    if certificate is None:
        material["publicKey"] = {"hint": "key"}
    else:
        raw = certificate.public_bytes(serialization.Encoding.DER)
        material["certificate"] = {"rawBytes": b64(raw)}
    if timestamps:
        material["timestampVerificationData"] = {
            "rfc3161Timestamps": [{"signedTimestamp": b64(one)} for one in timestamps]
        }
    return {"mediaType": BUNDLE, "verificationMaterial": material, "dsseEnvelope": envelope_}


def simple_payload(of, kind="cosign container image signature"):
    return compact(
        {
            "critical": {
                "identity": {"docker-reference": "registry.example/app"},
                "image": {"docker-manifest-digest": of},
                "type": kind,
            },
            "optional": None,
        }
    )


class Layout:
    """A folder of images, written as what copies images writes it."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.entries = []
        (directory / "blobs" / "sha256").mkdir(parents=True)
        (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        self._write()

    def blob(self, data, media_type, **more):
        path_ = self.directory / "blobs" / "sha256" / digest(data)[7:]
        if not path_.exists():
            path_.write_bytes(data)
        return {"mediaType": media_type, "digest": digest(data), "size": len(data), **more}

    def _write(self):
        index = {"schemaVersion": 2, "manifests": self.entries}
        (self.directory / "index.json").write_text(json.dumps(index))

    def manifest(self, layers, *, tag="", subject=None, artifact_type=""):
        """A manifest; gives its digest."""
        config = self.blob(b"{}", "application/vnd.oci.image.config.v1+json")
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
        if artifact_type:
            document["artifactType"] = artifact_type
        if subject:
            size = (self.directory / "blobs" / "sha256" / subject[7:]).stat().st_size
            document["subject"] = {"mediaType": MANIFEST, "digest": subject, "size": size}
        entry = self.blob(compact(document), MANIFEST)
        if tag:
            entry["annotations"] = {"org.opencontainers.image.ref.name": tag}
        self.entries.append(entry)
        self._write()
        return entry["digest"]

    def image(self, tag="1.0"):
        return self.manifest(
            [self.blob(f"layer {tag}".encode(), "application/vnd.oci.image.layer.v1.tar")], tag=tag
        )

    def attach(self, of, document):
        """A bundle as a referrer."""
        data = document if isinstance(document, bytes) else compact(document)
        return self.manifest([self.blob(data, BUNDLE)], subject=of, artifact_type=BUNDLE)

    def sign_simply(self, of, layers, suffix="sig"):
        """Cosign's first format: pairs of a payload and annotations."""
        media_type = {
            "sig": "application/vnd.dev.cosign.simplesigning.v1+json",
            "att": "application/vnd.dsse.envelope.v1+json",
        }[suffix]
        self.manifest(
            [self.blob(data, media_type, annotations=texts) for data, texts in layers],
            tag=f"{of.replace(':', '-')}.{suffix}",
        )


def simply_signed(key, of, **annotations):
    """A layer of cosign's first format, signed with a key."""
    payload = simple_payload(of)
    signature = b64(sign(key, payload))
    return payload, {"dev.cosignproject.cosign/signature": signature, **annotations}

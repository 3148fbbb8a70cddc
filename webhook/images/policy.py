"""VerificationPolicy: image patterns, authorities that must have signed, required attestations.

::

    apiVersion: waddle.dev/v1alpha1
    kind: VerificationPolicy
    metadata: {name: ours}
    spec:
      images: ["registry.example.com/team/*"]
      authorities:
        - name: release
          key: {file: cosign.pub}
          transparencyLog: Ignored
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import re2

from webhook.api.gvk import gvk_of, name_of
from webhook.exceptions.globs import any_glob
from webhook.images.chain import UntrustedCertificate, read_certificates
from webhook.images.signatures import InvalidPublicKey, PublicKey, key_bytes, read_public_key
from webhook.images.trusted_root import InvalidTrustedRoot, TrustedRoot, read_trusted_root
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cryptography import x509

    from webhook.registry.reference import Reference

KIND: Final = "VerificationPolicy"
GROUP_VERSION: Final = ("waddle.dev", "v1alpha1")

AUTHORITIES_MAX: Final = 20
ATTESTATIONS_MAX: Final = 20
IDENTITIES_MAX: Final = 50
_AUTHORITY_CERTIFICATES_MAX: Final = 50
"""The number of CA certificates at most. Each signature may be compared with each of them; policies
in use have less than a tenth."""


_SECRET_PART: Final = re.compile(r"[A-Za-z0-9._-]{1,253}")


class InvalidVerificationPolicy(ValueError):
    """A policy that cannot be used; the message names the policy and the field."""


ReadFile: TypeAlias = "Callable[[str], bytes]"
"""Reads the file that a policy names; raises OSError."""

ReadSecret: TypeAlias = "Callable[[str, str], bytes]"
"""Reads the value of a key of a Secret; raises OSError."""


@dataclass(frozen=True, slots=True)
class NamedBytes:
    """The readers of the files and Secrets that a policy names."""

    read_file: ReadFile
    read_secret: ReadSecret


def no_secrets(name: str, key: str) -> bytes:
    """Raises OSError: the reader of Secrets if no folder of Secrets is given."""
    raise OSError(f"{name}/{key}: no folder of Secrets is given")


@dataclass(frozen=True, slots=True)
class IdentityTest:
    """The accepted identities of a certificate: tests of its whole issuer and its whole subject."""

    text: str
    issuer: Callable[[str], bool]
    subject: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class KeyAuthority:
    """An authority identified by its public key."""

    key: PublicKey


@dataclass(frozen=True, slots=True)
class KeylessAuthority:
    """An authority identified by a certificate of the trusted root's CAs (keyless)."""

    identities: tuple[IdentityTest, ...]
    needs_sct: bool


@dataclass(frozen=True, slots=True)
class CertificateAuthority:
    """An authority identified by a certificate of the policy's own certificate authorities."""

    roots: tuple[x509.Certificate, ...]
    subject: Callable[[str], bool] | None


@dataclass(frozen=True, slots=True)
class SigningAuthority:
    """An authority whose signature counts; ``needs_log`` requires a transparency log entry."""

    name: str
    trust: KeyAuthority | KeylessAuthority | CertificateAuthority
    needs_log: bool
    digest: str
    """The digest of all fields that cryptography depends on; a part of the key of cached facts."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A CEL expression or Rego module that a statement must satisfy."""

    language: str
    source: str
    message: str


@dataclass(frozen=True, slots=True)
class RequiredAttestation:
    """An attestation that the image must have, signed by ``count`` authorities of the policy."""

    name: str
    predicate_type: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class VerificationPolicy:
    """The requirements of a policy for images."""

    name: str
    patterns: tuple[str, ...]
    is_about: Callable[[str], bool]
    authorities: tuple[SigningAuthority, ...]
    count: int
    """The number of authorities that must have signed."""
    needs_signature: bool
    attestations: tuple[RequiredAttestation, ...]
    root: TrustedRoot
    fault: str = ""
    """The reason why the policy cannot be used; no image of its patterns is verified then."""

    @property
    def predicates(self) -> frozenset[str]:
        """Returns the predicate types of the required attestations."""
        return frozenset(attestation.predicate_type for attestation in self.attestations)

    def matches(self, image: Reference) -> bool:
        """Whether the policy applies to an image."""
        return self.is_about(image.name) or self.is_about(str(image))


def is_verification_policy(document: Mapping[str, Any]) -> bool:
    """Whether a document is a VerificationPolicy of any version."""
    gvk = gvk_of(document)
    return gvk.kind == KIND and gvk.group == GROUP_VERSION[0]


def unusable_policy(document: Mapping[str, Any], fault: str) -> VerificationPolicy:
    """Returns the stand-in for a policy that cannot be used: it verifies no image of its patterns.

    If its patterns cannot be read, it verifies no image at all.
    """
    spec = document.get("spec")
    images = spec.get("images") if type(spec) is dict else None
    are_texts = type(images) is list and images and all(type(image) is str for image in images)
    patterns = tuple(images) if are_texts and images else ("*",)
    return VerificationPolicy(
        name_of(document), patterns, any_glob(patterns), (), 1, False, (), TrustedRoot(), fault
    )


def read_policy(
    document: Mapping[str, Any], read: ReadFile, read_secret: ReadSecret = no_secrets
) -> VerificationPolicy:
    """Reads a policy with its keys and roots; raises :class:`InvalidVerificationPolicy`."""
    name = name_of(document)
    if not name:
        raise InvalidVerificationPolicy(f"a {KIND} has no metadata.name")
    version = gvk_of(document).version
    if version != GROUP_VERSION[1]:
        raise InvalidVerificationPolicy(
            f"{KIND} {name}: its version is {version!r}: there is {GROUP_VERSION[1]}"
        )
    try:
        return _Reader(name, NamedBytes(read, read_secret)).read(
            _Fields(document.get("spec"), "spec")
        )
    except InvalidVerificationPolicy as error:
        raise InvalidVerificationPolicy(f"{KIND} {name}: {error}") from None


class _Fields:
    """The fields of one object of a policy; ``finish`` refuses unknown fields."""

    def __init__(self, value: Any, where: str) -> None:
        if type(value) is not dict:
            raise InvalidVerificationPolicy(f"{where} is missing, or no object")
        self.where = where
        self._value = {key: item for key, item in value.items() if item is not None}
        self._known: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._value

    def _take(self, name: str, kind: type, expected: str, otherwise: Any) -> Any:
        self._known.add(name)
        value = self._value.get(name, otherwise)
        if value is not otherwise and type(value) is not kind:
            raise InvalidVerificationPolicy(f"{self.where}.{name} is not a {expected}")
        return value

    def text(self, name: str, otherwise: str = "") -> str:
        value: str = self._take(name, str, "text", otherwise)
        return value

    def number(self, name: str, otherwise: int) -> int:
        value: int = self._take(name, int, "whole number", otherwise)
        return value

    def choice(self, name: str, words: tuple[str, str]) -> bool:
        """Whether a field has the first of two values, which is the default."""
        word = self.text(name, words[0])
        if word not in words:
            raise InvalidVerificationPolicy(
                f"{self.where}.{name} is {words[0]} or {words[1]}, not {word!r}"
            )
        return word == words[0]

    def object(self, name: str) -> _Fields:
        self._known.add(name)
        return _Fields(self._value.get(name), f"{self.where}.{name}")

    def objects(self, name: str, limit: int) -> list[_Fields]:
        values = self._take(name, list, "list", [])
        if len(values) > limit:
            raise InvalidVerificationPolicy(f"{self.where}.{name} has more than {limit} entries")
        return [
            _Fields(item, f"{self.where}.{name}[{number}]") for number, item in enumerate(values)
        ]

    def texts(self, name: str) -> list[str]:
        values: list[Any] = self._take(name, list, "list", [])
        if not all(type(item) is str for item in values):
            raise InvalidVerificationPolicy(f"{self.where}.{name} is not a list of strings")
        return values

    def finish(self) -> None:
        """Raises if a field is unknown: a misspelt field would weaken the policy silently."""
        if unknown := sorted(self._value.keys() - self._known):
            raise InvalidVerificationPolicy(f"unknown field {self.where}.{unknown[0]}")


class _Reader:
    def __init__(self, name: str, read: NamedBytes) -> None:
        self._name = name
        self._read = read

    def read(self, spec: _Fields) -> VerificationPolicy:
        patterns = tuple(spec.texts("images"))
        if not patterns:
            raise InvalidVerificationPolicy("spec.images is empty: say which images it is about")
        for pattern in patterns:
            _check_pattern(pattern)
        root = self._root(spec)
        authorities = tuple(
            self._authority(item, root) for item in spec.objects("authorities", AUTHORITIES_MAX)
        )
        if not authorities:
            raise InvalidVerificationPolicy("spec.authorities is empty: nobody could have signed")
        if len({authority.name for authority in authorities}) < len(authorities):
            raise InvalidVerificationPolicy("spec.authorities has two of one name")
        count = spec.number("count", len(authorities))
        if not 1 <= count <= len(authorities):
            raise InvalidVerificationPolicy(
                f"spec.count is {count}: there are {len(authorities)} authorities"
            )
        attestations = tuple(
            _attestation(item) for item in spec.objects("attestations", ATTESTATIONS_MAX)
        )
        needs_signature = spec.choice("signatures", ("Required", "Ignored"))
        if not needs_signature and not attestations:
            raise InvalidVerificationPolicy(
                "spec.signatures is Ignored, and spec.attestations is empty: nothing is asked"
            )
        spec.finish()
        return VerificationPolicy(
            self._name,
            patterns,
            any_glob(patterns),
            authorities,
            count,
            needs_signature,
            attestations,
            root,
        )

    def _bytes(self, holder: _Fields) -> bytes:
        """Reads the bytes of ``{data: TEXT}``, ``{file: NAME}`` or ``{secret: {name, key}}``."""
        if sum(name in holder for name in ("data", "file", "secret")) != 1:
            raise InvalidVerificationPolicy(f"{holder.where} has one of data, file and secret")
        data, file = holder.text("data"), holder.text("file")
        secret = holder.object("secret") if "secret" in holder else None
        holder.finish()
        if data:
            return data.encode()
        try:
            if secret is not None:
                return self._read.read_secret(*_secret_of(secret))
            return self._read.read_file(file)
        except OSError as error:
            source_name = f"secret: {'/'.join(_secret_of(secret))}" if secret else f"file: {file}"
            raise InvalidVerificationPolicy(
                f"{holder.where}.{source_name}: {error.strerror or error}"
            ) from None

    def _root(self, spec: _Fields) -> TrustedRoot:
        if "trustedRoot" not in spec:
            return TrustedRoot()
        holder = spec.object("trustedRoot")
        try:
            return read_trusted_root(self._bytes(holder))
        except InvalidTrustedRoot as error:
            raise InvalidVerificationPolicy(f"{holder.where}: {error}") from None

    def _authority(self, item: _Fields, root: TrustedRoot) -> SigningAuthority:
        name = item.text("name")
        if not name:
            raise InvalidVerificationPolicy(f"{item.where}.name is missing: messages name it")
        kinds = [kind for kind in ("key", "keyless", "certificate") if kind in item]
        if len(kinds) != 1:
            raise InvalidVerificationPolicy(
                f"{item.where} has one of key, keyless and certificate, not {len(kinds)}"
            )
        needs_log = item.choice("transparencyLog", ("Required", "Ignored"))
        if needs_log and not root.logs:
            raise InvalidVerificationPolicy(
                f"{item.where} needs a log of spec.trustedRoot.tlogs, and there is none: give it "
                "one, or set transparencyLog: Ignored"
            )
        sought = item.object(kinds[0])
        trust: KeyAuthority | KeylessAuthority | CertificateAuthority
        match kinds[0]:
            case "key":
                trust, seal = self._key(sought)
            case "keyless":
                trust, seal = self._keyless(sought, root)
            case _:
                trust, seal = self._certificate(sought)
        item.finish()
        digest = hashlib.sha256(
            f"{kinds[0]}\0{needs_log}\0{root.digest}\0{seal}".encode()
        ).hexdigest()
        return SigningAuthority(name, trust, needs_log, digest)

    def _key(self, fields: _Fields) -> tuple[KeyAuthority, str]:
        try:
            key = read_public_key(self._bytes(fields))
        except InvalidPublicKey as error:
            raise InvalidVerificationPolicy(f"{fields.where}: {error}") from None
        return KeyAuthority(key), key_bytes(key).hex()

    @staticmethod
    def _keyless(fields: _Fields, root: TrustedRoot) -> tuple[KeylessAuthority, str]:
        if not root.authorities:
            raise InvalidVerificationPolicy(
                f"{fields.where} needs spec.trustedRoot.certificateAuthorities, and there are none"
            )
        needs_sct = fields.choice("certificateLog", ("Required", "Ignored"))
        if needs_sct and not root.certificate_logs:
            raise InvalidVerificationPolicy(
                f"{fields.where} needs a log of spec.trustedRoot.ctlogs, and there is none: give it "
                "one, or set certificateLog: Ignored"
            )
        identities = tuple(_identity(item) for item in fields.objects("identities", IDENTITIES_MAX))
        if not identities:
            raise InvalidVerificationPolicy(
                f"{fields.where}.identities is empty: anybody could have signed"
            )
        fields.finish()
        seal = f"{needs_sct}\0{identity_texts(identities)}"
        return KeylessAuthority(identities, needs_sct), seal

    def _certificate(self, fields: _Fields) -> tuple[CertificateAuthority, str]:
        holder = fields.object("authorities")
        data = self._bytes(holder)
        try:
            roots = read_certificates(data, _AUTHORITY_CERTIFICATES_MAX)
        except UntrustedCertificate as error:
            raise InvalidVerificationPolicy(f"{holder.where}: {error}") from None
        if not roots:
            raise InvalidVerificationPolicy(f"{holder.where} has no certificate")
        subject, described = _name_test(fields, "subject", is_required=False)
        fields.finish()
        return CertificateAuthority(
            roots, subject
        ), f"{described}\0{hashlib.sha256(data).hexdigest()}"


def _secret_of(fields: _Fields) -> tuple[str, str]:
    """Returns name and key of a Secret.

    Both become parts of a path, so ``.`` and ``..`` are refused.
    """
    name, key = fields.text("name"), fields.text("key")
    fields.finish()
    for field, text in (("name", name), ("key", key)):
        if not _SECRET_PART.fullmatch(text) or text in {".", ".."}:
            raise InvalidVerificationPolicy(
                f"{fields.where}.{field} is missing, or no {field} of a Secret"
            )
    return name, key


def identity_texts(identities: tuple[IdentityTest, ...]) -> str:
    """Returns the identities as one text."""
    return " or ".join(identity.text for identity in identities)


def _check_pattern(pattern: str) -> None:
    first = pattern.partition("/")[0]
    if not (first == "localhost" or any(mark in first for mark in "*.:")):
        raise InvalidVerificationPolicy(
            f"spec.images: {pattern!r} has no registry: write docker.io/library/{pattern}"
            if "/" not in pattern
            else f"spec.images: {pattern!r} has no registry: write docker.io/{pattern}"
        )


def _attestation(item: _Fields) -> RequiredAttestation:
    kind = item.text("predicateType")
    if not kind:
        raise InvalidVerificationPolicy(f"{item.where}.predicateType is missing")
    conditions = []
    for obj in item.objects("conditions", ATTESTATIONS_MAX):
        languages = [language for language in ("cel", "rego") if language in obj]
        if len(languages) != 1:
            raise InvalidVerificationPolicy(f"{obj.where} has one of cel and rego")
        source = obj.text(languages[0])
        conditions.append(Condition(languages[0], source, obj.text("message")))
        obj.finish()
    name = item.text("name", kind)
    item.finish()
    return RequiredAttestation(name, kind, tuple(conditions))


def _identity(item: _Fields) -> IdentityTest:
    issuer, by = _name_test(item, "issuer")
    subject, described = _name_test(item, "subject")
    item.finish()
    assert issuer is not None
    assert subject is not None
    return IdentityTest(f"{described} by {by}", issuer, subject)


def _name_test(
    item: _Fields, name: str, *, is_required: bool = True
) -> tuple[Callable[[str], bool] | None, str]:
    """Returns the test of a field or its pattern, and its text; patterns match the whole value."""
    exact, pattern = item.text(name), item.text(f"{name}Pattern")
    if not exact and not pattern:
        if is_required:
            raise InvalidVerificationPolicy(
                f"{item.where}.{name} is missing: give it, or {name}Pattern"
            )
        return None, ""
    if exact and pattern:
        raise InvalidVerificationPolicy(f"{item.where} has both {name} and {name}Pattern")
    if exact:
        return exact.__eq__, exact
    quiet = re2.Options()
    quiet.log_errors = False
    try:
        compiled = re2.compile(pattern, quiet)
    except re2.error as error:
        raise InvalidVerificationPolicy(
            f"{item.where}.{name}Pattern is not an RE2 pattern: {_text(error)}"
        ) from None
    return lambda text: compiled.fullmatch(text) is not None, f"/{pattern}/"


def _text(error: Exception) -> str:
    message = error.args[0] if error.args else error
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)

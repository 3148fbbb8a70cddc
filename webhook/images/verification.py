"""Verification of an image against a policy: a pure function of evidence, policy and time.

There are two steps. *Facts* are cryptography alone: the authorities that have signed, and their
statements. Facts never change for one digest, one authority and one root of trust. The *judgement*
counts authorities and evaluates conditions. It is made anew each time, because a condition may
depend on the time.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from webhook.images.chain import (
    UntrustedCertificate,
    build_chain,
    der_of,
    identity_of,
    read_certificates,
)
from webhook.images.conditions import fault_of
from webhook.images.policy import (
    CertificateAuthority,
    KeyAuthority,
    KeylessAuthority,
    identity_texts,
)
from webhook.images.signatures import InvalidPublicKey, is_signed, key_bytes, key_of
from webhook.images.timestamps import UntrustedTimestamp, check_timestamp
from webhook.images.transparency import SignedThing, UntrustedEntry, check_entry, check_logged
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cryptography import x509

    from webhook.images.evidence import Endorsement, ImageEvidence
    from webhook.images.policy import RequiredAttestation, SigningAuthority, VerificationPolicy
    from webhook.images.signatures import PublicKey
    from webhook.images.trusted_root import TrustedRoot
    from webhook.registry.reference import Reference

REASONS_MAX: Final = 8
"""The number of different reasons shown for an authority; equal reasons share a line, with their
count."""

_ATTESTATION: Final = "the attestation"


class NotTheirs(ValueError):
    """The reason why a signature does not count for an authority."""


@dataclass(frozen=True, slots=True)
class ProvenStatement:
    """A statement that an authority has signed."""

    predicate_type: str
    statement: Mapping[str, Any]
    where: str
    signed_at: float | None = None
    """The time that a log or a timestamp proves, if any."""


@dataclass(frozen=True, slots=True)
class AuthorityFacts:
    """The signatures of one authority on an image, and the reasons why others do not count."""

    has_signed: bool
    statements: tuple[ProvenStatement, ...]
    reasons: tuple[str, ...]
    signed_at: float | None = None
    """The newest proven time of its signatures."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The facts about an image by policy and authority, and the notes of reading."""

    of_policies: tuple[tuple[AuthorityFacts, ...], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgedAttestation:
    """The signers of an attestation that meets its conditions, or the reasons why it is missing."""

    name: str
    predicate_type: str
    is_met: bool
    by: tuple[str, ...]
    why: tuple[str, ...]
    signed_at: float | None = None


@dataclass(frozen=True, slots=True)
class JudgedAuthority:
    """Whether and when an authority has signed; else the reasons why not."""

    name: str
    has_signed: bool
    why: tuple[str, ...]
    signed_at: float | None = None


@dataclass(frozen=True, slots=True)
class PolicyJudgement:
    """The verdict of one policy on an image."""

    policy: str
    is_met: bool
    authorities: tuple[JudgedAuthority, ...]
    attestations: tuple[JudgedAttestation, ...]
    why: tuple[str, ...]


def examine(
    evidence: ImageEvidence,
    authority: SigningAuthority,
    root: TrustedRoot,
    predicates: frozenset[str],
    now: float,
) -> AuthorityFacts:
    """Returns the facts of one authority; ``predicates`` are the required predicate types.

    ``now`` serves as the time of a signature without a proven time, for certificates of the
    policy's own certificate authorities.
    """
    has_signed, statements, reasons = False, [], Counter[str]()
    signed_at: float | None = None
    for item in evidence.endorsements:
        kind = item.claim.predicate_type
        if kind and kind not in predicates:
            continue
        try:
            times = _check(item, evidence.digest, authority, root, now)
        except (NotTheirs, UntrustedCertificate, UntrustedEntry, UntrustedTimestamp) as error:
            reasons[f"{_ATTESTATION if kind else 'the signature'}: {error}"] += 1
            continue
        if not kind:
            has_signed = True
            signed_at = latest(signed_at, *times)
        else:
            assert item.claim.statement is not None
            statement = item.claim.statement
            statements.append(ProvenStatement(kind, statement, item.where, latest(*times)))
    return AuthorityFacts(has_signed, tuple(statements), _counted(reasons), signed_at)


def latest(*times: float | None) -> float | None:
    """Returns the latest of the known times; None if there is none."""
    return max((time for time in times if time is not None), default=None)


def _counted(reasons: Counter[str]) -> tuple[str, ...]:
    lines = [
        text if times == 1 else f"{text} ({times} times)"
        for text, times in reasons.most_common(REASONS_MAX)
    ]
    more = len(reasons) - REASONS_MAX
    return (*lines, f"and {more} more reasons") if more > 0 else tuple(lines)


def judge(
    policy: VerificationPolicy,
    image: Reference,
    evidence: ImageEvidence,
    facts: Sequence[AuthorityFacts],
    now: float,
) -> PolicyJudgement:
    """Counts signers and evaluates conditions.

    ``facts`` are in the order of the policy's authorities.
    """
    if policy.fault:
        return PolicyJudgement(policy.name, False, (), (), (policy.fault,))
    named = list(zip(policy.authorities, facts, strict=True))
    authorities = tuple(
        JudgedAuthority(
            authority.name,
            fact.has_signed,
            () if fact.has_signed else _why_unsigned(fact, evidence),
            fact.signed_at,
        )
        for authority, fact in named
    )
    attestations = tuple(
        _attested(required, policy, image, evidence, facts, now) for required in policy.attestations
    )
    why = []
    signers = [authority.name for authority in authorities if authority.has_signed]
    if policy.needs_signature and len(signers) < policy.count:
        missing = ", ".join(authority.name for authority in authorities if not authority.has_signed)
        expected = (
            "the authority" if len(authorities) == 1 else f"{policy.count} of the authorities"
        )
        why.append(f"it is not signed by {expected} of {policy.name}: missing is {missing}")
    why.extend(
        f"the attestation {attestation.name} is missing, or not as {policy.name} asks"
        for attestation in attestations
        if not attestation.is_met
    )
    return PolicyJudgement(policy.name, not why, authorities, attestations, tuple(why))


def _why_unsigned(facts: AuthorityFacts, evidence: ImageEvidence) -> tuple[str, ...]:
    """Returns the faults of the signatures, or that the image has none."""
    reasons = tuple(text for text in facts.reasons if not text.startswith(_ATTESTATION))
    return (*(reasons or ("there is no signature beside the image",)), *evidence.notes)


def _attested(
    required: RequiredAttestation,
    policy: VerificationPolicy,
    image: Reference,
    evidence: ImageEvidence,
    facts: Sequence[AuthorityFacts],
    now: float,
) -> JudgedAttestation:
    signers, why = [], Counter[str]()
    times: list[float | None] = []
    for authority, fact in zip(policy.authorities, facts, strict=True):
        statements = [
            statement
            for statement in fact.statements
            if statement.predicate_type == required.predicate_type
        ]
        if not statements:
            reasons = [reason for reason in fact.reasons if reason.startswith(_ATTESTATION)]
            for text in reasons or ["none of this predicate type"]:
                why[f"{authority.name}: {text}"] += 1
        faults = [
            _condition_fault(required, statement, image, evidence, now) for statement in statements
        ]
        if any(fault is None for fault in faults):
            signers.append(authority.name)
        times += [
            statement.signed_at
            for statement, fault in zip(statements, faults, strict=True)
            if fault is None
        ]
        for fault in faults:
            if fault is not None:
                why[f"{authority.name}: {fault}"] += 1
    is_met = len(signers) >= policy.count
    return JudgedAttestation(
        required.name,
        required.predicate_type,
        is_met,
        tuple(signers),
        () if is_met else _counted(why),
        latest(*times),
    )


def _condition_fault(
    required: RequiredAttestation,
    proven: ProvenStatement,
    image: Reference,
    evidence: ImageEvidence,
    now: float,
) -> str | None:
    described = {
        "reference": str(image),
        "registry": image.registry,
        "repository": image.repository,
        "tag": image.tag,
        "digest": evidence.digest,
    }
    for condition in required.conditions:
        fault = fault_of(condition, proven.statement, described, now)
        if fault is not None:
            return fault
    return None


def _check(
    item: Endorsement,
    digest: str,
    authority: SigningAuthority,
    root: TrustedRoot,
    now: float,
) -> list[float]:
    """Returns the proven times of a signature; raises unless the authority signed this image."""
    if digest not in item.claim.digests:
        raise NotTheirs("it is for another digest than the image's")
    if isinstance(authority.trust, KeyAuthority):
        signature = _signature_by(item, authority.trust.key, "it is not by this key")
        verifier = key_bytes(authority.trust.key)
        return _times(item, signature, verifier, root, needs_log=authority.needs_log)[0]
    leaf, chain = _certificates(item)
    try:
        key = key_of(leaf)
    except InvalidPublicKey as error:
        raise NotTheirs(f"the key of its certificate: {error}") from None
    signature = _signature_by(item, key, "it is not by the key of its certificate")
    times, why = _times(item, signature, der_of(leaf), root, needs_log=authority.needs_log)
    if isinstance(authority.trust, KeylessAuthority):
        _check_keyless(authority.trust, leaf, root, times, why)
    else:
        _check_certified(authority.trust, leaf, chain, times or [now])
    return times


def _signature_by(item: Endorsement, key: PublicKey, otherwise: str) -> bytes:
    for signature in item.signatures:
        if is_signed(key, signature, item.signed):
            return signature
    raise NotTheirs(otherwise)


def _certificates(item: Endorsement) -> tuple[x509.Certificate, tuple[x509.Certificate, ...]]:
    if not item.certificate:
        raise NotTheirs("it comes without a certificate")
    first, *more = read_certificates(item.certificate)
    above = read_certificates(item.chain) if item.chain else ()
    return first, (*more, *above)


def _times(
    item: Endorsement, signature: bytes, verifier: bytes, root: TrustedRoot, *, needs_log: bool
) -> tuple[list[float], str]:
    """Returns the proven times of a signature, and the reason if there is none.

    Raises :class:`~webhook.images.transparency.UntrustedEntry` if a log entry is required and none
    is valid.
    """
    signed = SignedThing(item.payload, signature, verifier, item.envelope)
    times, is_logged, why = [], False, ""
    for entry in item.entries:
        try:
            time = check_entry(entry, signed, root.logs)
        except UntrustedEntry as error:
            why = f"its log entry: {error}"
            continue
        is_logged = True
        if time is not None:
            times.append(time)
    if needs_log and not is_logged:
        raise UntrustedEntry(why or "it comes without an entry of a transparency log")
    for token in item.timestamps:
        try:
            stamped = item.stamped or signature
            times.append(check_timestamp(token, stamped, root.timestamp_authorities))
        except UntrustedTimestamp as error:
            why = why or str(error)
    return times, why


def _check_keyless(
    trust: KeylessAuthority,
    leaf: x509.Certificate,
    root: TrustedRoot,
    times: list[float],
    why: str,
) -> None:
    identity = identity_of(leaf)
    if not any(
        test.issuer(identity.issuer) and any(map(test.subject, identity.subjects))
        for test in trust.identities
    ):
        subjects = ", ".join(identity.subjects)[:200]
        raise NotTheirs(
            f"its certificate is for {subjects} by {identity.issuer[:200]}, "
            f"not {identity_texts(trust.identities)[:400]}"
        )
    if not times:
        raise NotTheirs(f"nothing proves when it was made{f': {why}' if why else ''}")
    for time in times:
        chain = _chain_of_root(leaf, root, time)
        if trust.needs_sct:
            check_logged(chain, root.certificate_logs)


def _chain_of_root(
    leaf: x509.Certificate, root: TrustedRoot, time: float
) -> list[x509.Certificate]:
    """Returns the chain to the first matching authority of the trusted root."""
    fault = UntrustedCertificate("no authority of the trusted root was believed at its time")
    for authority in root.authorities:
        if not authority.validity.holds(time):
            continue
        try:
            return build_chain(leaf, authority.chain[:-1], authority.chain[-1:], time)
        except UntrustedCertificate as error:
            fault = error
    raise UntrustedCertificate(f"its certificate: {fault}")


def _check_certified(
    trust: CertificateAuthority,
    leaf: x509.Certificate,
    chain: tuple[x509.Certificate, ...],
    times: list[float],
) -> None:
    for time in times:
        try:
            build_chain(leaf, chain, trust.roots, time)
        except UntrustedCertificate as error:
            raise UntrustedCertificate(f"its certificate: {error}") from None
    if trust.subject is not None:
        subjects = identity_of(leaf).subjects
        if not any(map(trust.subject, subjects)):
            raise NotTheirs(f"its certificate is for {', '.join(subjects)[:200] or 'nobody'}")

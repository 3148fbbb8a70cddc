"""The answer about an image: resolve, read, examine, judge; and its form as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api import timestamp
from webhook.images.collection import ImageRegistry, collect
from webhook.images.verification import PolicyJudgement, examine, judge, latest
from webhook.registry.errors import UntrustedContent
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.images.evidence import ImageEvidence
    from webhook.images.policy import VerificationPolicy
    from webhook.registry.reference import Reference


@dataclass(frozen=True, slots=True)
class ImageAnswer:
    """The facts about an image, and the judgement of each policy that applies to it."""

    reference: Reference
    digest: str
    judgements: tuple[PolicyJudgement, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_verified(self) -> bool:
        """Whether policies apply to the image, and all of them are satisfied."""
        return bool(self.judgements) and all(judgement.is_met for judgement in self.judgements)

    @property
    def why(self) -> tuple[str, ...]:
        """Returns the reasons why the image is not verified."""
        if not self.judgements:
            return ("no VerificationPolicy matches it",)
        return tuple(text for judgement in self.judgements for text in judgement.why)

    def value(self) -> dict[str, Any]:
        """Returns the provider's answer about the image."""
        return {
            "image": f"{self.reference.name}@{self.digest}",
            "digest": self.digest,
            "verified": self.is_verified,
            "by": sorted(
                {
                    authority.name
                    for judgement in self.judgements
                    for authority in judgement.authorities
                    if authority.has_signed
                }
            ),
            "attestations": [
                {
                    "name": item.name,
                    "predicateType": item.predicate_type,
                    "verified": item.is_met,
                    "by": list(item.by),
                    "signedAt": _written(item.signed_at),
                }
                for judgement in self.judgements
                for item in judgement.attestations
            ],
            "signedAt": _written(
                latest(
                    *(
                        authority.signed_at
                        for judgement in self.judgements
                        for authority in judgement.authorities
                    )
                )
            ),
            "mutable": not self.reference.digest,
            "why": list(self.why),
        }

    def document(self) -> dict[str, Any]:
        """Returns the answer as JSON, with the judgement of each policy by authority."""
        return {
            **self.value(),
            "policies": [_judgement(judgement) for judgement in self.judgements],
            "notes": list(self.notes),
        }


def _written(time: float | None) -> str:
    """Returns a time in RFC 3339; an empty text for None."""
    return "" if time is None else timestamp.text_of(time)


def _judgement(judgement: PolicyJudgement) -> dict[str, Any]:
    return {
        "policy": judgement.policy,
        "verified": judgement.is_met,
        "authorities": [
            {"name": authority.name, "signed": authority.has_signed, "why": list(authority.why)}
            for authority in judgement.authorities
        ],
        "attestations": [
            {"name": item.name, "verified": item.is_met, "why": list(item.why)}
            for item in judgement.attestations
        ],
    }


def verify(
    reference: Reference,
    evidence: ImageEvidence,
    policies: Sequence[VerificationPolicy],
    now: float,
) -> ImageAnswer:
    """Judges an image by the policies that apply to it, from evidence already read."""
    judgements = []
    for policy in policies_about(reference, policies):
        facts = [
            examine(evidence, authority, policy.root, policy.predicates, now)
            for authority in policy.authorities
        ]
        judgements.append(judge(policy, reference, evidence, facts, now))
    return ImageAnswer(reference, evidence.digest, tuple(judgements), evidence.notes)


def policies_about(
    reference: Reference, policies: Sequence[VerificationPolicy]
) -> list[VerificationPolicy]:
    """Returns the policies whose patterns match an image."""
    return [policy for policy in policies if policy.matches(reference)]


async def resolve(registry: ImageRegistry, reference: Reference) -> tuple[str, bytes]:
    """Returns the current digest of a reference, and the manifest.

    Raises :class:`~webhook.registry.errors.RegistryError`.
    """
    manifest = await registry.fetch(reference)
    digest = manifest.descriptor.digest
    if reference.digest and digest != reference.digest:
        raise UntrustedContent(f"{reference} has another digest: {digest}")
    return digest, manifest.content


async def answer_about(
    registry: ImageRegistry,
    reference: Reference,
    policies: Sequence[VerificationPolicy],
    now: float,
) -> ImageAnswer:
    """Reads from the registry, then judges; only resolves an image that no policy applies to.

    Raises :class:`~webhook.registry.errors.RegistryError`.
    """
    digest, manifest = await resolve(registry, reference)
    if not policies_about(reference, policies):
        return ImageAnswer(reference, digest, ())
    evidence = await collect(registry, reference.at(digest), manifest)
    return verify(reference, evidence, policies, now)


async def require_verified(
    registry: ImageRegistry,
    reference: Reference,
    policies: Sequence[VerificationPolicy],
    now: float,
) -> Reference:
    """Returns the reference with its digest if every policy for the image is satisfied.

    Otherwise raises :class:`~webhook.registry.errors.RegistryError` with all reasons.
    """
    answer = await answer_about(registry, reference, policies, now)
    if not answer.is_verified:
        reasons = [
            f"{judgement.policy}: {name}: {reason}"
            for judgement in answer.judgements
            for name, why in (
                *((authority.name, authority.why) for authority in judgement.authorities),
                *((item.name, item.why) for item in judgement.attestations),
            )
            for reason in why
        ]
        raise UntrustedContent(
            f"{answer.digest} is not verified: {'; '.join((*answer.why, *reasons))}"
        )
    return reference.at(answer.digest)

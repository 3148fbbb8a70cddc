"""``waddle verify-image``: whether images are signed as policies ask, and if not, why."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from webhook.cli import exit_codes
from webhook.cli.formats.words import output_option
from webhook.cli.images.options import ImagePlace, place_options
from webhook.cli.terminal import complain, styled, write
from webhook.printable import printable

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.images.answer import ImageAnswer
    from webhook.images.policy import VerificationPolicy
    from webhook.images.verification import JudgedAttestation, JudgedAuthority

_HELP = """Say whether images are signed as VerificationPolicies ask.

It shows who has signed, which authority is missing and why, and the attestations. Nothing is asked
but the image's registry; with --layout not even that.

\b
  waddle verify-image -f policy.yaml registry.example.com/team/app:1.4
  waddle verify-image -f policies/ --layout images/ registry.example.com/team/app:1.4 -o json
"""


@click.command("verify-image", help=_HELP + exit_codes.paragraph("verify-image"))
@click.argument("references", metavar="IMAGE...", nargs=-1, required=True)
@place_options
@output_option("table", "json")
def command(
    references: tuple[str, ...],
    *,
    policies: tuple[Path, ...],
    secrets: Path | None,
    place: ImagePlace,
    output: str,
) -> int:
    """Ask, decide, print."""
    # Here and not above: --help and a mistyped option need none of it.
    from webhook.cli.formats.document import as_json  # noqa: PLC0415
    from webhook.images.policy import InvalidVerificationPolicy  # noqa: PLC0415
    from webhook.images.policy_files import load_policies  # noqa: PLC0415

    if not policies:
        raise click.UsageError("no policies are given: add -f PATH")
    try:
        loaded = load_policies(policies, secrets)
    except InvalidVerificationPolicy as error:
        complain(str(error))
        return exit_codes.UNKNOWN
    outcomes = asyncio.run(_ask(references, place, loaded))
    answers = [outcome for _, outcome in outcomes if not isinstance(outcome, str)]
    if output == "json":
        write(as_json([_document(text, outcome) for text, outcome in outcomes]))
    else:
        for answer in answers:
            for line in _lines(answer):
                write(line)
    for text, fault in outcomes:
        if isinstance(fault, str):
            complain(f"{text}: {fault}")
    if len(answers) < len(outcomes):
        return exit_codes.UNKNOWN
    return exit_codes.OK if all(verdict.is_verified for verdict in answers) else exit_codes.NO


def _document(text: str, outcome: ImageAnswer | str) -> dict[str, Any]:
    if isinstance(outcome, str):
        return {"reference": text, "verified": False, "error": outcome}
    return {"reference": text, **outcome.document()}


async def _ask(
    references: tuple[str, ...], place: ImagePlace, policies: list[VerificationPolicy]
) -> list[tuple[str, ImageAnswer | str]]:
    """Returns each reference with its answer, or why there is none."""
    from webhook.images.answer import answer_about  # noqa: PLC0415  # as above
    from webhook.registry.errors import RegistryError  # noqa: PLC0415
    from webhook.registry.reference import parse_reference  # noqa: PLC0415

    outcomes: list[tuple[str, ImageAnswer | str]] = []
    try:
        async with place.open() as registry:
            for text in references:
                try:
                    reference = parse_reference(text)
                    answer = await answer_about(registry, reference, policies, time.time())
                except RegistryError as error:
                    outcomes.append((text, str(error)))
                else:
                    outcomes.append((text, answer))
    except RegistryError as error:
        return [(text, str(error)) for text in references]
    return outcomes


def _lines(answer: ImageAnswer) -> list[str]:
    """Returns the lines about one image, for people."""
    verified = answer.is_verified
    verdict = styled("verified", fg="green") if verified else styled("not verified", fg="red")
    lines = [f"{printable(str(answer.reference))}: {verdict}", f"  digest  {answer.digest}"]
    if not answer.reference.digest:
        lines.append("  mutable: the tag may name another image tomorrow; give the digest")
    if not answer.judgements:
        lines.append("  no VerificationPolicy matches it")
    for judgement in answer.judgements:
        lines.append(
            f"  policy {printable(judgement.policy)}: {'met' if judgement.is_met else 'not met'}"
        )
        for authority in judgement.authorities:
            lines += _part(authority, "signed" if authority.has_signed else "has not signed")
        for attestation in judgement.attestations:
            by = f"attested by {', '.join(attestation.by)}" if attestation.is_met else "missing"
            lines += _part(attestation, by)
    lines += [f"  note: {printable(note)}" for note in answer.notes]
    return lines


def _part(part: JudgedAuthority | JudgedAttestation, verdict: str) -> list[str]:
    return [
        f"    {printable(part.name)}: {printable(verdict)}",
        *(f"      {printable(reason)}" for reason in part.why),
    ]

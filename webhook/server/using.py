"""Checks the right to use the Providers that a submitted policy calls.

A Provider may hold confidential data, and its answers cost. With the annotation ``waddle.dev/use:
required`` on a Provider, the author of a template or mutator that calls it needs the verb ``use``
on it. The API server's authorizer is asked. If a template's text does not say which providers it
calls, its author needs the verb for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.constraint import template
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.external_data.provider import GROUP, DataProvider
from webhook.mutation.mutator import GROUP as MUTATIONS
from webhook.policies.provider_calls import (
    NOT_ENABLED,
    provider_of_mutator,
    providers_within_reach,
)
from webhook.server.excepting import missing_right
from webhook.server.submission import Inadmissible, brings_spec

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from webhook.api.admission import AdmissionRequest
    from webhook.server.preparation import AccessReader, Awaiting

VERB: Final = "use"
PLURAL: Final = "providers"


def check_use(
    request: AdmissionRequest,
    providers: Mapping[str, DataProvider],
    rights: AccessReader | None,
    until: float,
) -> Generator[Awaiting, None, Inadmissible | None]:
    """Returns why this user may not submit a policy; None if the user may.

    If the authorizer cannot be asked the policy is refused, because failing open would skip the
    check.
    """
    guarded = frozenset(name for name, provider in providers.items() if provider.is_guarded)
    if not guarded or rights is None or not brings_spec(request):
        return None
    names = sorted(guarded & _called_providers(request, guarded))
    if not names:
        return None
    accesses = [
        {"resourceAttributes": {"group": GROUP, "resource": PLURAL, "name": name, "verb": VERB}}
        for name in names
    ]
    answer = yield from missing_right(request, rights, accesses, until)
    if answer.fault:
        named = ", ".join(names)
        why = (
            f"the API server did not say whether {request.username} may use {named}: {answer.fault}"
        )
        return Inadmissible(503, why)
    if answer.lacks is None:
        return None
    return Inadmissible(
        403,
        f"{request.username} may not use the Provider {names[answer.lacks]}: grant the verb "
        f"{VERB} on {PLURAL}.{GROUP}",
    )


def check_is_on(request: AdmissionRequest) -> Inadmissible | None:
    """Returns why a mutator cannot be used where external data is turned off; None for any other.

    It would refuse every request that it matches, or write only its default.
    """
    calls = request.kind.group == MUTATIONS and provider_of_mutator(request.object or {})
    if not calls or not brings_spec(request):
        return None
    return Inadmissible(422, NOT_ENABLED)


def _called_providers(request: AdmissionRequest, guarded: frozenset[str]) -> frozenset[str]:
    """Returns the providers that a submitted template or mutator calls."""
    document: dict[str, Any] = request.object or {}
    if request.kind.group == MUTATIONS:
        return frozenset({provider_of_mutator(document)})
    if request.kind.group_kind != (template.GROUP, template.KIND):
        return frozenset()
    try:
        reach = providers_within_reach(template.read_template(document))
    except ConstraintFrameworkError:
        return frozenset()  # The checks of submissions refuse it.
    return guarded if reach is None else reach

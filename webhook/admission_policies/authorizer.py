"""Answers checks of rights from files: SubjectAccessReviews with the status that an API server gave.

A review answers a question with the same user, verb and resource. A field missing in its resource
(name, namespace, subresource, ...) must be empty in the question; ``*`` stands for anything. The
groups of a review must be among the user's. Of several matching reviews the one with the fewest
``*`` answers, and of these one that denies. ::

    kind: SubjectAccessReview
    spec: {user: ada, resourceAttributes: {verb: get, resource: pods, namespace: "*"}}
    status: {allowed: true, reason: she is on call}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import InvalidAdmissionPolicy
from webhook.api.shapes import object_of
from webhook.cel.errors import NoAuthorizer
from webhook.cel.library.authorizers import AccessDecision, authorizer, request_resource
from webhook.constraint.wildcard import WILDCARD
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.cel.library.authorizers import AccessQuestion

_RESOURCE: Final = {
    "verb": "verb",
    "group": "group",
    "resource": "resource",
    "subresource": "subresource",
    "namespace": "namespace",
    "name": "name",
}
_PATH: Final = {"verb": "verb", "path": "path"}


@dataclass(frozen=True, slots=True)
class AuthorizerAnswer:
    """A question to the authorizer and its answer.

    ``*`` in a field of the question matches anything.
    """

    user: str
    groups: frozenset[str]
    about: Mapping[str, str]
    """The fields of the question by name; all others are empty."""
    decision: AccessDecision

    @property
    def width(self) -> int:
        """Returns the number of wildcards in the question."""
        return [self.user or WILDCARD, *self.about.values()].count(WILDCARD)

    def is_about(self, question: AccessQuestion) -> bool:
        """Whether user, groups and attributes match a question."""
        if self.user not in {"", WILDCARD, question.user}:
            return False
        if not self.groups <= {*question.groups}:
            return False
        return all(
            given in {WILDCARD, getattr(question, name)} for name, given in self.about.items()
        )


class Answers:
    """The answers of SubjectAccessReviews in files."""

    def __init__(self, answers: Sequence[AuthorizerAnswer] = ()) -> None:
        self._answers = sorted(answers, key=lambda answer: (answer.width, answer.decision.allowed))

    def decide(self, question: AccessQuestion) -> AccessDecision:
        """Returns the best answer.

        Raises :class:`~webhook.cel.errors.NoAuthorizer` without one.
        """
        for answer in self._answers:
            if answer.is_about(question):
                return answer.decision
        raise NoAuthorizer(
            f"asks the authorizer {question}, which no SubjectAccessReview among the files answers"
        )


NO_ANSWERS: Final = Answers()


def read_answer(document: Mapping[str, Any]) -> AuthorizerAnswer:
    """Reads a SubjectAccessReview with its status.

    Raises :class:`~webhook.admission_policies.kinds.InvalidAdmissionPolicy`, whose text begins with
    the field.
    """
    spec = document.get("spec")
    if type(spec) is not dict:
        raise InvalidAdmissionPolicy("spec: is required")
    status = document.get("status")
    if type(status) is not dict or type(status.get("allowed")) is not bool:
        raise InvalidAdmissionPolicy("status.allowed: is required: true or false, what is answered")
    groups = spec.get("groups") or []
    if type(groups) is not list or any(type(group) is not str for group in groups):
        raise InvalidAdmissionPolicy("spec.groups: is not a list of names")
    if not spec.get("user") and not groups:
        raise InvalidAdmissionPolicy("spec.user: is required, or spec.groups; * is any user")
    decision = AccessDecision(
        status["allowed"], str(status.get("reason") or ""), str(status.get("evaluationError") or "")
    )
    return AuthorizerAnswer(str(spec.get("user") or ""), frozenset(groups), _about(spec), decision)


def _about(spec: Json) -> dict[str, str]:
    given = {name: spec[name] for name in _ATTRIBUTES if spec.get(name) is not None}
    if len(given) != 1:
        raise InvalidAdmissionPolicy(
            "spec.resourceAttributes: is required, or spec.nonResourceAttributes; not both"
        )
    ((at, attributes),) = given.items()
    if type(attributes) is not dict or not attributes.get("verb"):
        raise InvalidAdmissionPolicy(f"spec.{at}.verb: is required; * is any verb")
    fields = _ATTRIBUTES[at]
    unknown = attributes.keys() - fields.keys() - {"version"}
    if unknown:
        raise InvalidAdmissionPolicy(f"spec.{at}.{min(unknown)}: is not one of {', '.join(fields)}")
    empty = dict.fromkeys(_EVERY, "")
    return empty | {
        fields[name]: str(value or "") for name, value in attributes.items() if name in fields
    }


_ATTRIBUTES: Final[Mapping[str, Mapping[str, str]]] = {
    "resourceAttributes": _RESOURCE,
    "nonResourceAttributes": _PATH,
}
_EVERY: Final = {*_RESOURCE.values(), *_PATH.values()}


def authorizers(request: Json, answers: Answers) -> dict[str, Any]:
    """Returns the variables ``authorizer`` and ``authorizer.requestResource`` for a request."""
    user = object_of(request.get("userInfo"))
    groups = [group for group in user.get("groups") or () if type(group) is str]
    user_authorizer = authorizer(answers, str(user.get("username") or ""), groups)
    resource = object_of(request.get("resource"))
    about = {
        "group": resource.get("group"),
        "resource": resource.get("resource"),
        "subresource": request.get("subResource"),
        "namespace": request.get("namespace"),
        "name": request.get("name"),
    }
    return {
        "authorizer": user_authorizer,
        "authorizer.requestResource": request_resource(
            user_authorizer, **{name: str(value or "") for name, value in about.items()}
        ),
    }

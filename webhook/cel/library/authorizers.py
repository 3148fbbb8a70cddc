"""Asks in expressions who may do what (k8s.io/apiserver, pkg/cel/library/authz.go).

Keys of JSON Patches (jsonpatch.go) stand here, too, beside what else only a policy may ask.

Whoever evaluates gives the variables ``authorizer`` and ``authorizer.requestResource``, which
:func:`authorizer` and :func:`request_resource` make. They hold who answers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.values import Opaque
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cel.run.meter import Meter

_PREFIX: Final = "kubernetes.authorization."
AUTHORIZER: Final = f"{_PREFIX}Authorizer"
PATH_CHECK: Final = f"{_PREFIX}PathCheck"
GROUP_CHECK: Final = f"{_PREFIX}GroupCheck"
RESOURCE_CHECK: Final = f"{_PREFIX}ResourceCheck"
DECISION: Final = f"{_PREFIX}Decision"

CHECK_COST: Final = 350_000
"""Of one question: an expression may ask two (pkg/cel/library/cost.go)."""

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_NAME_MAX: Final = 63
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN_CHARACTERS: Final = 253


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """Whether somebody may do something. ``path`` is set where it is about no resource."""

    user: str
    groups: tuple[str, ...] = ()
    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""

    def __str__(self) -> str:
        """As a person asks it."""
        subject = self.path or ".".join(part for part in (self.resource, self.group) if part)
        subject += f"/{self.subresource}" if self.subresource else ""
        subject += f" {self.name}" if self.name else ""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"whether {self.user or 'nobody'} may {self.verb} {subject}{place}"


class AccessDecision(NamedTuple):
    """The answer to a check; ``error`` is why nobody could find out."""

    allowed: bool
    reason: str = ""
    error: str = ""


class Answerer(Protocol):
    """Answers checks of rights."""

    def decide(self, question: AccessQuestion) -> AccessDecision:
        """The answer; raises :class:`~webhook.cel.errors.NobodyAnswers`."""


class _Asking(NamedTuple):
    """A question as it is put together, and who is asked."""

    answerer: Answerer
    question: AccessQuestion


def authorizer(answerer: Answerer, user: str, groups: Sequence[str]) -> Opaque:
    """The variable ``authorizer`` of a request's user."""
    return Opaque(AUTHORIZER, _Asking(answerer, AccessQuestion(user, tuple(groups))))


def request_resource(of: Opaque, **about: str) -> Opaque:
    """The variable ``authorizer.requestResource``: the same about what a request is about."""
    return _more(RESOURCE_CHECK, of, **about)


def _more(type_name: str, of: Opaque, **about: str | tuple[str, ...]) -> Opaque:
    asking: _Asking = of.value
    changed = replace(asking.question, **about)  # type: ignore[arg-type]  # each of its field's type
    return Opaque(type_name, asking._replace(question=changed))


def _filled(text: str, field: str) -> str:
    if not text.strip():
        raise EvaluationError(f"{field} must not be empty")
    return text


@form("path", AUTHORIZER, str)
def path(of: Opaque, text: str) -> Opaque:
    """Begin a check about a path."""
    return _more(PATH_CHECK, of, path=_filled(text, "path"))


@form("group", AUTHORIZER, str)
def group(of: Opaque, text: str) -> Opaque:
    """Begin a check about an API group."""
    return _more(GROUP_CHECK, of, group=text)


@form("serviceAccount", AUTHORIZER, str, str)
def service_account(of: Opaque, namespace: str, name: str) -> Opaque:
    """Return an authorizer of a service account."""
    if len(name) > _SUBDOMAIN_CHARACTERS or _SUBDOMAIN.fullmatch(name) is None or ".." in name:
        raise EvaluationError("Invalid service account name")
    if len(namespace) > _NAME_MAX or _NAME.fullmatch(namespace) is None:
        raise EvaluationError("Invalid service account namespace")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return _more(AUTHORIZER, of, user=f"system:serviceaccount:{namespace}:{name}", groups=groups)


@form("resource", GROUP_CHECK, str)
def resource(of: Opaque, text: str) -> Opaque:
    """Begin a check about a resource."""
    return _more(RESOURCE_CHECK, of, resource=_filled(text, "resource"))


@form("subresource", RESOURCE_CHECK, str)
def subresource(of: Opaque, text: str) -> Opaque:
    """About a part of it."""
    return _more(RESOURCE_CHECK, of, subresource=text)


@form("namespace", RESOURCE_CHECK, str)
def namespace(of: Opaque, text: str) -> Opaque:
    """Asks about objects of one namespace only."""
    return _more(RESOURCE_CHECK, of, namespace=text)


@form("name", RESOURCE_CHECK, str)
def name(of: Opaque, text: str) -> Opaque:
    """Asks about one object, and not about all of the resource."""
    return _more(RESOURCE_CHECK, of, name=text)


@form("fieldSelector", RESOURCE_CHECK, str, charges=True)
def field_selector(meter: Meter, of: Opaque, text: str) -> Opaque:
    """Of those that a selector of fields selects."""
    meter.charge(10 + 25 * len(text))
    return _more(RESOURCE_CHECK, of, field_selector=text)


@form("labelSelector", RESOURCE_CHECK, str, charges=True)
def label_selector(meter: Meter, of: Opaque, text: str) -> Opaque:
    """Of those that a selector of labels selects."""
    meter.charge(10 + 25 * len(text))
    return _more(RESOURCE_CHECK, of, label_selector=text)


@form("check", PATH_CHECK, str, charges=True)
@form("check", RESOURCE_CHECK, str, charges=True)
def check(meter: Meter, of: Opaque, verb: str) -> Opaque:
    """The answer."""
    meter.charge(CHECK_COST - 1)
    asking: _Asking = of.value
    return Opaque(DECISION, asking.answerer.decide(replace(asking.question, verb=verb)))


@form("allowed", DECISION)
def allowed(of: Opaque) -> bool:
    """Whether they may."""
    return bool(of.value.allowed)


@form("reason", DECISION)
def reason(of: Opaque) -> str:
    """Why."""
    return str(of.value.reason)


@form("errored", DECISION)
def errored(of: Opaque) -> bool:
    """Whether it could not be found out."""
    return bool(of.value.error)


@form("error", DECISION)
def error(of: Opaque) -> str:
    """Why not."""
    return str(of.value.error)


@form("jsonpatch.escapeKey", str)
def escape_key(text: str) -> str:
    """A key as a path of a JSON Patch has it."""
    return text.replace("~", "~0").replace("/", "~1")

"""Checks of a user's rights in expressions (k8s.io/apiserver, pkg/cel/library/authz.go).

The escaping of JSON Patch keys (jsonpatch.go) is here, too: it is for policies only. The caller of
an evaluation sets the variables ``authorizer`` and ``authorizer.requestResource``.
:func:`authorizer` and :func:`request_resource` make them; they hold the :class:`Answerer`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.meter import Meter
from webhook.cel.run.values import Opaque
from webhook.values import dataclass

_PREFIX: Final = "kubernetes.authorization."
AUTHORIZER: Final = f"{_PREFIX}Authorizer"
PATH_CHECK: Final = f"{_PREFIX}PathCheck"
GROUP_CHECK: Final = f"{_PREFIX}GroupCheck"
RESOURCE_CHECK: Final = f"{_PREFIX}ResourceCheck"
DECISION: Final = f"{_PREFIX}Decision"

CHECK_COST: Final = 350_000
"""The cost of one check; an expression may have two (pkg/cel/library/cost.go)."""

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_NAME_MAX: Final = 63
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN_CHARACTERS: Final = 253


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """A question whether a user may use a verb. ``path`` is set for non-resource URLs."""

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
        """Returns the question as text."""
        subject = self.path or ".".join(part for part in (self.resource, self.group) if part)
        subject += f"/{self.subresource}" if self.subresource else ""
        subject += f" {self.name}" if self.name else ""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"whether {self.user or 'nobody'} may {self.verb} {subject}{place}"


class AccessDecision(NamedTuple):
    """The answer to a check; ``error`` is why the check failed."""

    allowed: bool
    reason: str = ""
    error: str = ""


class Answerer(Protocol):
    """Answers checks of rights."""

    def decide(self, question: AccessQuestion) -> AccessDecision:
        """Returns the answer; raises :class:`~webhook.cel.errors.NoAuthorizer`."""


class _AccessCheck(NamedTuple):
    """A check under construction: the question so far, and the answerer."""

    answerer: Answerer
    question: AccessQuestion


def authorizer(answerer: Answerer, user: str, groups: Sequence[str]) -> Opaque:
    """Returns the variable ``authorizer`` for the user of a request."""
    return Opaque(AUTHORIZER, _AccessCheck(answerer, AccessQuestion(user, tuple(groups))))


def request_resource(of: Opaque, **about: str) -> Opaque:
    """Returns the variable ``authorizer.requestResource``: a check of the request's resource."""
    return _more(RESOURCE_CHECK, of, **about)


def _more(type_name: str, of: Opaque, **about: str | tuple[str, ...]) -> Opaque:
    asking: _AccessCheck = of.value
    changed = replace(asking.question, **about)  # type: ignore[arg-type]  # each of its field's type
    return Opaque(type_name, asking._replace(question=changed))


def _filled(text: str, field: str) -> str:
    if not text.strip():
        raise EvaluationError(f"{field} must not be empty")
    return text


@form("path", AUTHORIZER, str)
def path(of: Opaque, text: str) -> Opaque:
    """Returns a check of a path."""
    return _more(PATH_CHECK, of, path=_filled(text, "path"))


@form("group", AUTHORIZER, str)
def group(of: Opaque, text: str) -> Opaque:
    """Returns a check of an API group."""
    return _more(GROUP_CHECK, of, group=text)


@form("serviceAccount", AUTHORIZER, str, str)
def service_account(of: Opaque, namespace: str, name: str) -> Opaque:
    """Returns an authorizer of a service account."""
    if len(name) > _SUBDOMAIN_CHARACTERS or _SUBDOMAIN.fullmatch(name) is None or ".." in name:
        raise EvaluationError("Invalid service account name")
    if len(namespace) > _NAME_MAX or _NAME.fullmatch(namespace) is None:
        raise EvaluationError("Invalid service account namespace")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return _more(AUTHORIZER, of, user=f"system:serviceaccount:{namespace}:{name}", groups=groups)


@form("resource", GROUP_CHECK, str)
def resource(of: Opaque, text: str) -> Opaque:
    """Returns a check of a resource."""
    return _more(RESOURCE_CHECK, of, resource=_filled(text, "resource"))


@form("subresource", RESOURCE_CHECK, str)
def subresource(of: Opaque, text: str) -> Opaque:
    """Returns the check for a subresource."""
    return _more(RESOURCE_CHECK, of, subresource=text)


@form("namespace", RESOURCE_CHECK, str)
def namespace(of: Opaque, text: str) -> Opaque:
    """Returns the check for one namespace."""
    return _more(RESOURCE_CHECK, of, namespace=text)


@form("name", RESOURCE_CHECK, str)
def name(of: Opaque, text: str) -> Opaque:
    """Returns the check for one object."""
    return _more(RESOURCE_CHECK, of, name=text)


@form("fieldSelector", RESOURCE_CHECK, str, charges=True)
def field_selector(meter: Meter, of: Opaque, text: str) -> Opaque:
    """Returns the check for objects that a field selector selects."""
    meter.charge(10 + 25 * len(text))
    return _more(RESOURCE_CHECK, of, field_selector=text)


@form("labelSelector", RESOURCE_CHECK, str, charges=True)
def label_selector(meter: Meter, of: Opaque, text: str) -> Opaque:
    """Returns the check for objects that a label selector selects."""
    meter.charge(10 + 25 * len(text))
    return _more(RESOURCE_CHECK, of, label_selector=text)


@form("check", PATH_CHECK, str, charges=True)
@form("check", RESOURCE_CHECK, str, charges=True)
def check(meter: Meter, of: Opaque, verb: str) -> Opaque:
    """Returns the decision on a verb."""
    meter.charge(CHECK_COST - 1)
    asking: _AccessCheck = of.value
    return Opaque(DECISION, asking.answerer.decide(replace(asking.question, verb=verb)))


@form("allowed", DECISION)
def allowed(of: Opaque) -> bool:
    """Returns whether the user is allowed."""
    return bool(of.value.allowed)


@form("reason", DECISION)
def reason(of: Opaque) -> str:
    """Returns the reason of the decision."""
    return str(of.value.reason)


@form("errored", DECISION)
def errored(of: Opaque) -> bool:
    """Returns whether the check failed."""
    return bool(of.value.error)


@form("error", DECISION)
def error(of: Opaque) -> str:
    """Returns why the check failed."""
    return str(of.value.error)


@form("jsonpatch.escapeKey", str)
def escape_key(text: str) -> str:
    """Returns a key, escaped for a JSON Patch path."""
    return text.replace("~", "~0").replace("/", "~1")

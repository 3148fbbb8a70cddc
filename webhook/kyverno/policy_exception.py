"""Kyverno's PolicyException for CEL policies: the policies, conditions and end of an exception."""

from __future__ import annotations

from typing import Final

from webhook.api import timestamp
from webhook.api.gvk import name_of, namespace_of
from webhook.api.shapes import Json
from webhook.cel.check.types import BOOL
from webhook.kyverno.compiling import compiled, environment, object_in, objects_in
from webhook.kyverno.kinds import InvalidPolicy

_REPORTED: Final = frozenset({"skip", "pass"})


class KyvernoException:
    """A compiled exception. It applies to an object if all its conditions hold."""

    def __init__(self, document: Json) -> None:
        """Raises :class:`InvalidPolicy`."""
        spec = object_in(document, "spec")
        self.name = name_of(document)
        self.namespace = namespace_of(document)
        self.policies = frozenset(
            (str(reference.get("kind") or ""), str(reference.get("name") or ""))
            for reference in objects_in(spec, "policyRefs")
        )
        if not self.policies:
            raise InvalidPolicy("spec.policyRefs is empty: it is about no policy")
        self.images = _texts(spec, "images")
        self.values = _texts(spec, "allowedValues")
        self.result = str(spec.get("reportResult") or "skip")
        if self.result not in _REPORTED:
            raise InvalidPolicy(f"spec.reportResult: {self.result!r} is neither skip nor pass")
        self.expires = str(spec.get("expiresAt") or "")
        self._expires = _time(spec.get("expiresAt"))
        conditions = environment({})
        self.conditions = [
            compiled(condition, "expression", conditions, (BOOL,), f"matchConditions[{at}]")[0]
            for at, condition in enumerate(objects_in(spec, "matchConditions"))
        ]

    @property
    def title(self) -> str:
        """Returns its name, with its namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def is_about(self, kind: str, name: str, at: float) -> bool:
        """Whether it names the policy and has not expired at a time, in seconds since 1970."""
        if self._expires is not None and self._expires <= at:
            return False
        return (kind, name) in self.policies


def _texts(spec: Json, field: str) -> list[str]:
    values = spec.get(field) or []
    if type(values) is not list or any(type(value) is not str for value in values):
        raise InvalidPolicy(f"spec.{field} is not a list of strings")
    return values


def _time(text: object) -> float | None:
    if text is None:
        return None
    try:
        return timestamp.seconds_of(str(text))
    except ValueError:
        raise InvalidPolicy(
            f"spec.expiresAt: {text!r} is not a time such as 2027-01-31T00:00:00Z"
        ) from None

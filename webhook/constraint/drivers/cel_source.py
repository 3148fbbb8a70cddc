"""The source of a template in CEL, as Gatekeeper reads it (pkg/drivers/k8scel/schema)."""

from __future__ import annotations

from typing import Any, Final

from webhook.constraint.errors import InvalidTemplate
from webhook.values import dataclass

RESERVED_PREFIX: Final = "gatekeeper_internal_"
PARAMS: Final = "params"
ANY_OBJECT: Final = "anyObject"
INVENTORY: Final = "inventory"
"""The name of the referential data, unless a template declares a variable of that name."""

_KEYS: Final = frozenset(
    {"validations", "variables", "matchCondition", "failurePolicy", "generateVAP"}
)

_KEYS_OF_VALIDATIONS: Final = frozenset({"expression", "message", "messageExpression", "reason"})
"""The keys of a validation. ``reason`` has no effect, as in Gatekeeper; it comes from Kubernetes'
policies.
"""

_KEYS_OF_NAMED: Final = frozenset({"name", "expression"})

SOURCE_MAX: Final = 100_000
"""Characters of all expressions of a template: fourteen times the largest one of the public
library; compiles in at most a few seconds.
"""


@dataclass(frozen=True, slots=True)
class Named:
    """A variable or a match condition."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Validation:
    """An expression that must be true, and the message if it is not."""

    expression: str
    message: str = ""
    message_expression: str = ""


@dataclass(frozen=True, slots=True)
class CelSource:
    """A template's source; ``fails`` is whether an error is a violation."""

    validations: tuple[Validation, ...]
    variables: tuple[Named, ...]
    match_conditions: tuple[Named, ...]
    fails: bool
    generate_vap: bool | None

    @property
    def has_inventory(self) -> bool:
        """Whether ``variables.inventory`` is referential data."""
        return all(variable.name != INVENTORY for variable in self.variables)


def read_source(source: Any, *, fails: bool = True) -> CelSource:
    """Reads a source; raises :class:`~webhook.constraint.errors.InvalidTemplate`.

    ``fails`` is the default failurePolicy.

    Unknown keys are refused. Gatekeeper ignores them, so that match conditions under a misspelt key
    would have no effect.
    """
    if type(source) is not dict:
        raise _invalid("source must be an object")
    _check_keys(source, "source", _KEYS)
    cel_source = CelSource(
        tuple(
            Validation(
                _text(item, "expression", at),
                _text(item, "message", at),
                _text(item, "messageExpression", at),
            )
            for at, item in _items(source, "validations", _KEYS_OF_VALIDATIONS)
        ),
        tuple(_named(item, at) for at, item in _items(source, "variables", _KEYS_OF_NAMED)),
        tuple(_named(item, at) for at, item in _items(source, "matchCondition", _KEYS_OF_NAMED)),
        _fails(source, by_default=fails),
        _switch(source, "generateVAP"),
    )
    _check_names(cel_source)
    _check_size(cel_source)
    return cel_source


def _check_names(source: CelSource) -> None:
    seen: set[str] = set()
    for variable in (*source.variables, *source.match_conditions):
        if variable.name.startswith(RESERVED_PREFIX):
            kind = "variable" if variable in source.variables else "match condition"
            raise _invalid(
                f'bad {kind}: {variable.name} is not a valid {kind}; cannot have "{RESERVED_PREFIX}" '
                "as a prefix"
            )
    for variable in source.variables:
        if variable.name in {PARAMS, ANY_OBJECT}:
            raise _invalid(f"bad variable: {variable.name} is a reserved name")
        if variable.name in seen:
            raise _invalid(f"bad variable: {variable.name} is there twice")
        seen.add(variable.name)


def _check_size(source: CelSource) -> None:
    texts = [variable.expression for variable in (*source.variables, *source.match_conditions)]
    for validation in source.validations:
        texts += [validation.expression, validation.message_expression]
    if sum(map(len, texts)) > SOURCE_MAX:
        raise _invalid(f"expressions of more than {SOURCE_MAX} characters")


def _invalid(message: str) -> InvalidTemplate:
    return InvalidTemplate(f"K8sNativeValidation: {message}")


def _check_keys(given: dict[str, Any], at: str, known: frozenset[str]) -> None:
    for key in given:
        if key not in known:
            hint = "; the key is matchCondition" if key == "matchConditions" else ""
            raise _invalid(f"{at}.{key}: unknown key{hint}, known: {', '.join(sorted(known))}")


def _items(
    source: dict[str, Any], name: str, known: frozenset[str]
) -> list[tuple[str, dict[str, Any]]]:
    value = source.get(name)
    if value is None:
        return []
    if type(value) is not list or not all(type(item) is dict for item in value):
        raise _invalid(f"source.{name} must be an array of objects")
    items = [(f"source.{name}[{index}]", item) for index, item in enumerate(value)]
    for at, item in items:
        _check_keys(item, at, known)
    return items


def _text(item: dict[str, Any], name: str, at: str) -> str:
    value = item.get(name)
    if value is None:
        return ""
    if type(value) is not str:
        raise _invalid(f"{at}.{name} must be a string")
    return value


def _named(item: dict[str, Any], at: str) -> Named:
    return Named(_text(item, "name", at), _text(item, "expression", at))


def _fails(source: dict[str, Any], *, by_default: bool) -> bool:
    value = source.get("failurePolicy")
    if value is None:
        return by_default
    if value not in {"Fail", "Ignore"}:
        raise _invalid(f"unrecognized failure policy: {value}; must be Fail or Ignore")
    return bool(value == "Fail")


def _switch(source: dict[str, Any], name: str) -> bool | None:
    value = source.get(name)
    if value is not None and type(value) is not bool:
        raise _invalid(f"source.{name} must be a boolean")
    return value

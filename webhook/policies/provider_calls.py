"""Finds the providers of external data in policies, and calls that never have an answer."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.gvk import GroupKind, gvk_of, name_of
from webhook.api.shapes import object_of, texts_of
from webhook.constraint.drivers.external_data import NAME
from webhook.policies.problem import Problem
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax import ast
from webhook.rego.syntax.parser import parse_module

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from webhook.constraint.template import Template
    from webhook.rego.syntax.ast import RegoVersion

PROVIDER: Final = GroupKind("externaldata.gatekeeper.sh", "Provider")

SET_KEYS: Final = "set_keys"
NO_PROVIDER: Final = "no_provider"
"""Codes of problems."""

NOT_ENABLED: Final = "external data feature flag is not enabled (--enable-external-data)"
"""The reason why a mutator that asks a provider cannot be used while external data is turned off."""

_SETS: Final = (ast.Set, ast.SetComprehension)


class ProviderCalls(NamedTuple):
    """The providers that a template calls, as far as their names are written out."""

    names: frozenset[str] = frozenset()
    set_lines: tuple[int, ...] = ()
    """Lines of calls with a set of keys."""


def provider_calls(template: Template) -> ProviderCalls:
    """Returns the calls of a template in Rego; none for an unreadable one.

    The check of templates reports the fault.
    """
    names: set[str] = set()
    lines: list[int] = []
    for code in (code for part in template.parts for code in part.code):
        for module in _modules(code.source):
            sets = {
                rule.head.ref.head.name
                for rule in module.rules
                if isinstance(rule.head.ref.head, ast.Var) and _is_partial_set(rule)
            }
            for rule in module.rules:
                assigned = sets | {name for term in _terms(rule) for name in _assigned_set(term)}
                for operand in _operands(rule):
                    names |= _provider(operand)
                    lines += _set_lines(operand, assigned)
    return ProviderCalls(frozenset(names), tuple(lines))


def provider_names(template: Template) -> frozenset[str]:
    """Returns the providers that a template names."""
    return provider_calls(template).names


def providers_within_reach(template: Template) -> frozenset[str] | None:
    """Returns every provider that a template can call; None if its text does not determine them."""
    names: set[str] = set()
    for code in (code for part in template.parts for code in part.code):
        for module in _modules(code.source):
            for rule in module.rules:
                written = 0
                for term in _terms(rule):
                    if isinstance(term, ast.Call) and term.operator == ast.Var(NAME):
                        fields_ = _all_providers(term)
                        if fields_ is None:
                            return None
                        written += 1
                        names |= fields_
                if written != sum(term == ast.Var(NAME) for term in _terms(rule)):
                    return None  # named without being called, as `with` does
    return frozenset(names)


def _all_providers(call: ast.Call) -> set[str] | None:
    """Returns the providers in a call's operand; None if they are not literal."""
    operand = call.args[0] if call.args else None
    if not isinstance(operand, ast.Object):
        return None
    if not all(isinstance(key, ast.String) for key, _ in operand.items):
        return None
    providers = list(_field(operand, "provider"))
    return (
        {provider.value for provider in providers}
        if all(isinstance(provider, ast.String) for provider in providers)
        else None
    )


def provider_of_mutator(document: Mapping[str, Any]) -> str:
    """Returns the provider of a mutator; empty for none."""
    parameters = object_of(object_of(document.get("spec")).get("parameters"))
    name = object_of(object_of(parameters.get("assign")).get("externalData")).get("provider")
    return name if isinstance(name, str) else ""


def advice_on_calls(template: Template) -> Iterator[Problem]:
    """Warns of calls in a template that never have answers: those with a set of keys."""
    for line in provider_calls(template).set_lines:
        message = (
            f"line {line}: {NAME} gets its keys as a set, which it never answers: its rule never "
            "fires. Give an array, as [key | key := keys[_]]"
        )
        yield Problem("ConstraintTemplate", template.name, "warning", SET_KEYS, message)


def advice_on_providers(
    templates: Iterable[Template],
    mutators: Iterable[Mapping[str, Any]],
    known: Collection[str],
) -> Iterator[Problem]:
    """Warns of named providers that do not exist."""
    named = [
        ("ConstraintTemplate", template.name, provider_names(template)) for template in templates
    ]
    named += [
        (
            gvk_of(mutator).kind,
            name_of(mutator),
            frozenset(filter(None, [provider_of_mutator(mutator)])),
        )
        for mutator in mutators
    ]
    for kind, name, providers in named:
        for provider in sorted(providers.difference(known)):
            message = f"it asks the provider {provider}, and no Provider of that name is here"
            yield Problem(kind, name, "warning", NO_PROVIDER, message)


# --- Rego -----------------------------------------------------------------------------------------


def _modules(source: Any) -> list[ast.Module]:
    if type(source) is not dict:
        return []
    version: RegoVersion = "v1" if source.get("version") == "v1" else "v0"
    texts: list[Any] = [source.get("rego"), *texts_of(source.get("libs"))]
    if not any(NAME in text for text in texts if type(text) is str):
        return []
    try:
        return [parse_module(text, "template", version) for text in texts]
    except (RegoErrors, TypeError):
        return []


def _terms(node: Any) -> Iterator[Any]:
    """Yields every part of a rule, itself included."""
    due = [node]
    while due:
        part = due.pop()
        if isinstance(part, tuple):
            due.extend(part)
        elif is_dataclass(part):
            yield part
            due.extend(getattr(part, field.name) for field in fields(part))


def _operands(rule: ast.Rule) -> Iterator[ast.Object]:
    """Yields the objects, written out, that calls are given."""
    assigned = {
        term.args[0].name: term.args[1]
        for term in _terms(rule)
        if _is_assignment(term) and isinstance(term.args[1], ast.Object)
    }
    for term in _terms(rule):
        if isinstance(term, ast.Call) and term.operator == ast.Var(NAME) and term.args:
            operand = term.args[0]
            if isinstance(operand, ast.Var):
                operand = assigned.get(operand.name, operand)
            if isinstance(operand, ast.Object):
                yield operand


def _field(operand: ast.Object, name: str) -> Iterator[Any]:
    for key, value in operand.items:
        if isinstance(key, ast.String) and key.value.casefold() == name:
            yield value


def _provider(operand: ast.Object) -> set[str]:
    return {term.value for term in _field(operand, "provider") if isinstance(term, ast.String)}


def _set_lines(operand: ast.Object, sets: Collection[str]) -> list[int]:
    return [
        operand.location.row
        for term in _field(operand, "keys")
        if isinstance(term, _SETS)
        or (isinstance(term, ast.Var) and term.name in sets)
        or _is_empty_set(term)
    ]


def _is_empty_set(term: Any) -> bool:
    return isinstance(term, ast.Call) and term.operator == ast.Var("set") and not term.args


def _is_assignment(term: Any) -> bool:
    return (
        isinstance(term, ast.Call)
        and term.operator in (ast.Var("assign"), ast.Var("eq"))
        and isinstance(term.args[0], ast.Var)
    )


def _assigned_set(term: Any) -> Iterator[str]:
    if _is_assignment(term) and (isinstance(term.args[1], _SETS) or _is_empty_set(term.args[1])):
        yield term.args[0].name


def _is_partial_set(rule: ast.Rule) -> bool:
    head = rule.head
    if head.args is not None:
        return False
    return head.contains or (head.key is not None and head.value is None)

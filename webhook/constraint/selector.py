"""Label selectors, compiled: ``matchLabels`` and ``matchExpressions``, all of which must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Labels = Mapping[str, str]
    Test = Callable[[Labels], bool]


def compile_selector(selector: Mapping[str, Any]) -> Callable[[Mapping[str, str]], bool]:
    """Compiles a valid selector to a function of labels; an empty selector always holds."""
    tests: list[Test] = []
    labels = selector.get("matchLabels") or {}
    if labels:
        tests.append(_equals(dict(labels)))
    tests += [_requirement(expression) for expression in selector.get("matchExpressions") or ()]
    if len(tests) == 1:
        return tests[0]
    return _every(tuple(tests))


def _every(tests: tuple[Test, ...]) -> Test:
    def every(labels: Labels) -> bool:
        return all(test(labels) for test in tests)

    return every


def _equals(expected: dict[str, str]) -> Test:
    items = tuple(expected.items())

    def equals(labels: Labels) -> bool:
        return all(labels.get(name) == value for name, value in items)

    return equals


def _requirement(expression: Mapping[str, Any]) -> Test:
    name = expression["key"]
    values = frozenset(expression.get("values") or ())
    match expression["operator"]:
        case "In":
            return lambda labels: labels.get(name) in values
        case "NotIn":
            return lambda labels: labels.get(name) not in values
        case "Exists":
            return lambda labels: name in labels
        case _:  # DoesNotExist, the last one that validation lets through
            return lambda labels: name not in labels

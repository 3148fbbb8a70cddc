"""The engine's door: compile modules, then evaluate rules and queries.

::

    module = parse_module(source, "policy.rego", "v1")
    program = compile_modules([module])
    violation = program.rule("data.policy.violation")
    violation({"review": review}, {}, EvaluationContext(deadline=monotonic() + 1))
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from webhook.rego.limits import EvaluationContext
from webhook.rego.values import UNDEFINED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.rego import ast
    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.values import Value

__all__ = [
    "UNDEFINED",
    "CompileOptions",
    "Entrypoint",
    "EvaluationContext",
    "Program",
    "compile_modules",
]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How to compile.

    A built-in in ``disabled_builtins`` does not exist: its use is ``undefined
    function http.send``. ``builtins`` adds to the registry's, or replaces.
    ``level`` is the OPA whose behaviour is wanted where versions differ.
    ``strict`` adds the checks of OPA's strict mode (unused locals and imports).
    """

    disabled_builtins: frozenset[str] = frozenset()
    builtins: Mapping[str, Builtin] = field(default_factory=lambda: MappingProxyType({}))
    level: str = "1.22"
    strict: bool = False


class Entrypoint:
    """One rule, ready to be evaluated: ``entrypoint(input, data, context)``.

    ``input_value`` may be :data:`UNDEFINED`. ``data`` holds the base documents,
    a plain JSON object that nobody changes meanwhile. The result is a value
    (a partial set is a :class:`~webhook.rego.values.RegoSet`) or
    :data:`UNDEFINED`. Raises :class:`~webhook.rego.errors.EvaluationError`.
    """

    def __call__(
        self, input_value: Value, data: dict[str, Value], context: EvaluationContext
    ) -> Value:
        """Evaluate the rule."""
        raise NotImplementedError


class Query:
    """A body ready to be evaluated: its solutions as bindings."""

    def __call__(
        self, input_value: Value, data: dict[str, Value], context: EvaluationContext
    ) -> list[dict[str, Value]]:
        """Every solution, each as variable name to value; wildcards left out."""
        raise NotImplementedError


class Program:
    """Compiled modules. Immutable; evaluations may share it freely."""

    def rule(self, path: str) -> Entrypoint:
        """The document at ``path`` (``data.pkg.violation``), a rule or a whole package."""
        raise NotImplementedError

    def has_rule(self, path: str) -> bool:
        """Whether a rule with exactly this path was compiled."""
        raise NotImplementedError

    def query(
        self, body: ast.Body, *, package: str = "", imports: Sequence[ast.Import] = ()
    ) -> Query:
        """Compile a query over these modules; raises :class:`~webhook.rego.errors.RegoErrors`."""
        raise NotImplementedError


def compile_modules(
    modules: Sequence[ast.Module],
    *,
    options: CompileOptions = CompileOptions(),  # frozen
) -> Program:
    """Compile modules that belong together; raises :class:`~webhook.rego.errors.RegoErrors`."""
    raise NotImplementedError

"""The engine's door: compile modules, then evaluate rules and queries.

::

    module = parse_module(source, "policy.rego", "v1")
    program = compile_modules([module])
    violation = program.rule("data.policy.violation")
    violation({"review": review}, {}, EvaluationContext(deadline=monotonic() + 1))
"""

from __future__ import annotations

import re
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.rego.builtins.registry import Builtin, available
from webhook.rego.check.tree import conflicts_with_data
from webhook.rego.code_cache import Codes, code_key, from_bytes
from webhook.rego.errors import DepthError, EngineFault, EvaluationError, RegoErrors
from webhook.rego.known import documents_of
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.runtime import MISSING
from webhook.rego.run.values import UNDEFINED, Value
from webhook.rego.syntax.ast import String, Var
from webhook.rego.syntax.parser import parse_ref
from webhook.rego.write.generate import Loaded, compile_parts
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType

    from webhook.rego.program import Compiled, DocumentPath
    from webhook.rego.syntax import ast

__all__ = [
    "UNDEFINED",
    "CompileOptions",
    "CompiledRule",
    "Entrypoint",
    "EvaluationContext",
    "Program",
    "Query",
    "compile_modules",
    "compile_rule",
    "load_rule",
    "specialise_modules",
]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How to compile.

    A built-in in ``disabled_builtins`` does not exist: its use is ``undefined function http.send``.
    ``builtins`` adds to the registry's, or replaces. ``level`` is the version of OPA to follow if
    versions differ. ``strict`` adds the checks of OPA's strict mode (unused locals and imports).
    ``annotations`` refuses wrong or repeated annotations, as OPA's commands do; otherwise they are
    refused only if a module reads annotations. ``queries`` will be evaluated with the modules: a
    reference to a document that the modules cannot define is refused, as OPA refuses it in a
    module. ``schemas`` describe documents by path: ``("schema",)`` describes the input.
    ``compile_parts`` makes code of generated source, function by function.
    """

    disabled_builtins: frozenset[str] = frozenset()
    builtins: Mapping[str, Builtin] = field(default_factory=lambda: MappingProxyType({}))
    level: str = "1.22"
    strict: bool = False
    annotations: bool = False
    queries: Sequence[ast.Body] = ()
    schemas: Mapping[tuple[str, ...], Any] | None = None
    compile_parts: Callable[[Sequence[str]], tuple[CodeType, ...]] = compile_parts


class Entrypoint(Protocol):
    """One rule, ready to be evaluated: ``entrypoint(input, data, context)``.

    ``input_value`` may be :data:`UNDEFINED`. ``data`` holds the base documents, a plain JSON object
    that must not change meanwhile. The result is a value (a partial set is a
    :class:`~webhook.rego.run.values.RegoSet`) or :data:`UNDEFINED`. Raises
    :class:`~webhook.rego.errors.EvaluationError`.
    """

    def __call__(
        self, input_value: Value, data: dict[str, Value], context: EvaluationContext, /
    ) -> Value:
        """Evaluates the rule."""


def _entrypoint(loaded: Loaded, documents: tuple[Value, ...] | None = None) -> Entrypoint:
    """Returns a plain function: called for every review, it costs half as much as a method.

    ``documents`` are known before an evaluation begins.
    """
    function = loaded.function
    blank = (MISSING,) * loaded.slots if documents is None else documents

    def evaluate(input_value: Value, data: dict[str, Value], context: EvaluationContext) -> Value:
        try:
            # As in runtime.new_state.
            result = function([input_value, data, context, None, (), False, *blank])
        except RecursionError:
            raise DepthError from None
        except (EvaluationError, MemoryError):
            raise
        except Exception as fault:  # of ours: it must cost one policy, and be seen as ours
            raise EngineFault(fault) from fault
        if context.error is not None:
            error, context.error = context.error, None
            error.answer = result
            raise error
        return result

    return evaluate


class CompiledRule:
    """One rule of a program, ready to be evaluated."""

    __slots__ = ("_loaded", "entry")

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.entry = _entrypoint(loaded)
        """For any input."""

    def for_parameters(self, parameters: Value) -> Entrypoint:
        """Returns the rule for inputs with these ``parameters``: their documents are computed now.

        Documents that take long, are large or end in an error are left to each evaluation.
        """
        known = documents_of(self._loaded, parameters)
        return self.entry if known is None else _entrypoint(self._loaded, known)


class Query:
    """A body ready to be evaluated: its solutions as bindings."""

    __slots__ = ("_entry", "_rule")

    def __init__(self, rule: CompiledRule, entry: Entrypoint | None = None) -> None:
        self._rule = rule
        self._entry = rule.entry if entry is None else entry

    def for_parameters(self, parameters: Value) -> Query:
        """Returns the query for inputs with these ``parameters`` (:meth:`Rule.for_parameters`)."""
        return Query(self._rule, self._rule.for_parameters(parameters))

    def __call__(
        self, input_value: Value, data: dict[str, Value], context: EvaluationContext
    ) -> list[dict[str, Value]]:
        """Returns every solution, each as variable name to value; wildcards left out."""
        solutions: list[dict[str, Value]] = self._entry(input_value, data, context)
        return solutions


_PLAIN_PATH: Final = re.compile(r"data(?:\.[A-Za-z_]\w*)*", re.ASCII)


class Program:
    """Compiled modules. Immutable; evaluations may share it freely."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._rules: dict[DocumentPath, CompiledRule] = {}

    def rule(self, path: str | DocumentPath) -> Entrypoint:
        """Returns the document at ``path``, a rule or a whole package.

        ``data.pkg.violation`` and ``data.pkg["a.b"].violation`` are paths, and so is a tuple of the
        names below ``data``. Raises ``KeyError`` if no rule or package has this path.
        """
        return self.document(path).entry

    def document(self, path: str | DocumentPath) -> CompiledRule:
        """Returns one compiled document; raises as :meth:`documents`."""
        return self.documents([path])[0]

    def documents(self, paths: Sequence[str | DocumentPath]) -> list[CompiledRule]:
        """Returns several documents, which share the functions used by more than one of them."""
        document_paths = [path_of(path) for path in paths]
        missing = [path for path in dict.fromkeys(document_paths) if path not in self._rules]
        for path, loaded in zip(missing, self._compiled.documents_at(missing), strict=True):
            self._rules[path] = CompiledRule(loaded)
        return [self._rules[path] for path in document_paths]

    def check_data(self, data: dict[str, Value]) -> None:
        """Refuses rules that stand where the base documents have something.

        Raises :class:`~webhook.rego.errors.RegoErrors`.
        """
        if faults := conflicts_with_data(self._compiled.tree, data):
            raise RegoErrors(faults)

    @property
    def compiled(self) -> Compiled:
        """The checked rules, for other evaluators."""
        return self._compiled

    @property
    def size(self) -> int:
        """Approximate bytes in memory of the code generated last."""
        generated = self._compiled.generated
        return 0 if generated is None else generated.size

    def has_rule(self, path: str | DocumentPath) -> bool:
        """Whether a rule with exactly this path was compiled."""
        node = self._compiled.node(path_of(path))
        return node is not None and bool(node.rules)

    def query(
        self, body: ast.Body, *, package: str = "", imports: Sequence[ast.Import] = ()
    ) -> Query:
        """Compiles a query over these modules; raises :class:`~webhook.rego.errors.RegoErrors`."""
        from webhook.rego.program import compile_query  # noqa: PLC0415  # see compile_rule

        return Query(CompiledRule(compile_query(self._compiled, body, package, imports)))


def path_of(path: str | DocumentPath) -> DocumentPath:
    """Returns the path below ``data`` of a reference such as ``data.pkg["a.b"].rule``.

    Raises ``KeyError`` for any other reference.
    """
    if not isinstance(path, str):
        return path
    if _PLAIN_PATH.fullmatch(path):
        return tuple(path.split(".")[1:])
    try:
        ref = parse_ref(path)
    except RegoErrors:
        raise KeyError(path) from None
    steps = [part.value for part in ref.path if isinstance(part, String)]
    if len(steps) < len(ref.path) or ref.head != Var("data"):
        raise KeyError(path)
    return tuple(steps)


def compile_modules(
    modules: Sequence[ast.Module], *, options: CompileOptions = CompileOptions()
) -> Program:
    """Compiles modules that belong together; raises :class:`~webhook.rego.errors.RegoErrors`."""
    from webhook.rego.program import compile_rules  # noqa: PLC0415  # see compile_rule

    return Program(compile_rules(modules, options))


def specialise_modules(
    modules: Sequence[ast.Module],
    parameters: Value,
    *,
    options: CompileOptions = CompileOptions(),
) -> Program | None:
    """Returns the modules for inputs whose ``parameters`` are these, and no others.

    They answer as :func:`compile_modules`'s would, sooner; but complaints of built-ins are
    undefined also in a strict evaluation. None where the modules replace the input
    (``with input as …``). Raises :class:`~webhook.rego.errors.RegoErrors`.
    """
    from webhook.rego.program import compile_rules, specialise  # noqa: PLC0415  # see compile_rule

    compiled = compile_rules(modules, options)
    return Program(compiled) if specialise(compiled, parameters) else None


def compile_rule(
    modules: Sequence[ast.Module],
    path: str,
    *,
    options: CompileOptions = CompileOptions(),
    cache: Codes | None = None,
) -> CompiledRule:
    """Returns the rule at ``path`` of these modules, loaded from the cache where it is there.

    Raises :class:`~webhook.rego.errors.RegoErrors`; ``KeyError`` where there is no such rule.
    """
    key = "" if cache is None else code_key(modules, path, options)
    if cache is not None and (stored := cache.load(key)) is not None:
        return CompiledRule(stored.load(_builtins(options)))
    # The compiler's stages take a fifth of a start, and cached rules need none of them.
    from webhook.rego.program import compile_rules  # noqa: PLC0415

    compiled = compile_rules(modules, options)
    rule = CompiledRule(compiled.document(path_of(path)))
    if cache is not None and compiled.generated is not None:
        cache.store(key, compiled.generated)
    return rule


def load_rule(
    body: bytes, key: str = "", *, options: CompileOptions, cache: Codes | None = None
) -> CompiledRule | None:
    """Returns a rule from code that another process compiled, with these options; None if unsound.

    It is stored in the cache under ``key``, as if it had been compiled here.
    """
    generated = from_bytes(body)
    if generated is None:
        return None
    if cache is not None and key:
        cache.store(key, generated)
    return CompiledRule(generated.load(_builtins(options)))


def _builtins(options: CompileOptions) -> Mapping[str, Builtin]:
    return available(options.builtins, options.disabled_builtins, options.level)

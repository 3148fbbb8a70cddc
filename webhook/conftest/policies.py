"""Loads and evaluates policies as conftest does (policy/engine.go)."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook.conftest import builtins, tracing
from webhook.conftest.result import (
    CheckResult,
    QueryResult,
    RuleResult,
    UnusableResult,
    findings_of,
)
from webhook.policies.rego_files import LoadErrors, RegoFiles, load
from webhook.printable import reason_of
from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.engine import UNDEFINED, CompileOptions, EvaluationContext, compile_modules
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.run.limits import UNBOUNDED_STEPS
from webhook.rego.run.values import RegoObject, RegoSet
from webhook.rego.syntax.unparse import unparse
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.rego.engine import Entrypoint, Program
    from webhook.rego.location import Location
    from webhook.rego.run.values import Value
    from webhook.rego.syntax.ast import Module, RegoVersion, Rule

_WARNING: Final = re.compile(r"warn(_[a-zA-Z0-9]+)*")
_FAILURE: Final = re.compile(r"(deny|violation)(_[a-zA-Z0-9]+)*")
_EXCEPTION: Final = "exception"


class ConftestPolicyError(Exception):
    """Policies cannot be loaded, or failed on a file; the message has all details."""


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """The options of loading policies; ``capabilities`` is the path of a file, or empty."""

    version: RegoVersion = "v1"
    strict: bool = False
    capabilities: str = ""
    builtin_errors: bool = False
    seconds_max: float = 60.0
    """The longest time of one query."""
    runtime: dict[str, Any] = field(default_factory=dict)
    trace: bool = False


def load_files(
    policies: Sequence[str], documents: Sequence[str], version: RegoVersion
) -> RegoFiles:
    """Returns the modules and data at these paths; raises :class:`ConftestPolicyError`."""
    try:
        sources = [path for path in policies if path.endswith(".rego") or not Path(path).is_file()]
        modules = load(sources, version=version, documents=False).modules
    except LoadErrors as errors:
        raise ConftestPolicyError(f"loading policies: load: {errors}") from None
    if not modules:
        raise ConftestPolicyError(f"loading policies: no policies found in [{' '.join(policies)}]")
    try:
        data = load(documents, version=version).data if documents else {}
    except LoadErrors as errors:
        raise ConftestPolicyError(f"load documents: {errors}") from None
    return RegoFiles(modules, data)


def compile_options(options: PolicyOptions) -> CompileOptions:
    """Returns the options with conftest's built-ins, without those that a capabilities file omits.

    Raises :class:`ConftestPolicyError`.
    """
    disabled: frozenset[str] = frozenset()
    if options.capabilities:
        allowed = _allowed(options.capabilities)
        disabled = frozenset(name for name in (*BUILTINS, *builtins.TABLE) if name not in allowed)
    added = {**builtins.TABLE, **tracing.TABLE} if options.trace else builtins.TABLE
    return CompileOptions(disabled_builtins=disabled, builtins=added, strict=options.strict)


def prepared(modules: Iterable[Module], options: PolicyOptions) -> list[Module]:
    """Returns the modules prepared for compiling."""
    placed = map(builtins.placed, modules)
    return [tracing.traced(module) if options.trace else module for module in placed]


def _allowed(path: str) -> set[str]:
    try:
        document = json.loads(Path(path).read_bytes())
        return {builtin["name"] for builtin in document["builtins"]} | builtins.PRIVATE
    except (TypeError, KeyError):
        why = "expected an object with a list of builtins, each with a name"
    except (OSError, ValueError, RecursionError) as error:
        why = reason_of(error)
    raise ConftestPolicyError(f"load capabilities: {path}: {why}")


def compiled(files: RegoFiles, options: PolicyOptions) -> Program:
    """Returns the program of all modules; raises :class:`ConftestPolicyError`."""
    check_heads(files.modules)
    try:
        return compile_modules(prepared(files.modules, options), options=compile_options(options))
    except RegoErrors as errors:
        raise ConftestPolicyError(f"loading policies: get compiler: {errors}") from None


def check_heads(modules: Iterable[Module]) -> None:
    """Refuses rules that make objects instead of sets; raises :class:`ConftestPolicyError`."""
    for module in modules:
        for rule in module.rules:
            if _is_problematic(rule):
                raise ConftestPolicyError(
                    "loading policies: rule is using 'if' keyword without 'contains' keyword: "
                    f"rule in {module.file} at line {rule.location.row}"
                )


def _is_problematic(rule: Rule) -> bool:
    """Whether a rule such as ``deny[msg] if`` makes an object instead of a set."""
    head = rule.head
    name = getattr(head.ref.head, "name", "")
    if not head.ref.path or head.key is not None or head.value is not None or rule.default:
        return False
    return bool(_FAILURE.fullmatch(name) or _WARNING.fullmatch(name))


def namespace_of(module: Module) -> str:
    """Returns the package without its ``data.``."""
    return unparse(module.package).removeprefix("data.")


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of a namespace: entries by name, their number, and the entry of exceptions.

    ``functions`` are the names that are functions: they cannot be queried.
    """

    entries: dict[str, Entrypoint]
    count: int
    exceptions: Entrypoint | None
    functions: frozenset[str] = frozenset()


class ConftestPolicies:
    """Loaded policies, compiled once for all files. Raises :class:`ConftestPolicyError`."""

    def __init__(self, files: RegoFiles, options: PolicyOptions) -> None:
        self._modules = files.modules
        self._data = files.data
        self._options = options
        self._program = compiled(files, options)
        self._rules: dict[str, _Rules] = {}
        self._services = services(files.modules)

    @property
    def namespaces(self) -> list[str]:
        """Returns every namespace once, in the order of files."""
        return list(dict.fromkeys(map(namespace_of, self._modules)))

    def check(self, path: str, documents: Iterable[Value], namespace: str) -> CheckResult:
        """Checks a file by the rules of a namespace; raises :class:`ConftestPolicyError`."""
        rules = self._of(namespace)
        data = {**self._data, "conftest": _with_file(self._data.get("conftest"), path)}
        place = CheckResult(path, namespace)
        for document in documents:
            place.add(self._check(path, document, data, namespace, rules))
        return place

    def _of(self, namespace: str) -> _Rules:
        if namespace not in self._rules:
            self._rules[namespace] = self._compiled(namespace)
        return self._rules[namespace]

    def _compiled(self, namespace: str) -> _Rules:
        modules = [module for module in self._modules if namespace_of(module) == namespace]
        names = [name for module in modules for name in map(_name, module.rules) if _is_query(name)]
        if not names:
            return _Rules({}, 0, None)
        unique = list(dict.fromkeys(names))
        package = tuple(str(part.value) for part in modules[0].package.path)  # type: ignore[union-attr]
        paths = [(*package, name) for name in unique]
        has_exceptions = True
        try:
            self._program.document((*package, _EXCEPTION))
        except KeyError:
            has_exceptions = False
        else:
            paths.append((*package, _EXCEPTION))
        entries = [rule.entry for rule in self._program.documents(paths)]
        exceptions = entries.pop() if has_exceptions else None
        functions = frozenset(
            _name(rule) for module in modules for rule in module.rules if rule.head.args is not None
        )
        return _Rules(dict(zip(unique, entries, strict=True)), len(names), exceptions, functions)

    def _check(
        self, path: str, document: Value, data: dict[str, Value], namespace: str, rules: _Rules
    ) -> CheckResult:
        result = CheckResult(path, namespace)
        successes = 0
        excused, printed, lines = self._exceptions(document, data, namespace, rules)
        for name, entry in rules.entries.items():
            if name in rules.functions:
                raise _called_nowhere("query rule", f"data.{namespace}.{name}")
            query = f'data.{namespace}.{_EXCEPTION}[_][_] == "{without_prefix(name)}"'
            count = excused.get(without_prefix(name), 0)
            exceptions = [RuleResult(query)] * count
            result.queries.append(QueryResult(query, tuple(exceptions), lines, printed))
            result.exceptions += exceptions
            document_path = f"data.{namespace}.{name}"
            value, printed_here, traced = self._evaluated(entry, document, data, "query rule")
            try:
                findings = findings_of(value, document_path)
            except UnusableResult as error:
                raise ConftestPolicyError(f"query rule: {error}") from None
            result.queries.append(QueryResult(document_path, tuple(findings), traced, printed_here))
            if exceptions:
                continue
            wrong = [finding for finding in findings if not finding.passed]
            successes += len(findings) - len(wrong)
            (result.failures if _FAILURE.fullmatch(name) else result.warnings).extend(wrong)
        others = len(result.failures) + len(result.warnings) + len(result.exceptions)
        result.successes = max(successes, rules.count - others)
        return result

    def _exceptions(
        self, document: Value, data: dict[str, Value], namespace: str, rules: _Rules
    ) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
        """Returns the number of exceptions by rule name, the printed lines, and the trace."""
        printed: tuple[str, ...] = ()
        lines: tuple[str, ...] = ()
        if _EXCEPTION in rules.functions:
            raise _called_nowhere("query exception", f"data.{namespace}.{_EXCEPTION}[_][_]")
        if rules.exceptions is not None:
            value, printed, lines = self._evaluated(
                rules.exceptions, document, data, "query exception"
            )
        else:
            value = _base(data, (*namespace.split("."), _EXCEPTION))
        counted: dict[str, int] = {}
        for inner in _elements(value):
            for name in _elements(inner):
                if type(name) is str:
                    counted[name] = counted.get(name, 0) + 1
        return counted, printed, lines

    def _evaluated(
        self, entry: Entrypoint, document: Value, data: dict[str, Value], query: str
    ) -> tuple[Value, tuple[str, ...], tuple[str, ...]]:
        """Returns the value, the printed lines, and the trace."""
        printed: list[str] = []
        lines: list[str] = []
        context = EvaluationContext(
            deadline=time.monotonic() + self._options.seconds_max,
            steps=UNBOUNDED_STEPS,
            print_=_sink(printed),
            strict=self._options.builtin_errors,
            services={**self._services, tracing.SERVICE: lines}
            if self._options.trace
            else self._services,
            runtime=self._options.runtime,
        )
        try:
            return entry(document, data, context), tuple(printed), tuple(lines)
        except EvaluationError as error:
            text = builtins.named(error)
            if self._options.builtin_errors and error.code == "eval_builtin_error":
                raise ConftestPolicyError(f"{query}: built-in error: [{text}]") from None
            raise ConftestPolicyError(f"{query}: evaluating policy: {text}") from None


def _called_nowhere(query: str, path: str) -> ConftestPolicyError:
    """Returns the error for a function in the place of a rule, in OPA's words."""
    return ConftestPolicyError(
        f"{query}: evaluating policy: 1 error occurred: 1:1: rego_type_error: "
        f"function {path} used as reference, not called"
    )


def _sink(printed: list[str]) -> Callable[[Location, str], None]:
    return lambda place, line: printed.append(f"{place}: {line}\n")


def services(modules: Iterable[Module]) -> dict[str, Any]:
    """Returns the services that these policies need.

    An HTTP client for the whole network, as in conftest.
    """
    if not any("http.send" in module.source for module in modules):
        return {}
    from webhook.rego.builtins.http.client import HttpClient  # noqa: PLC0415  # loads TLS

    return {"http": HttpClient(None)}


def _with_file(given: Value, path: str) -> dict[str, Value]:
    """Returns ``data.conftest`` with the file's name and folder."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100  # as Go's filepath.Abs
    result = {"file": {"name": name, "dir": folder}}
    return {**given, **result} if isinstance(given, dict) else result


def _name(rule: Rule) -> str:
    """Returns the name that OPA gives a rule: ``p[x] = y`` has one, ``p.q.r`` and ``p[x] if`` none."""
    head, ref = rule.head, rule.head.ref
    has_key = len(ref.path) == 1 and head.args is None and head.value is not None
    return str(getattr(ref.head, "name", "")) if has_key or not ref.path else ""


def _is_query(name: str) -> bool:
    return bool(_FAILURE.fullmatch(name) or _WARNING.fullmatch(name))


def without_prefix(name: str) -> str:
    """Returns a rule's name in the form of exceptions."""
    if name in {"violation", "deny", "warn"}:
        return ""
    for prefix in ("violation_", "deny_", "warn_"):
        name = name.removeprefix(prefix)
    return name


def _elements(value: Value) -> Iterable[Value]:
    if type(value) is RegoSet or type(value) is list:
        return value
    if isinstance(value, dict | RegoObject):
        return [item for _, item in value.items()]
    return ()


def _base(data: Value, path: Iterable[str]) -> Value:
    for name in path:
        if not isinstance(data, dict) or name not in data:
            return UNDEFINED
        data = data[name]
    return data

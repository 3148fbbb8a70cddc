"""A query, evaluated and printed as ``opa eval`` does."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook.cli import exit_codes
from webhook.cli.rego.check_run import document
from webhook.cli.rego.context import runtime, version_of
from webhook.cli.rego.report import fault
from webhook.cli.table import framed
from webhook.cli.terminal import complain, printable, write
from webhook.policies.rego_files import LoadErrors, load, read_document
from webhook.rego.engine import UNDEFINED, CompileOptions, EvaluationContext, compile_modules
from webhook.rego.errors import BuiltinError, EvaluationError, RegoErrors
from webhook.rego.results import ResultQuery
from webhook.rego.run.limits import UNBOUNDED_STEPS
from webhook.rego.run.text import json_of_affordable, laid_out
from webhook.rego.syntax.parser import parse_module, parse_ref
from webhook.rego.syntax.unparse import unparse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.rego.results import Solution
    from webhook.rego.syntax.ast import Import, RegoVersion

_ERRORS_MAX: Final = 10
"""How many faults of sources are told, as OPA's compiler has it where nobody says."""


def run(  # noqa: PLR0913  # one for each option of the command
    query: str,
    *,
    paths: tuple[str, ...],
    input_path: str | None,
    stdin_input: bool,
    output: str,
    package: str,
    imported: tuple[str, ...],
    fail: bool,
    fail_defined: bool,
    strict: bool,
    strict_builtin_errors: bool,
    timeout: float,
    bundles: tuple[str, ...],
    ignore: tuple[str, ...],
    v0_compatible: bool,
    v1_compatible: bool,
) -> int:
    """Load, evaluate and print."""
    del v1_compatible
    version = version_of(v0_compatible=v0_compatible)
    try:
        files = load([*paths, *bundles], version=version, ignore=ignore, bundles=bool(bundles))
        program = compile_modules(
            files.modules, options=CompileOptions(strict=strict, annotations=True)
        )
        program.check_data(files.data)
        asked = ResultQuery(
            program,
            query,
            version=version,
            package=_package(package),
            imports=_imports(imported, version),
        )
        given = _input(input_path, stdin_input=stdin_input)
        context = EvaluationContext(
            deadline=time.monotonic() + timeout if timeout else None,
            steps=UNBOUNDED_STEPS,
            print_=lambda _, line: complain(line),
            strict=strict_builtin_errors,
            runtime=runtime(),
        )
        solutions = list(asked(given, files.data, context))
    except RegoErrors as errors:
        _refuse(errors.limited(_ERRORS_MAX), output)
        return exit_codes.UNKNOWN
    except (LoadErrors, EvaluationError, BuiltinError, OSError) as error:
        _refuse(error, output)
        return exit_codes.UNKNOWN
    text = _FORMATS[output](solutions)
    if text:
        write(text)
    return 1 if (fail and not solutions) or (fail_defined and solutions) else 0


def _package(text: str) -> str:
    return unparse(parse_ref(text if text.startswith("data.") else f"data.{text}")) if text else ""


def _imports(paths: Sequence[str], version: RegoVersion) -> tuple[Import, ...]:
    lines = "".join(f"import {path}\n" for path in paths)
    return parse_module(f"package query\n{lines}", "", version).imports


def _input(path: str | None, *, stdin_input: bool) -> Any:
    if stdin_input or path == "-":
        return read_document("-", sys.stdin.read())
    if path is None:
        return UNDEFINED
    return read_document(path, Path(path).read_text("utf-8", "surrogateescape"))


def _words(error: OSError) -> str:
    """What the system says of a file, as OPA has it."""
    return f"open {error.filename}: {(error.strerror or str(error)).lower()}"


def _refuse(error: Exception, output: str) -> None:
    """Say what is wrong where OPA says it: in the result for JSON, else on standard error."""
    if output != "json":
        complain(_words(error) if isinstance(error, OSError) else str(error))
        return
    told: list[dict[str, Any]]
    match error:
        case RegoErrors():
            told = [document(one) for one in error.errors]
        case EvaluationError():
            told = [fault(error)]
        case LoadErrors():
            told = [{"message": message} for message in error.messages]
        case OSError():
            told = [{"message": _words(error)}]
        case _:
            told = [{"message": str(error)}]
    write(laid_out({"errors": told}, "", "  "))


# --- formats ---------------------------------------------------------------------------------


def _as_json(solutions: list[Solution]) -> str:
    result = []
    for solution in solutions:
        shown: dict[str, Any] = {
            "expressions": [
                {
                    "value": one.value,
                    "text": one.text,
                    "location": {"row": one.location.row, "col": one.location.col},
                }
                for one in solution.expressions
            ]
        }
        if solution.bindings:
            shown["bindings"] = solution.bindings
        result.append(shown)
    return laid_out({"result": result} if result else {}, "", "  ")


def _as_values(solutions: list[Solution]) -> str:
    return "\n".join(
        laid_out([one.value for one in solution.expressions], "", "  ") for solution in solutions
    )


def _as_bindings(solutions: list[Solution]) -> str:
    return "\n".join(laid_out(solution.bindings, "", "  ") for solution in solutions)


def _as_raw(solutions: list[Solution]) -> str:
    return printable(
        "\n".join(
            " ".join(
                one.value if isinstance(one.value, str) else json_of_affordable(one.value)
                for one in solution.expressions
            )
            for solution in solutions
        )
    )


def _as_text(solutions: list[Solution]) -> str:
    if not solutions:
        return "undefined"
    first = solutions[0]
    plain = len(solutions) == 1 and not first.bindings
    if plain and (
        len(first.expressions) == 1 or all(isinstance(one.value, bool) for one in first.expressions)
    ):
        return laid_out(first.expressions[0].value, "", "  ")
    columns = _columns(solutions)
    rows = [[columns_of(name) for columns_of in columns.values()] for name in solutions]
    return "\n".join(framed(list(columns), rows))


def _columns(solutions: list[Solution]) -> dict[str, Any]:
    """Expressions that have values of their own, then variables."""
    getters: dict[str, Any] = {}
    for number, one in enumerate(solutions[0].expressions):
        if not isinstance(one.value, bool) or not solutions[0].bindings:
            getters[one.text] = lambda s, n=number: json_of_affordable(s.expressions[n].value)
    for name in sorted(solutions[0].bindings):
        getters[name] = lambda s, n=name: json_of_affordable(s.bindings.get(n))
    return getters


_FORMATS: Final[dict[str, Callable[[list[Solution]], str]]] = {
    "json": _as_json,
    "values": _as_values,
    "bindings": _as_bindings,
    "pretty": _as_text,
    "raw": _as_raw,
    "discard": lambda _: "",
}

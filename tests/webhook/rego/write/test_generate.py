"""Generated code has one line; an error for code that CPython cannot compile says what is too large."""

from collections.abc import Sequence
from types import CodeType
from typing import Any

import pytest

from webhook.rego.engine import CompileOptions, compile_modules
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.parser import parse_module
from webhook.rego.write import generate


def without_memory(parts: Sequence[str]) -> tuple[CodeType, ...]:
    """Raises as CPython's compiler does without memory, or with its parser's stack exhausted."""
    raise MemoryError


def compiled(source: str) -> None:
    """Compile one rule."""
    module = parse_module(f"package a\n{source}", "f.rego")
    compile_modules([module], options=CompileOptions(compile_parts=without_memory)).rule("data.a.p")


def test_a_large_policy_that_memory_lacks_for_is_not_called_nested():
    with pytest.raises(MemoryError):
        compiled("\n".join(f"p contains {n} if input.x{n} == [[{n}]]" for n in range(200)))


def test_a_policy_that_is_nested_is_called_nested():
    with pytest.raises(RegoErrors, match="nested too deeply"):
        compiled(f"p := {'[' * 110}input.a{']' * 110}")


def test_a_function_is_kept_with_its_first_line_alone(monkeypatch):
    ran: list[CodeType] = []

    def noting(code: CodeType, names: dict[str, Any]) -> None:
        ran.append(code)
        exec(code, names)

    monkeypatch.setattr(generate, "exec", noting, raising=False)
    module = parse_module("package a\nf(x) := [y | y := x[_]; y > 1]\np := f(input.x)", "f.rego")
    compile_modules([module]).rule("data.a.p")
    pending = list(ran)
    assert pending
    while pending:
        code = pending.pop()
        assert {line for *_, line in code.co_lines()} == {code.co_firstlineno}
        # Each instruction has a position, or else a traceback through it cannot be printed.
        assert len(list(code.co_positions())) == len(code.co_code) // 2
        pending += [value for value in code.co_consts if isinstance(value, CodeType)]

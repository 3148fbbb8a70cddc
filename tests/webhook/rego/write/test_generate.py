"""An error for code that CPython cannot compile says what is too large."""

from collections.abc import Sequence
from types import CodeType

import pytest

from webhook.rego.engine import CompileOptions, compile_modules
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.parser import parse_module


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

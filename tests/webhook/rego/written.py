"""The code written for a rule before CPython compiles it."""

from collections.abc import Sequence
from types import CodeType
from typing import Literal

from webhook.rego.engine import CompileOptions, Entrypoint, compile_modules
from webhook.rego.syntax.parser import parse_module
from webhook.rego.write.generate import compile_parts


def written(source: str, path: str, version: Literal["v0", "v1"] = "v1") -> tuple[Entrypoint, str]:
    """A rule of a module, and the Python it is."""
    texts: list[str] = []

    def seen(parts: Sequence[str]) -> tuple[CodeType, ...]:
        texts.extend(parts)
        return compile_parts(parts)

    module = parse_module(source, "m.rego", version)
    program = compile_modules([module], options=CompileOptions(compile_parts=seen))
    return program.rule(path), "\n".join(texts)

r"""The Rego language: source text in, Python functions out.

The inputs are Rego source, JSON values as decoded by orjson (``input`` and ``data``) and limits.
The outputs are values of the same kind, or an error with OPA's code and position. The package does
not depend on Kubernetes, templates or HTTP. It does no I/O, except in built-ins for it, which are
off unless a caller passes a transport.

The names below are the public interface of the language (``docs/rego.md`` lists more of them); each
is imported at its first use.

>>> from webhook.rego import parse_module
>>> len(parse_module("package a\nx := 1").rules)
1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from webhook.rego.engine import UNDEFINED as UNDEFINED
    from webhook.rego.engine import CompileOptions as CompileOptions
    from webhook.rego.engine import EvaluationContext as EvaluationContext
    from webhook.rego.engine import Program as Program
    from webhook.rego.engine import compile_modules as compile_modules
    from webhook.rego.errors import EvaluationError as EvaluationError
    from webhook.rego.errors import RegoErrors as RegoErrors
    from webhook.rego.run.text import to_json as to_json
    from webhook.rego.syntax.parser import parse_module as parse_module
    from webhook.rego.syntax.parser import parse_query as parse_query

_DOOR: Final = {
    "UNDEFINED": "engine",
    "CompileOptions": "engine",
    "EvaluationContext": "engine",
    "EvaluationError": "errors",
    "Program": "engine",
    "RegoErrors": "errors",
    "compile_modules": "engine",
    "parse_module": "syntax.parser",
    "parse_query": "syntax.parser",
    "to_json": "run.text",
}


def __getattr__(name: str) -> Any:
    if name not in _DOOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_DOOR[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_DOOR)

"""The sources, language version and runtime of Rego on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.policies.rego_bundles import ActivationError, BundleError, load_bundles
from webhook.policies.rego_files import LoadErrors, RegoFiles, load, read_input, system_words
from webhook.rego.builtins.introduced import INTRODUCED, OLDEST
from webhook.rego.builtins.registry import BUILTINS, LATEST, Builtin, make_builtin
from webhook.rego.engine import CompileOptions
from webhook.rego.errors import BuiltinError, EvaluationError, RegoLoadError
from webhook.rego.location import NOWHERE
from webhook.rego.types import ANY, type_from_json
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.rego.run.values import Value
    from webhook.rego.syntax.ast import RegoVersion

ENVIRONMENT_VARIABLE: Final = "WADDLE_RUNTIME_ENV"
"""The environment variable that lists the variables visible to policies, separated by commas.
Without it policies see all variables, as in OPA."""

_FEATURE_V1: Final = "rego_v1"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of an OPA version: missing built-ins, additional built-ins, and Rego v1."""

    disabled: frozenset[str]
    added: Mapping[str, Builtin]
    has_v1: bool


def version_of(*, v0_compatible: bool) -> RegoVersion:
    """Returns the language version of the sources."""
    return "v0" if v0_compatible else "v1"


def runtime() -> dict[str, Any]:
    """Returns ``opa.runtime()`` of the command line, with OPA's fields."""
    shown = os.environ.get(ENVIRONMENT_VARIABLE)
    names = os.environ if shown is None else shown.split(",")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    return {"env": environment, "version": f"{LATEST}.0", "commit": ""}


def sources(
    paths: Sequence[str],
    bundles: Sequence[str],
    *,
    version: RegoVersion,
    ignore: Sequence[str],
    capabilities: Capabilities | None,
    documents: bool = True,
) -> RegoFiles:
    """Reads files and bundles together; raises :class:`LoadErrors` and :class:`BundleError`."""
    if version == "v1" and capabilities is not None and not capabilities.has_v1:
        message = "illegal capabilities: rego_v1 feature required for parsing v1 Rego"
        raise LoadErrors([RegoLoadError("rego_parse_error", message, NOWHERE)])
    plain = [path for path in paths if not path.endswith(".tar.gz")]
    archives = [path for path in paths if path.endswith(".tar.gz")]
    files = load(plain, version=version, ignore=ignore, documents=documents, annotations=True)
    load_bundles([*bundles, *archives], files, version=version, ignore=ignore)
    return files


def compile_options(
    capabilities: Capabilities | None, schema: str | None, *, strict: bool = False
) -> CompileOptions:
    """Returns the options of the compiler; raises :class:`LoadErrors` for unusable schemas."""
    return CompileOptions(
        disabled_builtins=frozenset() if capabilities is None else capabilities.disabled,
        builtins={} if capabilities is None else capabilities.added,
        strict=strict,
        annotations=True,
        schemas=None if schema is None else read_schemas(schema),
    )


def read_capabilities(text: str | None) -> Capabilities | None:
    """Reads capabilities of a file or an OPA version; raises :class:`click.UsageError`."""
    if text is None:
        return None
    try:
        written = json.loads(Path(text).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        written = None
    if isinstance(written, dict):
        return _of_file(text, written)
    version = _version(text)
    if version is None or not version >= OLDEST or version[:2] > _version(f"v{LATEST}.0")[:2]:  # type: ignore[index]
        raise click.BadParameter(
            f"no such file or capabilities version found: {text}", param_hint="--capabilities"
        )
    newer = {
        name for since, names in INTRODUCED.items() if since > version for name in names.split()
    }
    return Capabilities(frozenset(newer), {}, version >= (1, 0, 0))


def read_schemas(place: str) -> dict[tuple[str, ...], Any]:
    """Reads schemas by their paths: a file is the input's schema, a folder has one for each path.

    Raises :class:`LoadErrors`.
    """
    path = Path(place.removeprefix("file://"))
    try:
        path.stat()
        files = (
            sorted(child for child in path.rglob("*") if child.is_file())
            if path.is_dir()
            else [path]
        )
    except OSError as error:
        raise LoadErrors([f"stat {path}: {system_words(error)}"]) from None
    schemas: dict[tuple[str, ...], Any] = {}
    for file in files:
        try:
            text = file.read_text("utf-8", "surrogateescape")
            schema = read_input(text)
        except OSError as error:
            raise LoadErrors([f"open {file}: {system_words(error)}"]) from None
        except BuiltinError as error:
            raise LoadErrors([f"{file}: {error.message}"]) from None
        steps = file.relative_to(path).with_suffix("").parts if path.is_dir() else ()
        schemas["schema", *steps] = schema
    return schemas


def _version(text: str) -> tuple[int, ...] | None:
    parts = text.removeprefix("v").split(".")
    if not text.startswith("v") or len(parts) != 3 or not all(part.isdecimal() for part in parts):
        return None
    return tuple(map(int, parts))


def _of_file(file: str, written: dict[str, Any]) -> Capabilities:
    declared = written.get("builtins") or []
    features = written.get("features") or []
    if not isinstance(declared, list) or not isinstance(features, list):
        raise click.BadParameter(
            f"{file}: builtins and features must be lists", param_hint="--capabilities"
        )
    known = {
        declaration["name"]: declaration
        for declaration in declared
        if isinstance(declaration, dict) and "name" in declaration
    }
    added = {
        name: _unsupported(name, declaration)
        for name, declaration in known.items()
        if name not in BUILTINS
    }
    return Capabilities(
        frozenset(name for name in BUILTINS if name not in known), added, _FEATURE_V1 in features
    )


def _unsupported(name: str, declared: dict[str, Any]) -> Builtin:
    """Returns a built-in that sources may call, and whose evaluation fails: Waddle lacks it."""
    decl = declared.get("decl")
    decl = decl if isinstance(decl, dict) else {}

    def call(*_: Value) -> Value:
        raise EvaluationError("eval_internal_error", f"unsupported built-in: {name}")

    try:
        operands = [type_from_json(arg) or ANY for arg in decl.get("args") or ()]
        result = type_from_json(decl.get("result"))
    except (ValueError, KeyError, TypeError) as error:
        raise click.BadParameter(f"{name}: {error}", param_hint="--capabilities") from None
    return make_builtin(name, operands, result, call, check=False, deterministic=False)


__all__ = [
    "ActivationError",
    "BundleError",
    "Capabilities",
    "LoadErrors",
    "RegoFiles",
    "compile_options",
    "read_capabilities",
    "runtime",
    "sources",
    "version_of",
]

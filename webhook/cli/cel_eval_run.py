"""The value of an expression over objects in files, printed as JSON."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any, Final

import click
import orjson

from webhook.cel.check.types import DYN
from webhook.cel.engine import compile_expression
from webhook.cel.errors import CompileError, EvaluationError, TimeUpError
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter
from webhook.cel.run.texts import shown
from webhook.cel.run.values import NOTHING, Optional, from_key
from webhook.cli import exit_codes
from webhook.cli.terminal import complain, printable, printable_json, write
from webhook.constraint.drivers.cel_evaluation import Composed
from webhook.constraint.drivers.cel_review import any_object, variables_of
from webhook.constraint.drivers.cel_source import ANY_OBJECT, PARAMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS_MAX: Final = 10.0
"""An expression within Kubernetes' limits takes a second."""


def run(
    expression: str,
    *,
    object_: Path | None,
    old: Path | None,
    namespace: Path | None,
    params: Path | None,
) -> int:
    """Compile, evaluate, print."""
    given = variables_of(_request(_read(object_), _read(old), _read(namespace)))
    parameters = _read(params)
    known = {ANY_OBJECT: any_object(given), PARAMS: parameters}
    composed = Composed({}, given, {"spec": {"parameters": parameters}}, known)
    environment = admission(dict.fromkeys((PARAMS, ANY_OBJECT), DYN), params=False)
    try:
        compiled = compile_expression(expression, environment)
        value = compiled.evaluate(composed.env, Meter(look=_until(time.monotonic() + SECONDS_MAX)))
    except CompileError as error:
        complain("\n".join(printable(line) for line in str(error).split("\n")))
        return exit_codes.NO
    except EvaluationError as error:
        complain(printable(error.text))
        return exit_codes.UNKNOWN
    text = orjson.dumps(_plain(value), option=orjson.OPT_INDENT_2).decode()
    write(printable_json(text))
    return exit_codes.OK


def _until(deadline: float) -> Callable[[], None]:
    def look() -> None:
        if time.monotonic() > deadline:
            raise TimeUpError(f"it takes longer than {SECONDS_MAX:g} s")

    return look


def _read(path: Path | None) -> Any:
    if path is None:
        return None
    import yaml  # noqa: PLC0415  # takes a tenth of a second, for files alone

    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise click.ClickException(f"{path}: {error}") from None


def _request(obj: Any, old: Any, namespace: Any) -> dict[str, Any]:
    """The request of a review."""
    operation = "UPDATE" if obj and old else "DELETE" if old else "CREATE"
    about = obj or old or {}
    metadata = about.get("metadata") or {}
    group, _, version = str(about.get("apiVersion", "")).rpartition("/")
    return {
        "operation": operation,
        "object": obj,
        "oldObject": old,
        "namespaceObject": namespace,
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", ""),
        "kind": {"group": group, "version": version, "kind": about.get("kind", "")},
    }


def _plain(value: Any) -> Any:
    """A value of CEL's in JSON; what JSON lacks as CEL shows it."""
    if type(value) is Optional:
        return None if value.value is NOTHING else _plain(value.value)
    if type(value) is dict:
        return {shown(from_key(key)): _plain(item) for key, item in value.items()}
    if type(value) is list:
        return [_plain(item) for item in value]
    if type(value) is bytes:
        return base64.b64encode(value).decode()
    if value is None or type(value) in {bool, str, int, float}:
        return value
    return int(value) if isinstance(value, int) else shown(value)

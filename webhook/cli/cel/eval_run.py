"""The value of an expression over objects in files, printed as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import orjson

from webhook.cel.errors import CompileError, EvaluationError
from webhook.cli import exit_codes
from webhook.cli.terminal import complain, write
from webhook.policies.expression import evaluate
from webhook.printable import printable, printable_json

if TYPE_CHECKING:
    from pathlib import Path


def run(
    expression: str,
    *,
    object_: Path | None,
    old: Path | None,
    namespace: Path | None,
    params: Path | None,
) -> int:
    """Compile, evaluate, print."""
    given = {"obj": object_, "old": old, "namespace": namespace, "params": params}
    try:
        value = evaluate(expression, **{name: _read(path) for name, path in given.items()})
    except CompileError as error:
        complain("\n".join(printable(line) for line in str(error).split("\n")))
        return exit_codes.NO
    except EvaluationError as error:
        complain(printable(error.text))
        return exit_codes.UNKNOWN
    write(printable_json(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()))
    return exit_codes.OK


def _read(path: Path | None) -> Any:
    if path is None:
        return None
    # Takes a tenth of a second, for files alone.
    from webhook.api.documents import InvalidDocument, read_documents  # noqa: PLC0415

    try:
        text = path.read_text(encoding="utf-8")
        documents = read_documents(text)
    except (OSError, UnicodeDecodeError, InvalidDocument) as error:
        raise click.ClickException(f"{path}: {error}") from None
    if len(documents) > 1:
        raise click.ClickException(f"{path}: line {documents[1].line}: give one document alone")
    if documents:
        return documents[0].value
    return {} if "{" in text else None  # of what is empty, none is a document

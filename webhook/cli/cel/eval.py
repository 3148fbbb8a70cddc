"""``waddle cel eval``: the value of an expression over objects in files."""

from __future__ import annotations

from pathlib import Path
from types import NoneType
from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import InputPath
from webhook.cli.terminal import complain, write
from webhook.printable import printable, printable_json, type_of

_HELP = """Evaluate an expression and print its value as JSON.

Files are YAML or JSON and become the variables of a review: an object alone is created, an old
object alone is deleted, both are an update.

\b
  waddle cel eval '1 + 1'
  waddle cel eval --object pod.yaml 'object.spec.containers.map(c, c.image)'
  waddle cel eval --object pod.yaml --params params.yaml 'variables.params.labels'
"""

_FILE = InputPath(dir_okay=False)


def run(
    expression: str,
    *,
    object_: Path | None,
    old: Path | None,
    namespace: Path | None,
    params: Path | None,
) -> int:
    """Compile, evaluate, print."""
    # The engine takes long to import: help and errors of usage do without it.
    import orjson  # noqa: PLC0415

    from webhook.cel.errors import CompileError, EvaluationError  # noqa: PLC0415
    from webhook.policies.expression import evaluate  # noqa: PLC0415

    try:
        value = evaluate(
            expression,
            obj=_object(object_),
            old=_object(old),
            namespace=_object(namespace),
            params=_read(params),
        )
    except CompileError as error:
        complain("\n".join(printable(line) for line in str(error).split("\n")))
        return exit_codes.NO
    except EvaluationError as error:
        complain(printable(error.text))
        return exit_codes.UNKNOWN
    write(printable_json(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()))
    return exit_codes.OK


def _object(path: Path | None) -> dict[str, Any] | None:
    value = _read(path)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise click.ClickException(f"{path}: expected an object, got {type_of(value)}")
    if type(value.get("metadata")) not in {NoneType, dict}:
        actual = type_of(value["metadata"])
        raise click.ClickException(f"{path}: metadata: expected an object, got {actual}")
    return value


def _read(path: Path | None) -> Any:
    if path is None:
        return None
    # Takes a tenth of a second, for files alone.
    from webhook.policies.manifests import UnreadableFile, parse, text_of  # noqa: PLC0415

    try:
        text = text_of(path.read_bytes(), str(path))
        documents = parse(text, str(path))
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
    except UnreadableFile as error:
        raise click.ClickException(str(error)) from None
    if len(documents) > 1:
        raise click.ClickException(
            f"{path}: line {documents[1].line}: the file has more than one document; give one"
        )
    if documents:
        return documents[0].value
    return {} if "{" in text else None  # an empty text has no document


@click.command(name="eval", help=_HELP + exit_codes.paragraph("cel eval"))
@click.argument("expression", metavar="EXPRESSION")
@click.option("--object", "object_", type=_FILE, help="The object.")
@click.option(
    "--old-object", "old", type=_FILE, help="The object before the update, or the deleted object."
)
@click.option("--namespace", type=_FILE, help="The Namespace.")
@click.option("--params", type=_FILE, help="A constraint's spec.parameters.")
def command(**options: Any) -> int:
    """Compile, evaluate, print."""
    return run(**options)

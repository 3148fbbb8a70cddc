"""Checks Rego sources and prints faults as ``opa check`` does."""

from __future__ import annotations

from typing import Any

from webhook.cli import exit_codes
from webhook.cli.rego.context import (
    BundleError,
    LoadErrors,
    compile_options,
    read_capabilities,
    sources,
    version_of,
)
from webhook.cli.rego.report import error_document, load_error_document
from webhook.cli.terminal import complain
from webhook.rego.engine import compile_modules
from webhook.rego.errors import RegoErrors
from webhook.rego.run.text import OrderedFields, indented


def run(  # noqa: PLR0913  # one for each option of the command
    paths: tuple[str, ...],
    *,
    output: str,
    strict: bool,
    max_errors: int,
    bundle: bool,
    capabilities: str | None,
    schema: str | None,
    ignore: tuple[str, ...],
    v0_compatible: bool,
    v1_compatible: bool,
) -> int:
    """Loads and compiles the sources, prints faults, and returns the exit code."""
    del v1_compatible  # the default
    known = read_capabilities(capabilities)
    try:
        files = sources(
            () if bundle else paths,
            paths if bundle else (),
            version=version_of(v0_compatible=v0_compatible),
            ignore=ignore,
            capabilities=known,
            documents=False,
        )
        program = compile_modules(
            files.modules, options=compile_options(known, schema, strict=strict)
        )
        program.check_data(files.data)
    except (BundleError, LoadErrors) as errors:
        faults = errors.faults or (str(errors),)
        listed = [*map(load_error_document, faults)]
        complain(as_json(listed) if output == "json" else str(errors))
        return exit_codes.NO
    except RegoErrors as errors:
        shown = errors.limited(max_errors)
        complain(as_json([*map(error_document, shown.errors)]) if output == "json" else str(shown))
        return exit_codes.NO
    return 0


def as_json(errors: list[dict[str, Any]]) -> str:
    """Returns faults as JSON with OPA's fields."""
    return indented(OrderedFields(errors=errors))

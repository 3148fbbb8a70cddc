"""Whether Rego sources can be used, said as ``opa check`` does."""

from __future__ import annotations

from typing import Any

from webhook.cli import exit_codes
from webhook.cli.rego.context import version_of
from webhook.cli.rego.report import place
from webhook.cli.terminal import complain
from webhook.policies.rego_files import LoadErrors, load
from webhook.rego.engine import CompileOptions, compile_modules
from webhook.rego.errors import RegoErrors, RegoLoadError
from webhook.rego.run.text import laid_out


def run(
    paths: tuple[str, ...],
    *,
    output: str,
    strict: bool,
    max_errors: int,
    bundle: bool,
    ignore: tuple[str, ...],
    v0_compatible: bool,
    v1_compatible: bool,
) -> int:
    """Load, compile and report."""
    del v1_compatible
    version = version_of(v0_compatible=v0_compatible)
    try:
        files = load(paths, version=version, ignore=ignore, bundles=bundle, documents=bundle)
        program = compile_modules(
            files.modules, options=CompileOptions(strict=strict, annotations=True)
        )
        program.check_data(files.data)
    except LoadErrors as errors:
        messages = [{"message": message} for message in errors.messages]
        complain(_json(messages) if output == "json" else str(errors))
        return exit_codes.NO
    except RegoErrors as errors:
        told = errors.limited(max_errors)
        complain(_json([*map(document, told.errors)]) if output == "json" else str(told))
        return exit_codes.NO
    return 0


def document(error: RegoLoadError) -> dict[str, Any]:
    """A fault of a source as OPA writes it."""
    fault: dict[str, Any] = {"message": error.message, "code": error.code}
    if error.location.row:
        fault["location"] = place(error.location)
    if error.details:
        fault["details"] = "\n".join(error.details)
    return fault


def _json(errors: list[dict[str, Any]]) -> str:
    return laid_out({"errors": errors}, "", "  ")

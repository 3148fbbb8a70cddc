"""``waddle policy push``: checks policies and pushes them to a registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from webhook.cli import exit_codes
from webhook.cli.check.command import BUDGET_MILLISECONDS
from webhook.cli.policy_options import FILENAMES
from webhook.cli.registry_access import registry_options
from webhook.cli.terminal import NoResult, complain, write

_HELP = """Push policies to a registry, each file as a layer.

Templates and constraints are checked first, as waddle check does it: what cannot be used is not
pushed. Suites and their samples go along, so that who pulls can verify them. The same files have
the same digest.

\b
  waddle policy push registry.example/team/policies:v1 -f policies/
"""

ARTIFACT_TYPE: Final = "application/vnd.waddle.policies.v1"
_KINDS: Final = {
    ".rego": "application/vnd.cncf.openpolicyagent.policy.layer.v1+rego",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".json": "application/json",
}


class CannotPush(NoResult):
    """The faults of files that cannot be pushed, a line for each."""

    exit_code = exit_codes.NO


@click.command(name="push", help=_HELP + exit_codes.paragraph("policy push"))
@click.argument("image", metavar="REF")
@FILENAMES
@registry_options
def command(image: str, *, filenames: tuple[str, ...], registries: Any) -> int:
    """Check and push."""
    from webhook.registry.errors import RegistryError  # noqa: PLC0415  # they bring aiohttp
    from webhook.registry.manifest import EMPTY, EMPTY_TYPE  # noqa: PLC0415
    from webhook.registry.package import packed  # noqa: PLC0415
    from webhook.registry.reference import parse_reference  # noqa: PLC0415
    from webhook.registry.session import push  # noqa: PLC0415

    paths = [Path(name) for name in filenames]
    try:
        reference = parse_reference(image)
        files = dict(_named(paths))
        _check(paths)
        package = packed(files, _KINDS, artifact_type=ARTIFACT_TYPE, config=(EMPTY_TYPE, EMPTY))
        digest = push(registries(), reference, package)
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}")
        return exit_codes.NO
    except RegistryError as error:
        complain(f"{image}: {error}")
        return exit_codes.UNKNOWN
    write(f"{reference.at(digest)}")
    return exit_codes.OK


def _named(paths: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Returns the files with their names in the artifact; raises :class:`CannotPush`."""
    from webhook.registry.package import FILES_MAX, PACKAGE_BYTES_MAX  # noqa: PLC0415  # see command

    if not paths:
        raise CannotPush("nothing to push: give files or folders with -f")
    names: dict[str, Path] = {}
    size = 0
    for path in paths:
        below = [path] if path.is_file() else sorted(path.rglob("*"))
        if not path.exists():
            raise CannotPush(f"{path}: there is no such file")
        for file in below:
            if file.suffix not in _KINDS or not file.is_file():
                continue
            name = file.name if path.is_file() else file.relative_to(path).as_posix()
            if name in names:
                raise CannotPush(
                    f"{file} and {names[name]} would both be stored as {name}: rename one"
                )
            names[name] = file
            size += file.stat().st_size
            if size > PACKAGE_BYTES_MAX or len(names) > FILES_MAX:
                raise CannotPush(
                    f"the package has more than {PACKAGE_BYTES_MAX >> 20} MiB or {FILES_MAX} files, and "
                    "could not be pulled: split it"
                )
            yield name, file.read_bytes()
    if not names:
        raise CannotPush("nothing to push: no file ends in .yaml, .yml, .json or .rego")


def _check(paths: Sequence[Path]) -> None:
    """Compiles and tests the templates and constraints; raises :class:`CannotPush`."""
    from webhook.cli.check import report as check_report  # noqa: PLC0415  # --help needs none of it
    from webhook.cli.check import run as check_run  # noqa: PLC0415
    from webhook.cli.clients import new_client  # noqa: PLC0415
    from webhook.cli.sources import CannotTest, read_sources  # noqa: PLC0415
    from webhook.cli.target_run import declared_targets  # noqa: PLC0415
    from webhook.constraint.targets.known import ADMISSION_ALONE  # noqa: PLC0415

    if not any(path.is_dir() or path.suffix != ".rego" for path in paths):
        return  # Rego without templates is a library, or for conftest.
    try:
        sources = read_sources(paths, any_value=False, standard_input=False)
        targets = tuple(declared_targets(sources).values())
    except CannotTest as error:
        raise CannotPush(*error.lines) from None
    checked = check_run.PolicyCheck()
    base = new_client(targets=targets, reviewed_targets=ADMISSION_ALONE)
    check_run.prepare(sources.manifests, base, BUDGET_MILLISECONDS / 1000, checked)
    if not checked.ok:
        errors = [item for item in checked.problems if item.severity == "error"]
        raise CannotPush(*(check_report.placed(checked, item) for item in errors))
    if not checked.policies and not targets and not any(_holds_rego(path) for path in paths):
        raise CannotPush("nothing to push: the files have no policy")


def _holds_rego(path: Path) -> bool:
    return path.suffix == ".rego" or (path.is_dir() and any(path.rglob("*.rego")))

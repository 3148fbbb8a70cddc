"""Policies of files become files of an API server."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook.api.config import CONFIG, WEBHOOK_PROCESS, excluded_namespaces
from webhook.cli import exit_codes
from webhook.cli.check.run import PolicyCheck, prepare
from webhook.cli.clients import new_client
from webhook.cli.formats.document import as_stream
from webhook.cli.sources import CannotTest, Sources, read_sources
from webhook.cli.target_run import declared_targets
from webhook.cli.terminal import complain, write
from webhook.constraint.targets.known import ADMISSION_ALONE
from webhook.exceptions.withdrawal import withdrawn_for
from webhook.generation.plan import Enforced
from webhook.generation.scope import PolicyScope, scope_of
from webhook.generation.static import (
    SUFFIX,
    Guarded,
    StaticExport,
    admission_configuration,
    default_scope,
    guards,
    static_export,
)
from webhook.printable import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from webhook.api.shapes import Json

POLICIES: Final = "validating-policies"
CONFIGURATION: Final = "admission-configuration.yaml"
MADE: Final = "# Made by waddle export --static.\n"
"""The first line of generated files: other files are not touched."""

_TRIAL_SECONDS: Final = 1.0
"""The time of one policy on one sample, in seconds: slightly more than in `check`."""


def run(paths: Sequence[Path], folder: Path, place: str, guarded: Guarded) -> int:
    """Reads policies, writes files, and reports constraints without any; returns the exit code."""
    sources = read_sources(paths, any_value=False)
    export = _exported(sources, guarded)
    for line in sources.warnings:
        complain(line)
    if guarded.users or guarded.groups:
        export.objects += guards(guarded)
    else:
        complain(
            "no guard is written: name the users who may change Waddle's webhook configurations, "
            "with --allow-user or --allow-group"
        )
    missing = [f"{title} has none: {why}" for title, why in sorted(export.without.items())]
    for line in missing:
        write(line)
    if not export.objects:
        complain("nothing was written: no constraint can become a policy of the API server")
        return exit_codes.NO
    try:
        _write(folder, place, export.objects, missing)
    except OSError as error:
        complain(f"{folder}: {error.strerror or error}: the export is incomplete")
        return exit_codes.UNKNOWN
    write(f"{quantity(len(export.objects), 'object')} written to {folder / POLICIES}")
    return exit_codes.NO if export.without else exit_codes.OK


def _exported(sources: Sources, guarded: Guarded) -> StaticExport:
    declared = tuple(declared_targets(sources).values())
    checked = PolicyCheck()
    policies = prepare(
        sources.manifests,
        new_client(targets=declared, reviewed_targets=ADMISSION_ALONE),
        _TRIAL_SECONDS,
        checked,
    )
    if faults := [problem for problem in checked.problems if problem.severity == "error"]:
        raise CannotTest(*(f"{fault.kind}/{fault.name}: {fault.message}" for fault in faults))
    snapshot = policies.after.snapshot
    return static_export(
        {entry.template.name: entry.template.document for entry in snapshot.entries},
        {
            constraint.key: Enforced(constraint.document, constraint.enforcement_action)
            for constraint in snapshot.constraints
        },
        _scope([manifest.document for manifest in sources.manifests], guarded),
        partial(withdrawn_for, policies.mutation.extensions.exceptions, now=time.time()),
    )


def _scope(documents: Iterable[Mapping[str, Any]], guarded: Guarded) -> PolicyScope:
    """Returns the scope of policies: by a webhook configuration in the files, or the default."""
    excluded: list[str] = []
    configuration = None
    for document in documents:
        if document.get("kind") == "ValidatingWebhookConfiguration":
            configuration = document
        elif document.get("kind") == CONFIG.kind:
            excluded += excluded_namespaces(document, WEBHOOK_PROCESS)
    if configuration is None:
        return default_scope(guarded.namespace, excluded)
    return scope_of(configuration, excluded=excluded)


def _write(folder: Path, place: str, objects: Sequence[Json], missing: Sequence[str]) -> None:
    """Writes a file for each policy with its binding; removes files of an earlier export.

    Comments of the configuration name what is ``missing``.
    """
    policies_folder = folder / POLICIES
    policies_folder.mkdir(parents=True, exist_ok=True)
    texts: dict[str, str] = {}
    for obj in objects:
        name = f"{obj['metadata']['name'].removesuffix(SUFFIX)}.yaml"
        text = yaml.safe_dump(obj, sort_keys=False, width=100)
        texts[name] = f"{texts[name]}---\n{text}" if name in texts else text
    for path in policies_folder.glob("*.yaml"):
        if path.name not in texts and path.read_text("utf-8").startswith(MADE):
            path.unlink()
    for name, text in texts.items():
        _replace(policies_folder / name, f"{MADE}{text}")
    configuration = admission_configuration(f"{place.rstrip('/')}/{POLICIES}")
    _replace(folder / CONFIGURATION, f"{as_stream([configuration], missing)}\n")


def _replace(path: Path, text: str) -> None:
    """Replaces atomically: an API server that watches the folder reads whole files."""
    beside = path.with_suffix(".new")
    beside.write_text(text, "utf-8")
    os.replace(beside, path)  # noqa: PTH105  # as one step

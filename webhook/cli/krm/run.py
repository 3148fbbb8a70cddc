"""Runs ``waddle krm`` on a ResourceList.

The specification is Kubernetes' "KRM Functions" (config.kubernetes.io/v1): a function reads a
ResourceList and prints it, with ``results`` of message, severity, resourceRef and file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook.api.config import CONFIG
from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.api.shapes import object_of
from webhook.cli.clients import new_client
from webhook.cli.formats.document import as_yaml
from webhook.cli.formats.finding import level_of
from webhook.cli.sources import CannotTest, Sources, read_sources
from webhook.cli.target_run import declared_targets
from webhook.cli.test import run as review_run
from webhook.policies.advice import left_out
from webhook.policies.definitions import repeated
from webhook.policies.field_lines import FieldLines
from webhook.policies.lists import expand_lists
from webhook.policies.manifests import FILE_BYTES_MAX, Manifest, UnreadableFile, parse, text_of
from webhook.policies.validation import is_policy
from webhook.policy_kinds.known import is_admission_policy, is_extension
from webhook.printable import one_line, printable_name
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.cli.test.run import CheckedViolation
    from webhook.constraint.client import Client
    from webhook.external_data.exchange import Ask

BYTES_MAX: Final = FILE_BYTES_MAX
"""The largest list: as large as a file."""

_STDIN: Final = "stdin"
_KINDS: Final = frozenset({"ResourceList", "ResourceListV1Alpha1"})
_SEVERITIES: Final = {"error": "error", "warning": "warning", "note": "info"}
_PATHS: Final = ("internal.config.kubernetes.io/path", "config.kubernetes.io/path")
_INDEXES: Final = ("internal.config.kubernetes.io/index", "config.kubernetes.io/index")
_RESULTS: Final = re.compile(r"^results:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KrmOutcome:
    """The output, the messages, and the exit code."""

    text: str
    messages: Sequence[str]
    failed: bool
    nothing: str


def validate(raw: bytes, policies: Sequence[Path], ask: Ask) -> KrmOutcome:
    """Returns the list with a result for each violation; raises :class:`CannotTest`."""
    text, document = _read(raw)
    items = document.get("items") or []
    if type(items) is not list or not all(type(item) is dict for item in items):
        raise CannotTest(f"reading: {_STDIN}: items must be an array of objects")
    paths = [*policies, *_configured(document.get("functionConfig"))]
    # Only the policies of a folder: the items are reviewed, not its other files.
    read = (
        read_sources(paths, any_value=False, standard_input=False, keep_going=True)
        if paths
        else Sources()
    )
    if read.faults:
        raise CannotTest(*read.faults)
    try:
        listed = list(expand_lists(_listed(text, document, items)))
    except UnreadableFile as error:
        raise CannotTest(f"reading: {error}") from None
    every = [*read.manifests, *listed]
    several = (f"WARNING - {line}" for line in repeated(every, reviewed=True))
    warnings = dict.fromkeys([*read.warnings, *left_out(every), *several])
    sources = Sources(warnings=list(warnings))
    sources.manifests.extend(item for item in read.manifests if _decides(item))
    sources.manifests.extend(listed)
    printed: list[str] = []
    client = new_client(targets=tuple(declared_targets(read).values()))
    _add_parameters(client, read)
    outcome = review_run.review_objects(client, sources, printed, ask)
    if outcome.faults:
        raise CannotTest(*outcome.faults)
    results = [_result(item) for item in outcome.shown]
    results += map(_excused, outcome.excused)
    results += map(_warned, sources.warnings)
    # kustomize shows no results, but standard error.
    violations = [_line(item) for item in outcome.shown if level_of(item.result.actions) != "note"]
    messages = [*sources.warnings, *printed, *violations]
    if outcome.nothing:
        results.append({"message": outcome.nothing, "severity": "error"})
        messages.append(outcome.nothing)
    return KrmOutcome(
        _with_results(text, document, results), messages, outcome.denied, outcome.nothing
    )


def _listed(
    text: str, document: Mapping[str, Any], items: Sequence[dict[str, Any]]
) -> Iterator[Manifest]:
    """Yields the items with their files; with their lines in the list if they name no file."""
    files = [_annotation(item, _PATHS) for item in items]
    lines = FieldLines("" if all(files) else text)
    for index, (item, file) in enumerate(zip(items, files, strict=True)):
        line = 1 if file else lines.line(1, document, "", ["items", index])
        yield Manifest(item, file or _STDIN, line)


def _decides(manifest: Manifest) -> bool:
    """Returns whether a manifest of a folder is a policy of any kind, or a Config."""
    document = manifest.document
    is_config = manifest.gvk.group_kind == CONFIG.group_kind
    return is_policy(document) or is_extension(document) or is_config


def _add_parameters(client: Client, read: Sources) -> None:
    """Adds a folder's objects of the policies' parameter kinds as data."""
    kinds = set()
    for item in read.manifests:
        kind = object_of(object_of(item.document.get("spec")).get("paramKind"))
        if kind and is_admission_policy(item.gvk):
            kinds.add(gvk_of(kind).group_kind)
    for item in read.manifests:
        if item.gvk.group_kind in kinds and not is_admission_policy(item.gvk):
            client.add_data(item.document)


def _read(raw: bytes) -> tuple[str, dict[str, Any]]:
    try:
        text = text_of(raw, _STDIN)
        documents = [document.value for document in parse(text, _STDIN)]
    except UnreadableFile as error:
        raise CannotTest(f"reading: {error}") from None
    if len(documents) != 1 or type(documents[0]) is not dict or not _is_list(documents[0]):
        raise CannotTest(f"reading: {_STDIN}: expected one ResourceList (config.kubernetes.io/v1)")
    return text, documents[0]


def _is_list(document: Mapping[str, Any]) -> bool:
    group, _, _ = str(document.get("apiVersion")).partition("/")
    return group == "config.kubernetes.io" and document.get("kind") in _KINDS


def _configured(config: Any) -> list[Path]:
    """Returns the files and folders of policies in a functionConfig; raises CannotTest."""
    if config is None:
        return []
    if type(config) is not dict:
        raise CannotTest(f"reading: {_STDIN}: functionConfig must be an object")
    place = "data" if config.get("kind") == "ConfigMap" else "spec"
    value = config.get(place)
    named = value.get("policies") if type(value) is dict else None
    if type(named) is str:
        named = named.split()
    if named is None:
        return []
    if type(named) is not list or not all(type(path) is str for path in named):
        raise CannotTest(
            f"reading: {_STDIN}: functionConfig: {place}.policies must be paths: a text or an array"
        )
    return [Path(path) for path in named]


def _result(item: CheckedViolation) -> dict[str, Any]:
    document = item.value
    reference = {
        "apiVersion": document.get("apiVersion", ""),
        "kind": document.get("kind", ""),
        "name": name_of(document),
    }
    if namespace := namespace_of(document):
        reference["namespace"] = namespace
    result: dict[str, Any] = {
        "message": item.result.msg,
        "severity": _SEVERITIES[level_of(item.result.actions)],
        "resourceRef": reference,
        "tags": {
            "constraint": "/".join(item.result.constraint.key),
            "action": ",".join(item.result.actions),
        },
    }
    if (excuse := item.result.excuse) is not None:
        result["tags"]["exception"] = excuse.title
    if path := _annotation(document, _PATHS):
        result["file"] = {"path": path}
        if (index := _annotation(document, _INDEXES)).isdecimal():
            result["file"]["index"] = int(index)
    return result


def _line(item: CheckedViolation) -> str:
    """Returns a violation in a line, for standard error."""
    rule = "/".join(item.result.constraint.key)
    actions = ",".join(item.result.actions)
    return f"{printable_name(item.subject)}: {rule} ({actions}): {one_line(item.result.msg)}"


def _excused(item: CheckedViolation) -> dict[str, Any]:
    """Returns an excused violation as an information."""
    result = _result(item)
    return {**result, "severity": "info", "tags": {**result["tags"], "action": "excused"}}


def _warned(line: str) -> dict[str, Any]:
    """Returns a line about policies or files as a warning."""
    return {"message": line.removeprefix("WARNING - "), "severity": "warning"}


def _annotation(document: Mapping[str, Any], names: Sequence[str]) -> str:
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if type(metadata) is dict else None
    if type(annotations) is not dict:
        return ""
    values = (annotations.get(name) for name in names)
    return next((value for value in values if type(value) is str), "")


def _with_results(text: str, document: dict[str, Any], results: list[dict[str, Any]]) -> str:
    """Returns the unchanged list, comments included, with the results appended."""
    if not results:
        return text.rstrip("\n")
    if text.lstrip().startswith("{") or _RESULTS.search(text):
        return as_yaml({**document, "results": results})
    return f"{text.rstrip()}\n{as_yaml({'results': results})}"

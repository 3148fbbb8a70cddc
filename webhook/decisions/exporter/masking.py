"""Masking: replaces confidential fields before a record is queued."""

from __future__ import annotations

import re
from typing import Any, Final

from webhook.api.names import LAST_APPLIED
from webhook.decisions.exporter.hidden_values import MASK, HiddenValues, values_at
from webhook.values import dataclass

"""kubectl writes the whole object into this annotation, a Secret's data with it."""

_STEP: Final = re.compile(r"""\.?(?:([^.\[\]"]+)|\["((?:[^"\\]|\\.)*)"\]|\[(\*)\])""")

Path = tuple[str, ...]


def parse_path(text: str) -> Path:
    """``object.spec.env[*].value`` or ``object.data["a.b"]`` as its steps.

    ``[*]`` and ``*`` step into every item. Raises :class:`ValueError`.
    """
    steps: list[str] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(f"not a path: {text!r}")
        steps.append(match[1] or match[3] or match[2].replace('\\"', '"'))
        position = match.end()
    if not steps:
        raise ValueError("an empty path")
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class Masking:
    """Paths into a record; those of ``object`` apply to ``oldObject`` too.

    ``of_kinds`` are paths for objects of some kinds (no kinds: of all).
    """

    paths: tuple[Path, ...] = ()
    of_kinds: tuple[tuple[tuple[str, ...], tuple[Path, ...]], ...] = ()

    def apply(self, record: dict[str, Any]) -> None:
        """Replaces confidential fields, and lists them in ``masked``.

        The record's own mapping is changed. Its values are copied along the paths, since objects
        belong to the request.
        """
        masked: list[str] = record.get("masked", [])
        for name in ("object", "oldObject"):
            if _is_secret(record, name):
                _mask_secret(record, name, masked)
        named = self._paths_of_kind(record)
        for path in (*self.paths, *named):
            for name in _ALIKE.get(path[0], (path[0],)):
                _replace(record, (name, *path[1:]), masked)
        masked += self._mask_patches(record, named)
        if "externalData" in record and record.get("resourceKind") == "Secret":
            masked += _mask_provider_calls(record)
        if masked:
            _mask_copies(record, masked)
            record["masked"] = masked

    def mask_calls(self, record: dict[str, Any], **request: Any) -> None:
        """Masks providers' keys and answers that quote a masked field of the request.

        ``request`` are fields of a record that need not be in it: ``object``, ``oldObject``,
        ``userInfo``. Call it before :meth:`apply`.
        """
        paths = [*self.paths, *self._paths_of_kind(record)]
        if not paths or "externalData" not in record:
            return
        fields = {**record, **request}
        hidden = HiddenValues(
            value
            for path in paths
            if path[0] in request or path[0].startswith(_OF_REQUEST)
            for name in _ALIKE.get(path[0], (path[0],))
            for value in values_at(fields, (name, *path[1:]))
        )
        if not hidden:
            return
        calls, masked = hidden.mask(record["externalData"])
        if masked:
            record["externalData"] = calls
            record["masked"] = [*record.get("masked", ()), *masked]

    def _paths_of_kind(self, record: dict[str, Any]) -> list[Path]:
        kind = record.get("resourceKind")
        return [
            path for kinds, paths in self.of_kinds if not kinds or kind in kinds for path in paths
        ]

    def _mask_patches(self, record: dict[str, Any], named: list[Path]) -> list[str]:
        """Masks the patches of mutators where the object is masked; returns the masked paths."""
        mutation = record.get("mutation")
        if type(mutation) is not dict:
            return []
        paths = [path[1:] for path in (*self.paths, *named) if path[0] == "object"]
        if record.get("resourceKind") == "Secret":
            paths += _SECRET_PATHS
        masked: list[str] = []
        for name in ("patch", "previewPatch"):
            if name not in mutation:
                continue
            operations = [_masked_operation(item, paths) for item in mutation[name]]
            mutation[name] = [item for item, _ in operations]
            masked += [f"mutation.{name}{item['path']}" for item, hit in operations if hit]
        return masked


_OF_REQUEST: Final = ("request", "resource")
"""The beginnings of a record's fields that are copied from the request."""

_PROVIDER_PATHS: Final[tuple[Path, ...]] = (
    ("keys", "*"),
    ("responses", "*", "*"),
    ("errors", "*", "*"),
    ("systemError",),
)


def _mask_provider_calls(record: dict[str, Any]) -> list[str]:
    """Masks the keys and answers of providers about a Secret: its values may be the keys."""
    masked: list[str] = []
    of_all = []
    for call in record["externalData"]:
        kept = dict(call)
        for path in _PROVIDER_PATHS:
            _replace(kept, path, masked)
        of_all.append(kept)
    record["externalData"] = of_all
    return [f"externalData.*.{path}" for path in dict.fromkeys(masked)]


_ALIKE: Final = {"object": ("object", "oldObject"), "results": ("results", "excused")}
"""Fields of records with the same content, which are masked together."""

COPIES: Final = frozenset(
    {
        LAST_APPLIED,
        "objectset.rio.cattle.io/applied",
        "kapp.k14s.io/original",
        "kapp.k14s.io/original-diff",
        "banzaicloud.com/last-applied",
        "strimzi.io/last-applied-configuration",
    }
)
"""Annotations with a copy of the whole object (kubectl, Fleet and k3s, kapp, the operators of
Banzai Cloud and Strimzi), which hold its masked fields, too."""


_SECRET_PATHS: Final[list[Path]] = [
    ("data",),
    ("stringData",),
    ("metadata", "annotations", "*"),
]


def _masked_operation(operation: dict[str, Any], paths: list[Path]) -> tuple[dict[str, Any], bool]:
    """Returns a JSON Patch operation with the fields of the paths masked, and whether any was."""
    if "value" not in operation:
        return operation, False
    place = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")]
    place, value, masked = place[1:], operation["value"], False
    last = place[-1] if place else ""
    if last in COPIES and paths and place[:2] == ["metadata", "annotations"]:
        return {**operation, "value": MASK}, True
    for path in paths:
        if all(step in ("*", here) for step, here in zip(path, place, strict=False)):
            value, is_masked = _masked(value, path[len(place) :])
            masked = masked or is_masked
    return ({**operation, "value": value} if masked else operation), masked


def _is_secret(record: dict[str, Any], name: str) -> bool:
    """Whether an object is a Secret, by its own kind or by the kind of the request."""
    value = record.get(name)
    if type(value) is not dict:
        return False
    return "Secret" in (value.get("kind"), record.get("resourceKind"))


def _mask_secret(record: dict[str, Any], name: str, masked: list[str]) -> None:
    """Masks data of any shape, and every annotation, which may hold a copy."""
    for field in ("data", "stringData"):
        held = record[name].get(field)
        if held is None:
            continue
        _replace(record, (name, field, "*") if type(held) is dict else (name, field), masked)
    _replace(record, (name, "metadata", "annotations", "*"), masked)


def _mask_copies(record: dict[str, Any], masked: list[str]) -> None:
    """Where something in an object is masked, so are the copies of the object in it."""
    for name in ("object", "oldObject"):
        if not any(text.startswith(f"{name}.") for text in masked):
            continue
        metadata = record[name].get("metadata")
        annotations = metadata.get("annotations") if type(metadata) is dict else None
        if type(annotations) is not dict or _is_secret(record, name):
            continue
        for annotation in annotations:
            if annotation in COPIES:
                _replace(record, (name, "metadata", "annotations", annotation), masked)


def _replace(record: dict[str, Any], path: Path, masked: list[str]) -> None:
    head = path[0]
    for key in list(record) if head == "*" else [head]:
        if key not in record:
            continue
        replaced, is_masked = _masked(record[key], path[1:])
        if is_masked:
            record[key] = replaced
            masked.append(".".join((key, *path[1:])))


def _masked(value: Any, path: Path) -> tuple[Any, bool]:
    """Returns ``value`` with the field at ``path`` masked, and whether it exists."""
    if not path:
        return MASK, True
    head, rest = path[0], path[1:]
    if type(value) is dict:
        keys = list(value) if head == "*" else [head] if head in value else []
        items = {key: _masked(value[key], rest) for key in keys}
        if any(is_masked for _, is_masked in items.values()):
            return {**value, **{key: item for key, (item, _) in items.items()}}, True
    elif type(value) is list and head == "*":
        pairs = [_masked(item, rest) for item in value]
        if any(is_masked for _, is_masked in pairs):
            return [item for item, _ in pairs], True
    return value, False

"""OPA's cases as data: YAML files with ``note``, ``query``, ``modules`` and what is wanted."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml


@dataclass(frozen=True, slots=True)
class Case:
    """A case; the names are OPA's (v1/test/cases/cases.go)."""

    note: str
    query: str
    version: Literal["v0", "v1"]
    file: str
    modules: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    input: Any = None
    has_input: bool = False
    input_term: str | None = None
    want_result: tuple[dict[str, Any], ...] | None = None
    want_error: str | None = None
    want_error_code: str | None = None
    sort_bindings: bool = False
    strict_error: bool = False
    env: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Returns the name in reports and in the file of exclusions."""
        return f"{self.version}/{self.note}"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as Go's library reads it: no dates, no base 60, no `on`, floats without a dot."""


_TAG = "tag:yaml.org,2002:"
_OWN = {_TAG + "timestamp", _TAG + "float", _TAG + "bool"}
_Loader.yaml_implicit_resolvers = {
    first: [entry for entry in entries if entry[0] not in _OWN]
    for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    _TAG + "bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    _TAG + "float",
    re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)


def load_cases(folders: Iterable[Path]) -> Iterator[Case]:
    """Every case below these folders, in order of file; versions by the folders' names."""
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(folder.rglob("*.yaml"))
        if not files:
            raise FileNotFoundError(f"{folder}: no cases")
        for file in files:
            yield from _load(file)


def _load(file: Path) -> Iterator[Case]:
    versions = [part for part in file.resolve().parts if part in {"v0", "v1"}]
    if not versions:
        raise ValueError(f"{file}: no folder above it is named v0 or v1")
    version: Any = versions[-1]
    document = yaml.load(file.read_bytes(), _Loader) or {}
    for raw in document.get("cases", []):
        expected = raw.get("want_result")
        yield Case(
            note=raw["note"],
            query=raw["query"],
            version=version,
            file=str(file),
            modules=tuple(raw.get("modules") or ()),
            data=_json(raw.get("data") or {}),
            input=_json(raw.get("input")),
            has_input=raw.get("input") is not None,
            input_term=raw.get("input_term"),
            want_result=None if expected is None else tuple(map(_json, expected)),
            want_error=raw.get("want_error"),
            want_error_code=raw.get("want_error_code"),
            sort_bindings=raw.get("sort_bindings", False),
            strict_error=raw.get("strict_error", False),
            env=raw.get("env") or {},
        )


def _json(value: Any) -> Any:
    """Returns a value as JSON carries it: keys are strings, and a whole float is an integer."""
    if isinstance(value, dict):
        return {_name(name): _json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_json(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


def _name(name: Any) -> str:
    if isinstance(name, bool):
        return "true" if name else "false"
    return str(name)

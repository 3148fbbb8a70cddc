"""Gatekeeper's test suites (``test.gatekeeper.sh``, ``Suite``), read from files."""

from __future__ import annotations

import os.path
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.api.documents import InvalidDocument, read_objects
from webhook.api.gvk import gvk_of
from webhook.parsers import utf8_of
from webhook.parsers.errors import ParseError
from webhook.policies.assertion import Assertion, read_assertion
from webhook.policies.field_lines import FieldLines
from webhook.policies.manifests import find_files, is_stream
from webhook.policies.supporting_files import SUITES
from webhook.printable import nearest_name
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.api.yaml_reader import FileDocument

GROUP: Final = SUITES
KIND: Final = "Suite"
_EXTENSIONS: Final = frozenset({".yaml", ".yml"})


_Path: TypeAlias = "tuple[str | int, ...]"


class InvalidSuite(ValueError):
    """A suite cannot be read; the message names its file."""


@dataclass(frozen=True, slots=True)
class Case:
    """One object (a file) under the test's constraint, and the expected violations."""

    name: str
    object: str
    inventory: tuple[str, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    mutated: str = ""
    """The file with the object expected from the test's mutators."""
    providers: Mapping[str, str] = field(default_factory=dict)
    """Files of providers' answers, by the providers' names; they override the test's."""
    skip: bool = False


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """A template with a constraint, both files, and cases; or an invalid constraint."""

    name: str
    template: str
    constraint: str
    expansion: str = ""
    target: str = ""
    """The file that declares the template's target, if any."""
    exceptions: str = ""
    """The file of exceptions from the test's constraint."""
    mutators: str = ""
    """The file of mutators that are applied before the review; with them a test may lack a
    template."""
    providers: Mapping[str, str] = field(default_factory=dict)
    """Files of providers' answers, by the providers' names; they override the suite's."""
    cases: tuple[Case, ...] = ()
    invalid: bool = False
    skip: bool = False


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one file."""

    path: Path
    tests: tuple[SuiteTest, ...]
    skip: bool = False
    providers: Mapping[str, str] = field(default_factory=dict)
    """Files of providers' answers, by the providers' names."""
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    line: int = 1
    """Its first line in the file."""
    text: str = field(default="", repr=False)
    """The file, as a pipe can be read only once."""

    def naming(self, file: Path, test: int, case: int | None = None) -> str:
        """Returns where a test or case names a file: file, line and field; empty for nowhere."""
        of_test = self.document["tests"][test]
        places: list[tuple[_Path, Any]] = [
            (("tests", test, key), value) for key, value in of_test.items() if key != "cases"
        ]
        places.append((("providers",), self.document.get("providers")))
        if case is not None:
            places.insert(0, (("tests", test, "cases", case), of_test["cases"][case]))
        for start, value in places:
            for path, name in _names(value, start):
                if self.join(name) == file:
                    return self._place_of(path)
        return ""

    def _place_of(self, path: _Path) -> str:
        """Returns file, line and path of a field."""
        line = FieldLines(self.text).line(self.line, self.document, "", path)
        shown = "".join(f"[{step}]" if type(step) is int else f".{step}" for step in path)
        return f"{self.path}:{line}: {shown.lstrip('.')}"

    def join(self, name: str) -> Path:
        """Returns the file of a name in the suite."""
        return Path(os.path.normpath(self.folder / name.lstrip("/")))

    @property
    def folder(self) -> Path:
        """Returns the base folder of file names: the suite's, or the working folder for a pipe."""
        return Path() if is_stream(self.path) else self.path.parent


def find_suites(path: Path) -> list[Suite]:
    """Returns the suites of a file or below a folder, in order of path.

    Raises :class:`InvalidSuite`, and OSError for a missing path. A named file must be YAML of any
    content; of a folder's files only suites are read.
    """
    piped = is_stream(path)
    named = path.is_file() or piped
    if named and not piped and path.suffix not in _EXTENSIONS:
        raise InvalidSuite(f'unsupported extension: "{path.suffix}" of {path}')
    suites = []
    for file in [path] if piped else find_files(path):
        if not piped and file.suffix not in _EXTENSIONS:
            continue
        raw = file.read_bytes()
        try:
            text = utf8_of(raw).decode()
        except ParseError as error:
            if named or GROUP.encode() in raw:
                raise InvalidSuite(f"invalid yaml: {file}: {error.message}") from None
            continue
        # Parsing every manifest of a library to find its suites would take most of the time.
        if named or (GROUP in text and KIND in text):
            suites += _read(file, text)
    return sorted(suites, key=lambda suite: str(suite.path))


def _read(file: Path, text: str) -> list[Suite]:
    """Returns the suites of a file; none for other files."""
    try:
        documents = read_objects(text, "suite")
    except InvalidDocument as error:
        raise InvalidSuite(f'invalid yaml: parsing yaml file "{file}": {error}') from None
    return [
        _suite(file, text, item)
        for item in documents
        if gvk_of(item.value).group_kind == (GROUP, KIND)
    ]


def _suite(file: Path, text: str, item: FileDocument) -> Suite:
    document = item.value
    try:
        _known(document, _SUITE_FIELDS, "")
        tests = tuple(
            _read_test(value, f"tests[{index}]")
            for index, value in enumerate(_items(document, "tests", ""))
        )
        return Suite(
            file,
            tests,
            _flag(document, "skip", ""),
            _providers(document, ""),
            document,
            item.line,
            text,
        )
    except ValueError as error:
        begun = str(error).partition(" ")[0]  # a path of one name is none among words
        line = FieldLines(text).line(item.line, document, str(error), [begun, 0])
        raise InvalidSuite(f"invalid yaml: {file}:{line}: {error}") from None


def _names(value: Any, path: _Path) -> Iterator[tuple[_Path, str]]:
    """Yields every text in a value, with its path."""
    if type(value) is str:
        yield path, value
    elif type(value) is dict or type(value) is list:
        for key, part in value.items() if type(value) is dict else enumerate(value):
            yield from _names(part, (*path, key))


def _read_test(value: Any, path: str) -> SuiteTest:
    _object(value, path)
    _known(value, _TEST_FIELDS, f"{path}.")
    cases = tuple(
        _read_case(item, f"{path}.cases[{index}]")
        for index, item in enumerate(_items(value, "cases", path))
    )
    return SuiteTest(
        name=_text(value, "name", path),
        template=_text(value, "template", path),
        constraint=_text(value, "constraint", path),
        expansion=_text(value, "expansion", path),
        target=_text(value, "target", path),
        exceptions=_text(value, "exceptions", path),
        mutators=_text(value, "mutators", path),
        providers=_providers(value, path),
        cases=cases,
        invalid=_flag(value, "invalid", path),
        skip=_flag(value, "skip", path),
    )


def _read_case(value: Any, path: str) -> Case:
    _object(value, path)
    _known(value, _CASE_FIELDS, f"{path}.")
    inventory = _items(value, "inventory", path)
    if not all(type(item) is str for item in inventory):
        raise ValueError(f"{path}.inventory must be an array of strings")
    assertions = []
    for index, item in enumerate(_items(value, "assertions", path)):
        try:
            assertions.append(read_assertion(item))
        except ValueError as error:
            raise ValueError(f"{path}.assertions[{index}]: {error}") from None
    return Case(
        name=_text(value, "name", path),
        object=_text(value, "object", path),
        inventory=tuple(inventory),
        assertions=tuple(assertions),
        mutated=_text(value, "mutated", path),
        providers=_providers(value, path),
        skip=_flag(value, "skip", path),
    )


_CASE_FIELDS: Final = tuple(item.name for item in fields(Case))
_TEST_FIELDS: Final = tuple(item.name for item in fields(SuiteTest))
_SUITE_FIELDS: Final = ("apiVersion", "kind", "metadata", "tests", "skip", "providers")


def _known(value: dict[str, Any], known: Sequence[str], path: str) -> None:
    """Raises for an unknown field: it would have no effect, and a test could pass by it."""
    if unknown := next((name for name in value if name not in known), None):
        near = nearest_name(unknown, known)
        advice = f'is "{near}" meant?' if near else f"there are {', '.join(known)}"
        raise ValueError(f"{path}{unknown}: unknown field: {advice}")


def _object(value: Any, path: str) -> None:
    if type(value) is not dict:
        raise ValueError(f"{path} must be an object")


def _items(owner: dict[str, Any], name: str, path: str) -> list[Any]:
    value = owner.get(name)
    if value is not None and type(value) is not list:
        raise ValueError(f"{path}.{name} must be an array".lstrip("."))
    return value or []


def _text(owner: dict[str, Any], name: str, path: str) -> str:
    value = owner.get(name)
    if value is not None and type(value) is not str:
        raise ValueError(f"{path}.{name} must be a string".lstrip("."))
    return value or ""


def _flag(owner: dict[str, Any], name: str, path: str) -> bool:
    value = owner.get(name)
    if value is not None and type(value) is not bool:
        raise ValueError(f"{path}.{name} must be a boolean".lstrip("."))
    return bool(value)


def _providers(owner: dict[str, Any], path: str) -> dict[str, str]:
    value = owner.get("providers")
    if value is None:
        return {}
    if type(value) is not dict or not all(type(text) is str for text in value.values()):
        raise ValueError(f"{path}.providers must be an object of strings".lstrip("."))
    return value

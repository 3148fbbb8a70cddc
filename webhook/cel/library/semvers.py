"""Semantic versions (github.com/blang/semver/v4, as k8s.io/apiserver uses it)."""

from __future__ import annotations

import re
from typing import Final, Self

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.values import UINT_MAX, Opaque
from webhook.golang.strings import quote

NAME: Final = "kubernetes.Semver"
_NUMBER: Final = re.compile(r"[0-9]+", re.ASCII)
_PART: Final = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_MAX_LENGTH: Final = 1000

_NAMES: Final = ("Major", "Minor", "Patch")


def _number(text: str, name: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if not _NUMBER.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name} number must not contain leading zeroes {quote(text)}")
    return _within(text)


def _within(text: str) -> int:
    """Returns a number of at most 64 bits; raises for a larger one."""
    number = int(text)
    if number > UINT_MAX:
        raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return number


def _parts(text: str, kind: str) -> tuple[str, ...]:
    parts = tuple(text.split("."))
    for part in parts:
        if not part:
            raise EvaluationError(f"{kind} is empty")
        if not _PART.fullmatch(part):
            raise EvaluationError(f"Invalid character(s) found in {kind.lower()} {quote(part)}")
        if kind == "Prerelease" and _NUMBER.fullmatch(part):
            if len(part) > 1 and part[0] == "0":
                raise EvaluationError(
                    f"Numeric PreRelease version must not contain leading zeroes {quote(part)}"
                )
            _within(part)
    return parts


def read(text: str) -> Opaque:
    """Reads a version; raises :class:`~webhook.cel.errors.EvaluationError`."""
    if not text:
        raise EvaluationError("Version string empty")
    fields = text.split(".", 2)
    if len(fields) != 3 or len(text) > _MAX_LENGTH:
        raise EvaluationError("No Major.Minor.Patch elements found")
    rest, _, build = fields[2].partition("+")
    patch, dash, release = rest.partition("-")
    written = (fields[0], fields[1], patch)
    numbers = tuple([_number(digits, name) for digits, name in zip(written, _NAMES, strict=True)])
    releases = _parts(release, "Prerelease") if dash else ()
    builds = _parts(build, "Build meta data") if "+" in fields[2] else ()
    return Opaque(NAME, Version(numbers, releases, builds), text)


class Version(tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]):
    """Numbers, pre-release and build of a version; equality ignores the build."""

    __slots__ = ()

    def __new__(
        cls, numbers: tuple[int, ...], releases: tuple[str, ...], builds: tuple[str, ...]
    ) -> Self:
        """Makes a version from all its parts."""
        return super().__new__(cls, (numbers, releases, builds))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and _compare(self, other) == 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self[0], self[1]))


def _key(part: str) -> tuple[bool, int, str]:
    return (False, int(part), "") if _NUMBER.fullmatch(part) else (True, 0, part)


def _compare(first: Version, other: Version) -> int:
    a, b = first[0], other[0]
    if a != b:
        return 1 if a > b else -1
    if not first[1] or not other[1]:
        return bool(other[1]) - bool(first[1])
    left, right = [_key(part) for part in first[1]], [_key(part) for part in other[1]]
    return (left > right) - (left < right)


def _normalised(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            digit = stripped[:1] in set("0123456789")
            parts[index] = stripped if stripped and digit else "0" + stripped
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


@form("semver", str)
@form("semver", str, bool)
def semver(text: str, normalise: bool = False) -> Opaque:
    """Returns a version; with ``normalise`` also from a short form such as ``v1.2``."""
    return read(_normalised(text) if normalise else text)


@form("isSemver", str)
@form("isSemver", str, bool)
def is_semver(text: str, normalise: bool = False) -> bool:
    """Returns whether a text is a version."""
    try:
        semver(text, normalise)
    except EvaluationError:
        return False
    return True


@form("major", NAME)
def major(version: Opaque) -> int:
    """Returns the major version."""
    return int(version.value[0][0])


@form("minor", NAME)
def minor(version: Opaque) -> int:
    """Returns the minor version."""
    return int(version.value[0][1])


@form("patch", NAME)
def patch(version: Opaque) -> int:
    """Returns the patch version."""
    return int(version.value[0][2])


@form("compareTo", NAME, NAME)
def compare(first: Opaque, other: Opaque) -> int:
    """Returns -1, 0 or 1, as the first version is earlier, equal or later."""
    return _compare(first.value, other.value)


@form("isGreaterThan", NAME, NAME)
def is_greater(first: Opaque, other: Opaque) -> bool:
    """Returns whether a version is later."""
    return compare(first, other) > 0


@form("isLessThan", NAME, NAME)
def is_less(first: Opaque, other: Opaque) -> bool:
    """Returns whether a version is earlier."""
    return compare(first, other) < 0

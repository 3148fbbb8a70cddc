"""Built-ins on semantic versions.

Documented in OPA's reference under "SemVer"; behaviour from v1/topdown/semver.go
and internal/semver.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.golang.strings import quote
from webhook.rego.builtins.registry import builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.types import ANY, BOOLEAN, NUMBER, STRING

if TYPE_CHECKING:
    from webhook.rego.run.values import Value

_VERSION: Final = re.compile(
    r"v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\Z",
    re.ASCII,
)
_LEADING_ZERO: Final = re.compile(r"(?:^|\.)0\d+(?:\.|$)", re.ASCII)

Version = tuple[int, int, int, str]


def _parse(version: str) -> Version | None:
    match = _VERSION.match(version)
    if match is None or any(len(part) > 19 or int(part) >= 1 << 63 for part in match.groups()[:3]):
        return None
    release = match[4] or ""
    if _LEADING_ZERO.search(release):
        return None
    return int(match[1]), int(match[2]), int(match[3]), release


@builtin("semver.is_valid", ANY, result=BOOLEAN)
def is_valid(version: Value) -> bool:
    """Returns whether the value is a semantic version; a leading ``v`` is allowed."""
    return type(version) is str and _parse(version) is not None


@builtin("semver.compare", STRING, STRING, result=NUMBER)
def compare(a: str, b: str) -> int:
    """Returns -1, 0 or 1 as ``a`` comes before, with or after ``b``."""
    versions = []
    for position, text in enumerate((a, b), 1):
        version = _parse(text)
        if version is None:
            raise BuiltinError(f"operand {position}: string {quote(text)} is not a valid SemVer")
        versions.append(version)
    x, y = versions
    if x[:3] != y[:3]:
        return 1 if x[:3] > y[:3] else -1
    return _compare_releases(x[3], y[3])


def _compare_releases(a: str, b: str) -> int:
    """Compares releases: pre-releases come first; their identifiers compare in turn."""
    if a == b:
        return 0
    if not a or not b:
        return 1 if not a else -1
    ours, theirs = a.split("."), b.split(".")
    for x, y in zip(ours, theirs, strict=False):
        if x == y:
            continue
        if x.isdigit() != y.isdigit():
            return -1 if x.isdigit() else 1
        if x.isdigit():
            # Go's Atoi stops at the largest machine integer.
            i, j = (min(int(part[:20]), (1 << 63) - 1) for part in (x, y))
            if i != j:
                return 1 if i > j else -1
        else:
            return 1 if x > y else -1
    return (len(ours) > len(theirs)) - (len(ours) < len(theirs))
